"""The prompt's labels as a reply may write them, case and typography aside. What stands behind a label is not read here."""

import re
from collections.abc import Mapping
from functools import lru_cache

from rubrics.model import Dimension
from schemas.pointers import steps

_WORDS = re.compile(r"[^\W_]++")
_BETWEEN_WORDS = r"[\s_\-‐‑‒–—―*&]{0,3}+"
_LABEL_LENGTH_MAX = 120


def folded(word: str) -> str:
    """An answer's word: case and the amount of white space aside."""
    return " ".join(word.casefold().split())


@lru_cache(maxsize=8192)
def normal(label: str) -> str:
    """Letters and digits alone, case folded: "Overall Score", "overall-score" and "overall_score" are one label."""
    return "".join(_WORDS.findall(label[:_LABEL_LENGTH_MAX])).casefold()


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
    Longer labels come first. "Sub-Score" is not the label "Score".
    """
    words = {tuple(_WORDS.findall(label.lower())) for dimension in dimensions for label in _labels(dimension)} - {()}
    firsts = sorted({case for parts in words for case in _cases(parts[0][0])})
    rests = []
    for parts in sorted(words, key=lambda parts: len("".join(parts)), reverse=True):
        rest = _BETWEEN_WORDS.join(map(re.escape, (parts[0][1:], *parts[1:])))
        rests.append(f"(?<=[{''.join(map(re.escape, _cases(parts[0][0])))}])(?i:{rest})")
    start = f"[{''.join(map(re.escape, firsts))}]"
    if all(len(parts[0]) > 1 for parts in words):  # a second letter to look at makes most candidates cheap
        start += f"(?=[{''.join(map(re.escape, sorted({case for parts in words for case in _cases(parts[0][1])})))}])"
    return rf"{start}(?<![^\W_].)(?<![^\W_][-_‐–/'’].)(?:{'|'.join(rests)})(?![^\W_])"


@lru_cache(maxsize=256)
def key_patterns(dimensions: tuple[Dimension, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """(a label used as a JSON key, with its colon; the same, or a label in quotes)."""
    label = label_pattern(dimensions)
    with_colon = rf"{label}[\"'“”‘’*_`\s]*+[:=：]"
    return re.compile(with_colon), re.compile(rf"{label}(?:[\"'“”‘’*_`\s]*+[:=：]|\s*+[\"'”’])")


def _cases(letter: str) -> list[str]:
    return sorted({case for case in (letter, letter.lower(), letter.upper()) if len(case) == 1})


def _labels(dimension: Dimension) -> tuple[str, ...]:
    """With pointers the labels are the names they start at."""
    if dimension.at is not None:
        return tuple(str(steps(place)[0]) for place in (dimension.at, *dimension.or_at))
    return (*dimension.labels, dimension.key)
