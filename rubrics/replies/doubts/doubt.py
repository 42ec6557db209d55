"""Why words beside a reply's numbers make them none: the questions in their order. Each is asked in a file of this room.

How numbers are read stands outside it, in read.py.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from rubrics.model import Dimension
from rubrics.replies.doubts.around import around_numbers
from rubrics.replies.doubts.disavowal import is_disowned
from rubrics.replies.doubts.other_languages import is_another_number, is_another_scale
from rubrics.replies.doubts.own_scales import grades_otherwise, is_on_own_scale
from rubrics.replies.doubts.stated_scales import states_another_scale
from rubrics.replies.doubts.taken_back import is_answered_again, is_withdrawn
from rubrics.replies.doubts.verdicts import states_another_verdict
from rubrics.replies.doubts.words import Sentences, without_quotations, words_of
from rubrics.replies.spans import Spans
from schemas.statuses.rows import ParseReason

_OF_AN_OBJECT = re.compile(r"(?<=[{\[,])\n|\n(?=[ \t]{0,80}+[}\]])")


class Told(NamedTuple):
    """What a reply says beside its numbers: its text with quotations blanked, its words, its sentences."""

    text: str
    words: frozenset[str]
    sentences: Sentences


def told_by(answer: str, *, is_json: bool) -> Told:
    """A reply's words and sentences, looked at once for all questions."""
    unquoted = without_quotations(answer, is_json=is_json)
    is_unquoted = unquoted is answer
    if is_json and "\n" in unquoted:  # an object is told alike on one line and on many
        unquoted = _OF_AN_OBJECT.sub(" ", unquoted)
    sentences = Sentences(unquoted)
    return Told(unquoted, words_of(answer, sentences, is_unquoted=is_unquoted), sentences)


def doubt(
    told: Told, scores: Mapping[str, float], dimensions: tuple[Dimension, ...], spans: Spans, end: int
) -> ParseReason | None:
    """Why words beside the numbers make them none: another scale, or another number. `end`: where the form ends."""
    text, words, sentences = told
    first = min((stop for _, stop in spans.values()), default=0)
    near = around_numbers(text, words, spans)
    if (
        grades_otherwise(sentences)
        or is_another_scale(sentences, dimensions)
        or (near and (states_another_scale(near, words, dimensions) or is_on_own_scale(near, words, dimensions)))
    ):
        return ParseReason.SCALE_MISMATCH
    is_other = (
        is_disowned(sentences, scores.values())
        or is_another_number(sentences, scores.values(), dimensions)
        or (
            bool(near)
            and (
                is_answered_again(text, end, scores.values(), dimensions)
                or is_withdrawn(around_numbers(text, words, spans, first), words, scores)
                or states_another_verdict(near, words, scores.values())
            )
        )
    )
    return ParseReason.AMBIGUOUS if is_other else None


def states_a_scale(told: Told, dimensions: tuple[Dimension, ...]) -> bool:
    """Whether near a number of the text, be it a score's or not, a scale is said that is none of the dimensions'."""
    return states_another_scale(around_numbers(told.text, told.words, {}), told.words, dimensions)
