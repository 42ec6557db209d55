"""A list of the items' answers, by position or by id. A list of another length than the items' is no score."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from rubrics.model import Dimension
from rubrics.replies.doubts.flags import Flag, flag
from rubrics.replies.items.answers import Answers, of_item, value_of
from rubrics.replies.json_objects import objects_in
from rubrics.replies.json_values import SCALE_KEYS, is_another_of_the_whole, rival_keys
from rubrics.replies.labels import key_patterns, normal
from rubrics.replies.numbers import BLANK, DIGITS
from rubrics.replies.tolerant_json import Bare, Broken, Cut, Hopeless, ObjectReader, Pairs
from schemas.statuses.rows import ParseReason

_N_LISTS_MAX = 100
_N_STATED_MAX = 100
_IDS = frozenset({"id", "itemid", "item", "question", "questionid", "index", "number", "no"})
_ENTRIES = re.compile(r"(\"(?:[^\"\\\n]|\\.){0,200}+\"|'(?:[^'\\\n]|\\.){0,200}+'|[^,\[\]\n]{1,200}+)")


# A list that stands by itself on its line, behind a word such as `Corrected:` or in an object of its own; not one in a sentence.
_OF_A_LINE = re.compile(
    r"^[ \t*>]*+(?:[^\n\[\](){}.!?:=]{0,60}+[:=])?+[ \t*`]*+(?:\{[^\n\[\]{}]{0,60}+)?+"
    r"\[(?P<inside>[^\[\]\n]{1,2000}+)\][ \t*`}.]*+$",
    re.MULTILINE,
)


class Listed(NamedTuple):
    """The items' answers; where the first form that says them ends, and the last; the keys beside that may say they are none."""

    answers: Answers
    first: int = 0
    last: int = 0
    flags: Sequence[Flag] = ()


class _Form(NamedTuple):
    """What a reply answers with: lists that must say the same, the keys beside, and lists that must not say another."""

    lists: Sequence[Sequence[Any]]
    first: int
    last: int
    pairs: Sequence[tuple[str, Any]] = ()
    rivals: Sequence[Sequence[Any]] = ()


def read_list(text: str, dimension: Dimension, items: Sequence[Mapping[str, Any]], *, is_cut: bool) -> Listed:
    """The list in the dimension's tag, under its key, or alone; or an object by the items' ids. Two that differ are none.

    What stands before a tag is reasoning; a list that answers each item behind it, or under a key such as `final_score`, is
    another.
    """
    form = _tagged(text, dimension) or _json(text, dimension, items)
    if form is None:
        return Listed(ParseReason.TRUNCATED if is_cut or _is_open(text, dimension.labels) else ParseReason.NOT_FOUND)
    if not dimension.answers and any(_is_other_end(key, value, dimension, len(items)) for key, value in form.pairs):
        return Listed(ParseReason.SCALE_MISMATCH)
    read = [_by_position(one, dimension, items) for one in form.lists]
    behind = islice(_OF_A_LINE.finditer(text, form.first), _N_LISTS_MAX)
    others = [*form.rivals, *(_entries(found["inside"]) for found in behind)]
    read += [said for one in others if _answers_each(said := _by_position(one, dimension, items))]
    flags = [found for key, value in form.pairs if (found := flag(key, value))]
    return Listed(read[0] if all(one == read[0] for one in read) else ParseReason.AMBIGUOUS, form.first, form.last, flags)


def _tagged(text: str, dimension: Dimension) -> _Form | None:
    found = list(islice(_tag(dimension.labels).finditer(text), _N_LISTS_MAX))
    return _Form([_entries(one[1]) for one in found], found[0].end(), found[-1].end()) if found else None


def _json(text: str, dimension: Dimension, items: Sequence[Mapping[str, Any]]) -> _Form | None:
    """Every JSON list of the text that is the whole of it, or stands in an object under the dimension's label or by ids."""
    opening = min((place for place in (text.find("["), text.find("{")) if place >= 0), default=-1)
    if opening < 0:
        return None
    is_bare, end = text[opening] == "[", max(text.rfind("]"), text.rfind("}")) + 1
    # The reader reads objects: a list is one's first value, and what is read of the words behind it may be others.
    wrapped = f'{{"list": {text[opening:end]}}}' if is_bare else text[opening:end]
    try:
        root, root_end = ObjectReader(wrapped, key_patterns((dimension,))[0]).read(0)
    except (Broken, Cut, Hopeless):
        return None
    labels = {normal(label) for label in dimension.labels} | {"list", "answers", "scores"}
    lists = [one for one in [*_named(root, labels, items), _by_id(root, items)] if one]
    if not lists:
        return None
    rivals = rival_keys((dimension,))
    beside = [(normal(key), value) for key, value in root if isinstance(value, list) and normal(key) not in labels]
    against = [value for name, value in beside if is_bare or name in rivals or is_another_of_the_whole(name)]
    others = [found for one in against for found in [_by_id(one, items), *_named(one, labels, items)] if found]
    if not is_bare:
        ends_at = opening + root_end
        behind = _pairs_of_objects(text[ends_at:], dimension)
        return _Form(lists, ends_at, ends_at, [pair for pair in (*root, *behind) if not _is_of_an_item(*pair)], others)
    closed = text.find("]", opening) + 1
    ends_at = end if "[" in text[opening + 1 : closed] else closed
    # What an entry says in words may be of its item: that it is not seen, that it fails.
    entries = [pair for pair in _pairs_of_objects(text, dimension) if _is_truth(pair[1]) or normal(pair[0]) in SCALE_KEYS]
    return _Form(lists, ends_at, ends_at, entries, others)


def _pairs_of_objects(text: str, dimension: Dimension) -> list[tuple[str, Any]]:
    """What the outermost objects of a text say."""
    objects, _ = objects_in(ObjectReader(text, key_patterns((dimension,))[0]), text, (dimension,))
    return [pair for pairs, _, _ in objects for pair in pairs]


def _is_of_an_item(key: str, value: Any) -> bool:
    """A verdict on the picture: items may be called failed together."""
    return "status" in normal(key) and isinstance(value, str) and value.strip(BLANK).lower() in {"fail", "failed"}


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, Bare) and value.lower() in {"true", "false"})


def _named(value: list[Any], labels: Collection[str], items: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Any] | None]:
    """The lists that an object holds under the dimension's label."""
    if isinstance(value, Pairs):
        yield from (_by_id(inner, items) for key, inner in value if normal(key) in labels and isinstance(inner, list))


def _is_other_end(key: str, value: Any, dimension: Dimension, n_items: int) -> bool:
    """Whether a key such as `max` says another end than an item's or that of all items' sum."""
    if normal(key) not in SCALE_KEYS or not isinstance(value, str) or len(value) > _N_STATED_MAX:
        return False
    numbers = [float(found) for found in DIGITS.findall(value)]
    return bool(numbers) and max(numbers) not in (dimension.maximum, n_items * dimension.maximum)


def _answers_each(read: Answers) -> bool:
    return isinstance(read, list) and all(isinstance(one, Decimal) or one is ParseReason.NOT_APPLICABLE for one in read)


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
