"""What is told of one reply beside its scores: which dimension has none, why and where, and the figures that follow.

For `salon parse --explain` and `salon rubrics try`. Reading is replies/read.py; what a run stores of figures is of its tables.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rubrics.figures import Operand, derive_each
from rubrics.items import Item
from rubrics.model import Dimension, ReplyFormat, Rubric, Variant
from rubrics.replies.cleaning import cleaned, thoughts_and_answer, with_plain_blanks, without_formulas
from rubrics.replies.read import READERS, found_in
from rubrics.replies.weighing.mentions import without_mentions
from rubrics.replies.weighing.settling import settle
from schemas.records import ParsedScore, ReadScores, Unreadable
from schemas.statuses.rows import ParseReason

_N_AROUND = 80
_OF_WHOLE = frozenset(
    {ParseReason.EMPTY, ParseReason.REFUSAL, ParseReason.MISSING_INPUT, ParseReason.TRUNCATED, ParseReason.NOT_FOUND}
)
"""Reasons of a reply, and of no dimension of it."""


def explained(
    rubric: Rubric, read: ParsedScore, raw: str, context: Mapping[str, Any], items: Sequence[Item] = ()
) -> dict[str, object]:
    """`failed`: {dimension: {reason, in}} of a reply without scores; `figures`: {figure: {score, note}} of one with them.

    Figures over items need those that were asked about, all of them; none without.
    """
    category = context.get("category")
    variant = rubric.variant(category if isinstance(category, str) else None)
    if variant is None:
        return {}
    if isinstance(read, Unreadable):
        failed = dict(_failed(rubric, variant, read, raw))
        return {"failed": failed} if failed else {}
    figures = [one for one in variant.derived if one.figure]
    operands = _operands(variant, read, items)
    if not figures or not operands:
        return {}
    derived = derive_each(figures, operands)
    return {"figures": {one.key: {"score": made.score, "note": made.note} for one, made in derived}}


def _failed(rubric: Rubric, variant: Variant, read: Unreadable, raw: str) -> Iterator[tuple[str, dict[str, object]]]:
    """The dimensions that what the reply says leaves without a number; none where the reason is of the whole."""
    if (
        read.fault
        or read.reason in _OF_WHOLE
        or rubric.reply_format not in READERS
        or variant.is_of_items
        or variant.dimensions[0].probability
    ):
        return
    text = with_plain_blanks(raw)
    _, at = thoughts_and_answer(text)
    answer = cleaned(text[at or 0 :], variant.prompt)
    answer = without_formulas(answer, is_json=rubric.reply_format is ReplyFormat.JSON)
    own, _ = without_mentions(answer, variant.dimensions, rubric.reply_format)
    found = found_in(rubric.reply_format, own, variant.dimensions, is_cut=False)
    for dimension in () if found.reason else variant.dimensions:
        reason = settle(found, (dimension,))
        if isinstance(reason, ParseReason):
            around = _around(raw, dimension)
            yield dimension.key, {"reason": reason.value, **({"in": around} if around else {})}


def _around(raw: str, dimension: Dimension) -> str:
    """From where the dimension is last named, to the end of the line at most; empty where it is not."""
    named = [*re.finditer("|".join(map(re.escape, sorted(dimension.labels, key=len, reverse=True))), raw, re.IGNORECASE)]
    return raw[named[-1].start() :].split("\n", 1)[0][:_N_AROUND] if named else ""


def _operands(variant: Variant, read: ReadScores, items: Sequence[Item]) -> list[Operand]:
    """What figures are made of: the reply's dimensions, or the answers to its items."""
    if not variant.is_of_items:
        return [_operand(read, one.key, one) for one in variant.dimensions]
    (dimension,) = variant.dimensions
    if not {*read.scores, *read.unreadable, *read.not_applicable} >= {item.id for item in items}:
        return []
    return [replace(_operand(read, one.id, dimension), weight=one.weight, parents=one.depends_on) for one in items]


def _operand(read: ReadScores, name: str, dimension: Dimension) -> Operand:
    score = read.scores.get(name)
    if name in read.violated:
        return Operand(name, None, *read.violated[name], ParseReason.RULE_VIOLATION.value, lowest=dimension.minimum)
    if score is not None:
        return Operand(name, score, score, score, lowest=dimension.minimum)
    reason = read.unreadable.get(name)
    does_apply = name not in read.not_applicable
    said = (reason or ParseReason.MISSING_KEY).value if does_apply else None
    return Operand(name, None, dimension.minimum, dimension.maximum, said, does_apply, lowest=dimension.minimum)
