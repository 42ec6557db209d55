"""Answers that are words, letters or marks, by a declared map: which one a text says. Numbers are numbers.py.

An answer is said where it leads: at the beginning, behind its label, or alone on a line. A reason may follow it; another answer
where one would stand (behind "and", on a line of its own, behind "actually") makes it none.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from rubrics.model import Dimension
from rubrics.replies.weighing.pauses import begins_at, is_hedged, is_paused, says_it_saw_nothing
from schemas.statuses.rows import ParseReason

Value = Decimal | ParseReason

_N_CHARACTERS_MAX = 65_536
_N_PLACES_MAX = 1000
_N_WORD_MAX = 200
_MARKS = r"[\s*_`\"'“”‘’«»#>•\u200b\ufeff]"
_OPENS, _CLOSES = r"[(\[{（【<]", r"[)\]}）】>]"
_BEGIN = rf"{_MARKS}{{0,20}}+(?:-\s|<[A-Za-z]{{1,20}}+>)?{_OPENS}{{0,2}}+{_MARKS}{{0,4}}+"
_END = rf"{_MARKS}{{0,4}}+(?:{_CLOSES}{{1,2}}+|</[A-Za-z]{{1,20}}+>)?+{_MARKS}{{0,4}}+"
_ENDED = re.compile(rf"\A{_END}")
_BOLD = r"[*_`\"'”’]{0,4}+"
_STOPS = r"[.,;:!。，；：！]"
_BETWEEN = re.compile(r"[\w%°]|[.,:'’-]\w|/[0-9]")
_OPENED = re.compile(r"\\(?:boxed|text|fbox)\{([^{}]{0,80}+)\}")
_HEDGE = re.compile(r"[\s*_]{0,4}+(?:\?|ish\b)|\s*+[(\[]?\s*+(?:or|maybe|perhaps)\b", re.IGNORECASE)
# "No idea" answers nothing.
_NO_ANSWER = re.compile(
    r"\s++(?:clear\s++|real\s++|good\s++|definite\s++)?+(?:idea|answer|clue|comment|opinion|way|response|judge?ment)\b",
    re.IGNORECASE,
)
_TURN = r"(?:actually|correction|rather|wait|instead|revised|on (?:reflection|second thoughts?)|i mean)[\s,:]{1,3}+"
_CLOSED_LETTER = re.compile(r"[*_`\"'”’]{0,4}+[ \t]{0,4}+(?:[.,;:!)\]}）】>(–—-]|\n)")
# A grade that is not declared, "A-", which is no A. "A - sharper" and "A-> B" are other things.
_GRADED = re.compile(r"[*_`\"'”’]{0,4}+(?:[-−](?![\w>-])|–[\s*_`]*+\Z)")
_REASONED = re.compile(r"[*_`\"'”’]{0,4}+\s++(?:because|since|as|due to|given that)\b(?!-)", re.IGNORECASE)
_WORDS_OF_A_LETTER = frozenset("aeiouy")  # "B because" begins no phrase
_NAMED_BEFORE = re.compile(r"\w")
_NAMES = re.compile(r"[*_`\"'”’]{0,4}+[ \t]?([:：](?=\s*+\w)|[)\]]|[–—-](?=\s))")
_LETTER = re.compile(r"\w")
_LETTERS = re.compile(r"[^\W\d_]")


class Placed(NamedTuple):
    """A value and the characters it was read from."""

    value: Value
    span: tuple[int, int]


class _Patterns(NamedTuple):
    first: re.Pattern[str]  # an answer at the beginning of a text
    at_once: tuple[re.Pattern[str], ...]  # another answer right behind the first: "and no"
    later: tuple[re.Pattern[str], ...]  # another where an answer would stand
    alone: re.Pattern[str]  # a line that is an answer and nothing else
    labelled: re.Pattern[str]  # a label, and what parts it from its answer
    named: re.Pattern[str]  # an answer that names what is spoken of: "B: sharp"
    marked: re.Pattern[str] | None  # answers that are marks, such as [[A]], wherever they stand


def read_word(text: str, dimension: Dimension) -> Value:
    """The answer a value's text says: its number, NOT_APPLICABLE, or why it says none."""
    return _leading(text, 0, min(len(text), _N_CHARACTERS_MAX), dimension).value


def declared_word(text: str, dimension: Dimension, *, is_prose_allowed: bool) -> Value | None:
    """What a value's text says by the dimension's declared words; None where it has to be a number.

    Beside numbers only what is not applicable is a word. Where prose is allowed, words without a digit may follow it too.
    """
    if dimension.answers:
        return read_word(text, dimension)
    if is_prose_allowed and not any(map(str.isdigit, text)):
        return ParseReason.NOT_APPLICABLE if read_word(text, dimension) is ParseReason.NOT_APPLICABLE else None
    is_word = len(text) < _N_WORD_MAX and _plain(text) in {_plain(word) for word in dimension.not_applicable}
    return ParseReason.NOT_APPLICABLE if is_word else None


def whole_answers(text: str, dimension: Dimension) -> list[Placed]:
    """Every answer a reply gives, in the forms above; empty where there is none."""
    patterns = _patterns(dimension)
    if len(text) > _N_CHARACTERS_MAX:
        return [Placed(ParseReason.MALFORMED, (0, 0))]
    if patterns.marked:
        return [Placed(_value(found[0], dimension), found.span()) for found in _some(patterns.marked.finditer(text))]
    lead = _leading(text, 0, len(text), dimension)
    labels = list(_some(patterns.labelled.finditer(text)))
    ends = [*(found.start() for found in labels), len(text)][1:]
    said = [_leading(text, found.end(), end, dimension) for found, end in zip(labels, ends, strict=True)]
    if any(_is_answer(one.value) for one in said) or (said and not _is_answer(lead.value)):
        return [*([lead] if _is_answer(lead.value) and lead.span[0] < labels[0].start() else []), *said]
    if lead.value is not ParseReason.WRONG_TYPE:
        return [lead]
    return [Placed(_value(found[1], dimension), found.span(1)) for found in _some(patterns.alone.finditer(text))]


def _leading(text: str, start: int, end: int, dimension: Dimension) -> Placed:
    """The answer that a stretch of text opens with, and what stands behind it weighed."""
    part = text[start:end]
    if boxed := _OPENED.match(part.lstrip("$ \n\t")):
        return Placed(_leading(boxed[1], 0, len(boxed[1]), dimension).value, (start, end))
    patterns = _patterns(dimension)
    first = patterns.first.match(part)
    if first is None:
        first = next((found for at in begins_at(part)[1:] if (found := patterns.first.match(part, at))), None)
    if first is None:
        return Placed(ParseReason.WRONG_TYPE, (start, end))
    value, rest = _value(first[1], dimension), part[first.end(1) :]
    if rest:
        is_lead = start == 0 and not _NAMED_BEFORE.search(part, 0, first.start(1))
        value = _weighed(first[1], value, rest, dimension, is_lead=is_lead)
    return Placed(value, (start + first.start(1), start + first.end(1)))


def _weighed(word: str, value: Value, rest: str, dimension: Dimension, *, is_lead: bool) -> Value:
    """The value, or what stands behind its word makes of it."""
    behind = _ENDED.sub("", rest, count=1)
    if _BETWEEN.match(rest) or _is_graded(word, rest) or (is_lead and _is_label(word, value, rest, dimension)):
        return ParseReason.WRONG_TYPE
    if _HEDGE.match(rest) or _HEDGE.match(behind):
        return ParseReason.AMBIGUOUS
    if _is_article(word, rest) or _NO_ANSWER.match(rest):
        return ParseReason.WRONG_TYPE
    if any(_value(other, dimension) != value for other in _others(rest, _patterns(dimension))):
        return ParseReason.AMBIGUOUS
    return _beside(word, value, rest, dimension) or value


def _beside(word: str, value: Value, rest: str, dimension: Dimension) -> ParseReason | None:
    """Why an answer is none though no other stands behind it."""
    if not is_paused(word, rest):
        return ParseReason.WRONG_TYPE
    if is_hedged(word, rest):
        return ParseReason.AMBIGUOUS
    if says_it_saw_nothing(rest):
        return ParseReason.MISSING_INPUT
    if value is not ParseReason.NOT_APPLICABLE and _says_not_applicable(rest, dimension):
        return ParseReason.AMBIGUOUS
    below = rest.partition("\n")[2]  # digits alone on further lines are no reason
    return ParseReason.MALFORMED if _LETTER.search(below) and not _LETTERS.search(below) else None


def _is_label(word: str, value: Value, rest: str, dimension: Dimension) -> bool:
    """Whether a reply's first word names what is then spoken of: "A: blurry, B: sharp", "Good: the light. Bad: the hands"."""
    named = _NAMES.match(rest)
    if named is None:
        return False
    if len(word) == 1 and named[1] in ":：":
        return True
    others = _some(_patterns(dimension).named.finditer(rest))
    return any(_value(other[1], dimension) != value for other in others)


def _says_not_applicable(rest: str, dimension: Dimension) -> bool:
    """Whether a declared word that can be no other (N/A) stands beside the answer."""
    words = [word for word in dimension.not_applicable if not word.isalpha() and " " not in word]
    return any(re.search(rf"(?<![\w/]){re.escape(word)}(?![\w/])", rest, re.IGNORECASE) for word in words)


def goes_on(word: str, rest: str) -> bool:
    """Whether what stands right behind a word makes it no answer: "No-one", "No idea", "A surfer". Digits may count things."""
    return bool(_BETWEEN.match(rest) or _NO_ANSWER.match(rest) or _is_graded(word, rest)) or (
        word in _WORDS_OF_A_LETTER and _is_article(word, rest)
    )


def _is_graded(word: str, rest: str) -> bool:
    """Whether a letter has a sign of its own: "B-"."""
    return len(word) == 1 and word.isalpha() and bool(_GRADED.match(rest))


def _is_article(word: str, rest: str) -> bool:
    """Whether a single letter begins a phrase: "A surfer"."""
    is_answer = _CLOSED_LETTER.match(rest) or (word not in "Ii" and _REASONED.match(rest))  # "I as a judge"
    return len(word) == 1 and bool(_ENDED.sub("", rest, count=1)) and not is_answer


def _others(rest: str, patterns: _Patterns) -> Iterator[str]:
    yield from (found[1] for pattern in patterns.at_once if (found := pattern.match(rest)))
    for pattern in patterns.later:
        yield from (found[1] for found in _some(pattern.finditer(rest)) if is_paused(found[1], rest[found.end(1) :]))


def _is_answer(value: Value) -> bool:
    return value is not ParseReason.WRONG_TYPE


def _value(word: str, dimension: Dimension) -> Value:
    plain = _plain(word)
    if plain in _numbers(dimension):
        return _numbers(dimension)[plain]
    return ParseReason.NOT_APPLICABLE


def _some(found: Iterator[re.Match[str]]) -> Iterator[re.Match[str]]:
    return (one for _, one in zip(range(_N_PLACES_MAX), found, strict=False))


def _plain(word: str) -> str:
    """Case and white space aside, and the marks around it, unless it is made of marks."""
    return " ".join(word.casefold().split()).strip("*_`\"'“”‘’.!,;: ") or word


@lru_cache(maxsize=1024)
def _numbers(dimension: Dimension) -> dict[str, Decimal]:
    return {_plain(word): Decimal(str(number)) for word, number in dimension.answers}


def is_mark(word: str) -> bool:
    """Whether an answer is told by the signs around it, so that it may stand anywhere in a reply: [[A]]."""
    return len(word) > 2 and not word[0].isalnum() and not word[-1].isalnum()


@lru_cache(maxsize=1024)
def _patterns(dimension: Dimension) -> _Patterns:
    words = [word for word, _ in dimension.answers] + list(dimension.not_applicable)
    listed = "|".join(r"\s++".join(map(re.escape, word.split())) for word in sorted(words, key=len, reverse=True))
    said = rf"((?i:{listed}))(?!\w)"
    labels = "|".join(r"\s++".join(map(re.escape, label.split())) for label in sorted(dimension.labels, key=len, reverse=True))
    label = rf"(?i:(?:(?:the|my|final|correct|overall)\s++){{0,3}}+(?:{labels}))"
    closed = rf"(?={_END}(?:{_STOPS}|\Z|\n))"
    at_once = (
        rf"{_END}(?:{_STOPS}?\s*+(?i:and|or|nor|vs\.?|to)\b|[/|&→]|[-=]{{1,2}}>)\s*+{_BEGIN}{said}",
        rf"{_END},?\s*+{_BEGIN}{said}{closed}",
        rf"{_END}[,;(–—-]?\s*+(?i:(?:(?:but|though|and)\s)?(?:it\s)?(?:(?:could|might|may)\s(?:(?:also|well)\s)?be|maybe|perhaps|possibly|leaning(?:\stowards?|\sto)?))\s++{_BEGIN}{said}{closed}",
    )
    later = (
        rf"\n{_BEGIN}{said}",
        rf"(?i:\b{_TURN}){_BEGIN}{said}{closed}",
        rf"(?:[.!?;。！？；]|…)\s*+{_BEGIN}{said}{closed}",
        rf"\b(?i:{listed})\s*+(?:/|\b(?i:or)\b)\s*+{_BEGIN}{said}",
    )
    article = "" if any(len(word) == 1 for word in words) else r"(?:(?i:an?|the)\s++)?+"
    marks = [word for word in words if is_mark(word)]
    return _Patterns(
        re.compile(rf"{_BEGIN}(?:{label}{_BOLD}(?:\s++is|\s*+[:：=]|\s*+[-–—])?{_BEGIN})?{article}{said}"),
        tuple(map(re.compile, at_once)),
        tuple(re.compile(pattern) for pattern in later),
        re.compile(rf"^[ \t>*_`\"'“”‘’(\[{{-]{{0,10}}+{said}[ \t*_`\"'“”‘’)\]}}.!\r]{{0,10}}+$", re.MULTILINE),
        re.compile(
            rf"(?<!\w){label}(?!\w){_BOLD}(?:\s?\((?i:{listed}|[\s/,|or]){{1,20}}+\))?+(?:\s*+[:：=]|\s++is\b|\s*+[-–—]\s)"
        ),
        re.compile(rf"(?<!\w)[(\[*_]{{0,3}}+{said}[*_]{{0,2}}+(?:[)\]:：]|\s[-–—]\s)"),
        re.compile("|".join(map(re.escape, marks))) if marks and len(marks) == len(words) else None,
    )
