"""A reply that answers all items of a list: its sight and refusal, then each item's answer. One item asked alone is read.py's."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from rubrics.model import ReplyFormat, Rubric, Variant
from rubrics.replies.cleaning import cleaned, thoughts_and_answer
from rubrics.replies.doubts.doubt import told_by
from rubrics.replies.doubts.missing_input import judged_by, saw_nothing
from rubrics.replies.items.answers import Answers
from rubrics.replies.items.lines import read_lines
from rubrics.replies.items.lists import read_list
from rubrics.replies.numbers import as_score
from rubrics.replies.refusals import declined, declines
from schemas.records import ParsedScore, ReadScores, Unreadable
from schemas.statuses.rows import ParseReason

WITHOUT_ANSWER = frozenset({ParseReason.NOT_FOUND, ParseReason.MISSING_KEY, ParseReason.WRONG_TYPE})
"""Reasons that may be a refusal's, in words that are less strictly looked for."""


def read_together(
    rubric: Rubric, variant: Variant, text: str, context: Mapping[str, Any], items: Sequence[Mapping[str, Any]], *, is_cut: bool
) -> ParsedScore:
    """The answer to each item, by its id."""
    (dimension,), judged = variant.dimensions, judged_by(rubric)
    thoughts, at = thoughts_and_answer(text)
    if at is None:
        return Unreadable(ParseReason.TRUNCATED)
    answer = cleaned(text[at:], variant.prompt)
    sentences = told_by(answer, is_json=False).sentences
    if saw_nothing(sentences, context, thoughts, judged):
        return Unreadable(ParseReason.MISSING_INPUT)
    if declines(sentences, has_text=judged.has_text):
        said: Answers = ParseReason.REFUSAL
    elif rubric.reply_format is ReplyFormat.LINES:
        said = read_lines(answer, dimension, items, rubric.items, is_cut=is_cut)
    else:
        said = read_list(answer, dimension, items, is_cut=is_cut)
    if isinstance(said, ParseReason):
        return Unreadable((declined(answer) if said in WITHOUT_ANSWER else None) or said)
    named = dict(zip((str(item.get("id", "")) for item in items), said, strict=True))
    return ReadScores(
        {name: as_score(value) for name, value in named.items() if isinstance(value, Decimal)},
        not_applicable=frozenset(name for name, value in named.items() if value is ParseReason.NOT_APPLICABLE),
        unreadable={n: v for n, v in named.items() if isinstance(v, ParseReason) and v is not ParseReason.NOT_APPLICABLE},
    )
