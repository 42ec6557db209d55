"""The items of a sample: read from its column, made into texts of a request, into what reading its reply needs.

How a reply says an answer for each is replies/items/; what is computed of them is figures.py.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import orjson

from rubrics.model import Dimension, Items, ItemText, Rubric
from rubrics.rendering import PLACEHOLDER, MissingColumns, Rendered, render, variant_of
from rubrics.replies.labels import folded
from rubrics.rules import facts, is_null
from schemas.errors import InputError
from schemas.input_budget import JSON_LEVELS, is_too_deep
from schemas.json_text import RepeatedKeyError, refuse_repeated_keys

N_ITEMS_MAX = 200
N_ID_CHARACTERS_MAX = 200


class BadItems(InputError):  # noqa: N818 - what is wrong is said of the sample
    """The column of a sample's items is no list of them."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing asked about a sample. `kinds` are dimension keys; `expected` the spellings of the right answer."""

    id: str
    fields: Mapping[str, Any]
    kinds: tuple[str, ...] = ()
    weight: float = 1.0
    depends_on: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def facts(self) -> dict[str, object]:
        """What reading an answer to it needs to know."""
        said = {"expected": list(self.expected), "choices": list(self.choices)}
        return {name: value for name, value in said.items() if value}


def items_of(rubric: Rubric, values: Mapping[str, str | None]) -> tuple[Item, ...]:
    """The items of a sample, in order. Raises BadItems naming the item and what is allowed."""
    declared = rubric.items
    assert declared is not None
    text = values.get(declared.column)
    try:
        listed = orjson.loads(text or "[]")  # refuses half a surrogate pair, which no request could hold
    except ValueError as error:
        raise BadItems(f"{declared.column} is not JSON: {error}; write a list of items") from error
    if not isinstance(listed, list) or not 0 < len(listed) <= N_ITEMS_MAX:
        raise BadItems(f"{declared.column} must be a JSON list of 1 to {N_ITEMS_MAX} items, not {(text or '')[:80]!r}")
    if is_too_deep(listed):
        raise BadItems(f"{declared.column} is nested in more than {JSON_LEVELS} levels; nest its items less")
    if text and text.encode() != orjson.dumps(listed):  # which has no room for a key that was dropped
        try:
            refuse_repeated_keys(text.encode())
        except RepeatedKeyError as error:
            raise BadItems(f"{declared.column} is ambiguous: {error} in one item; keep one of them") from error
    items = tuple(_item(declared, entry, place) for place, entry in enumerate(listed, 1))
    ids = [item.id for item in items]
    dimensions = [variant.dimensions[0] for variant in rubric.variants.values()]
    for item in items:
        _check(declared, dimensions, item)
        if ids.count(item.id) > 1:
            raise BadItems(f"{declared.column} has the id {item.id[:80]!r} twice; each item needs its own id")
        for parent in item.depends_on:
            if parent not in ids or parent == item.id:
                known = ", ".join(ids)[:500]
                raise BadItems(
                    f"{declared.column}: item {item.id!r} depends on {parent[:80]!r}, which is not another item; available: "
                    f"{known}"
                )
    return items


def asked_together(rubric: Rubric, items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """The items of each request: all in one, or one in each."""
    assert rubric.items is not None
    yield from [tuple(items)] if rubric.items.is_together else [(item,) for item in items]


def item_texts(rubric: Rubric, items: Sequence[Item]) -> dict[str, str]:
    """The texts that a request's messages hold of its items, by the names they have there."""
    assert rubric.items is not None
    return {name: _text(text, items) for name, text in rubric.items.texts.items()}


def item_facts(rubric: Rubric, items: Sequence[Item]) -> dict[str, object]:
    """What reading the reply of such a request needs: of one item alone no id, so that samples share the question."""
    assert rubric.items is not None
    if not rubric.items.is_together:
        (facts,) = (item.facts() for item in items)
        return {"items": [facts]} if facts else {}
    source = rubric.items.fields.get("text")
    said_back = [{"text": _shown(item.fields.get(source)).strip()} if source else {} for item in items]
    return {"items": [{"id": item.id} | text | item.facts() for item, text in zip(items, said_back, strict=True)]}


def questions_of(
    rubric: Rubric, values: Mapping[str, str | None], has_image: bool, others: Mapping[str, int] = MappingProxyType({})
) -> Iterator[tuple[tuple[Item, ...], Rendered, dict[str, object]]]:
    """(items, messages, facts) of each request about one sample; of a rubric without items the one, or those, there are.

    Raises as render() does, MissingColumns also where there are no items, and BadItems.
    """
    for name, request in rubric.requests.items():
        yield (Item(name, {}),), render(request, values, has_image, others), facts(request, values, has_image, others)
    if rubric.requests:
        return
    of_sample = facts(rubric, values, has_image, others)
    if rubric.items is None:
        yield (), render(rubric, values, has_image, others), of_sample
        return
    if is_null(values.get(rubric.items.column)):
        variant_of(rubric, values)
        raise MissingColumns(rubric.id, (rubric.items.column,))
    for items in asked_together(rubric, items_of(rubric, values)):
        yield (
            items,
            render(rubric, {**values, **item_texts(rubric, items)}, has_image, others),
            of_sample | item_facts(rubric, items),
        )


def _check(declared: Items, dimensions: Sequence[Dimension], item: Item) -> None:
    """Raise BadItems where an item asks nothing, or where every answer to it would get the same score."""
    where = f"{declared.column}: item {item.id[:80]!r}"
    if not item.id.strip() or len(item.id) > N_ID_CHARACTERS_MAX:
        raise BadItems(f"{where} has no usable id; write 1 to {N_ID_CHARACTERS_MAX} characters")
    shown = {slot for text in declared.texts.values() for slot in PLACEHOLDER.findall(text.each)}
    slots = shown - {declared.fields.get("id", "id")} or shown  # an id asks nothing, where anything stands beside it
    if slots and not any(_shown(item.fields.get(slot)).strip() for slot in slots):
        raise BadItems(f"{where} has no text for {', '.join(sorted(slots))}, which is asked; fill it in")
    if not all(word.strip() for word in (*item.expected, *item.choices)):
        raise BadItems(f"{where} has an empty answer among its expected answers or choices; fill it in or remove it")
    words = {folded(word) for word in item.choices or [word for one in dimensions for word, _ in one.answers]}
    if item.expected and not (words or dimensions[0].probability):
        raise BadItems(f"{where} expects an answer but names no others; give its choices, or answers = {{ yes = 1, no = 0 }}")
    if item.expected and words and words.issubset(map(folded, item.expected)):
        raise BadItems(f"{where} expects every answer that can be given; leave out those that are wrong")
    if item.expected and words and words.isdisjoint(map(folded, item.expected)):
        raise BadItems(f"{where} expects {item.expected[0][:80]!r}, which is not one of its possible answers")


def _text(text: ItemText, items: Sequence[Item]) -> str:
    each = [PLACEHOLDER.sub(lambda slot, item=item: _shown(item.fields.get(slot[1])), text.each) for item in items]  # type: ignore[misc]
    return text.before + text.join.join(one.strip() if text.is_stripped else one for one in each) + text.after


def _shown(value: object) -> str:
    """A field as a text: a list's entries with commas between."""
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _item(declared: Items, entry: object, place: int) -> Item:
    fields: Mapping[str, Any] = entry if isinstance(entry, dict) else {"text": entry}

    def of(name: str) -> Any:
        return fields.get(declared.fields.get(name, name))

    def listed(name: str) -> tuple[str, ...]:
        value = of(name)
        return tuple(_shown(one) for one in (value if isinstance(value, list) else [] if value is None else [value]))

    weight = of("weight")
    if weight is not None and (isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < 1e6):
        raise BadItems(f"{declared.column}: item {place} has the weight {str(weight)[:40]!r}; write a number above 0")
    words = listed("kind") if declared.kinds else ()
    for word in words:
        if word not in declared.kinds:
            raise BadItems(
                f"{declared.column}: item {place} is of the unknown kind {word[:80]!r}; available: "
                f"{', '.join(declared.kinds)[:500]}"
            )
    kinds = tuple(dict.fromkeys(declared.kinds[word] for word in words))
    id_ = of("id")
    return Item(
        str(place) if id_ is None else _shown(id_), fields, kinds, 1.0 if weight is None else float(weight),
        listed("depends_on"), listed("expected"), listed("choices"),
    )  # fmt: skip
