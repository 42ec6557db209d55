"""How many tokens a text is, without a vocabulary: an estimate by the shape of its pieces, and a bound that always holds.

The pieces are those that byte-pair encoders of OpenAI's o200k family cut a text into before they merge; what each costs was
fitted to that vocabulary on English prose, captions and prompts. docs/cost.md names the error.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from os.path import commonprefix

# Words with the one sign or space before them, digits by threes, signs with line breaks after, white space, all beyond ASCII.
_PIECE = re.compile(
    r"[ !-/:-@\[-`{-~]?(?:[A-Z]?[a-z]+(?:'[a-z]{1,2}(?![a-z]))?|[A-Z]+)"
    r"|\d{1,3}| ?[!-/:-@\[-`{-~]+[\r\n]*|\s*[\r\n]+|\s+(?=\s)|\s|[^\x00-\x7f]+|."
)
_LINE = re.compile(r"[^\n]+\n*|\n+")

# Tokens of a word by its number of letters (index), of a longer one the last and so much for each letter beyond.
_AFTER_SPACE = (0, 1, 1, 1, 1, 1.01, 1.04, 1.05, 1.08, 1.12, 1.12, 1.26, 1.26, 1.3, 2.0, 2.0)
_CAPITALISED = (0, 1, 1, 1, 1.03, 1.05, 1.15, 1.16, 1.35, 1.4, 1.5, 1.6, 1.4, 1.5, 2.0, 2.2)
_AFTER_NOTHING = (0, 1, 1, 1.15, 1.1, 1.05, 1.05, 1.25, 1.4, 1.4, 1.8, 2.0, 2.4, 2.5, 3.0, 3.2)
_CAPITALS = (0, 1, 1, 1.2, 1.4, 1.9, 2.2, 2.6, 3.0, 3.3, 3.5, 3.8, 4.2, 4.5, 4.8, 5.1)
_EACH_LETTER_BEYOND = 0.35
_SIGN_BEFORE_WORD = {"-": 0.0, ",": 0.0, ".": 0.05, "'": 0.1, "_": 0.25, "(": 0.4, "/": 0.6, "\\": 0.3}
_OTHER_SIGN_BEFORE_WORD = 0.9

# Tokens of a character beyond ASCII: those below each first code point have the rate before it.
_FROM = (0x250, 0x370, 0x400, 0x530, 0x590, 0x600, 0x780, 0xE00, 0x1000, 0x2000, 0x2E80, 0x3400, 0xA000, 0xAC00, 0xD7B0, 0x10000)
_RATE = (0.75, 1.0, 0.48, 0.33, 0.7, 0.48, 0.4, 0.36, 0.52, 0.9, 1.05, 0.76, 0.85, 1.0, 0.8, 0.9, 1.7)


_STEM_FROM = 1_000
_KEY = 200
_MAX_STEMS = 256
_STEMS: dict[str, tuple[str, float]] = {}
"""By their first letters, what long texts have in common so far, and its tokens: a rubric's prompt before the sample's texts."""


def n_text_tokens(text: str) -> float:
    """Estimated tokens of a text. What long texts begin with in common is counted once."""
    if len(text) < _STEM_FROM:
        return _n_tokens(text)
    key = text[:_KEY]
    stem, n_stem = _STEMS.get(key, (None, 0.0))
    if stem is None or (stem and not _begins_with(text, stem)):
        stem = text if stem is None else _common_lines(stem, text)
        n_stem = _n_tokens(stem)
        if len(_STEMS) >= _MAX_STEMS:
            _STEMS.clear()
        _STEMS[key] = (stem, n_stem)
    return n_stem + _n_tokens(text[len(stem) :])


def _begins_with(text: str, stem: str) -> bool:
    """Whether the stem is the text, or whole lines at its beginning with all their line breaks."""
    n = len(stem)
    return text.startswith(stem) and (n == len(text) or (stem[-1] == "\n" and text[n] != "\n"))


def _common_lines(a: str, b: str) -> str:
    """The whole lines both begin with, up to a line break after which neither has another."""
    common = commonprefix([a, b])  # noqa: RUF071 - characters are what is compared, not paths
    end = common.rfind("\n", 0, max(0, len(common) - 1)) + 1
    while end and common[end] == "\n":
        end = common.rfind("\n", 0, end - 1) + 1
    return common[:end]


def _n_tokens(text: str) -> float:
    return sum(map(_n_line_tokens, _LINE.findall(text)))


def n_text_tokens_most(texts: Sequence[str]) -> int:
    """A bound no byte-level encoder passes: a token for each byte of UTF-8."""
    return sum(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts)


@lru_cache(maxsize=8192)
def _n_line_tokens(line: str) -> float:
    return sum(map(_n_piece_tokens, _PIECE.findall(line)))


@lru_cache(maxsize=16384)
def _n_piece_tokens(piece: str) -> float:
    if not piece.isascii():
        n_tokens = sum(_RATE[bisect_right(_FROM, ord(character))] for character in piece)
        return max(1.0, n_tokens - 0.5) if piece[0].isalpha() else n_tokens  # a space before it is part of the first token
    if piece[-1].isalpha():
        return _n_word_tokens(piece)
    signs = piece.strip()
    if len(signs) <= 2 or piece.isdigit():
        return 1.0
    is_run = signs == signs[0] * len(signs)
    return 1.0 + len(signs) // 32 if is_run else len(signs) * 0.58


def _n_word_tokens(piece: str) -> float:
    """A word with what stands before it: a space costs nothing, a sign seldom a whole token."""
    word = piece if piece[0].isalpha() else piece[1:]
    if len(word) > 1 and word[1] <= "Z":
        table = _CAPITALS
    elif word[0] <= "Z":
        table = _CAPITALISED
    else:
        table = _AFTER_SPACE if piece[0] == " " else _AFTER_NOTHING
    last = len(table) - 1
    n_letters = len(word)
    n_tokens = table[n_letters] if n_letters <= last else table[last] + (n_letters - last) * _EACH_LETTER_BEYOND
    is_alone = word is piece or piece[0] == " "
    return n_tokens if is_alone else n_tokens + _SIGN_BEFORE_WORD.get(piece[0], _OTHER_SIGN_BEFORE_WORD)
