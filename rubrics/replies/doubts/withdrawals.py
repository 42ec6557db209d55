"""A score or an answer that the judge takes away behind the form without another: "I take that back", "(before penalty)".

Another number in its place is taken_back.py's, another word second_answers.py's; a score called wrong anywhere, disavowal.py's.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line

import re

from rubrics.replies.doubts.words import compiled, holds_each, is_plain, lowered, squeezed
from rubrics.replies.numbers import NUMBER_WORDS

_N_TAIL = 3000
_N_LEAST = 10
_SCORE = r"(?:scores?|ratings?|marks?|grades?|verdict|answer|evaluation|assessment|choice|vote|number)"
_NUMBER = rf"(?:[0123456789]{{1,2}}|{'|'.join(NUMBER_WORDS)})"
_POINTS = rf"(?:an?|another|half an?|some|{_NUMBER})"
# (lists of what a way cannot do without, the way)
_COUNTED = ("point", "mark", "notch", *NUMBER_WORDS, *"0123456789")
_WAYS = (
    (
        (("tak", "took"), ("back",)),
        rf"(?<!\w)(?:i|i'?ll|i'?m|i’m|i’ll|we)(?: will| must| have to| would like to| want to| need to| hereby| am)? (?:take|took|taking) (?:that|it|this|(?:my|the|that|this) (?:\w+ )?{_SCORE})(?: {_SCORE})? back\b",
    ),
    (
        (("scratch", "strike", "scrap", "forget", "disregard", "ignore", "cancel"),),
        r"(?:^|(?<=[.!?;:,\n(—–-])|(?<=[.!?;:,(—–-] ))(?:(?:no|wait|oops|sorry|please|actually),? )?(?:scratch|strike|scrap|forget|disregard|ignore|cancel) (?:that|this|it|the above|what i (?:said|wrote))(?=\s?[.,;:!)—–]|\s?\Z|\n)",
    ),
    (
        (("penalt", "deduction", "adjustment"),),
        r"[0-9](?: ?/ ?[0-9]{1,3})?[*_` ,;]{0,4}[(\[,;—–-] ?(?:this is |that is |still |but |yet )?(?:before|prior to|excluding|not (?:counting|including)|without|subject to|less|minus|pending) (?:the |an? |any |my )?(?:\w+ )?(?:penalt(?:y|ies)|deductions?|adjustments?)\b",
    ),
    (
        (("penalt", "deduct"),),
        rf"(?:^|\n)[ \t*_#>-]*(?:\w+ )?(?:penalt(?:y|ies)|deductions?)[*_`]{{0,3}} ?[:=][*_` -]{{0,4}}(?!0\b|zero\b){_POINTS}\b",
    ),
    (
        (("lower", "reduce", "drop", "deduct", "subtract", "knock", "take", "dock", "remove", "cut"), _COUNTED),
        rf"(?:(?:^|[.!?;:\n] ?)(?:so |please |then |now |hence |therefore )?|\bi(?:'d|’d| would| should| must|'ll|’ll| will| have to| need to) (?:\w+ )?)(?:lower|reduce|drop|deduct|subtract|knock|take|dock|remove|cut) (?:it |this |that |the {_SCORE} |off |away |by |a full ){{0,3}}(?:{_POINTS} ?(?:points?|marks?|notch(?:es)?)|{_NUMBER} ?(?:[.!;]|\Z|\n| for\b))",
    ),
    ((("off",), ("point", "mark")), rf"(?:\bso|\bhence|\bthus|\btherefore|(?<!reasoning)(?<!reason)(?<!explanation)(?<!justification)(?<!rationale)[:;]),? {_POINTS} (?:points?|marks?) off\b"),
    # what is too generous is a score, and what is a point too high; what is too harsh may be a light
    (
        (("too",), ("generous", "lenient", "high", "low")),
        (
            r"\b(?:that|this|it|which)(?:['’]s| is| was| seems| feels| looks| may be| might be)(?:(?: \w+){0,2}? too (?:generous|lenient)| (?:one|1) too (?:high|low))\b(?! to\b)"
            r"|\b(?:an?|one|1|two|2|half an?) (?:full )?(?:points?|marks?) too (?:generous|lenient|high|low)\b"
        ),
    ),
    ((("minus",),), rf"[0-9](?: ?/ ?[0-9]{{1,3}})?[*_` )]{{0,4}}[,;—–-] ?minus {_POINTS}\b"),
)  # fmt: skip
_WORDS = frozenset({
    "back", "scratch", "strike", "scrap", "forget", "disregard", "ignore", "cancel", "penalty", "penalties", "deduction", "deductions",
    "adjustment", "adjustments", "lower", "reduce", "drop", "deduct", "subtract", "knock", "take", "dock", "remove", "cut", "off", "minus",
    "generous", "lenient", "high", "low",
})  # fmt: skip
# "I would deduct a point if the can were gone."
_OF_A_CASE = re.compile(r"\b(?:if|unless|would have|had)\b[^.;!?\n]{0,60}\Z", re.IGNORECASE)
_ON_A_CASE = re.compile(r"[^.;!?\n]{0,60}\b(?:if|unless|had)\b", re.IGNORECASE)


def is_taken_away(text: str, words: frozenset[str], first: int) -> bool:
    """Whether words behind `first`, where the first answer stands, take it away or lessen it. `words` are the whole text's."""
    if words.isdisjoint(_WORDS) or len(text) - first < _N_LEAST:
        return False
    tail = text[first : first + _N_TAIL]  # the number itself is a needle of none
    lower = lowered(tail if is_plain(tail) else squeezed(tail))
    ways = [way for needles, way in _WAYS if holds_each(lower, needles)]
    if not ways:
        return False
    tail = squeezed(text[max(0, first - 2) : first + _N_TAIL])
    for way in ways:
        for found in compiled(way, re.IGNORECASE).finditer(tail):
            if not (_OF_A_CASE.search(tail, 0, found.start()) or _ON_A_CASE.match(tail, found.end())):
                return True
    return False
