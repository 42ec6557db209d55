"""A list of the items' answers, by position or by id. A list of another length than the items' is no score."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from rubrics.model import Dimension
from rubrics.replies.items.answers import Answers, of_item, value_of
from rubrics.replies.json_objects import decoded
from rubrics.replies.labels import key_patterns, normal
from rubrics.replies.numbers import BLANK
from rubrics.replies.tolerant_json import Broken, Cut, Hopeless, ObjectReader, Pairs
from schemas.statuses.rows import ParseReason

_N_LISTS_MAX = 100
_IDS = frozenset({"id", "itemid", "item", "question", "questionid", "index", "number", "no"})
_ENTRIES = re.compile(r"(\"(?:[^\"\\\n]|\\.){0,200}+\"|'(?:[^'\\\n]|\\.){0,200}+'|[^,\[\]\n]{1,200}+)")


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
    return [value_of(entry, of_item(dimension, item)) for entry, item in zip(entries, items, strict=True)]


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


@lru_cache(maxsize=256)
def _tag(labels: tuple[str, ...]) -> re.Pattern[str]:
    named = "|".join(map(re.escape, labels))
    return re.compile(rf"<(?i:{named})>([^<>]{{0,20000}}+)</(?i:{named})>")


@lru_cache(maxsize=256)
def _opened(labels: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<(?i:{'|'.join(map(re.escape, labels))})>")
