"""Answers that are words, taken back behind the form: "Actually, second.", "I change it to B". Numbers are taken_back.py's.

"No" and "a" are words of every English sentence, "good" is said of the light: a word counts here where the frame around it
says that it is an answer, and where its sentence or clause ends with it. Every repetition is bounded.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from rubrics.model import Dimension
from rubrics.replies.doubts.other_languages import CORRECTION
from rubrics.replies.doubts.words import holds_any, is_plain, lowered, squeezed
from rubrics.replies.labels import folded, keys_by_label, normal

_N_TAIL = 4000
_NOUN = r"(?:answers?|verdicts?|winners?|choices?|votes?|picks?|decisions?|judge?ments?|preferences?|labels?|results?|selections?|conclusions?|evaluations?|assessments?|ratings?|responses?|replies|reply)"
_AMENDED = r"(?:final|revised|revision|corrected|correction|corrections|updated?|edit(?:ed)?|amended|amendment|adjusted|erratum|overall|true|real|actual|proper|right|correct|new|definitive|ultimate)"
# Alone on a line's begin, or behind a stop, before a colon.
_SUMMED = r"(?:final|revised|revision|corrected|corrections?|updated?|edit(?:ed)?|amended|amendment|adjusted|erratum|overall|in short|in sum|summary|total|bottom line)"
_BEGINS = r"(?:^|(?<=[.!?;:)\]}\"'\n。，；—–-])|(?<=[.!?;:。，；(] )|(?<=[.!?;:] [\"'(])|(?<=, )|(?<=\bbut )|(?<=\band ))"
_REGRET = (
    r"(?:actually|or rather|rather|wait|hold on|scratch that|strike that|scrap that|hm+|no wait|oops|sorry|apologies|i apologi[sz]e|my (?:mistake|bad|error)|i misspoke|i (?:stand corrected|was wrong|erred)"
    r"|(?:let me|i (?:need|have|must|want) to) (?:correct|revise|reconsider|rethink|amend|change|fix|redo)(?: \w+){0,3}|correction|typo|i take (?:that|it|this) back|(?:i(?:'ve| have)? )?changed? my mind"
    r"|(?:on|upon|after|at)(?: an?| another| the)? (?:\w+ )?(?:thoughts?|reflection|reconsideration|review|consideration|look|glance|inspection|reading|check|pass)|(?:after |on |having )?reconsider\w{2,3}|looking (?:again|closer)|thinking (?:again|about it again)"
    r"|in (?:fact|truth|reality|hindsight|the end)|come to think of it|second thoughts?|instead|no(?=[,:;]))"
)
_THIS = r"(?:it|that|this|mine|(?:the|my) (?:\w+ ){0,2}?(?:%NOUN%))"
_I = r"(?:i|we|let me|let's|lets)(?:'d| would|'ll| will|'m| am| must| should| have to| want to| need to| now)?"
_PICK = r"(?:say|pick|choose|prefer|favou?r|take|answer|call (?:it|this)|vote(?: for)?|go(?:ing)? (?:with|for)|went with|lean(?:ing)?(?: towards?| to)?|settle (?:on|for)|side with|make (?:it|that|this)|give (?:it|this)(?: to)?|mean|meant|judge (?:it|this)|change to|switch to)"
_MEANT = r"(?:meant|mean|should have (?:said|written|answered|picked|chosen|put)|intended)(?: to (?:say|write|answer|pick|choose|put|give))?"
_CHANGE = r"(?:chang|switch|revis|correct|amend|updat|alter|flip|mov|adjust|overrul|revers)(?:e|es|ed|ing|s)?"
_IS = r"(?:'s| is| was| should (?:be|have been|read|say)| must be| has to be| needs to be| ought to be| would be| becomes| is now| now reads| reads)"
_WORDS = frozenset({
    "actually", "rather", "wait", "hold", "scratch", "strike", "scrap", "hm", "hmm", "hmmm", "oops", "sorry", "apologies", "apologize", "apologise", "mistake", "bad", "error",
    "misspoke", "correct", "corrected", "correction", "corrections", "wrong", "erred", "reconsider", "reconsidering", "reconsidered", "reconsideration", "rethink", "redo", "fix",
    "typo", "back", "mind", "thought", "thoughts", "reflection", "review", "consideration", "look", "glance", "inspection", "reading", "check", "pass", "looking",
    "thinking", "fact", "truth", "reality", "hindsight", "end", "instead", "final", "revised", "revise", "revising", "revision", "updated", "update", "edit", "edited", "amended",
    "amend", "amending", "amendment", "adjusted", "erratum", "overall", "true", "real", "actual", "proper", "right", "new", "definitive", "ultimate", "short", "sum", "summary", "total", "line",
    "change", "changed", "changes", "changing", "switch", "switched", "switching", "alter", "flip", "flipped", "move", "moving", "overrule", "reverse", "reversed", "meant", "mean", "intended", "should", "must",
    "ought", "needs", "now", "id", "pick", "choose", "prefer", "favor", "favour", "vote", "go", "going", "went", "lean", "leaning", "settle", "side", "make", "answer", "verdict", "winner",
    "choice", "decision", "result", "conclusion", "becomes", "has", "call", "read", "take", "consider", "treat", "come", "think", "hmmmm", "selection", "selections", "preference", "preferences", "label", "labels",
    "evaluation", "evaluations", "assessment", "assessments", "rating", "ratings", "response", "responses", "reply", "replies", "judgement", "judgements", "judgment", "judgments",
    "answers", "verdicts", "winners", "choices", "votes", "picks", "decisions", "results", "conclusions", *CORRECTION,
})  # fmt: skip


_WHOLE = ("final", "overall", "total", "winner", "verdict")
_CORRECTS = re.compile(rf"corr|revis|updat|edit|amend|adjust|erratum|{'|'.join(CORRECTION)}", re.IGNORECASE)


_NOT_ONE = ("not ", "no,", "no:", "no;", "instead of", "rather than")


@lru_cache(maxsize=256)
def _frames(dimensions: tuple[Dimension, ...]) -> frozenset[str]:
    """Words one of which every way holds; those of the labels stand in every reply."""
    own = {
        word
        for dimension in dimensions
        for label in (*dimension.labels, dimension.key)
        for word in label.lower().replace("_", " ").split()
    }
    return _WORDS - own


class _Patterns(NamedTuple):
    ways: re.Pattern[str]
    instead: re.Pattern[str]  # not ONE but OTHER; OTHER, not ONE; OTHER instead of ONE
    numbers: Mapping[str, float]


def is_answered_otherwise(
    text: str, words: frozenset[str], scores: Mapping[str, float], dimensions: tuple[Dimension, ...], first: int
) -> bool:
    """Whether words behind `first`, where the first answer ends, put another declared answer in an answer's place.

    `dimensions` are those whose answers are words, `scores` theirs, `words` the whole text's.
    """
    tail = text[first : first + 2 * _N_TAIL]
    if not is_plain(tail) or "*" in tail or "`" in tail:  # words in emphasis are needles too
        tail = squeezed(tail)
    lower = lowered(tail)
    framing = words & _frames(dimensions)
    is_framed = bool(framing) and holds_any(lower, ["i'd" if word == "id" else word for word in framing])
    if not is_framed and not holds_any(lower, _NOT_ONE):
        return False
    tail = squeezed(tail)[:_N_TAIL]
    labels = keys_by_label(dimensions)
    for answers in dict.fromkeys(dimension.answers for dimension in dimensions):
        given = {dimension.key: scores[dimension.key] for dimension in dimensions if dimension.answers == answers}
        whole = {score for key, score in given.items() if len(scores) == 1 or key.startswith(_WHOLE)}
        patterns = _patterns(answers, tuple(sorted({label for d in dimensions for label in (*d.labels, d.key)})))
        for number, is_of_whole in _others(tail, patterns, given.values(), labels):
            if (whole if is_of_whole else whole or {*given.values()}) - {number}:
                return True
    return False


def _others(
    tail: str, patterns: _Patterns, given: Collection[float], labels: Mapping[str, object]
) -> Iterator[tuple[float, bool]]:
    """The other answers, and whether each is said of the whole: "Overall: no" takes none of eight questions back."""
    for found in patterns.ways.finditer(tail):
        named = next((text for key, text in found.groupdict().items() if key.startswith("label") and text), None)
        if named is None or normal(named) not in labels:  # a dimension's own line is its answer
            yield patterns.numbers[_said(found)], named is not None and not _CORRECTS.search(named)
    for found in patterns.instead.finditer(tail):
        one, other = (patterns.numbers[folded(found[name])] for name in (("not1", "but1") if found["not1"] else ("not2", "but2")))
        if one in given:
            yield other, False


def _said(found: re.Match[str]) -> str:
    return folded(next(text for key, text in found.groupdict().items() if key.startswith("said") and text))


@lru_cache(maxsize=256)
def _patterns(answers: tuple[tuple[str, float], ...], labels: tuple[str, ...]) -> _Patterns:
    listed = "|".join(_as_pattern(word) for word, _ in sorted(answers, key=lambda one: -len(one[0])))
    noun = "|".join([_NOUN[3:-1], *(re.escape(label.lower()) for label in labels)])
    word = rf"(?<!\w)(?:{listed})(?!\w)"
    # What ends an answer: a clause's end, or words that can be said of an answer alone.
    ends = (
        r"(?: (?:image|picture|photo|one|option|candidate|edit|version|entry))?[*_`\"'”’)\]]{0,4}"
        r"(?=\s?(?:[.,;:!)\]}|<。，；：！）—–]|-\s|->|\Z|\n)|\s(?:because|since|as|given|instead|after all|then|now|due|for (?:the|%LABELS%)|rather than|over|in fact|it is|would be|wins|won|(?:is|was|looks|seems) (?:\w+ )?(?:better|correct|right|best|stronger|closer|the (?:\w+ )?(?:better|winner|best|one|answer|right|correct)))\b)"
    ).replace("%LABELS%", "|".join(map(re.escape, labels)))
    mark = r"[*_`\"'“‘(\[]{0,4}"
    this = _THIS.replace("%NOUN%", noun)

    def said(number: int) -> str:
        return rf"{mark}(?:(?:an?|the|as|for|to) )?{mark}(?P<said{number}>{word}){ends}"

    parts = r"[\s,:;.!=>—–-]{1,6}"
    ways = (
        # Actually, second. Sorry, Q2 should be no. On reflection I'd say B.
        rf"{_BEGINS}{_REGRET}{parts}(?:{_REGRET}{parts})?(?:(?:so|then|and|it must be|make that|make it|make this) )?{said(0)}",
        rf"{_BEGINS}{_REGRET}\b[^.;!?\n]{{0,30}}?\b(?:{_I} (?:now |rather |actually )?{_PICK}|{this}{_IS}|make (?:it|that|this)|(?:going|go) with|(?:{noun}){_IS}) {said(1)}",
        # I meant no. I change my answer to B. I'd now say no. It should be no.
        rf"\b(?:i|we)(?:'ve| have)? {_MEANT}[ :,]{{1,2}}{said(2)}",
        rf"\b{_CHANGE} (?:{this}|from {mark}{word}{mark})(?: from {mark}{word}{mark})? (?:in)?to {said(3)}",
        rf"\b(?:i|we)(?:'d| would|'ll| will)?(?: now| rather| instead| actually){{1,2}} {_PICK} {said(4)}|\b(?:i|we)(?: now)? (?:pick|choose|vote(?: for)?|go with|settle on|side with|switch to|change to) {said(5)}",
        rf"(?<!\w){this} (?:\w+ ){{0,2}}?(?:should (?:be|have been|read|say)|must be|ought to be|has to be|needs to be|becomes|is now) {said(6)}|(?:{_BEGINS}|\b(?:{noun}) )should (?:be|read|say|have been) {said(7)}",
        rf"\b(?:make|call) (?:that|it|this) {said(8)}|\b(?:read|take|consider|treat) (?:that|it|this|my answer|the answer)(?: above)? as {said(9)}",
        # Final answer: B. Correction: second. Overall: tie. "final": "second"
        rf"{_BEGINS}[*_#`\"'(>\[ ]{{0,5}}(?:(?:the|my|so|therefore|thus|hence|and|=>|→) )?(?P<label1>(?:(?:{_AMENDED}|my|the)[ _-]){{1,3}}(?:{noun})|{_SUMMED}|{'|'.join(CORRECTION)})[*_`\"')\]]{{0,4}}(?:\s?[:=]|\s?->|\s?→| is| was| should be| would be| becomes)\s?{said(10)}",
        # On a line of its own that sums up.
        rf"(?:^|\n|[.!?] )[*_#`\"'(> -]{{0,5}}(?P<label2>{_NOUN})[*_`\"')]{{0,4}}\s?[:=]\s?{said(11)}(?=\W{{0,4}}(?:\Z|\n))",
    )
    instead = (
        rf"\bnot {mark}(?P<not1>{word}){mark}[,;]? ?(?:but|rather) {mark}(?P<but1>{word}){ends}"
        rf"|(?<!\w){mark}(?P<but2>{word}){mark}(?:, not| instead of| rather than) {mark}(?P<not2>{word}){ends}"
    )
    flags = re.IGNORECASE
    numbers = {folded(one): number for one, number in answers}
    return _Patterns(re.compile("|".join(ways), flags), re.compile(instead, flags), numbers)


def _as_pattern(word: str) -> str:
    """A letter in its own case alone: "a" is no A."""
    escaped = r"\s".join(map(re.escape, word.split()))
    return escaped if len(word) > 1 else f"(?-i:{escaped})"
