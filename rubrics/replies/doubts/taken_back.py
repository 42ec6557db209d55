"""What a reply says beside its numbers that makes them none: a later word that takes one back. Another scale: stated_scales.py.

Asked where every dimension has a number. "Actually, 3 cats are shown" is about the picture: a number counts here only where
nothing is counted by it. English alone; every repetition is bounded.
"""

# ruff: noqa: E501, ISC004 - a pattern is read whole, a way to say it a line

import re
from collections.abc import Collection, Mapping

from rubrics.model import Dimension
from rubrics.replies.doubts.words import compiled, holds_any, lowered
from rubrics.replies.json_values import AMENDED, is_another_of_the_whole, rival_keys, rivals_by_name
from rubrics.replies.labels import keys_by_label, normal
from rubrics.replies.numbers import DIGITS, NUMBER_WORDS, number_of

# As a word only where it stands for a mark: "make that a three", not "the missing one".
_NUM = (
    r"(?<![\w.])([0-9]{1,4}+(?:\.[0-9]{1,4}+)?+"
    rf"|(?:(?<=\ba )|(?<=\ban )|(?<=\bto )|(?<=\bbe )|(?<=\bis )|(?<=\bas )|(?<=that )|(?<=ually )|(?<=[:=,] )|(?<=\bit )|(?<=\bread ))(?:{'|'.join(NUMBER_WORDS)})\b)"
)
_BEFORE_WORD = (
    " a ", "\na ", " an ", " to ", " be ", " is ", " as ", "that ", "ually ", ": ", "= ", ", ", " it ", " read ", ". ", "! ", "? ", "\n",
)  # fmt: skip
_WORDS = re.compile("|".join(NUMBER_WORDS))
# A number with a noun behind it counts things in the picture.
ALONE = (
    r"(?![0-9])(?!\.[0-9])(?!,\s?[0-9])(?=[ \t]*+(?:[.,;:!?)\]}\"'”’*_`。，；：！？、）…—–|<]|-\s|\Z|\n|/\s?[0-9]|points?\b|pts\b|out of\b|instead\b|because\b|since\b|as\b"
    r"|given\b|for\b|now\b|here\b|would\b|is\b|seems\b|rather\b|on\b|due\b|after all|then\b|not\b|and not\b|at (?:most|best)))"
)
_MARK = r"[*_`\"'“”‘’(\[<\s]{0,6}"
_A = rf"(?:an? |the )?{_MARK}{_NUM}{ALONE}"
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
    r"|(?:in|with) (?:hindsight|retrospect)"
    r"|looking (?:again|closer|at it again)|second thoughts?|let['’]?s(?: say| make it| go with| call it)?"
    r"|thinking again|thinking about it(?: again)?|better|more (?:accurately|precisely|exactly)|to be (?:precise|exact|fair)"
    r"|let me (?:correct|revise|reconsider|rethink|adjust|re-?score|fix|amend|redo)[^.\n0-9]{0,30})"
)
_CHANGING = (
    "correct", "revis", "amend", "updat", "adjust", "chang", "lower", "rais", "reduc", "increas", "downgrad", "upgrad", "bump", "drop",
    "mov", "edit", "set",
)  # fmt: skip
# (words one of which stands in the text, what a way cannot do without near a number, the way)
_REGRETS = (
    "actually", "rather", "wait", "hold on", "scratch that", "strike that", "hm", "no,", "no:", "oops", "sorry", "apolog", "my mistake",
    "misspoke", "correct myself", "should have said", "meant", "i mean", "correction", "typo", " back", "mind", "thought", "reflection",
    "consider", " review", "too ", " look", " glance", " inspection", " view", " pass", " reading", " check", "looking ", "let's", "let’s",
    "lets", "thinking ", "better", "more accurately", "more precisely", "more exactly", "to be ", "let me ",
    "hindsight", "retrospect",
)  # fmt: skip
# Said behind the score of a part of it, or of the sum of several: what is held against it is in `is_withdrawn`.
_SUMS = frozenset({"overall", "final", "result", "results", "end", "corrected", "updated", "total", "verdict", "conclusion", "adjusted", "revised", "net", "summary", "sum", "bottom"})  # fmt: skip
_SUMMED = rf"(?:^|\n)[ \t*_#>-]*(?:so,? |hence,? |therefore,? )?(?:the |my )?((?:overall|final|end|net|total|adjusted|revised|corrected|updated)(?: {_SCORE}| result)?|results?|verdict|conclusion|sum|(?:in )?total|in sum|bottom line|summary)[*_`]{{0,3}}(?: ?[:=：-]| is| ?[→–—])[*_` ]{{1,5}}{_A}"
_DEDUCTED = "raises raising bumps bumping cuts cutting lowers drops knocks docks marks marking downgrades downgrading brings bringing penalty penalties deduct deducted deducting deduction deductions minus subtract subtracted subtracting reduce reduces reduced reducing lower lowered lowering cut dock docked docking knock knocked bring brought drop dropped dropping downgrade downgraded raise raised bump bumped mark marked off"
_REDUCED = (
    # Score: 5, which I reduce to three. 5, reduced to 3. A penalty brings it to 3. Deducting two, that gives 3.
    rf"(?:[0-9][*_` ,;(—–-]{{0,4}}(?:but |and |then |is |was |now ){{0,2}}|\b(?:i|we)(?:'d| would| will|'ll| must| have to| had to| should)? (?:therefore |thus |then |hence |now )?|(?:^|[\n.!?;\"“] ?)|\b(?:penalt(?:y|ies)|deductions?) (?:\w+ )?)"
    rf"(?:reduc|lower|cut|dock|knock|bring|brought|bump|drop|rais|mark|downgrad)\w*(?: (?:it|this|that|down|back|up|further|me|(?:the|my) {_SCORE}|by [^.;\n]{{1,25}}?)){{0,3}} to {_A}"
    rf"|\b(?:penalt(?:y|ies)|deduct\w*|minus|subtract\w*|points? off)\b[^.;!?\n]{{0,40}}?\b(?:result(?:ing|s)? in|(?:which|that|this) (?:gives|makes|leaves|yields|is)|gives|giving|making|yield(?:ing|s)|so|ends? (?:up )?(?:at|with)|comes? (?:down )?to|brings? (?:it|this|us) (?:down )?to|(?:final|total|net)(?: of)?)(?: (?:it|this|that|the {_SCORE})(?: is|'s)?)? {_A}"
    rf"|\b(?:after|with|including|net of|applying|subtracting|less) (?:the |this |that |an? |my )?(?:\w+ )?(?:penalt(?:y|ies)|deductions?)\b[^.;\n0-9]{{0,30}}?{_A}"
)
_REDUCED_NEEDS = (
    "reduc", "lower", "cut", "dock", "knock", "bring", "brought", "bump", "drop", "rais", "mark", "downgrad", "penalt", "deduct", "minus",
    "subtract", "point off", "points off",
)  # fmt: skip
_WAYS = tuple((frozenset(words.split()), needles, way) for words, needles, way in (
    # Correction: 3. Revised score: 3. (edit: 3)
    (
        "correction corrections corrected correct erratum edit edited update updated revision amendment amended revised adjusted adjustment typo"
        " rescored rescore rescoring re answer verdict new true right proper real actual",
        ("correct", "revis", "erratum", "edit", "updat", "amend", "adjust", "typo", "rescor", "re-scor", "final answer", "final verdict", "new",
         *(f"{whose} {kind}" for whose in ("the", "my") for kind in ("true", "right", "proper", "real", "actual"))),
        r"\b(?:corrections?|revised figure|erratum|edit(?:ed)?|updated?|revision|amendment|amended|revised|corrected|adjusted|adjustment|typo|re-?scored?|rescoring"
        r"|final answer|final verdict|(?:the|my) (?:correct|true|right|proper|real|actual)|new)\b[*_` ]{0,4}(?:(?:to|of|for|in) )?(?:(?:the|my|this|that|your) )?"
        rf"(?:(?:overall|final|new) )?(?:{_SCORE})?{_TO}(?:[^0-9\n,;]{{0,25}}?\s)?{_A}",
    ),
    # Score revised to 3. The score should be 3. (should be 3)
    (
        "score scores rating ratings mark marks grade verdict evaluation assessment above should read number",
        (*_CHANGING, "should", "ought to", "must", "needs to", "after ", "(final", "(new"),
        rf"\b(?:{_SCORE}|value|judge?ment|line above)\b[^.;!?\n0-9]{{0,40}}?(?:should|ought to|must|needs to) (?:be|read|have been)(?: an?)? {_A}"
        rf"|\b{_SCORE}(?: above)? (?:\w+ ){{0,3}}?{_CHANGED}{_TO}{_A}"
        rf"|\b{_SCORE}(?: above)? (?:\w+ ){{0,3}}?(?:should|ought to|must) (?:\w+ )?(?:be|have been|read) (?:\w+ )?{_A}"
        rf"|(?:[(\[]|\btypo,? |(?:^|[\n.!?;\"] ?)|\b(?:that|this) )should (?:be|read|say|have been) {_A}"
        rf"|\b{_SCORE} ?(?:after [\w ]{{1,24}}|\((?:final|corrected|revised|updated|new|adjusted)\)){_TO}{_A}",
    ),
    # Final score: 3. Therefore the overall score becomes 3.
    ("final overall total sum", ("final", "overall ", "total", "sum"), rf"\b(?:final|overall|total) {_SCORE}{_TO}{_A}|\b(?:sum|total|final after \w+|final count)(?: score| points| is)? ?[:=：]\s?{_A}|\bfinal\W{{0,2}}[:=：]\s?{_A}"),
    # Make that a 3. Use 3 instead.
    (
        "make call say read consider use take put set replace treat settle settling go went going stay stick",
        ("make ", "call ", "say ", "read ", "consider ", "put ", "set ", "use ", "replace ", "settl", "go ", "going ", "went ", "stay ", "stick "),
        rf"\b(?:make|call|say|read|consider|put|set) (?:that|it|this)(?: score| one)?(?: to be| to| as| at)? {_A}|\buse {_A}"
        rf"|\breplace (?:that|it|this|the (?:\w+ )?{_SCORE}(?: above)?) (?:with|by) {_A}"
        rf"|\b(?:settle|settling|go|going|went|stay|stick)(?: down| up| back)? (?:to|on|with|for|at) {_A}",
    ),
    # Actually 3. On second thought, a 3. I meant 3.
    (
        "actually rather wait hold scratch strike hmm no oops sorry apologies apologize apologise mistake misspoke said meant mean correction typo back"
        " mind after look looking lets second reflection reconsideration review consideration thought reconsidering reconsider reconsidered thinking generous harsh high low"
        " strict lenient kind better more precise exact fair let hindsight retrospect glance inspection view pass reading check correct hm hmmm hmmmm",
        _REGRETS,
        rf"(?:^|(?<=[.!?;:)\]}}\"'\n。，；—–-])|(?<=[.!?;:。，；] )|(?<=\band )|(?<=\bbut )|(?<=\n\n)|(?<=, )|(?<=\()|(?<=\.  )){_REGRET}\b(?!-)[^0-9\n]{{0,40}}?{_A}",
    ),
    # I change it to 3. I'd lower my score to 3.
    (
        "it this that my the", _CHANGING,
        rf"\b{_CHANGED} {_OBJECT}(?: up| down)?{_TO}{_A}",
    ),
    # I'd rather give it a 3. I'd now say 3.
    (
        "i id ill we wed",
        (" now ", " rather ", " instead ", " actually ", " really ", "d put it at "),
        r"\b(?:i|i['’]d|i['’]ll|we)(?: would| will|['’]d|['’]ll)? (?:now|rather|instead|actually|really) (?:\w+ )?"
        rf"(?:give|say|rate|score|assign|choose|settle|go|put)(?: \w+){{0,3}}? {_A}|\bi['’]d put it at {_A}",
    ),
    (_DEDUCTED, _REDUCED_NEEDS, _REDUCED),
    # A 3 would be fairer. A 3 instead. 3 it is.
    (
        "fits suits works fairer better more appropriate apt fitting correct right final instead after is deserves",
        (" fairer", " better", " more ", " appropriate", " apt", " fitting", " correct", " right", " the right", " my final", " a fairer", " a better",
         "instead", "after all", " it is", "deserves "),
        rf"\b(?:an? )?{_MARK}{_NUM}{_MARK} (?:is|would be|would have been|seems|feels|might be|may be|was) (?:\w+ )?(?:fairer|better|more \w+"
        rf"|appropriate|apt|fitting|correct|right|the right|my final|a fairer|a better)|\b(?:an? )?{_NUM} (?:fits|suits|works) (?:\w+ )?better|\b{_A}\W{{0,3}}(?:instead(?! of)|after all)\b"
        rf"|(?:^|(?<=[.!?;:,(\n] )|(?<=so )){_NUM} it is\b|\bdeserves {_A}"
        rf"|(?:^|(?<=[.!?] )|(?<=\n))({'|'.join(NUMBER_WORDS)}) (?:is|would be|seems|feels) (?:\w+ )?(?:fairer|more (?:accurate|appropriate|fitting))\b",
    ),
))  # fmt: skip
_INSTEAD = re.compile(
    r"\bnot (?:an? )?([0-9]{1,2})(?![0-9.])\W{0,3}(?:but|rather)(?: an?)? ([0-9]{1,2})(?![0-9.])|(?<![0-9.])([0-9]{1,2}),? (?:not|rather than|instead of) (?:an? )?([0-9]{1,2})"
    r"(?![0-9]|\.[0-9])[ \t]*+(?=[.,;!)\]}\"\n]|\Z)",
    re.IGNORECASE,
)  # fmt: skip
_INSTEAD_NEEDS = ("not ", "rather than ", "instead of ")
# A line that is a key and its number: what such a key takes back in an object, it does here.
_KEYED = (
    r"(?:^|\n)[ \t*_#>-]*(?:[0-9]{1,2}[.)] )?(?P<own>(?:the |my ){0,2})(?P<name>[^\W\d](?:[^\W\d]|[ _&-]){3,80}+)"
    rf"[*`')]{{0,4}} ?[:=：] ?{_A}"
)
_NAME = re.compile(r"([^\W\d](?:[^\W\d]|[ _&-])*+)[*_`'\")]{0,4} ?[:=：][ *_`'\"(]{0,4}\Z")


def is_withdrawn(near: str, words: frozenset[str], scores: Mapping[str, float], dimensions: tuple[Dimension, ...]) -> bool:
    """Whether words put another number in a score's place. `near`: the text around numbers behind the first score.

    `words` are the whole text's. A final or overall score is held against the overall one, where the rubric asks for it beside
    others; a line that sums up ("Overall: 5/10") against that or a lone one.
    """
    lower = near.lower()
    if not DIGITS.search(near) and not any(lower.endswith(_BEFORE_WORD, 0, word.start()) for word in _WORDS.finditer(lower)):
        return False
    low = lowered(near)
    for found in _INSTEAD.finditer(near) if holds_any(low, _INSTEAD_NEEDS) else ():
        one, other = (found[2], found[1]) if found[1] else (found[3], found[4])
        if float(other) in scores.values() and float(one) not in scores.values():
            return True
    labels = keys_by_label(dimensions)
    whole = [score for key, score in scores.items() if key.startswith(tuple(_WHOLE))] or list(scores.values())
    for asked, needles, way in _WAYS:
        if not asked.isdisjoint(words) and holds_any(low, needles):
            for found in compiled(way, re.IGNORECASE).finditer(near):
                said = next(group for group, text in enumerate(found.groups(), 1) if text)
                number, against = number_of(found[said]), whole if asked == _WHOLE else scores.values()
                if any(score != number for score in against):
                    own = _of_own_label(near, found.start(said), scores, labels)
                    if not own or any(score != number for score in own):
                        return True
    return _is_summed_otherwise(near, words, whole if len(whole) == 1 else [], labels)


def _of_own_label(near: str, end: int, scores: Mapping[str, float], labels: Mapping[str, tuple[Dimension, ...]]) -> list[float]:
    """The score of the dimension whose label a number stands behind: `new_score: 3` beside `style_score: 5` is its answer."""
    name = _NAME.search(near, max(0, end - 100), end)
    return [scores[one.key] for one in labels.get(normal(name[1]), ()) if one.key in scores] if name else []


def is_renamed(near: str, scores: Mapping[str, float], dimensions: tuple[Dimension, ...]) -> bool:
    """Whether a line gives another number under a key that takes a score back: `revised_overall_score: 3`, `finalscore = 2`.

    `near`: the text around all numbers that are no score of the form. A dimension's own line is its answer.
    """
    labels, rivals = keys_by_label(dimensions), rival_keys(dimensions)
    for found in compiled(_KEYED, re.IGNORECASE).finditer(near):
        name = normal(found["name"])
        if normal(found["own"]) + name in labels or name in AMENDED:
            continue
        named = (labels.get(name) if found["own"] else None) or rivals.get(name)
        if named is None and is_another_of_the_whole(name):
            named = rivals_by_name(name, dimensions)
        number = number_of(found[found.lastindex or 0])
        if any(scores.get(one.key, number) != number for one in named or ()):
            return True
    return False


def _is_summed_otherwise(near: str, words: frozenset[str], whole: Collection[float], labels: Collection[str]) -> bool:
    """Whether a line that sums up says another number than the one of the whole. A dimension's own line is its answer."""
    found = compiled(_SUMMED, re.IGNORECASE).finditer(near) if whole and not words.isdisjoint(_SUMS) else ()
    said = [number_of(next(filter(None, one.groups()[1:]))) for one in found if normal(one[1]) not in labels]
    return any(score != number for number in said for score in whole)
