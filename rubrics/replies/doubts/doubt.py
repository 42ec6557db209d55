"""Why words beside a reply's numbers make them none: the questions in their order. Each is asked in a file of this room.

How numbers are read stands outside it, in read.py.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from rubrics.model import Dimension
from rubrics.replies.doubts.disavowal import is_disowned
from rubrics.replies.doubts.loose_numbers import is_answered_again
from rubrics.replies.doubts.other_languages import is_another_number, is_another_scale
from rubrics.replies.doubts.own_scales import grades_otherwise, is_on_own_scale
from rubrics.replies.doubts.second_answers import is_answered_otherwise
from rubrics.replies.doubts.stated_scales import states_another_scale
from rubrics.replies.doubts.taken_back import is_renamed, is_withdrawn
from rubrics.replies.doubts.verdicts import states_another_verdict
from rubrics.replies.doubts.withdrawals import is_taken_away
from rubrics.replies.doubts.words import Sentences, compiled, lowered, squeezed, without_quotations, words_of
from rubrics.replies.labels import keys_by_label, normal
from rubrics.replies.numbers import DIGITS, NUMBER_WORDS
from rubrics.replies.spans import Spans
from schemas.statuses.rows import ParseReason

_OF_AN_OBJECT = re.compile(r"(?<=[{\[,])\n|\n(?=[ \t]{0,80}+[}\]])")
_BEFORE, _BEHIND = 120, 70
_N_FIRST, _N_LAST = 16_000, 4_000  # characters near numbers; what stands between is not looked through
_N_NUMBERS_MAX = 5_000
_WORDS = frozenset({*NUMBER_WORDS, "twenty", "fifty", "hundred", "binary", "percentage", "percent"})
_NAMED = re.compile(rf"\b(?:{'|'.join(sorted(_WORDS))})\b", re.IGNORECASE)
_LETTER = re.compile(r"\w")
_CUT = " … "
_IN_A_NUMBER = re.compile(r"(?<=[0-9.])[0-9.]{1,20}")
_TOTALS = frozenset({"total", "sum"})
_SUM = r"([0-9]{1,4}+(?:\.[0-9]{1,2}+)?+)"
_OWN_SUM = (
    r"(?:^|\n)[ \t*_#>|-]*+(?:the |my )?((?:total|sum)(?: scores?| points| of (?:the |all )?(?:scores|points))?)[*_`)]{0,3} ?[:=]"
    rf"[*_` ]{{0,5}}{_SUM}(?:[*_` ]{{0,4}}(?:/|out of)[*_` ]{{0,4}}{_SUM})?(?: points)?[*_` .]{{0,4}}(?=\n|\Z)"
)


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
    text = _without_own_sum(text, words, scores, dimensions)
    first = min((stop for _, stop in spans.values()), default=0)
    places = _numbers(text, words, spans)
    if places is None:
        return ParseReason.MALFORMED
    near = _around(places, text)
    if (
        grades_otherwise(sentences)
        or is_another_scale(sentences, dimensions)
        or (near and (states_another_scale(near, words, dimensions) or is_on_own_scale(near, words, dimensions)))
    ):
        return ParseReason.SCALE_MISMATCH
    is_other = (
        is_disowned(sentences, scores.values())
        or is_another_number(sentences, scores.values(), dimensions)
        or is_taken_away(text, words, first)
        or (
            bool(near)
            and (
                is_answered_again(text, end, scores.values(), dimensions)
                or is_renamed(near, scores, dimensions)
                or is_withdrawn(_near_behind(first, near, places, text), words, scores, dimensions)
                or states_another_verdict(near, words, scores.values())
            )
        )
    )
    return ParseReason.AMBIGUOUS if is_other else None


def _without_own_sum(text: str, words: frozenset[str], scores: Mapping[str, float], dimensions: tuple[Dimension, ...]) -> str:
    """The text with a blank line for a line that adds its own scores up, such as "Total: 12/15": if right, it says nothing new.

    Any other total is a doubt: another scale (stated_scales.py), or another number (taken_back.py).
    """
    if len(dimensions) < 2 or words.isdisjoint(_TOTALS):
        return text
    total = sum(scores[one.key] for one in dimensions)
    most = sum(one.maximum for one in dimensions)

    def blanked(found: re.Match[str]) -> str:
        is_label = normal(found[1]) in keys_by_label(dimensions)
        is_right = math.isclose(float(found[2]), total) and (found[3] is None or float(found[3]) == most)
        return "\n".ljust(len(found[0])) if is_right and not is_label else found[0]

    return compiled(_OWN_SUM, re.IGNORECASE).sub(blanked, text)


def doubt_of_words(
    told: Told, scores: Mapping[str, float], dimensions: tuple[Dimension, ...], spans: Spans
) -> ParseReason | None:
    """Why words beside answers that are words make them none: another answer behind the first, or one the judge disowns."""
    first = min((stop for _, stop in spans.values()), default=0)
    is_other = (
        is_disowned(told.sentences, ())
        or is_taken_away(told.text, told.words, first)
        or is_answered_otherwise(told.text, told.words, scores, dimensions, first)
    )
    return ParseReason.AMBIGUOUS if is_other else None


def states_a_scale(told: Told, dimensions: tuple[Dimension, ...]) -> bool:
    """Whether near a number of the text, be it a score's or not, a scale is said that is none of the dimensions'."""
    places = _numbers(told.text, told.words, {})
    return places is not None and states_another_scale(_around(places, told.text), told.words, dimensions)


def _numbers(text: str, words: frozenset[str], spans: Spans) -> list[tuple[int, int]] | None:
    """Where digits stand that are no score of the form, and number words; None where there are 5,000 or more: a flood, no reply.

    Most replies hold no other number, and need not be looked through for what is said of one. `words` are the text's.
    """
    own, named = {start for start, _ in spans.values()}, words & _WORDS
    every = (found.span() for found in DIGITS.finditer(text) if found.start() not in own)
    places = list(islice(chain(every, _places(text, named)) if named else every, _N_NUMBERS_MAX))
    return sorted(places) if len(places) < _N_NUMBERS_MAX else None


def _around(places: Sequence[tuple[int, int]], text: str) -> str:
    """The pieces of the text near these places, a mark between them."""
    if not places:
        return ""
    near = _CUT.join(text[start:stop] for start, stop in _merged(places, text))
    if len(near) > _N_FIRST + _N_LAST:
        near = f"{near[:_N_FIRST]}{_CUT}{near[-_N_LAST:]}"
    return squeezed(near)


def _near_behind(first: int, near: str, places: Sequence[tuple[int, int]], text: str) -> str:
    """`near`, but of the places from `first` on."""
    return near if places[0][0] >= first else _around([place for place in places if place[0] >= first], text)


def _places(text: str, named: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where one of the words stands, in whatever case. Finding a word is far cheaper than looking for patterns."""
    lower = lowered(text)
    if lower is None or len(lower) != len(text):
        yield from (found.span() for found in _NAMED.finditer(text))
        return
    for word in named:
        at = lower.find(word)
        while at >= 0:
            end = at + len(word)
            if not (_LETTER.match(text, end) or (at and _LETTER.match(text, at - 1))):
                yield at, end
            at = lower.find(word, end)


def _merged(places: Iterable[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, stop in places:
        first, last = max(0, start - _BEFORE), min(len(text), stop + _BEHIND)
        if cut := _IN_A_NUMBER.match(text, last):  # 0.1 is not 0.11
            last = cut.end()
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
