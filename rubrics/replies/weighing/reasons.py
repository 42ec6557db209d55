"""Numbers that a reason for a score names, and that take nothing back: points deducted, marks that were not reached.

"I deducted 3 points", "not a 10", "better than a 6", "a perfect 10 would need the hat". English, and the commonest in French
and German; asked only where another number stands beside a score.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line

import re
from collections.abc import Collection
from functools import cache

_N = r"([0-9]{1,2}+(?:\.[0-9]{1,2}+)?+)"
_A = r"(?:an? |the |une? |le |eine? )?(?:perfect |full |ideal |flawless |solid )?"
_OFF = r"(?:took|taken|taking|knocked|knocking)"
_DEDUCTED = (
    rf"\b(?:(?:deduct|subtract|dock)(?:ed|ing|s)|los(?:es|t|ing)|cost(?:s|ing)?|remov(?:ed|ing)|{_OFF} (?:off|away)|{_OFF}(?= [0-9.]{{1,4}} (?:full )?(?:points?|pts|marks?) (?:off|away)\b)"
    r"|(?:j['’]ai|on a|a été) (?:retiré|enlevé|déduit|ôté)|perd|coûte(?:nt)?)(?: (?:it|me|about|only|just|at least|a total of))?"
    rf" {_N} (?:full )?(?:points?|pts|marks?)\b(?! too\b|\s?[:=]| (?:from|off)(?: of)? (?:it|this|that|(?:the|my) \w+ above)\b)"
    # and 1 for the hat
    r"((?:[^.;!?\n0-9]{1,50}?(?:,|\band|\bet|&) (?:another |encore )?[0-9]{1,2}(?: (?:points?|pts|marks?))? (?=for\b|because\b|since\b|due\b|as\b|pour\b)){0,4}+)"
)
_FROM = re.compile(rf" (?:from|off)(?: of)? (?:that |this |my )?{_A}{_N}", re.IGNORECASE)
# What is still to be deducted, or was on a second look.
_ANEW = re.compile(
    r"\b(?:should|would|must|need|needs|have to|has to|ought|forgot\w*|now|then|later|afterwards|again|second|closer|re-?\w*consider\w*|reflection|additional\w*|further|extra|more|(?:from|of) which)\b[^.;!?\n]{0,60}\Z|\b(?:after|before|upon|by) \Z",
    re.IGNORECASE,
)
_NOT_REACHED = (
    rf"\b(?:not(?: quite)?|isn['’]t|far from|away from|keine?|pas) {_A}{_N}"
    rf"|\b{_A}{_N}(?:/[0-9]{{1,3}})? would (?:need|require|demand|have (?:needed|required))\b(?! to\b)"
    rf"|\bwould (?:have been|be) {_A}{_N} (?:if|without|with|had|but for)\b"
    rf"|\b(?:compared (?:to|with)|relative to) {_A}{_N}(?=,)"
)
_ABOVE = rf"\b(?:better|more|higher|above|over) (?:than )?(?:an? ){_N}"
_BELOW = rf"\b(?:worse|less|lower|below|under|short of|shy of) (?:than )?(?:an? ){_N}"


@cache
def _pattern() -> re.Pattern[str]:
    """Compiled when it is first asked for."""
    return re.compile(
        rf"(?P<not>{_NOT_REACHED})|(?P<above>{_ABOVE})|(?P<below>{_BELOW})|(?P<deducted>{_DEDUCTED})", re.IGNORECASE
    )


def without_reasons(text: str, scores: Collection[float], maximum: float) -> str:
    """The text with blanks for the numbers of such reasons. One that would contradict a score stays: 3 points deducted from the maximum."""
    pieces, done = [], 0
    for found in _pattern().finditer(text):
        end = _end(found, text, scores, maximum)
        if end:
            pieces += [text[done : found.start()], " " * (end - found.start())]
            done = end
    return "".join([*pieces, text[done:]])


def _end(found: re.Match[str], text: str, scores: Collection[float], maximum: float) -> int | None:
    """Where the reason ends; None where its number says another thing."""
    number = float(next(group for group in found.groups() if group and group[0].isdigit() and len(group) < 6))
    if found["above"] or found["below"]:
        return found.end() if all((score > number) == bool(found["above"]) and score != number for score in scores) else None
    if found["not"]:
        return None if number in scores else found.end()
    if number + min(scores) > maximum or _ANEW.search(text, max(0, found.start() - 60), found.start()):
        return None
    whole = _FROM.match(text, found.end())
    if whole is None:
        return found.end()
    return whole.end() if float(whole[1]) - number in scores else None
