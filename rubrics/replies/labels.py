"""The prompt's labels as a reply may write them, case and typography aside; whose item a line says it is.

What stands behind a label is not read here.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from rubrics.model import Dimension, Items
from schemas.pointers import steps

_WORDS = re.compile(r"[^\W_]++")
_BETWEEN_WORDS = r"[\s_\-‐‑‒–—―*&]{0,3}+"
_LABEL_LENGTH_MAX = 120
_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OWN_NUMBER = re.compile(r"[^A-Za-z0-9]{0,8}+(?:item|question|answer|number|[a-z]{1,2})?[^A-Za-z0-9]{0,3}+[0-9]", re.IGNORECASE)
_TEXT_ENDS = re.compile(r"[*_\s]{0,4}+(?:[:：=–—]|-\s)")


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


def whose_by_text(lines: Sequence[str], items: Sequence[Mapping[str, Any]]) -> list[int]:
    """Each line's place among the items by the text it begins with; none where a line says none, two, or one said before."""
    named = [_said_back(line, items) for line in lines]
    places = [places[0] for places in named if len(places) == 1]
    return places if len(places) == len(lines) == len(set(places)) else []


def whose_by_number(
    numbers: Sequence[str | None], lines: Sequence[str], items: Sequence[Mapping[str, Any]], declared: Items
) -> list[int]:
    """Each line's place among the items by the number before it, counted from 1 or 0.

    None unless they rise to the last item's (a judge that numbers the lines it writes ends before it), at least two of them, no
    line says another item's text, and the judge can have been shown no other numbers: as ids, in the texts or in other fields.
    """
    said = [int(number) for number in numbers if number]
    if len(said) < max(2, len(lines)) or said != sorted(set(said)):
        return []
    first = int(said[-1] == len(items))
    places = [number - first for number in said]
    if places[0] < 0 or places[-1] != len(items) - 1 or (places[0] and not first):
        return []
    if any({*_said_back(line, items)} - {place} for line, place in zip(lines, places, strict=True)):
        return []
    return places if _are_places(items, declared) else []


def _are_places(items: Sequence[Mapping[str, Any]], declared: Items) -> bool:
    """Whether a number before an answer can only be its item's place."""
    text, id_ = declared.fields.get("text"), declared.fields.get("id", "id")
    shown = [_SLOT.split(one.each) for one in declared.texts.values()]
    ids = [str(item.get("id", "")) for item in items] if any(id_ in parts[1::2] for parts in shown) else []
    return (
        all(len(parts) == 1 or (parts[1] in (text, id_) and not any(map(str.isdigit, parts[0]))) for parts in shown)
        and all(isinstance(item.get("text"), str) and not _OWN_NUMBER.match(item["text"]) for item in items)
        and (not any(map(str.isdigit, "".join(ids))) or ids in [[str(k + first) for k in range(len(ids))] for first in (0, 1)])
    )


def _said_back(line: str, items: Sequence[Mapping[str, Any]]) -> list[int]:
    """The places of the items with whose text a line begins, where the text ends there."""
    texts = [item.get("text") for item in items]
    return [
        place
        for place, text in enumerate(texts)
        if isinstance(text, str) and text and line.startswith(text)
        if not text[-1].isalnum() or _TEXT_ENDS.match(line, len(text))
    ]


def _cases(letter: str) -> list[str]:
    return sorted({case for case in (letter, letter.lower(), letter.upper()) if len(case) == 1})


def _labels(dimension: Dimension) -> tuple[str, ...]:
    """With pointers the labels are the names they start at."""
    if dimension.at is not None:
        return tuple(str(steps(place)[0]) for place in (dimension.at, *dimension.or_at))
    return (*dimension.labels, dimension.key)
