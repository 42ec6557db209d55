"""A list of the items' answers, by position or by id. A list of another length than the items' is no score."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from rubrics.model import Dimension
from rubrics.replies.doubts.flags import Flag, flag
from rubrics.replies.items.answers import Answers, of_item, value_of
from rubrics.replies.json_objects import objects_and_lists_in
from rubrics.replies.json_values import SCALE_KEYS, is_another_of_the_whole, is_other_scale, rival_keys
from rubrics.replies.labels import key_patterns, normal
from rubrics.replies.numbers import BLANK
from rubrics.replies.tolerant_json import ObjectReader, Pairs
from schemas.statuses.rows import ParseReason

_N_LISTS_MAX = 100
_IDS = frozenset({"id", "itemid", "item", "question", "questionid", "index", "number", "no"})
_ENTRIES = re.compile(r"(\"(?:[^\"\\\n]|\\.){0,200}+\"|'(?:[^'\\\n]|\\.){0,200}+'|[^,\[\]\n]{1,200}+)")


class Listed(NamedTuple):
    """The items' answers; where the first form that says them ends, and the last; the keys beside that may say they are none."""

    answers: Answers
    first: int = 0
    last: int = 0
    flags: Sequence[Flag] = ()


class _List(NamedTuple):
    entries: Sequence[Any]
    end: int


def read_list(text: str, dimension: Dimension, items: Sequence[Mapping[str, Any]], *, is_cut: bool) -> Listed:
    """The list in the dimension's tag, under its key, or alone; or an object by the items' ids. Two that differ are none.

    What stands before a tag is reasoning; a list of answers behind it, or under a key such as `final_score`, is another.
    """
    tags = islice(_tag(dimension.labels).finditer(text), _N_LISTS_MAX)
    tagged = [_List(_entries(found[1]), found.end()) for found in tags]
    values, reason = objects_and_lists_in(ObjectReader(text, key_patterns((dimension,))[0]), text, (dimension,))
    pairs = [pair for value, _, _ in values for pair in _pairs(value)]
    if not dimension.answers and any(normal(key) in SCALE_KEYS and is_other_scale(value, dimension) for key, value in pairs):
        return Listed(ParseReason.SCALE_MISMATCH)
    tags_end = tagged[0].end if tagged else 0
    alone = [(value, end) for value, _, end in values if end > tags_end and not isinstance(value, Pairs)]
    bare = [_List(found, end) for value, end in alone if (found := _by_id(value, items))]
    fitting = [one for one in bare if _is_answer(_by_position(one.entries, dimension, items))]
    if tagged:
        lists, others = tagged, fitting
    elif reason:
        return Listed(reason)
    else:
        named = [_List(found, end) for value, _, end in values for found in _named(value, dimension, items)]
        lists, others = [*named, *fitting] or bare, []
    others += [_List(found, end) for value, _, end in values for found in _rivals(value, dimension, items)]
    if not lists:
        return Listed(ParseReason.TRUNCATED if is_cut or _is_open(text, dimension.labels) else ParseReason.NOT_FOUND)
    read = [_by_position(one.entries, dimension, items) for one in lists]
    read += [said for one in others if _is_answer(said := _by_position(one.entries, dimension, items))]
    ends = [one.end for one in lists]
    flags = [found for key, value in pairs if (found := flag(key, value))]
    return Listed(read[0] if all(one == read[0] for one in read) else ParseReason.AMBIGUOUS, min(ends), max(ends), flags)


def _is_answer(read: Answers) -> bool:
    """Whether a list that nothing names is one of answers, and no words in brackets."""
    return isinstance(read, list) and any(value is not ParseReason.WRONG_TYPE for value in read)


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


def _named(value: list[Any], dimension: Dimension, items: Sequence[Mapping[str, Any]]) -> list[Sequence[Any]]:
    """The lists that an object holds under the dimension's label, and its own entries where its keys are the items' ids."""
    if not isinstance(value, Pairs):
        return []
    names = {*map(normal, dimension.labels), "list", "answers", "scores"}
    lists = [inner for key, inner in value if normal(key) in names and isinstance(inner, list)]
    return [found for one in [*lists, value] if (found := _by_id(one, items))]


def _rivals(value: list[Any], dimension: Dimension, items: Sequence[Mapping[str, Any]]) -> list[Sequence[Any]]:
    """The lists that an object holds under a key that takes the dimension's back: `final_score`, `corrected`."""
    if not isinstance(value, Pairs):
        return []
    rivals = rival_keys((dimension,))
    named = [(normal(key), inner) for key, inner in value if isinstance(inner, list)]
    lists = [inner for name, inner in named if name in rivals or is_another_of_the_whole(name)]
    return [found for one in lists for found in [_by_id(one, items), *_named(one, dimension, items)] if found]


def _pairs(value: list[Any]) -> Iterator[tuple[str, Any]]:
    """What an object says beside its answers, and what each entry of a list does."""
    if isinstance(value, Pairs):
        yield from value
    for inner in [value, *(inner for _, inner in value)] if isinstance(value, Pairs) else [value]:
        if isinstance(inner, list) and not isinstance(inner, Pairs):
            yield from (pair for entry in inner if isinstance(entry, Pairs) for pair in entry)


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
