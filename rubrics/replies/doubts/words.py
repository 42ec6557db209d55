"""A reply in words and sentences, once: whether any of a long list stands in it is then one look. No meaning is read here."""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rubrics.replies.numbers import WHITE_SPACE, ZERO_WIDTH

_APOSTROPHES = "'’‘`´ʼ＇"
_PARTING = '.,;:!?()[]{}<>"“”„«»*_#|/\\-–—…=+~&\t\n\r。，；：！？、（）【】「」《》／·'
_N_MOVED_MAX = 40


class _Table(NamedTuple):
    """For str.translate, and of the same the signs that become others: none of these is one of them."""

    every: Mapping[int, str]
    moved: Mapping[str, str]


def _table(moved: Mapping[str, str]) -> _Table:
    """With every ASCII character, which makes translate() twice as fast."""
    return _Table({code: chr(code) for code in range(128)} | {ord(sign): other for sign, other in moved.items()}, moved)


_FLAT = dict.fromkeys(_PARTING, " ") | dict.fromkeys(_APOSTROPHES + ZERO_WIDTH, "")
_AS_WORDS = _table(_FLAT)
_AS_LINES_OF_WORDS = _table({sign: other for sign, other in _FLAT.items() if sign != "\n"})

N_READ = 100_000
_N_HEAD, _N_TAIL = 6000, 2000
_SENTENCE = re.compile(r"[^.!?;\n]*+(?:\.(?=[0-9])[^.!?;\n]*+)*+[.!?;\n]?+")
# Plain quotes and marks; and for a blank whatever parts words and ends no sentence.
_PLAIN = _table(
    dict(zip("’‘`´ʼ＇，。；：！？（）【】", "'''''',.;:!?()[]", strict=True))
    | dict.fromkeys({*WHITE_SPACE, *'*_#>"“”„«»\\', *ZERO_WIDTH} - {" ", "\n"}, " ")
)
_NO_SENTENCE = frozenset({"", " ", "\n"})
# Each opens with the sign itself, not with what stands before it: re skips from one to the next.
_SINGLE = r"(?<=[\w,;:(] ')(?=[^'\n]{1,120} )(?:[^'\n]|'(?=\w)){1,200}'(?!\w)|(?<=[\w,;:(] [“‘«„])(?=[^”’»“\n]{1,120} )[^”»“\n]{1,200}[”’»“]"
_QUOTED = re.compile(rf"""['“‘«„"](?:{_SINGLE}|(?<=[a-z,;] ")(?=[^"\n]{{1,120}} )[^"\n]{{1,200}}")""")
_QUOTED_IN_JSON = re.compile(rf"""['“‘«„\\](?:{_SINGLE}|(?<=[\w,;:(] \\)"(?=[^"\n]{{1,120}} )[^"\n]{{1,200}}\\")""")
# Before either stands a word and a blank: most replies hold none of these.
_OPENINGS = (" '", ' "', " “", " ‘", " «", " „")
_OPENINGS_IN_JSON = (" '", ' \\"', " “", " ‘", " «", " „")
_HAS_NO_WIDTH = re.compile(f"[{ZERO_WIDTH}]")


class Sentence(NamedTuple):
    """In small letters, with plain quotes and marks, without emphasis, one space between words; and its distinct words."""

    text: str
    words: frozenset[str]


class Sentences:
    """Those of a text's first 6,000 and last 2,000 characters: at one of them a judge says what it thinks of the whole.

    `words` are the distinct words of all: what they do not hold is looked for in no sentence. A number's point ends none.
    """

    def __init__(self, text: str) -> None:
        self.is_whole = len(text) <= _N_HEAD + _N_TAIL
        if not self.is_whole:
            text = f"{text[:_N_HEAD]}\n{text[-_N_TAIL:]}"
        plain = _translated(text.lower(), _PLAIN)
        while "  " in plain:
            plain = plain.replace("  ", " ")
        found = _SENTENCE.findall(plain.replace(" \n", "\n"))
        self._texts = [one.replace("\n", " ") for one in found if one not in _NO_SENTENCE]
        self._flat = _translated("\n".join(self._texts), _AS_LINES_OF_WORDS)
        self.is_ascii = plain.isascii()
        self.words = frozenset(self._flat.split())

    @functools.cached_property
    def each(self) -> list[Sentence]:
        """The sentences, in their order."""
        flats = self._flat.split("\n") if self._texts else []
        return [Sentence(text, frozenset(flat.split())) for text, flat in zip(self._texts, flats, strict=True)]


_NOT_AS_LOWER = re.compile("[\u0130\u0131\u017f\u212a]")  # what re.IGNORECASE takes for i, s and k, and lower() does not


def lowered(text: str) -> str | None:
    """The text in small letters, for `holds_any`; None where it has letters that only re.IGNORECASE takes for others."""
    return None if not text.isascii() and _NOT_AS_LOWER.search(text) else text.lower()


def holds_any(lower: str | None, needles: Iterable[str]) -> bool:
    """Whether one of the needles, in small letters, may be in a text that was `lowered`.

    What a pattern cannot do without is looked for first: that is some fifty times cheaper than the pattern.
    """
    return lower is None or any(needle in lower for needle in needles)


def holds_each(lower: str | None, needles: Iterable[Iterable[str]]) -> bool:
    """Whether `holds_any` of each of several lists."""
    if lower is None:
        return True
    for one_of in needles:
        for needle in one_of:
            if needle in lower:
                break
        else:
            return False
    return True


@functools.cache
def compiled(way: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A pattern, compiled when it is first looked for: a process meets few of them, and all take a third of a second."""
    return re.compile(way, flags)


def words_of(text: str, sentences: Sentences, *, is_unquoted: bool) -> frozenset[str]:
    """The distinct words of the text's first and last 100,000 characters: its sentences', where they are all of it.

    `is_unquoted`: nothing of the text was blanked. What has no width parts words for sentences alone.
    """
    if is_unquoted and sentences.is_whole and (text.isascii() or not _HAS_NO_WIDTH.search(text)):
        return sentences.words
    if len(text) > 2 * N_READ:
        text = f"{text[:N_READ]} {text[-N_READ:]}"
    return frozenset(_translated(text.lower(), _AS_WORDS).split())


def without_quotations(text: str, *, is_json: bool) -> str:
    """The text with its quotations of several words blanked, every other character in its place.

    What is quoted is written in the picture or in the prompt: a sign that reads "no image available" says nothing of the judge. A
    whole reply in quotes, and the strings of an object, are no quotations: one follows a word.
    """
    for opening in _OPENINGS_IN_JSON if is_json else _OPENINGS:
        if opening in text:
            return (_QUOTED_IN_JSON if is_json else _QUOTED).sub(lambda found: " " * len(found[0]), text)
    return text


def _translated(text: str, table: _Table) -> str:
    """As str.translate, which is slow as soon as one character is not ASCII: few of the signs stand in one text."""
    if text.isascii():
        return text.translate(table.every)
    moved = table.moved.keys() & frozenset(text)
    if len(moved) > _N_MOVED_MAX:
        return text.translate(table.every)
    for sign in moved:
        text = text.replace(sign, table.moved[sign])
    return text
