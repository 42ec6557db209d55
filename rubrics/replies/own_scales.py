"""A scale of the judge's own, told by its ends or its steps: "0 = none, 3 = all", "a seven-point scale".

Beside taken_back.py, which knows "on a scale of 1 to 10" and "4 out of 10". English alone.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line

import re

from rubrics.model import Dimension
from rubrics.replies.numbers import NUMBER_WORDS, number_of

_COUNT = rf"([0-9]{{1,3}}|{'|'.join(NUMBER_WORDS)})"
_STEPS = re.compile(
    rf"\b{_COUNT}[- ](?:point|level|step|grade|star)s?\b(?=[^.;\n]{{0,20}}\b(?:scale|range|system|likert))|\b{_COUNT} (?:grades|levels) i use\b",
    re.IGNORECASE,
)
_BINARY = re.compile(r"\bbinary\b[^.;\n]{0,20}\bscale\b", re.IGNORECASE)
_MEANS = re.compile(
    r"(?<![\w./])([0-9]{1,3}) ?(?:=|means\b|stands for\b|being\b|as the (?:floor|ceiling|lowest|highest)\b)", re.IGNORECASE
)
_TOP = re.compile(
    rf"\b{_COUNT} (?:stars|points|marks) (?:out )?of (?:an? possible )?{_COUNT}\b|\b(?:marking|rating|scoring|grading) [^.;\n]{{0,25}}\bout of {_COUNT}\b"
    rf"|\b{_COUNT} is (?:my|the) (?:maximum|top|best|highest)\b|\b(?:it|scores?|ratings?) (?:runs?|goes|ranges?) from [0-9]{{1,2}} to {_COUNT}\b",
    re.IGNORECASE,
)  # fmt: skip
_WORDS = frozenset(
    [
        "binary",
        "likert",
        "stars",
        "points",
        "marks",
        "marking",
        "rating",
        "scoring",
        "grading",
        "maximum",
        "top",
        "best",
        "highest",
        "runs",
        "goes",
        "ranges",
        "means",
        "stands",
        "being",
        "floor",
        "ceiling",
        "grades",
        "levels",
    ]
)


def is_on_own_scale(near: str, words: frozenset[str], dimensions: tuple[Dimension, ...]) -> bool:
    """Whether the text near its numbers tells ends or steps of a scale that is none of the dimensions'. `words` are the whole text's."""
    if words.isdisjoint(_WORDS) and "=" not in near and "-" not in near:
        return False
    if _BINARY.search(near) and not any((d.minimum, d.maximum) == (0, 1) for d in dimensions):
        return True
    steps = [_number(found) for found in _STEPS.finditer(near)]
    if any(not any(n in (d.maximum, d.maximum - d.minimum + 1) for d in dimensions) for n in steps):
        return True
    ends = {float(found[1]) for found in _MEANS.finditer(near)}
    if len(ends) > 1 and not any({d.minimum, d.maximum} <= ends or ends <= {d.minimum, d.maximum} for d in dimensions):
        return max(ends) not in {d.maximum for d in dimensions}
    return any(_number(found) not in {d.maximum for d in dimensions} for found in _TOP.finditer(near))


def _number(found: re.Match[str]) -> float:
    """The last number that the pattern names: a scale's end stands behind what was given on it."""
    return number_of(next(group for group in reversed(found.groups()) if group is not None))
