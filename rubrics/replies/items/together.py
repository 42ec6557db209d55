"""A reply that answers all items of a list: its sight and refusal, then each item's answer. One item asked alone is read.py's."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from rubrics.model import Dimension, ReplyFormat, Rubric, Variant
from rubrics.replies.cleaning import cleaned, thoughts_and_answer
from rubrics.replies.doubts.doubt import Told, doubt, states_a_scale, told_by
from rubrics.replies.doubts.flags import flagged
from rubrics.replies.doubts.missing_input import judged_by, saw_nothing
from rubrics.replies.items.answers import of_item
from rubrics.replies.items.lines import read_lines
from rubrics.replies.items.lists import Listed, read_list
from rubrics.replies.json_objects import decoded
from rubrics.replies.numbers import Value, as_score
from rubrics.replies.refusals import declined, declines
from rubrics.replies.weighing.mentions import without_mentions
from schemas.records import ParsedScore, ReadScores, Unreadable
from schemas.statuses.rows import ParseReason

WITHOUT_ANSWER = frozenset({ParseReason.NOT_FOUND, ParseReason.MISSING_KEY, ParseReason.WRONG_TYPE})
"""Reasons that may be a refusal's, in words that are less strictly looked for."""
_ENUMERATOR = re.compile(r"^[ \t]*+[0-9]{1,3}+[.):](?=[ \t])", re.MULTILINE)  # of reasons item by item: no other number


def read_together(
    rubric: Rubric, variant: Variant, text: str, context: Mapping[str, Any], items: Sequence[Mapping[str, Any]], *, is_cut: bool
) -> ParsedScore:
    """The answer to each item, by its id; none where words or keys beside them make them none, or half are off the scale."""
    (dimension,), judged, is_list = variant.dimensions, judged_by(rubric), rubric.reply_format is ReplyFormat.LIST
    thoughts, at = thoughts_and_answer(text)
    if at is None:
        return Unreadable(ParseReason.TRUNCATED)
    answer = own = unquoted = cleaned(text[at:], variant.prompt)
    if is_list:
        answer = decoded(answer)
        own, unquoted = without_mentions(answer, (dimension,), ReplyFormat.JSON)
        unquoted = _ENUMERATOR.sub(lambda found: " " * len(found[0]), unquoted)
    told = told_by(unquoted, is_json=is_list and "{" in answer)
    if saw_nothing(told.sentences, context, thoughts, judged):
        return Unreadable(ParseReason.MISSING_INPUT)
    if declines(told.sentences, has_text=judged.has_text):
        return Unreadable(ParseReason.REFUSAL)
    if is_list:
        listed = read_list(own, dimension, items, is_cut=is_cut)
    else:
        listed = Listed(read_lines(own, dimension, items, rubric.items, is_cut=is_cut), last=len(own))
    reason = flagged(listed.flags, variant.prompt, context, has_text=judged.has_text)
    if isinstance(listed.answers, ParseReason):
        is_without_answer = listed.answers in WITHOUT_ANSWER
        return Unreadable(reason or (declined(answer) if is_without_answer else None) or listed.answers)
    reason = reason or _doubt(told, listed, listed.answers, dimension, items, is_list=is_list)
    return Unreadable(reason) if reason else _named(listed.answers, items)


def _named(answers: Sequence[Value], items: Sequence[Mapping[str, Any]]) -> ReadScores:
    named = dict(zip((str(item.get("id", "")) for item in items), answers, strict=True))
    return ReadScores(
        {name: as_score(value) for name, value in named.items() if isinstance(value, Decimal)},
        not_applicable=frozenset(name for name, value in named.items() if value is ParseReason.NOT_APPLICABLE),
        unreadable={n: v for n, v in named.items() if isinstance(v, ParseReason) and v is not ParseReason.NOT_APPLICABLE},
    )


def _asked(dimension: Dimension, items: Sequence[Mapping[str, Any]]) -> list[Dimension]:
    """The dimension as each item asks it, under a key of its own."""
    each = zip(_numbered(dimension, len(items)), [of_item(dimension, item) for item in items], strict=True)
    return [one if own is dimension else replace(own, key=one.key) for one, own in each]


@lru_cache(maxsize=256)
def _numbered(dimension: Dimension, n: int) -> tuple[Dimension, ...]:
    return tuple(replace(dimension, key=f"item{place}") for place in range(1, n + 1))


def _doubt(
    told: Told,
    listed: Listed,
    answers: Sequence[Value],
    dimension: Dimension,
    items: Sequence[Mapping[str, Any]],
    *,
    is_list: bool,
) -> ParseReason | None:
    """Why what is said beside the answers makes them none, asked once for all of them.

    Of lines nothing is asked but the scale: the next line's number would be another number. Nor of words: the next item's is.
    """
    n_off = sum(value is ParseReason.OUT_OF_RANGE for value in answers)
    is_off = n_off > 0 and 2 * n_off >= len(answers)  # the others may be on the scale by chance
    if not (is_off or is_list):
        return None
    asked = _asked(dimension, items)
    if is_off:
        is_said = states_a_scale(told, tuple(one for one in asked if not one.answers))
        return ParseReason.SCALE_MISMATCH if is_said else ParseReason.OUT_OF_RANGE
    said = zip(asked, answers, strict=True)
    scores = {one: as_score(value) for one, value in said if isinstance(value, Decimal) and not one.answers}
    if not scores:
        return None
    by_key = {one.key: score for one, score in scores.items()}
    return doubt(told, by_key, tuple(scores), {"": (0, listed.first)}, listed.last)
