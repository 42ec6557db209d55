"""What a reader found in a reply, and what that settles to: one number for every dimension, or the reason there is none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from rubrics.model import Dimension
from rubrics.replies.numbers import Value, as_score, on_scale
from schemas.statuses import ParseReason

_ORDER = {reason: index for index, reason in enumerate(ParseReason)}


@dataclass(frozen=True, slots=True)
class Found:
    """Everything a reply says, by dimension: numbers and values that are none. `reason`: its structure was not readable."""

    values: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    reason: ParseReason | None = None

    @property
    def has_number(self) -> bool:
        """Whether any dimension has a number, on its scale or not."""
        return any(isinstance(value, Decimal) for values in self.values.values() for value in values)


def settle(found: Found, dimensions: Iterable[Dimension]) -> dict[str, float] | ParseReason:
    """The score of every dimension, or the earliest reason in the order of ParseReason: all dimensions or none."""
    if found.reason:
        return found.reason
    settled = {dimension.key: _settle_one(found.values.get(dimension.key, ()), dimension) for dimension in dimensions}
    problems = [value for value in settled.values() if isinstance(value, ParseReason)]
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
