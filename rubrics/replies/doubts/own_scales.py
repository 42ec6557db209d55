"""A scale of the judge's own, told by its ends or its steps: "0 = none, 3 = all", "a seven-point scale".

Beside stated_scales.py, which knows "on a scale of 1 to 10" and "4 out of 10". English alone.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line

import re

from rubrics.model import Dimension
from rubrics.replies.doubts.words import Sentences, holds_any, holds_each, lowered
from rubrics.replies.numbers import NUMBER_WORDS, number_of

_COUNT = rf"([0-9]{{1,3}}|{'|'.join(NUMBER_WORDS)})"
_STEPS = re.compile(
    rf"\b{_COUNT}[- ](?:point|level|step|grade|star)s?\b(?=[^.;\n]{{0,20}}\b(?:scale|range|system|likert))|\b{_COUNT} (?:grades|levels) i use\b",
    re.IGNORECASE,
)
_BINARY = re.compile(r"\bbinary\b[^.;\n]{0,20}\bscale\b", re.IGNORECASE)
_MEANS = re.compile(
    r"([0-9](?<![\w./].)[0-9]{0,2}) ?(?:=|means\b|stands for\b|being\b|as the (?:floor|ceiling|lowest|highest)\b)", re.IGNORECASE
)
_TOP = re.compile(
    rf"\b{_COUNT} (?:stars|points|marks) (?:out )?of (?:an? possible )?{_COUNT}\b|\b(?:marking|rating|scoring|grading) [^.;\n]{{0,25}}\bout of {_COUNT}\b"
    rf"|\b{_COUNT} is (?:my|the) (?:maximum|top|best|highest)\b|\b(?:it|scores?|ratings?) (?:runs?|goes|ranges?) from [0-9]{{1,2}} to {_COUNT}\b",
    re.IGNORECASE,
)  # fmt: skip
# The judge's own way of grading, told by what it does: "I grade from 0 to 3", "I normalized everything to the range 0 to 1".
_GRADED = re.compile(
    rf"\b(?:i|we|my)(?:'ve|’ve| have)? ?(?:\w+ )?(?:grad|scor|rat|mark|us|normali[sz]|re-?scal|scal|map|convert|judg|evaluat|express|report|work)(?:es?|ed|ing|s|t)?\b[^.;\n0-9]{{0,40}}?"
    rf"(?:\b(?:from|between|range(?: of)?|of|on|to|in|using)|\() ?([0-9]{{1,3}})(?: ?\([^()\n]{{1,25}}\))? ?(?:-|–|—|to|and|down to|up to|through|\.{{2,3}}) ?{_COUNT}(?![0-9%]|\.[0-9])",
    re.IGNORECASE,
)
_FOR_ENDS = re.compile(
    r"\b(?:us(?:e|ed|ing)|with|where|gave|giving|put) ([0-9]{1,2}) (?:for|meaning|when|if) [^.;,\n0-9]{1,40}?,? (?:and|or) ([0-9]{1,2}) (?:for|meaning|when|if)\b",
    re.IGNORECASE,
)
# Said of the grading as such, whatever its ends.
_ANOTHER_KIND = re.compile(
    r"\b(?:(?:this|it|everything|each \w+|the (?:match|answer|score|task|question|\w+)) (?:as )?(?:is |was )?(?:strictly |purely )?(?:as )?(?:a )?binary|binary (?:scor|rat|grad|mark|judg|verdict|decision|system)\w{0,4}"
    r"|(?:score|rating|mark|grade|number)s? (?:\w+ ){0,3}?(?:is|are|was|were|stands?|given|expressed|read|meant|here)(?: \w+){0,3}? (?:percent\w{0,3}|in %|normali[sz]ed|letter grades?|a fraction|fractions)"
    r"|(?:percentage|percent|percentile|decile|letter|school|german|gpa(?:-like)?|inverted|inverse|reversed?|backwards?|upside[- ]down|descending|normali[sz]ed|pass/fail|golf)[- ](?:\w+ )?(?:scale|scores?|scoring|system|grading|grades?|ratings?|marks?|ranks?|values?)"
    r"|(?:scale|scoring|grading|numbers|ratings?|marks) (?:\w+ )?(?:runs?|goes|is|are|works?) (?:backwards?|inverted|reversed|downwards?|upside down|the other way)"
    r"|(?:lower|smaller)(?: (?:numbers?|scores?|marks?|values?|ratings?))? (?:is|are|means?|being|=)(?: the)? better|(?:lower|smaller) the (?:\w+ )?better|(?:zero|0|1|one) (?:standing|stands) for (?:an? |the )?(?:flawless|perfect|best|full|ideal|excellent))\b",
    re.IGNORECASE,
)
_FULL = re.compile(
    rf"\b(?:taking|with|where|counting|using) {_COUNT} (?:as|being|is|=) (?:the )?(?:full|top|maximum|max|best|perfect|highest)\b|\bof the {_COUNT} (?:possible points|(?:possible )?marks)\b|\bon the {_COUNT} scale\b",
    re.IGNORECASE,
)
_WORD_TOP = re.compile(
    rf"(?<![\w-])(?:{'|'.join(NUMBER_WORDS)}|[0-9]{{1,3}})(?: stars?| points?)? (?:out of|from|of) (?:a possible )?({'|'.join(NUMBER_WORDS)})(?: stars?| points?)?(?=[.,;:!?)\"'\n]|\Z)"
    rf"|\b(?:scor\w+|rat\w+|grad\w+|marked) out of (?:a possible )?({'|'.join(NUMBER_WORDS)})(?=[.,;:!?)\"'\n]|\Z)",
    re.IGNORECASE,
)
# What the ways above cannot do without.
_BEHIND_A_WORD = re.compile(r"[a-zA-Z(] ?[0-9]")
_STEPS_NEED = ("point", "level", "step", "grade", "star")
_TOP_NEEDS = (("stars of", "points of", "marks of", "out of", "is my", "is the", "from "),)
_WORD_TOP_NEEDS = (("of a possible", "from a possible", *(f"{of} {word}" for of in ("of", "from") for word in NUMBER_WORDS)),)
_FULL_NEEDS = (
    ("taking", "with", "where", "counting", "using", "of the", "on the"),
    ("full", "top", "max", "best", "perfect", "highest", "possible", "marks", "scale"),
)
# "score": 7 // of 100
_REMARKED = re.compile(
    r"[0-9][\"']?,? ?(?://|#|/\*?) ?(?:(?:out )?of|/|max(?:imum)?(?: is)?:?|scale:?(?: of)?|on (?:a|the) scale (?:of|from)|from) {0,2}(?:[01] ?(?:-|–|to) ?)?([0-9]{1,3})\b",
    re.IGNORECASE,
)
_REMARKED_NEEDS = ("//", "#", "/*", "/ ")
# A number with what a second one follows; and what it is given for. They open with a digit: re skips to one.
_GRADED_NEEDS = re.compile(r"[0-9](?: ?\([^()\n]{1,25}\))? ?(?:-|–|—|to|and|down to|up to|through|\.\.)")
_FOR_ENDS_NEEDS = re.compile(r"[0-9] (?:for|meaning|when|if)\b")
_KINDS = frozenset({
    "decile", "deciles", "percentages", "normalized", "normalised", "german", "gpa", "gpa-like",    "binary", "percent", "percentage", "percentile", "letter", "fraction", "fractions", "school", "inverted", "inverse",
    "reverse", "reversed", "backward", "backwards", "upside", "downward", "downwards", "way", "descending", "pass", "golf", "lower",
    "smaller", "standing", "stands",
})  # fmt: skip
_WORDS = frozenset({
    "binary", "likert", "star", "stars", "points", "marks", "marking", "rating", "scoring", "grading", "maximum", "top", "best",
    "highest", "runs", "goes", "ranges", "means", "stands", "being", "floor", "ceiling", "grades", "levels", "out", "from", "i",
    "taking", "with", "where", "counting", "using", "on", "we", "my", "ive", "weve", "for", "meaning",
    "point", "level", "step", "steps", "grade", "use", "used", "gave", "giving", "put", *NUMBER_WORDS,
})  # fmt: skip


def is_on_own_scale(near: str, words: frozenset[str], dimensions: tuple[Dimension, ...]) -> bool:
    """Whether the text near its numbers tells ends or steps of a scale that is none of the dimensions'. `words` are the whole text's."""
    if words.isdisjoint(_WORDS) and "=" not in near and "-" not in near and "/" not in near and "#" not in near:
        return False
    lower = lowered(near)
    graded = ((_GRADED, _GRADED_NEEDS), (_FOR_ENDS, _FOR_ENDS_NEEDS)) if _BEHIND_A_WORD.search(near) else ()
    found = (one for way, core in graded if lower is None or core.search(lower) for one in way.finditer(near))
    spans = [(float(one[1]), number_of(one[2])) for one in found]
    if any(not any(set(span) == {d.minimum, d.maximum} for d in dimensions) for span in spans):
        return True
    if holds_any(lower, ("binary",)) and _BINARY.search(near) and not any((d.minimum, d.maximum) == (0, 1) for d in dimensions):
        return True
    steps = [_number(found) for found in (_STEPS.finditer(near) if holds_any(lower, _STEPS_NEED) else ())]
    if any(not any(n in (d.maximum, d.maximum - d.minimum + 1) for d in dimensions) for n in steps):
        return True
    ends = {float(found[1]) for found in _MEANS.finditer(near)}
    if len(ends) > 1 and not any({d.minimum, d.maximum} <= ends or ends <= {d.minimum, d.maximum} for d in dimensions):
        return max(ends) not in {d.maximum for d in dimensions}
    tops = ((_REMARKED, (_REMARKED_NEEDS,)), (_TOP, _TOP_NEEDS), (_WORD_TOP, _WORD_TOP_NEEDS), (_FULL, _FULL_NEEDS))
    said = (one for way, needles in tops if holds_each(lower, needles) for one in way.finditer(near))
    return any(_number(one) not in {d.maximum for d in dimensions} for one in said)


def grades_otherwise(sentences: Sentences) -> bool:
    """Whether one of a reply's sentences says that its judge graded in another kind: by percent, pass or fail, the lower the better."""
    return any(_ANOTHER_KIND.search(one.text) for one in sentences.with_any(_KINDS))


def _number(found: re.Match[str]) -> float:
    """The last number that the pattern names: a scale's end stands behind what was given on it."""
    return number_of(next(group for group in reversed(found.groups()) if group is not None))
