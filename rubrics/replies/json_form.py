"""The JSON form: which objects of a reply say a score, and under which key. How an object is read is tolerant_json.py."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum
from typing import Any

from rubrics.model import Dimension
from rubrics.replies.doubts.flags import N_TEXT_MAX, Flag, flag
from rubrics.replies.json_objects import PlacedObject, decoded, objects_in
from rubrics.replies.json_values import (
    AMENDED,
    SCALE_KEYS,
    SCORE,
    Said,
    is_another_of_the_whole,
    is_other_scale,
    is_text,
    is_words,
    note_of,
    own_numbers,
    rival_keys,
    rivals_by_name,
    says,
)
from rubrics.replies.labels import key_patterns, keys_by_label, normal
from rubrics.replies.numbers import Found
from rubrics.replies.tolerant_json import ObjectReader, Pairs
from schemas.statuses.rows import ParseReason

_DEPTH_MAX = 6
_ENUMERATION = re.compile(r"\s*+(?:\(?[a-zA-Z0-9]{1,2}[).:]|[*_#]{1,3})\s*+")
_ENUMERATED_AT = frozenset(").:")
_ASPECT_KEYS = frozenset({"aspect", "dimension", "criterion", "criteria", "metric", "name", "category", "key", "label"})
_N_ASPECT_KEYS_MAX = 12
_TAKING_BACK = frozenset(AMENDED) - {"final", "overall", "total"}
# A dimension called plainly "score" could be anything's; only these words around it say that it is the answer's.
_WRAPPER_WORD = re.compile(
    r"(?:scores?|evaluations?|results?|ratings?|response|reply|answer|output|assessments?|aspects?|individual|final|overall|judge?ments?"
    r"|reviews?|scoring|metrics?|dimensions?|criteria|images?|caption|data|json|details?|detailed|report|summary|object|model|and|the|of)"
)


class Standing(IntEnum):
    """What the keys around an object make of it: `score` in one of something else (ASIDE) is that thing's."""

    ASIDE = 0
    RIVAL = 1  # "corrected": {...} takes back what stands elsewhere
    ANSWER = 2


@dataclass(slots=True)
class _Collected:
    says: dict[str, list[Said]] = field(default_factory=dict)
    rivals: list[tuple[str, Said]] = field(default_factory=list)
    words: dict[str, Any] = field(default_factory=dict)  # under a dimension's key, in an object of texts
    notes: dict[str, str] = field(default_factory=dict)
    flags: list[Flag] = field(default_factory=list)


def read_json(text: str, dimensions: tuple[Dimension, ...], *, is_cut: bool) -> Found:
    """Everything the reply's JSON objects say. `is_cut`: the provider says the reply was stopped by its length."""
    text = decoded(text)
    objects, reason = objects_in(ObjectReader(text, key_patterns(dimensions)[0]), text, dimensions)
    if reason is None and not objects:
        reason = ParseReason.TRUNCATED if is_cut else ParseReason.NOT_FOUND
    if reason:
        return Found(reason=reason)
    found = _collected(objects, dimensions)
    values = {key: [value for value, _ in said] for key, said in found.says.items()}
    notes = {key: note for key, note in found.notes.items() if note}
    return Found(values, notes, between=_between(objects, len(text)), flags=found.flags)


def places_in_json(text: str, dimensions: tuple[Dimension, ...], scores: Mapping[str, float]) -> Mapping[str, tuple[int, int]]:
    """Where in a decoded text the leaf of each score begins and ends. They are read anew by the reader that knows places."""
    objects, _ = objects_in(ObjectReader(text, key_patterns(dimensions)[0], has_places=True), text, dimensions)
    found: dict[str, tuple[int, int]] = {}
    for key, said in _collected(objects, dimensions).says.items():
        for value, leaf in said:
            if key not in found and value == Decimal(str(scores[key])) and getattr(leaf, "at", None) is not None:
                found[key] = (leaf.at, leaf.end)
    return found


def _collected(objects: Sequence[PlacedObject], dimensions: tuple[Dimension, ...]) -> _Collected:
    found = _Collected()
    for pairs, _, _ in objects:
        _collect(pairs, dimensions, found)
    for key, (value, leaf) in found.rivals:
        if key in found.says and isinstance(value, Decimal):
            found.says[key].append((value, leaf))
    for key, words in found.words.items():
        if key not in found.says:
            found.says[key] = [(ParseReason.WRONG_TYPE, None)]
        elif not found.notes.get(key) and isinstance(words, str):
            found.notes[key] = words.strip()
    return found


def _between(objects: Sequence[PlacedObject], n_characters: int) -> tuple[tuple[int, int], ...]:
    """The stretches of the text that are in none of the objects."""
    ends = [0, *(end for _, _, end in objects)]
    return tuple(
        (end, start) for end, start in zip(ends, [*(start for _, start, _ in objects), n_characters], strict=True) if start > end
    )


def _collect(root: Pairs, dimensions: tuple[Dimension, ...], found: _Collected) -> None:
    labels, rivals = keys_by_label(dimensions), rival_keys(dimensions)
    for holder, standing in _holders(root, labels):
        named = [(name_of(key, labels), value) for key, value in holder]
        said = [(name, value) for name, value in named if name in labels and (standing is not Standing.ASIDE or name != SCORE)]
        if said:
            _collect_said(holder, said, standing, dimensions, found)
        if standing is not Standing.ASIDE and len(named) > len(said):
            for (key, value), (name, _) in zip(holder, named, strict=True):
                if name in labels:
                    continue
                taken_back = rivals.get(name)
                if taken_back is None and isinstance(value, str) and len(value) > N_TEXT_MAX:
                    continue  # a reason, as most are
                for dimension in taken_back or (rivals_by_name(name, dimensions) if is_another_of_the_whole(name) else ()):
                    found.rivals += [(dimension.key, one) for one in own_numbers(value, dimension)]
                if said_so := flag(key, value):
                    found.flags.append(said_so)


def _collect_said(
    holder: Pairs, said: list[tuple[str, Any]], standing: Standing, dimensions: tuple[Dimension, ...], found: _Collected
) -> None:
    """What one object says under the dimensions' keys. A text there is words about one that has its number elsewhere."""
    labels, times = keys_by_label(dimensions), Counter(name for name, _ in said)
    scales = [value for key, value in holder if normal(key) in SCALE_KEYS]
    for name, value in said:
        is_about = times[name] == 1 and is_words(value) and not labels[name][0].answers
        for dimension in labels[name]:
            if is_about:
                found.words.setdefault(dimension.key, value)
                continue
            values, note = says(name, value, dimension, dimensions)
            if isinstance(value, Pairs):
                found.flags += [one for key, inner in value if normal(key) != SCORE and (one := flag(key, inner))]
            if scales and any(is_other_scale(scale, dimension) for scale in scales):
                values = [(ParseReason.SCALE_MISMATCH, None)]
            if standing is Standing.RIVAL:
                found.rivals += [(dimension.key, one) for one in values]
                continue
            found.says.setdefault(dimension.key, []).extend(values)
            if dimension.key not in found.notes and any(isinstance(one, Decimal) for one, _ in values):
                found.notes[dimension.key] = note or note_of(holder, labels, is_of_one=len(dimensions) == 1)


def name_of(key: str, labels: Mapping[str, Any]) -> str:
    """The normalised key, less the number or letter that the prompt's own headings have: "a) Accuracy to Prompt"."""
    name = normal(key)
    if name in labels or not _ENUMERATED_AT.intersection(key[1:5]):
        return name
    return normal(_ENUMERATION.sub("", key, count=1))


def _holders(root: Pairs, labels: Mapping[str, Any]) -> Iterator[tuple[Pairs, Standing]]:
    """The object and those in it, but for the dimensions' own; and what the keys around each make of it."""
    waiting: list[tuple[Any, Standing, int]] = [(root, Standing.ANSWER, 0)]
    while waiting:
        value, standing, depth = waiting.pop()
        if isinstance(value, Pairs):
            yield _by_aspect(value, labels), standing
        if depth >= _DEPTH_MAX:
            continue
        if isinstance(value, Pairs):
            for key, inner in value:
                if isinstance(inner, list) and name_of(key, labels) not in labels:
                    waiting.append((inner, min(standing, _standing(key)), depth + 1))
        else:
            waiting.extend((inner, standing, depth + 1) for inner in value if isinstance(inner, list))


def _by_aspect(holder: Pairs, labels: Mapping[str, Any]) -> Pairs:
    """{"aspect": "detectability", "score": 9} says what {"detectability": {"score": 9}} does."""
    if SCORE in labels or len(holder) > _N_ASPECT_KEYS_MAX:
        return holder
    names = [value for key, value in holder if is_text(value) and normal(key) in _ASPECT_KEYS]
    if len(names) != 1 or name_of(names[0], labels) not in labels or any(name_of(key, labels) in labels for key, _ in holder):
        return holder
    return Pairs([(names[0], Pairs(pair for pair in holder if pair[1] is not names[0]))])


def _standing(key: str) -> Standing:
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key[:80]).lower())
    if not all(_WRAPPER_WORD.fullmatch(word) or word in _TAKING_BACK for word in words):
        return Standing.ASIDE
    return Standing.RIVAL if _TAKING_BACK.intersection(words) else Standing.ANSWER
