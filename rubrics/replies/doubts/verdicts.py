"""A number that the judge calls its own beside the one in the form: "I'd give it a 2", "this deserves a 5". English alone.

A number that stands among the form's scores says nothing new. What takes a number back in so many words is taken_back.py.
"""

# ruff: noqa: E501, ISC004 - a pattern is read whole, a way to say it a line

import re
from collections.abc import Collection

from rubrics.replies.doubts.words import compiled, holds_any, lowered
from rubrics.replies.numbers import NUMBER_WORDS, number_of

_NUMBER = rf"(?<![\w.])([0-9]{{1,3}}+(?:\.[0-9]{{1,2}}+)?+|(?:{'|'.join(NUMBER_WORDS)})\b)"
# A number with a noun behind it counts something.
_ALONE = (
    r"(?!\.[0-9])(?=\s?(?:[.,;:!?)\"'*\n]|\Z|out of\b|of [0-9]|at (?:most|best)|instead\b|because\b|since\b|for\b|here\b|is\b|seems\b|as\b|on\b"
    r"|better\b|stars?\b|points?\b))"
)
_SCORE = r"(?:scores?|ratings?|marks?|grades?|verdict|judge?ment|decision)"
# (words one of which a way cannot do without, the way)
_WAYS = (
    (
        (" giv", " gave", " rat", " scor", " put", " say", " call", " settle", " lean", " award", " grade", " think"),
        rf"\b(?:i|we)(?:'d| would| will|'ll|'m|’d|’ll|’m)?(?: \w{{1,12}}){{0,2}} (?:giv(?:e|ing)|gave|rat(?:e|ing)|scor(?:e|ing)|put|say|call|settle|lean|award|grade|think)\b"
        rf"[^.;!?\n0-9]{{0,30}}?\b(?:an? |the |at |as |to |of |towards |than )?{_NUMBER}{_ALONE}",
    ),
    (
        (" score", " rating", " mark", " grade", " verdict", " judg", " decision", "sum", "total"),
        rf"\b(?:my|overall|final|this)(?: \w{{1,12}})? {_SCORE}\b[^.;!?\n0-9]{{0,24}}?{_NUMBER}{_ALONE}|\b(?:sum|total)(?: score| points)?(?: is| comes to| of)? ?[:=]?\s?{_NUMBER}{_ALONE}",
    ),
    (
        (
            " intend",
            " lean",
            " mean",
            " settl",
            " drifting",
            " inclined",
            " going",
            "let me",
            "replace the",
            "true ",
            "real ",
            "actual ",
            "honest ",
            "considered ",
            "proper ",
            "correct ",
        ),
        rf"\b(?:(?:i|we)(?:'m| am|’m)?(?: now)? (?:intend|lean(?:ing)?|mean|settling|settle|drifting|inclined|going)|let me(?: \w{{1,12}}){{0,3}}|(?:please )?replace the (?:overall|score|rating|number)"
        rf"|(?:\bnow|rather|really|actually) lean(?:s|ing)?|(?:true|real|actual|honest|considered|proper|correct) (?:{_SCORE}|answer|number))\b[^.;!?\n0-9]{{0,25}}?"
        rf"(?:\b(?:an?|at|to|of|towards?|on|for|with|is|as)|:) {_NUMBER}{_ALONE}",
    ),
    (
        ("is what", "is how", "is where", "was what", "was how", "was where", "be what", "be how", "be where"),
        rf"\b{_NUMBER} (?:is|was|would be) (?:what|how|where) (?:i|it|this)(?:'d|’d|'s|’s|'m|’m)? ?(?:would|now|actually|really|deserves?|should|put|meant|mean|land|stand|am|assign|give)\w*\b",
    ),
    (
        ("really a", "actually a", "rather a", " from me", " in my "),
        rf"\b(?:really|actually|rather) an? {_NUMBER}(?= (?:from me|in my (?:book|eyes|opinion|view)|and not|not)\b)|\b{_NUMBER} (?:from me|in my (?:book|eyes|opinion|view))\b",
    ),
    (
        ("my overall", "my final", "my total"),
        rf"\bmy (?:overall|final|total)(?: now)? (?:is|becomes|drops to|rises to|goes to) {_NUMBER}{_ALONE}",
    ),
    (
        ("leaving", "leaves", "="),
        rf"\bleav(?:ing|es)(?: (?:it|us|me|this))?(?: at| with)?(?: an?| the)? {_NUMBER}{_ALONE}|[0-9] ?[-–−] ?[0-9]{{1,2}} ?= ?{_NUMBER}{_ALONE}",
    ),
    (
        (
            "corresponds to",
            "amounts to",
            "to be",
            "deserve",
            "earn",
            "merit",
            "warrant",
            "hence",
            "thus",
            "'s",
            "’s",
            "this is",
            "that is",
            "it is",
            "make",
            "read ",
            "evaluated",
            "change the",
            "closer to",
        ),
        rf"\b(?:corresponds to|amounts to|(?:has|have|ought) to be|deserves?|earns?|merits?|warrants?|hence|thus|(?:this|that|it)(?:'s|’s| is)|makes? (?:it|that|this)|read (?:it|that|this) as|re-?evaluated:?|change the [0-9]{{1,3}} to|closer to)"
        rf"(?: an?| the)?(?: (?:full|perfect|solid|clean|strong|clear|weak))? {_NUMBER}{_ALONE}",
    ),
    (
        (" seems", " is", " would be", " better", " fits", " feels", " captures"),
        rf"\ban? {_NUMBER} (?:seems|is|would be|better|fits|feels|captures)\b",
    ),
)
# "Had it been red I would have given a 5", "I considered a 3 but ...": said of a case, or of what was thought before.
_OF_A_CASE = re.compile(
    r"\b(?:(?:would|could|might|may|should) have|had|if|unless|consider\w{0,5}|initial\w{0,2}|at first|tempted|almost|nearly|not|never|instead of|rather than|prevents?|keeps?|kept)\b|n['’]t\b",
    re.IGNORECASE,
)
_TURNS = re.compile(r"[.;!?\n]|\b(?:but|yet|now|however)\b", re.IGNORECASE)
# And what is written in the picture, or was asked for, is no verdict; nor is what a number is held against.
_DEPICTED = re.compile(
    r"\b(?:ask(?:s|ed)? for|want(?:s|ed)?|shows?|reads|says|number|jersey|clock|sign|label\w{0,3}|page|chapter|version|level)\b",
    re.IGNORECASE,
)
_HELD_AGAINST = re.compile(r"\b(?:between|short of|below|above|than|under|over|prompt|number|sign)\b", re.IGNORECASE)
_FIRST = frozenset({
    "i", "id", "ill", "im", "we", "wed", "my", "overall", "final", "this", "deserves", "deserve", "earns", "earn", "merits",
    "merit", "warrants", "warrant", "hence", "thus", "that", "its", "it", "makes", "make", "read", "reevaluated", "re",
    "change", "closer", "a", "an", "leaving", "leaves", "corresponds", "amounts", "has", "have", "ought", "what", "sum", "total", "please", "replace", "true", "real", "now", "let",
    "well", "thats", "actual", "honest", "considered", "proper", "correct", "really", "rather", "actually", "from",
})  # fmt: skip


# Score 2 because of the length. Held against each score, whatever else is said.
_BECAUSE_NEEDS = (" because", " since", " due")
_BECAUSE = rf"(?:^|(?<=[\"“\n])|(?<=[.;:!?] ))(?:score|rating)(?:d| of| is)? {_NUMBER}(?= (?:because|since|due)\b)"
# Capped at 1. The score cannot exceed 1. A lower score keeps to it.
_CAPPED_NEEDS = ("cap ", "capped ", "limited ", "exceed ", "higher ", "more ", "greater ", "above ")
_CAPPED = (
    rf"\bcap(?:ped)? (?:at|of) {_NUMBER}{_ALONE}|\b{_SCORE}\b[^.;!?\n0-9]{{0,20}}?"
    rf"\b(?:limited to|(?:can(?:not| not|['’]t)|may not|must not|should not) (?:exceed|be (?:(?:higher|more|greater) than|above))) {_NUMBER}{_ALONE}"
)


def _is_reasoned_otherwise(near: str, lower: str | None, scores: Collection[float]) -> bool:
    """Whether the reason names another number as the score, or a cap that the one score is above."""
    if holds_any(lower, _BECAUSE_NEEDS) and holds_any(lower, ("score", "rating")):
        found = compiled(_BECAUSE, re.IGNORECASE).finditer(near)
        if any(number_of(one[1]) not in scores for one in found):
            return True
    if len(scores) != 1 or not holds_any(lower, _CAPPED_NEEDS):
        return False
    caps = (one[one.lastindex or 0] for one in compiled(_CAPPED, re.IGNORECASE).finditer(near))
    return any(number_of(cap) < score for cap in caps for score in scores)


def states_another_verdict(near: str, words: frozenset[str], scores: Collection[float]) -> bool:
    """Whether the judge calls a number its verdict that is none of the scores, in the text near numbers. `words` are the whole text's."""
    lower = lowered(near)
    if _is_reasoned_otherwise(near, lower, scores):
        return True
    if words.isdisjoint(_FIRST):
        return False
    for needles, way in _WAYS:
        for found in compiled(way, re.IGNORECASE).finditer(near) if holds_any(lower, needles) else ():
            if number_of(found[found.lastindex or 0]) in scores:
                continue
            before = near[max(0, found.start() - 120) : found.start()]
            turn = max((one.end() for one in _TURNS.finditer(before)), default=0)
            before = before[turn:]
            if not (_OF_A_CASE.search(before + found[0]) or _DEPICTED.search(before[-25:]) or _HELD_AGAINST.search(found[0])):
                return True
    return False
