"""Replies that answer several items: a line for each, or a list by position or by id. One answer's text is numbers.py's.

A list of another length than the items' is no score: which answer is whose would be a guess. But lines that each say whose they
are keep their answers where others were left out. An item whose own answer cannot be read has a reason of its own too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from rubrics.model import Dimension, Items
from rubrics.replies.json_objects import decoded
from rubrics.replies.labels import key_patterns, normal, whose_by_number, whose_by_text
from rubrics.replies.numbers import BLANK, Value, on_scale, read_number
from rubrics.replies.tolerant_json import Broken, Cut, Hopeless, ObjectReader, Pairs
from schemas.statuses.rows import ParseReason

_N_LINES_MAX = 2000
_N_LISTS_MAX = 100
_ENUMERATED = re.compile(
    r"[\s*_`#>-]{0,8}+(?:item|question|q|answer)?\s?\(?([0-9]{1,4}+)\s?(?:\.(?![0-9])|[):])\s*+", re.IGNORECASE
)
_BULLET = re.compile(r"[\s>]{0,8}+[-*•]\s++")
_LINE = re.compile(r"\r\n|[\r\n]")
_IDS = frozenset({"id", "itemid", "item", "question", "questionid", "index", "number", "no"})
_ANSWERS = frozenset({"answer", "score", "value", "verdict", "result", "judgement", "judgment"})
_ENTRIES = re.compile(r"(\"(?:[^\"\\\n]|\\.){0,200}+\"|'(?:[^'\\\n]|\\.){0,200}+'|[^,\[\]\n]{1,200}+)")

Answers = list[Value] | ParseReason


def of_item(dimension: Dimension, item: Mapping[str, Any]) -> Dimension:
    """The dimension as this item asks it: with its own choices, and 1 for the answer that is expected of it, else 0."""
    expected, choices = _texts(item.get("expected")), _texts(item.get("choices"))
    if not expected:
        return dimension
    words = choices or tuple(word for word, _ in dimension.answers) or expected
    right = {" ".join(word.casefold().split()) for word in expected}
    scored = tuple((word, float(" ".join(word.casefold().split()) in right)) for word in words)
    return replace(dimension, answers=scored)


def read_lines(text: str, dimension: Dimension, items: Sequence[Mapping[str, Any]], declared: Items | None = None) -> Answers:
    """A line for each item. Numbered lines may have others between them; an opening line that ends in a colon is no answer.

    A number said twice with two answers is none: which of them is meant would be a guess. With `declared`, how the items were
    shown, some lines may have been left out (MISSING_KEY) where each of the others says by itself whose it is.
    """
    lines = [line for line in _LINE.split(text, _N_LINES_MAX) if line.strip(BLANK)]
    found = [(one[1], line[one.end() :].strip()) for line in lines if (one := _ENUMERATED.match(line))]
    numbered = dict(found)
    if list(numbered) == [str(place) for place in range(1, len(items) + 1)]:
        if any(said != numbered[number] for number, said in found):
            return ParseReason.AMBIGUOUS
        lines = list(numbered.values())
    elif 1 < len(lines) <= len(items) + 1 and lines[0].rstrip(BLANK + "*").endswith((":", "：")):
        lines = lines[1:]
    if declared and len(lines) < len(items) and (kept := _read_some(lines, dimension, items, declared)):
        return kept
    if len(lines) != len(items):
        return (
            ParseReason.MALFORMED
            if len(lines) > len(items)
            else ParseReason.NOT_FOUND
            if len(lines) == 1
            else ParseReason.MISSING_KEY
        )
    said = [
        _value(_bare(line, item), of_item(dimension, item), is_prose_allowed=True)
        for line, item in zip(_unnumbered(lines), items, strict=True)
    ]
    is_any = any(value is not ParseReason.WRONG_TYPE for value in said)
    return said if is_any else ParseReason.NOT_FOUND


def _read_some(lines: Sequence[str], dimension: Dimension, items: Sequence[Mapping[str, Any]], declared: Items) -> list[Value]:
    """An answer for each item, MISSING_KEY where its line was left out; none at all where one line does not say whose it is."""
    bare = [line[bullet.end() :] if (bullet := _BULLET.match(line)) else line for line in lines]
    found = [_ENUMERATED.match(line) for line in bare]
    rest = [line[one.end() :] if one else line for line, one in zip(bare, found, strict=True)]
    places, is_prose_allowed = whose_by_text(rest, items), True
    if not places:
        # "3: 2, since one is cut" may say 3 for the second item: beside numbers the answer must be all of the line.
        places = whose_by_number([one and one[1] for one in found], rest, items, declared)
        is_prose_allowed = bool(dimension.answers)
    said = dict(zip(places, rest, strict=False))
    read = [
        _value(_bare(said[place], item), of_item(dimension, item), is_prose_allowed=is_prose_allowed)
        if place in said
        else ParseReason.MISSING_KEY
        for place, item in enumerate(items)
    ]
    return read if any(isinstance(value, Decimal) or value is ParseReason.NOT_APPLICABLE for value in read) else []


def _unnumbered(lines: Sequence[str]) -> list[str]:
    """Lines without their bullets, and without their numbers where these count them: a 4 before the third line is its answer."""
    bare = [line[bullet.end() :] if (bullet := _BULLET.match(line)) else line for line in lines]
    found = [_ENUMERATED.match(line) for line in bare]
    numbers = [int(one[1]) for one, line in zip(found, bare, strict=True) if one and len(line) > one.end()]
    if numbers not in [list(range(first, first + len(lines))) for first in (0, 1)]:
        return bare
    return [line[one.end() :] for one, line in zip(found, bare, strict=True) if one]


def _bare(line: str, item: Mapping[str, Any]) -> str:
    """A line without the item said back."""
    text = item.get("text")
    return line.strip().removeprefix(text).lstrip(" :*-–—") if isinstance(text, str) and text else line


def read_list(text: str, dimension: Dimension, items: Sequence[Mapping[str, Any]], *, is_cut: bool) -> Answers:
    """The list in the dimension's tag, under its key, or alone; or an object by the items' ids. Two that differ are none."""
    tag = _tag(dimension.labels)
    tagged = [found[1] for found in tag.finditer(text)][:_N_LISTS_MAX]
    lists: list[Any] = [_entries(inner) for inner in tagged] or _lists(text, dimension, items)
    if not lists:
        return ParseReason.TRUNCATED if is_cut or _is_open(text, dimension.labels) else ParseReason.NOT_FOUND
    read = [_by_position(one, dimension, items) for one in lists]
    return read[0] if all(one == read[0] for one in read) else ParseReason.AMBIGUOUS


def _by_position(entries: Sequence[Any], dimension: Dimension, items: Sequence[Mapping[str, Any]]) -> Answers:
    if len(entries) != len(items):
        return ParseReason.MALFORMED if len(entries) > len(items) else ParseReason.MISSING_KEY
    return [_value(entry, of_item(dimension, item)) for entry, item in zip(entries, items, strict=True)]


def _value(entry: Any, dimension: Dimension, *, is_prose_allowed: bool = False) -> Value:
    if isinstance(entry, Pairs):
        named = [value for key, value in entry if normal(key) in _ANSWERS]
        entry = named[0] if len(named) == 1 else None
    if not isinstance(entry, str) or not entry.strip(BLANK):
        return ParseReason.WRONG_TYPE
    said = read_number(str(entry), dimension, is_prose_allowed=is_prose_allowed)
    return said if isinstance(said, ParseReason) else on_scale(said, dimension)


def _entries(inner: str) -> list[str]:
    """[1, 0, "N/A"] with or without its brackets. What is neither a list nor numbers with commas has the entries it has."""
    stripped = inner.strip(BLANK)
    if stripped.startswith("[") and stripped.endswith("]"):
        stripped = stripped[1:-1]
    entries = [found[1].strip(BLANK) for found in _ENTRIES.finditer(stripped) if found[1].strip(BLANK)]
    n_commas = _ENTRIES.sub("", stripped.rstrip(BLANK + ",")).count(",")
    return entries if n_commas < len(entries) else []  # [1,,0]: one has no answer


def _lists(text: str, dimension: Dimension, items: Sequence[Mapping[str, Any]]) -> list[Sequence[Any]]:
    """Every JSON list of the text that is the whole of it, or stands in an object under the dimension's label or by ids."""
    text = decoded(text)
    opening = min((place for place in (text.find("["), text.find("{")) if place >= 0), default=-1)
    if opening < 0:
        return []
    end = max(text.rfind("]"), text.rfind("}")) + 1
    # The reader reads objects: a list is one's only value.
    wrapped = f'{{"list": {text[opening:end]}}}' if text[opening] == "[" else text[opening:end]
    try:
        root, _ = ObjectReader(wrapped, key_patterns((dimension,))[0]).read(0)
    except (Broken, Cut, Hopeless):
        return []
    labels = {normal(label) for label in dimension.labels} | {"list", "answers", "scores"}
    by_label = [value for key, value in root if normal(key) in labels and isinstance(value, list)]
    found = [one for one in (_by_id(value, items) for value in [*by_label, root]) if one is not None]
    return [one for one in found if one]


def _by_id(value: Any, items: Sequence[Mapping[str, Any]]) -> Sequence[Any] | None:
    """Entries in the items' order: an object whose keys are their ids, a list of objects with ids, or a plain list.

    Where what the entries say of themselves does not fit their places there is one entry too many: whose is whose is not said.
    """
    ids, texts = ([str(item.get(name, "")) for item in items] for name in ("id", "text"))
    if isinstance(value, Pairs):
        keys = [key for key, _ in value]
        return [dict(value)[name] for name in ids] if sorted(keys) == sorted(ids) else None
    named = [{normal(key): str(inner) for key, inner in one if normal(key) in _IDS} for one in value if isinstance(one, Pairs)]
    if not named or len(value) != len(items) or len(named) != len(value):
        return list(value)
    orders = [_order([one[name] for one in named], ids, texts) for name in named[0] if all(name in one for one in named)]
    if not orders:
        return list(value)
    return [value[place] for place in orders[0]] if orders[0] and all(one == orders[0] for one in orders) else [*value, None]


def _order(said: Sequence[str], ids: Sequence[str], texts: Sequence[str]) -> list[int]:
    """Of each item the place of the entry that names it; none where the names are the items' and do not fit, or count wrongly."""
    places = range(len(said))
    for known in (ids, texts):
        if len(set(said)) == len(said) and sorted(said) == sorted(known):
            return [said.index(name) for name in known]
    is_counted = list(said) in [[str(place + first) for place in places] for first in (0, 1)]
    is_other = len(set(said)) == len(said) and set(said).isdisjoint([*ids, *texts]) and not all(map(str.isdigit, said))
    return list(places) if is_counted or is_other else []


def _is_open(text: str, labels: Sequence[str]) -> bool:
    """Whether a form began that never ended: a tag or a bracket is open."""
    bare = text.rstrip(BLANK)
    return bool(_opened(tuple(labels)).search(text)) or (
        text.lstrip(BLANK)[:1] in {"[", "{", "<"} and bare[-1:] not in {"]", "}", ">"}
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str) and one.strip()) if isinstance(value, list) else ()


@lru_cache(maxsize=256)
def _tag(labels: tuple[str, ...]) -> re.Pattern[str]:
    named = "|".join(map(re.escape, labels))
    return re.compile(rf"<(?i:{named})>([^<>]{{0,20000}}+)</(?i:{named})>")


@lru_cache(maxsize=256)
def _opened(labels: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<(?i:{'|'.join(map(re.escape, labels))})>")
