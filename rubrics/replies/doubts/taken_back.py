"""What a reply says beside its numbers that makes them none: a later word that takes one back, or a scale not the prompt's.

Asked where every dimension has a number. "Actually, 3 cats are shown" and "3 out of 5 cats" are about the picture: a number
counts here only where nothing is counted by it. English alone; every repetition is bounded.
"""

# ruff: noqa: E501, ISC004 - a pattern is read whole, a way to say it a line

import re
from collections.abc import Collection, Iterable, Mapping

from rubrics.model import Dimension
from rubrics.replies.doubts.words import compiled, holds_any, lowered
from rubrics.replies.numbers import DIGITS, NUMBER_WORDS, number_of

_N_TAIL = 2000
# One of these words, or a slash, stands in every way of stating a scale.
_SCALED = frozenset({
    "scale", "scales", "out", "point", "points", "star", "stars", "max", "maximum", "possible", "perfect", "full", "highest",
    "top", "best", "being", "worst", "lowest", "excellent", "range", "ranges", "ranging", "score", "scored", "scores",
    "scoring", "rate", "rated", "rating", "ratings", "graded", "grade", "mark", "marks", "from", "values",
})  # fmt: skip

# As a word only where it stands for a mark: "make that a three", not "the missing one".
_NUM = (
    r"(?<![\w.])([0-9]{1,4}+(?:\.[0-9]{1,4}+)?+"
    rf"|(?:(?<=\ba )|(?<=\ban )|(?<=\bto )|(?<=\bbe )|(?<=\bis )|(?<=\bas )|(?<=that )|(?<=ually )|(?<=[:=,] )|(?<=\bit )|(?<=\bread ))(?:{'|'.join(NUMBER_WORDS)})\b)"
)
_BEFORE_WORD = (" a ", "\na ", " an ", " to ", " be ", " is ", " as ", "that ", "ually ", ": ", "= ", ", ", " it ", " read ")
_WORDS = re.compile("|".join(NUMBER_WORDS))
# A number with a noun behind it counts things in the picture.
_ALONE = (
    r"(?![0-9])(?!\.[0-9])(?!,\s?[0-9])(?=[ \t]*+(?:[.,;:!?)\]}\"'”’*_`。，；：！？、）…—–|<]|-\s|\Z|\n|/\s?[0-9]|points?\b|pts\b|out of\b|instead\b|because\b|since\b|as\b"
    r"|given\b|for\b|now\b|here\b|would\b|is\b|seems\b|rather\b|on\b|due\b|after all|then\b|not\b|and not\b|at (?:most|best)))"
)
_MARK = r"[*_`\"'“”‘’(\[<\s]{0,6}"
_A = rf"(?:an? |the )?{_MARK}{_NUM}{_ALONE}"
_SCORE = r"(?:(?:final|overall|total|new|true|actual|real|correct|right|proper|honest) )?(?:scores?|ratings?|marks?|grades?|verdict|evaluation|assessment)"
_TO = r"(?:\s*+[:：=\-–—>→]++\s*+|\s(?:(?:now|then) )?(?:is|are|should be|would be|will be|to be|to|down to|up to|as|of|becomes|at|into)(?: now)?\s)"
_CHANGED = r"(?:correct|revis|amend|updat|adjust|chang|lower|rais|reduc|increas|downgrad|upgrad|bump|dropp?|mov|edit|set)(?:e|ed|es|ing|ting|ped|ping|d)?"
_WHOLE = frozenset({"final", "overall", "total", "sum"})
_OBJECT = rf"(?:it|this|that|my (?:\w+ )?{_SCORE}|the {_SCORE}|(?:it|this|that) (?:all )?{_SCORE})"
_REGRET = (
    r"(?:actually|or rather|rather|wait|hold on|scratch that|strike that|hmm+|no wait|no(?=[,:])|oops|sorry|apologies|i apologi[sz]e|my mistake|i misspoke|(?:let me|i (?:need|have|must|want) to) correct myself"
    r"|i should have said|i meant(?: to say)?|i mean|correction|typo(?: above)?|i take (?:that|it) back"
    r"|(?:i(?:'ve|’ve| have)? )?changed? (?:of |my )?mind|on (?:second thoughts?|reflection|reconsideration|(?:further |closer )?(?:thought|review|reflection|consideration))"
    r"|(?:that|it|i) (?:is|was) (?:far |a bit |a little )?too (?:generous|harsh|high|low|strict|lenient|kind)"
    r"|upon (?:further |closer )?(?:reflection|review|reconsideration|consideration|thought)|(?:after|having|on) reconsider\w*|reconsidering"
    r"|(?:after|on|at|upon)(?: an?| another| the)? (?:second|closer|further|another|final|third|new|longer)(?: \w+)? (?:look|glance|inspection|view|review|pass|thought|reading|check)"
    r"|looking (?:again|closer|at it again)|second thoughts?|let['’]?s(?: say| make it| go with| call it)?"
    r"|thinking again|thinking about it(?: again)?|better|more (?:accurately|precisely|exactly)|to be (?:precise|exact|fair)"
    r"|let me (?:correct|revise|reconsider|rethink|adjust|re-?score|fix|amend|redo)[^.\n0-9]{0,30})"
)
_WAYS = tuple((frozenset(needles.split()), way) for needles, way in (
    # Correction: 3. Revised score: 3. (edit: 3)
    (
        "correction corrections corrected correct erratum edit edited update updated revision amendment amended revised adjusted adjustment typo"
        " rescored rescore rescoring answer verdict new true right proper",
        r"\b(?:corrections?|revised figure|erratum|edit(?:ed)?|updated?|revision|amendment|amended|revised|corrected|adjusted|adjustment|typo|re-?scored?|rescoring"
        r"|final answer|final verdict|(?:the|my) (?:correct|true|right|proper|real|actual)|new)\b[*_` ]{0,4}(?:(?:to|of|for|in) )?(?:(?:the|my|this|that|your) )?"
        rf"(?:(?:overall|final|new) )?(?:{_SCORE})?{_TO}(?:[^0-9\n,;]{{0,25}}?\s)?{_A}",
    ),
    # Score revised to 3. The score should be 3. (should be 3)
    (
        "score scores rating ratings mark marks grade verdict evaluation assessment above should read number",
        rf"\b(?:{_SCORE}|value|judge?ment|line above)\b[^.;!?\n0-9]{{0,40}}?(?:should|ought to|must|needs to) (?:be|read|have been)(?: an?)? {_A}"
        rf"|\b{_SCORE}(?: above)? (?:\w+ ){{0,3}}?{_CHANGED}{_TO}{_A}"
        rf"|\b{_SCORE}(?: above)? (?:\w+ ){{0,3}}?(?:should|ought to|must) (?:\w+ )?(?:be|have been|read) (?:\w+ )?{_A}"
        rf"|(?:[(\[]|\btypo,? |(?:^|[\n.!?;\"] ?)|\b(?:that|this) )should (?:be|read|say|have been) {_A}"
        rf"|\b{_SCORE} ?(?:after [\w ]{{1,24}}|\((?:final|corrected|revised|updated|new|adjusted)\)){_TO}{_A}",
    ),
    # Final score: 3. Therefore the overall score becomes 3.
    ("final overall total sum", rf"\b(?:final|overall|total) {_SCORE}{_TO}{_A}|\b(?:sum|total|final after \w+|final count)(?: score| points| is)? ?[:=：]\s?{_A}|\bfinal\W{{0,2}}[:=：]\s?{_A}"),
    # Make that a 3. Use 3 instead.
    (
        "make call say read consider use take put set replace treat settle go went going stay stick",
        rf"\b(?:make|call|say|read|consider|put|set) (?:that|it|this)(?: score| one)?(?: to be| to| as| at)? {_A}|\buse {_A}"
        rf"|\breplace (?:that|it|this|the (?:\w+ )?{_SCORE}(?: above)?) (?:with|by) {_A}"
        rf"|\b(?:settle|settling|go|going|went|stay|stick)(?: down| up| back)? (?:to|on|with|for|at) {_A}",
    ),
    # Actually 3. On second thought, a 3. I meant 3.
    (
        "actually rather wait hold scratch strike hmm no oops sorry apologies apologize apologise mistake misspoke said meant mean correction typo back"
        " mind after look looking lets second reflection reconsideration review consideration thought reconsidering reconsider reconsidered thinking generous harsh high low"
        " strict lenient kind better more precise exact fair let",
        rf"(?:^|(?<=[.!?;:)\]}}\"'\n。，；—–-])|(?<=[.!?;:。，；] )|(?<=\band )|(?<=\bbut )|(?<=\n\n)|(?<=, )|(?<=\()|(?<=\.  )){_REGRET}\b(?!-)[^0-9\n]{{0,40}}?{_A}",
    ),
    # I change it to 3. I'd lower my score to 3.
    (
        "it this that my the",
        rf"\b{_CHANGED} {_OBJECT}(?: up| down)?{_TO}{_A}",
    ),
    # I'd rather give it a 3. I'd now say 3.
    (
        "i id ill we wed",
        r"\b(?:i|i['’]d|i['’]ll|we)(?: would| will|['’]d|['’]ll)? (?:now|rather|instead|actually|really) (?:\w+ )?"
        rf"(?:give|say|rate|score|assign|choose|settle|go|put)(?: \w+){{0,3}}? {_A}|\bi['’]d put it at {_A}",
    ),
    # A 3 would be fairer. A 3 instead. 3 it is.
    (
        "fits suits works fairer better more appropriate apt fitting correct right final instead after is deserves",
        rf"\b(?:an? )?{_MARK}{_NUM}{_MARK} (?:is|would be|would have been|seems|feels|might be|may be|was) (?:\w+ )?(?:fairer|better|more \w+"
        rf"|appropriate|apt|fitting|correct|right|the right|my final|a fairer|a better)|\b(?:an? )?{_NUM} (?:fits|suits|works) (?:\w+ )?better|\b{_A}\W{{0,3}}(?:instead(?! of)|after all)\b"
        rf"|(?:^|(?<=[.!?;:,(\n] )|(?<=so )){_NUM} it is\b|\bdeserves {_A}",
    ),
))  # fmt: skip
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
_N_POINT_NEEDS = ("point", "pt", "star", "scale")
# What is written in the picture states no scale: "the sign reads 10/10".
_DEPICTED = re.compile(
    r"\b(?:reads?|says?|shows?|display\w*|written|text|sign|label\w*|number|date|time|clock|jersey|titled?)[\s:'\"“”‘’]{0,3}\Z",
    re.IGNORECASE,
)
_INSTRUMENT = re.compile(
    r"\b(?:thermo|baro|speedo|tacho|volt)?(?:meter|gauge|dial|ruler|axis|axes|map|clock|graph|chart)s?\b", re.IGNORECASE
)
_AS_DIGITS = {"ten": 10, "twenty": 20, "fifty": 50}


_INSTEAD = re.compile(
    r"\bnot (?:an? )?([0-9]{1,2})(?![0-9.])\W{0,3}(?:but|rather)(?: an?)? ([0-9]{1,2})(?![0-9.])|(?<![0-9.])([0-9]{1,2}),? (?:not|rather than|instead of) (?:an? )?([0-9]{1,2})"
    r"(?![0-9]|\.[0-9])[ \t]*+(?=[.,;!)\]}\"\n]|\Z)"
)  # fmt: skip
# Behind the form nothing was asked for: a number there that could be a mark, and counts nothing, is a second answer.
_LOOSE = re.compile(rf"(?<![\w.,:/#$%-])(?<![0-9] )([0-9]{{1,2}}+(?:\.[0-9]{{1,2}}+)?+){_ALONE}(?!:[0-9])(?!\s?[/%])")
_COUNTING = re.compile(
    r"\b(?:there (?:are|is|were|was)|only|has|have|with|contains?|depicts?|just|all|of|in|than)(?: only| just)? \Z", re.IGNORECASE
)
_LABELLED = re.compile(
    r"[^\W\d][*_`)]{0,3} ?[:：=][ *_`]{0,4}\Z"
)  # another label's number; those that mean the answer's are in _WAYS
_LISTED = re.compile(r"(?:^|\n)[ \t*_#>-]*\Z")


def is_answered_again(text: str, start: int, scores: Collection[float], dimensions: Iterable[Dimension]) -> bool:
    """Whether a number that is none of the scores, but on a scale, stands alone behind `start`, where the form ends."""
    tail = text[start : start + _N_TAIL]
    for found in _LOOSE.finditer(tail):
        number = float(found[1])
        if number in scores or not any(d.minimum <= number <= d.maximum for d in dimensions):
            continue
        is_listed = _LISTED.search(tail, 0, found.start()) and tail[found.end() : found.end() + 2] in (". ", ") ", ": ", "- ")
        if _LISTED.search(tail, 0, found.start()) and tail[found.end() : found.end() + 1] in ("\n", ""):
            continue  # a line that is a number alone says nothing of what it is
        before = (max(0, found.start() - 20), found.start())
        if not is_listed and not any(one.search(tail, *before) for one in (_DEPICTED, _COUNTING, _LABELLED)):
            return True
    return False


def is_withdrawn(near: str, words: frozenset[str], scores: Mapping[str, float]) -> bool:
    """Whether words put another number in a score's place. `near`: the text around numbers behind the first score.

    `words` are the whole text's. A final or overall score is held against the overall one, where the rubric asks for it beside
    others.
    """
    lower = near.lower()
    if not DIGITS.search(near) and not any(lower.endswith(_BEFORE_WORD, 0, word.start()) for word in _WORDS.finditer(lower)):
        return False
    for found in _INSTEAD.finditer(near):
        one, other = (found[2], found[1]) if found[1] else (found[3], found[4])
        if float(other) in scores.values() and float(one) not in scores.values():
            return True
    whole = [score for key, score in scores.items() if key.startswith(tuple(_WHOLE))] or list(scores.values())
    for needles, way in _WAYS:
        if not needles.isdisjoint(words):
            said = [number_of(next(filter(None, found.groups()))) for found in compiled(way, re.IGNORECASE).finditer(near)]
            if any(score != number for number in said for score in (whole if needles == _WHOLE else scores.values())):
                return True
    return False


def states_another_scale(near: str, words: frozenset[str], dimensions: tuple[Dimension, ...]) -> bool:
    """Whether a scale is said that is none of the dimensions': "on a scale of 1 to 10", "I give it 4 out of 10".

    `near`: the text around numbers; `words` are the whole text's.
    """
    if words.isdisjoint(_SCALED) and "/" not in near and "／" not in near:  # no word for one
        return False
    has_two = len(_ENDS.findall(near)) > 1
    for found in compiled(_SPANNED, re.IGNORECASE).finditer(near) if has_two else ():
        low, high = (_end(group) for group in found.groups() if group is not None)
        is_ours = any(low == d.minimum and high == d.maximum for d in dimensions)
        if not is_ours and not _INSTRUMENT.search(near, max(0, found.start() - 40), found.end()):
            return True
    lower = lowered(near)
    may_be_of_another = has_two or holds_any(lower, _OF_ANOTHER_NEEDS)
    for found in compiled(_OF_ANOTHER, re.IGNORECASE).finditer(near) if may_be_of_another else ():
        end = _end(next(group for group in reversed(found.groups()) if group is not None))
        if not any(end == d.maximum for d in dimensions) and not _DEPICTED.search(
            near, max(0, found.start() - 20), found.start()
        ):
            return True
    n_points = _N_POINT.finditer(near) if holds_any(lower, _N_POINT_NEEDS) else ()
    points = (_end(next(filter(None, found.groups()))) for found in n_points)
    return any(not any(n in (d.maximum, d.maximum - d.minimum + 1) for d in dimensions) for n in points)


def _end(said: str) -> float:
    return float(said) if said[0].isdigit() else float(_AS_DIGITS.get(said.lower(), 100))
