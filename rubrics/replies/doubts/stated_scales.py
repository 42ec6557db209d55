"""A scale said beside a reply's numbers that is none of the prompt's: "on a scale of 1 to 10", "4 out of 10". English alone.

Scales of the judge's own, told by their ends or steps, are own_scales.py's. Every repetition is bounded.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line

import re

from rubrics.model import Dimension
from rubrics.replies.doubts.words import compiled, holds_any, holds_each, lowered
from rubrics.replies.numbers import DIGITS

# One of these words, or a slash, stands in every way of stating a scale.
_SCALED = frozenset({
    "scale", "scales", "out", "point", "points", "star", "stars", "max", "maximum", "possible", "perfect", "full", "highest",
    "top", "best", "being", "worst", "lowest", "excellent", "range", "ranges", "ranging", "score", "scored", "scores",
    "scoring", "rate", "rated", "rating", "ratings", "graded", "grade", "mark", "marks", "from", "values",
})  # fmt: skip
_TENS = r"(?:ten|twenty|fifty|(?:a |one )?hundred)"
_END = rf"([0-9]{{1,4}}+(?:\.[0-9]{{1,2}}+)?+|{_TENS}\b)"
_TOP = rf"(1|[3-9]|10|20|100|{_TENS})"
_TO_END = r"(?:\s?[(（][^()（）\n]{1,25}[)）])?\s*+(?:-|–|—|−|~|〜|～|-to-|(?:up )?to|and|through|until|\.{2,3}|…|至)\s*+"
_CLAUSE_END = r"(?=[ \t]*+(?:[.,;:!?)\]}\"'”’*_`。，；：！？、）(（—–|<]|-\s|\Z|\n))"
_UNIT_AFTER = (
    r"(?=[ \t]*+(?:[.,;:!?)\]}\"'”’*_`。，；：！？、）—–|<]|-\s|\Z|\n|would\b|possible\b|points?\b|pts\b|stars?\b|marks?\b|because\b|since\b|as\b|for\b|overall\b"
    r"|due\b|which\b|so\b|but\b|on\b|in my\b|from me\b|here\b|where\b|with\b|of course))"
)
_RATED = (
    r"(?:scor(?:e|es|ed|ing)|rat(?:e|es|ed|ing|ings)|grad(?:e|es|ed|ing)|marks?|giv(?:e|es|en|ing)|gave|assign(?:s|ed|ing)?|award(?:s|ed|ing)?|deserv(?:e|es|ing)"
    r"|earn(?:s|ed)?|merits?|receiv(?:e|es|ed)|gets?|got|overall|verdict|total|worth|say|maximum|evaluation|judg\w+|(?:score|rating|scoring) range|values?|points?|scale)"
)
_SPANNED = (
    rf"\bscales?\b[^.\n0-9]{{0,25}}?\b{_END}{_TO_END}{_END}(?![0-9%]|\.[0-9])"
    rf"|(?<![0-9.:]){_END}{_TO_END}{_END}[\s\-]*+(?:points? |rating |scoring |likert |quality |numeric(?:al)? )?(?:scale|rating|range|scoring)\b"
    rf"|\b{_RATED}\b[^.\n0-9]{{0,30}}?(?<![0-9.:])([01]){_TO_END}{_TOP}(?![0-9%/:]|\.[0-9]){_CLAUSE_END}"
    rf"|\b{_RATED}\b[^.\n0-9]{{0,30}}?\b(?:from|between) ([01]){_TO_END}{_TOP}(?![0-9%/:]|\.[0-9])(?= (?:scale|here|points?|on|in|for|where|with)\b)"
    rf"|(?<=[(\[])(?:range:? )?([01]){_TO_END}{_TOP}(?=[)\]]\W*(?:\Z|\n))"
)
_N_POINT = re.compile(
    rf"(?<![0-9.])([0-9]{{1,3}}+|{_TENS})[\s\-]?(?:point|pt|star)s?[\s\-](?:\w+ )?(?:scale|system|rating scale)\b"
    rf"|\bscale (?:of|to|with|up to|out of) (?:up to )?{_END}(?!\s*+(?:-|–|to\b|and\b|\.\.|~|～|:)){_UNIT_AFTER}", re.IGNORECASE,
)  # fmt: skip
# "A perfect 10" is but a saying.
_MARKED = r"(?:score|rating|mark|grade|marks|points|value)"
_NUMBER_OF = r"(?<![0-9./])([0-9]{1,3}+(?:\.[0-9]{1,2}+)?+)"
_OF_ANOTHER = (
    rf"\b{_RATED}\b[^.\n0-9]{{0,40}}?{_NUMBER_OF}[*_` ]{{0,3}}(?:/|／|out of)\s*+(?:an? )?(?:possible |maximum |total )?(?:of )?{_END}"
    rf"(?![0-9/]|\.[0-9]){_UNIT_AFTER}"
    rf"|{_NUMBER_OF}\s?(?:/|／|out of)\s?(5|10|20|100)(?![0-9/]|\.[0-9]){_UNIT_AFTER}"
    rf"|{_NUMBER_OF} out of (?:an? )?(?:possible |maximum |total )(?:of )?{_END}(?![0-9/]|\.[0-9])"
    rf"|\bout of (?:an? )?(?:possible |maximum |total )(?:of )?{_END}(?![0-9/]|\.[0-9])"
    rf"|\b(?:scor\w*|rat(?:ed|ing)s?|marks?|grade[ds]?|numbers?|points?|values?)\W{{0,3}} ?out of {_END}(?![0-9/]|\.[0-9])"
    rf"|\b(?:everything|is|are|given|each|all) out of {_END}(?![0-9/]|\.[0-9]){_UNIT_AFTER}"
    rf"|(?:^|\n|: |[(（\[\"“]|\bi\.e\.,? |—\s?|, |[.!?;] )out of {_END}(?![0-9/]|\.[0-9]){_UNIT_AFTER}"
    rf"|[(（\[]of {_END}\s?[)）\]]|(?:^|\n|[\"“(]|[.!?] ){_NUMBER_OF} of {_END} (?:points|stars|marks|pts)\b|\b(?:scores?|ratings?|marks?|it|points?) (?:go(?:es)?|runs?|reach(?:es)?) up to {_END}(?![0-9/]|\.[0-9])"
    rf"|\b(?:(?:maximum|max\.?|highest)(?: possible)?(?: {_MARKED})?|(?:top|best|perfect|full)(?: possible)? {_MARKED})(?: here)?(?: is| of| being|:| =| ){{1,2}} ?{_END}"
    rf"(?![0-9/]|\.[0-9]){_UNIT_AFTER}"
    rf"|(?<![0-9.]){_END} the (?:best|maximum|highest)\b|(?<![0-9.]){_END} (?:=|is|being|as|means|would be|is considered|stands for|represents) (?:the |a |an )?(?:absolute )?(?:best|perfect|maximum|max|highest|top|excellent|ideal)\b"
)
# Whoever names a span names two ends; and with one number alone another scale is told in these words.
_ENDS = re.compile(rf"[0-9]++|{_TENS}", re.IGNORECASE)
_OF_ANOTHER_NEEDS = (
    "out of", "(of", "（of", "[of", "up to", "max", "highest", "top", "best", "perfect", "full", "excellent", "ideal"
)  # fmt: skip
# Where there are two, one more way may be meant, or one of these: "3/5", "3 of 5 stars".
_OF_TWO_NEEDS = ("/", "／", " points", " stars", " marks", " pts")
# What such words stand beside: the end they are said of.
_OF_AN_END = re.compile(
    r"/|／|out of|[(（[]of |up to| (?:points|stars|marks|pts)|[0-9nyd] (?:=|is|being|as|means|would be|stands for|represents|the) "
    r"|(?:max|highest|top|best|perfect|full)[a-z. :=]{0,48}?(?:[0-9]|ten|twenty|fifty|hundred)"
)
_N_POINT_NEEDS = (("point", "pt", "star", "scale"), ("scale", "system"))
# Two ends with what joins them.
_JOINED = re.compile(rf"[0-9nyd]{_TO_END}(?=[0-9tfaoh])")
# What is written in the picture states no scale: "the sign reads 10/10".
DEPICTED = re.compile(
    r"\b(?:reads?|says?|shows?|display\w*|written|text|sign|label\w*|number|date|time|clock|jersey|titled?)[\s:'\"“”‘’]{0,3}\Z",
    re.IGNORECASE,
)
_INSTRUMENT = re.compile(
    r"\b(?:thermo|baro|speedo|tacho|volt)?(?:meter|gauge|dial|ruler|axis|axes|map|clock|graph|chart)s?\b", re.IGNORECASE
)
_AS_DIGITS = {"ten": 10, "twenty": 20, "fifty": 50}


def states_another_scale(near: str, words: frozenset[str], dimensions: tuple[Dimension, ...]) -> bool:
    """Whether a scale is said that is none of the dimensions': "on a scale of 1 to 10", "I give it 4 out of 10".

    `near`: the text around numbers; `words` are the whole text's.
    """
    if words.isdisjoint(_SCALED) and "/" not in near and "／" not in near:  # no word for one
        return False
    lower = lowered(near)
    first = DIGITS.search(near)  # two numbers in figures are the usual case, and found at once
    has_two = (first is not None and DIGITS.search(near, first.end()) is not None) or len(_ENDS.findall(near)) > 1
    has_span = has_two and (lower is None or _JOINED.search(lower) is not None)
    for found in compiled(_SPANNED, re.IGNORECASE).finditer(near) if has_span else ():
        low, high = (_end(group) for group in found.groups() if group is not None)
        is_ours = any(low == d.minimum and high == d.maximum for d in dimensions)
        if not is_ours and not _INSTRUMENT.search(near, max(0, found.start() - 40), found.end()):
            return True
    may_be_of_another = holds_any(lower, _OF_ANOTHER_NEEDS) or (has_two and holds_any(lower, _OF_TWO_NEEDS))
    if may_be_of_another and lower is not None:
        may_be_of_another = _OF_AN_END.search(lower) is not None
    for found in compiled(_OF_ANOTHER, re.IGNORECASE).finditer(near) if may_be_of_another else ():
        end = _end(next(group for group in reversed(found.groups()) if group is not None))
        if not any(end == d.maximum for d in dimensions) and not DEPICTED.search(near, max(0, found.start() - 20), found.start()):
            return True
    n_points = _N_POINT.finditer(near) if holds_each(lower, _N_POINT_NEEDS) else ()
    points = (_end(next(filter(None, found.groups()))) for found in n_points)
    return any(not any(n in (d.maximum, d.maximum - d.minimum + 1) for d in dimensions) for n in points)


def _end(said: str) -> float:
    return float(said) if said[0].isdigit() else float(_AS_DIGITS.get(said.lower(), 100))
