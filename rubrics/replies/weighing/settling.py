"""All that a reply says for its dimensions -> a score for each, or the one reason there is none."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from rubrics.model import Dimension
from rubrics.replies.numbers import Found, Value, as_score, on_scale
from schemas.statuses.rows import ParseReason

_ORDER = {reason: index for index, reason in enumerate(ParseReason)}


def settle(found: Found, dimensions: Iterable[Dimension]) -> dict[str, float] | ParseReason:
    """The score of every dimension that applies, or the earliest reason in the order of ParseReason: all dimensions or none."""
    if found.reason:
        return found.reason
    settled = {dimension.key: _settle_one(found.values.get(dimension.key, ()), dimension) for dimension in dimensions}
    problems = [v for v in settled.values() if isinstance(v, ParseReason) and v is not ParseReason.NOT_APPLICABLE]
    if problems:
        return min(problems, key=_ORDER.__getitem__)
    return {key: as_score(value) for key, value in settled.items() if isinstance(value, Decimal)}


def _settle_one(values: Sequence[Value], dimension: Dimension) -> Value:
    """One number said once, or again and again the same. An unfilled form beside a real answer says nothing."""
    if len(values) > 1:
        values = [value for value in values if value is not ParseReason.TEMPLATE_ECHO] or values[:1]
    if not values:
        return ParseReason.MISSING_KEY
    distinct = set(values)
    if len(distinct) == 1:
        value = values[0]
        return on_scale(value, dimension) if isinstance(value, Decimal) else value
    problems = [value for value in distinct if isinstance(value, ParseReason)]
    if len(problems) == len(distinct):
        return min(problems, key=_ORDER.__getitem__)
    return ParseReason.AMBIGUOUS
