"""A number behind the form that could be a mark, and counts nothing: a second answer, since nothing more was asked for.

What takes a number back in so many words is taken_back.py; what a reason names is weighing/reasons.py's.
"""

import re
from collections.abc import Collection, Iterable, Iterator

from rubrics.model import Dimension
from rubrics.replies.doubts.stated_scales import DEPICTED
from rubrics.replies.doubts.taken_back import ALONE
from rubrics.replies.doubts.words import squeezed
from rubrics.replies.weighing.reasons import without_reasons

_N_TAIL = 2000
_LOOSE = re.compile(
    rf"(?<![\w.,:/#$%-])(?<![0-9] )([0-9]{{1,2}}+(?:\.[0-9]{{1,2}}+)?+){ALONE}(?!:[0-9])(?!\s?[/%])", re.IGNORECASE
)
_OF_SCALE = re.compile(
    r"(?<![\w.,:/#$%-])(?<![0-9] )([0-9]{1,2}+(?:\.[0-9]{1,2}+)?+) ?/ ?([0-9]{1,3})[ \t*_`]*+(?=[.,;!)\]}\"\n]|\Z)(?!\.[0-9])"
)
_COUNTING = re.compile(
    r"\b(?:there (?:are|is|were|was)|only|has|have|with|contains?|depicts?|just|all|of|in|than)(?: only| just)? \Z", re.IGNORECASE
)
_LABELLED = re.compile(
    r"[^\W\d][*_`)]{0,3} ?[:：=][ *_`]{0,4}\Z"
)  # another label's number; those that mean the answer's are in taken_back.py
_LISTED = re.compile(r"\n[ \t*_#>-]*\Z")
_TRAILING = re.compile(r"(?<![0-9.])\.{2,4}+(?=[0-9])")  # "...6"
_REST_OF_LINE = re.compile(r"[ \t]*+(?:\n|\Z)")


def is_answered_again(text: str, start: int, scores: Collection[float], dimensions: Iterable[Dimension]) -> bool:
    """Whether a number that is none of the scores, but on a scale, stands alone behind `start`, where the form ends."""
    tail, dimensions = squeezed(_TRAILING.sub(" ", text[start : start + _N_TAIL])), tuple(dimensions)
    places = _loose(tail, scores, dimensions)
    first = next(places, None)
    if first is None:
        return False
    unexplained = without_reasons(tail, scores, max(d.maximum for d in dimensions))
    return any(unexplained[place] != " " for place in (first, *places))


def _loose(tail: str, scores: Collection[float], dimensions: tuple[Dimension, ...]) -> Iterator[int]:
    """Where such numbers stand."""
    for found in _OF_SCALE.finditer(tail):
        is_mark = any(float(found[2]) == d.maximum and d.minimum <= float(found[1]) <= d.maximum for d in dimensions)
        if is_mark and float(found[1]) not in scores and not _is_of_other(tail, found.start()):
            yield found.start()
    for found in _LOOSE.finditer(tail):
        number = float(found[1])
        if number in scores or not any(d.minimum <= number <= d.maximum for d in dimensions):
            continue
        begins_line = _LISTED.search(tail, 0, found.start()) is not None
        if begins_line and _REST_OF_LINE.match(tail, found.end()):
            continue  # a line that is a number alone says nothing of what it is
        is_listed = begins_line and tail[found.end() : found.end() + 2] in (". ", ") ", ": ", "- ")
        if not is_listed and not _is_of_other(tail, found.start()):
            yield found.start()


def _is_of_other(tail: str, start: int) -> bool:
    """Whether what stands before a number says that it counts something, or marks something else."""
    return any(one.search(tail, max(0, start - 20), start) for one in (DEPICTED, _COUNTING, _LABELLED))
