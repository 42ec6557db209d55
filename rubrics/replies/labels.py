"""The prompt's labels as a reply may write them, case and typography aside. What stands behind a label is not read here."""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from rubrics.model import Dimension
from schemas.pointers import steps

# Vowel signs and accents that stand behind their letter: no letters to Python, and parts of a word all the same.
_SIGNS = "".join(
    sign for sign in map(chr, (*range(0x300, 0x2100), *range(0x3000, 0x3100), *range(0xA600, 0xAC00), *range(0xFE20, 0xFE30)))
    if unicodedata.category(sign) in {"Mn", "Mc"}
)  # fmt: skip
_IN_WORD = rf"(?:[^\W_]|[{_SIGNS}])"
_WORDS = re.compile(rf"[^\W_]{_IN_WORD}*+")
_BETWEEN_WORDS = r"[\s_\-‐‑‒–—―*&]{0,3}+"
_LABEL_LENGTH_MAX = 120


def folded(word: str) -> str:
    """An answer's word: case and the amount of white space aside."""
    return " ".join(word.casefold().split())


def normal(label: str) -> str:
    """Letters and digits alone, case folded: "Overall Score", "overall-score" and "overall_score" are one label."""
    return _normal(label[:_LABEL_LENGTH_MAX])


@lru_cache(maxsize=8192)
def _normal(label: str) -> str:
    return "".join(_WORDS.findall(unicodedata.normalize("NFC", label))).casefold()


@lru_cache(maxsize=256)
def keys_by_label(dimensions: tuple[Dimension, ...]) -> Mapping[str, tuple[Dimension, ...]]:
    """Normalised label -> the dimensions it stands for: one, unless pointers take several from one list."""
    found: dict[str, dict[str, Dimension]] = {}
    for dimension in dimensions:
        for label in _labels(dimension):
            found.setdefault(normal(label), {})[dimension.key] = dimension
    return {label: tuple(named.values()) for label, named in found.items()}


@lru_cache(maxsize=256)
def label_pattern(dimensions: tuple[Dimension, ...]) -> str:
    """A regular expression for any label, as a word of its own; its words may be parted by a space, a hyphen, _ or nothing.

    It opens with a character class, which lets re skip to a candidate; under re.IGNORECASE it would try each position.
    Longer labels come first. "Sub-Score" is not the label "Score". An accent may be one with its letter, or stand behind it.
    """
    labels = [label for dimension in dimensions for label in _labels(dimension)]
    written = (_lower(unicodedata.normalize(form, label)) for label in labels for form in ("NFC", "NFD"))
    words = {tuple(_WORDS.findall(label)) for label in written} - {()}
    firsts = sorted({case for parts in words for case in _cases(parts[0][0])})
    rests = []
    for parts in sorted(words, key=lambda parts: len("".join(parts)), reverse=True):
        rest = _BETWEEN_WORDS.join(map(re.escape, (parts[0][1:], *parts[1:])))
        rests.append(f"(?<=[{''.join(map(re.escape, _cases(parts[0][0])))}])(?i:{rest})")
    start = f"[{''.join(map(re.escape, firsts))}]"
    if all(len(parts[0]) > 1 for parts in words):  # a second letter to look at makes most candidates cheap
        start += f"(?=[{''.join(map(re.escape, sorted({case for parts in words for case in _cases(parts[0][1])})))}])"
    before = r"(?<![^\W_].)(?<![^\W_][-_‐–/'’].)"
    if not "".join(labels).isascii():
        before += rf"(?<![{_SIGNS}].)"
    return rf"{start}{before}(?:{'|'.join(rests)})(?!{_IN_WORD})"


@lru_cache(maxsize=256)
def key_patterns(dimensions: tuple[Dimension, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """(a label used as a JSON key, with its colon; the same, or a label in quotes)."""
    label = label_pattern(dimensions)
    with_colon = rf"{label}[\"'“”‘’*_`\s]*+[:=：]"
    return re.compile(with_colon), re.compile(rf"{label}(?:[\"'“”‘’*_`\s]*+[:=：]|\s*+[\"'”’])")


def _lower(label: str) -> str:
    """In small letters where that moves none: İ would be two."""
    return "".join(lower if len(lower := sign.lower()) == 1 else sign for sign in label)


def _cases(letter: str) -> list[str]:
    return sorted({case for case in (letter, letter.lower(), letter.upper()) if len(case) == 1})


def _labels(dimension: Dimension) -> tuple[str, ...]:
    """With pointers the labels are the names they start at."""
    if dimension.at is not None:
        return tuple(str(steps(place)[0]) for place in (dimension.at, *dimension.or_at))
    return (*dimension.labels, dimension.key)
