"""What one item's answer says, by what it may be. Which answer is whose: lines.py, lists.py."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rubrics.model import Dimension
from rubrics.replies.labels import normal
from rubrics.replies.numbers import BLANK, Value, on_scale, read_number
from rubrics.replies.tolerant_json import Pairs
from schemas.statuses.rows import ParseReason

Answers = list[Value] | ParseReason
"""A value or a reason for each item in their order, or why there is none at all."""
_ANSWERS = frozenset({"answer", "score", "value", "verdict", "result", "judgement", "judgment"})


def of_item(dimension: Dimension, item: Mapping[str, Any]) -> Dimension:
    """The dimension as this item asks it: with its own choices, and 1 for the answer that is expected of it, else 0."""
    expected, choices = _texts(item.get("expected")), _texts(item.get("choices"))
    if not expected:
        return dimension
    words = choices or tuple(word for word, _ in dimension.answers) or expected
    right = {" ".join(word.casefold().split()) for word in expected}
    scored = tuple((word, float(" ".join(word.casefold().split()) in right)) for word in words)
    return replace(dimension, answers=scored)


def value_of(entry: Any, dimension: Dimension, *, is_prose_allowed: bool = False) -> Value:
    """The value that an entry of a list, or a line, says; or why it says none."""
    if isinstance(entry, Pairs):
        named = [value for key, value in entry if normal(key) in _ANSWERS]
        entry = named[0] if len(named) == 1 else None
    if not isinstance(entry, str) or not entry.strip(BLANK):
        return ParseReason.WRONG_TYPE
    said = read_number(str(entry), dimension, is_prose_allowed=is_prose_allowed)
    return said if isinstance(said, ParseReason) else on_scale(said, dimension)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str) and one.strip()) if isinstance(value, list) else ()
