"""Whose item a line says it is: by the item's text, its number, or its id. What the line says of it: lines.py."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from rubrics.model import Items
from rubrics.rendering import PLACEHOLDER
from rubrics.replies.labels import normal

_LAST_NUMBER = re.compile(r"([0-9]{1,9})[^0-9]{0,3}\Z")
_OWN_NUMBER = re.compile(r"[^A-Za-z0-9]{0,8}+(?:item|question|answer|number|[a-z]{1,2})?[^A-Za-z0-9]{0,3}+[0-9]", re.IGNORECASE)
_TEXT_ENDS = re.compile(r"[*_\s]{0,4}+(?:[:：=–—]|-\s)")
_OWN_WORDS = re.compile(r"[^?:：=–—]{1,60}?(?=\s?[?:：=–—]|\s-\s)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_OF_NO_ITEM = frozenset({"answer", "score", "item", "question", "not", "applicable"})
_N_OWN_WORDS_MAX = 5


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


def shown_ids(items: Sequence[Mapping[str, Any]], declared: Items | None) -> list[str]:
    """The items' ids where the judge was shown them, each another; else none."""
    id_ = declared.fields.get("id", "id") if declared else "id"
    if not declared or not any(id_ in PLACEHOLDER.split(one.each)[1::2] for one in declared.texts.values()):
        return []
    ids = [str(item.get("id", "")) for item in items]
    keys = {id_key(one) for one in ids} - {""}
    return ids if len(keys) == len(ids) else []


def id_key(name: str) -> str:
    """An id as a line may write it: case, typography and leading zeros aside."""
    bare = normal(name)
    return str(int(bare)) if bare.isascii() and bare.isdigit() else bare


def may_be_ids(counts: Sequence[str], ids: Sequence[str]) -> bool:
    """Whether numbers that count the lines may name items by their ids, or by what is a number in these, in another order."""
    numbers = [str(int(found[1])) for one in ids if (found := _LAST_NUMBER.search(one))]
    return numbers != list(counts) and not {*numbers}.isdisjoint(counts)


def said_of_another(lines: Sequence[str], items: Sequence[Mapping[str, Any]], answers: Iterable[str]) -> bool:
    """Whether lines, each of them for the item at its place, say otherwise: one begins with the text of another item.

    Or each begins with words of an item of its own ("Cup? no"), in another order; words of the `answers` are of no item.
    """
    named = (_said_back(line, items) for line in lines)
    if any(places and place not in places for place, places in enumerate(named)):
        return True
    meant, texts = _words(" ".join(answers)), [_words(str(item.get("text", ""))) for item in items]
    counts = Counter(chain(*texts))
    own = [{word for word in text if counts[word] == 1} for text in texts]
    worded = [[place for place, words in enumerate(own) if words & _before_answer(line, meant)] for line in lines]
    return all(len(places) == 1 for places in worded) and [*range(len(items))] == sorted(order := [*chain(*worded)]) != order


def _are_places(items: Sequence[Mapping[str, Any]], declared: Items) -> bool:
    """Whether a number before an answer can only be its item's place."""
    text, id_ = declared.fields.get("text"), declared.fields.get("id", "id")
    shown = [PLACEHOLDER.split(one.each) for one in declared.texts.values()]
    ids = shown_ids(items, declared)
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


def _before_answer(line: str, answers: set[str]) -> set[str]:
    """The words before a line's answer, if they are few."""
    found = _OWN_WORDS.match(line)
    words = _words(found[0]) - answers if found else set()
    return words if len(words) <= _N_OWN_WORDS_MAX else set()


def _words(text: str) -> set[str]:
    return {*_WORD.findall(text.casefold())} - _OF_NO_ITEM
