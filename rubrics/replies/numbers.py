"""One value's text -> the one number it says, or why it says none. Where the value stands in a reply is not known here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache
from typing import Any

from rubrics.model import Dimension
from rubrics.replies.answers import declared_word
from rubrics.replies.placeholders import is_number, is_placeholder
from rubrics.replies.weighing.reasons import without_reasons
from rubrics.replies.weighing.units import behind_units
from schemas.statuses.rows import ParseReason


def number_of(said: str) -> float:
    """A number in digits, or one of NUMBER_WORDS in whatever case."""
    return float(_index_of(said)) if said[:1].isalpha() else float(said)


def _index_of(word: str) -> int:
    """The number of a word that re.IGNORECASE took for one of NUMBER_WORDS: fıve and ſeven too, which lower() leaves so."""
    lower = word.lower()
    if lower in NUMBER_WORDS:
        return NUMBER_WORDS.index(lower)
    return next(index for index, one in enumerate(NUMBER_WORDS) if re.fullmatch(one, word, re.IGNORECASE))


Value = Decimal | ParseReason


@dataclass(frozen=True, slots=True)
class Found:
    """Everything a reply says, by dimension: numbers and values that are none. `reason`: its structure was not readable."""

    values: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    reason: ParseReason | None = None
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # where a form that is not the one asked for holds them
    between: Sequence[tuple[int, int]] = ()  # JSON: the stretches of the text around its objects
    flags: Sequence[Any] = ()  # JSON: the keys beside the dimensions' that say a score is none, as doubts/flags.py has them

    @property
    def has_number(self) -> bool:
        """Whether any dimension has a number, on its scale or not."""
        return any(isinstance(value, Decimal) for values in self.values.values() for value in values)


NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
DIGITS = re.compile(r"[0-9][0-9]*(?:\.[0-9]+)?")  # opens with one of a class, not with a repetition: re skips to it
ZERO_WIDTH = "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
WHITE_SPACE = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
BLANK = WHITE_SPACE + ZERO_WIDTH
"""What is nothing: white space, and what has no width."""

_LENGTH_USUAL = 200
_N_REASON_MAX = 1000
_MARKS = BLANK + "*_`\"'“”‘’„«»$"
_ENDS = ".,;!。，；！、"
_BRACKETS = {"<": ">", "[": "]", "(": ")", "{": "}", "〈": "〉", "【": "】", "（": "）"}

_N_DIGITS_PLAIN = 16
_BOXED = re.compile(r"(?:\\[(\[]\s*+)?\\(?:boxed|fbox|text|textbf|mathbf)\{([^{}]{0,40}+)\}(?:\s*+\\[)\]])?")
_TAG = re.compile(r"</?(?!(?i:s|del|strike)\b)[A-Za-z][A-Za-z0-9-]{0,20}+\s?/?>")  # of HTML, unless it strikes; or <score>

# ASCII digits alone: Python's \d and int() also take other scripts' digits, which the prompts never use.
NUMBER = re.compile(r"[+\-−–]?(?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+")
_NAMED = re.compile(
    rf"({'|'.join(NUMBER_WORDS)})[*_]{{0,3}}\s*+[:=\-–—]?\s*+[(\[（]\s*+([^()\[\]（）]{{1,20}}+)[)\]）]", re.IGNORECASE
)
_WORD_AFTER = re.compile(rf"[*_`\s]*+[(\[（][*_`\s]*+({'|'.join(NUMBER_WORDS)})[*_`\s]*+[)\]）]", re.IGNORECASE)
_GLUED = re.compile(r"[.,'’_:]?[0-9]|\.\.?[0-9]|,\.|\s*[½¼¾⅓⅔⅛]")
_SECOND = re.compile(
    r"\s*+(?:[-–—−~〜～±|/&,;，；、]|\+/-|\+-|\.{2,3}|…|to\b|or\b|and\b|vs\b|→|->|=>)\s*+[+\-−–]?\.?([0-9]++(?:\.[0-9]++)?+)",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\s*+(?:[+±~?]|[-–−]\s*+\Z)|\s++(?:to|or|and|minus|plus|ish|versus|vs|times)\b"
    r"|\W{0,6}(?:or|maybe|perhaps|actually|correction|rather|wait)\b", re.IGNORECASE,
)  # fmt: skip
_ABOUT = re.compile(
    r"(?:[~≈<>≤≥]|about|around|approx\w{0,8}|roughly|between|from|at\s++(?:least|most)|(?:more|less|higher|lower)\s++than|over|under|up\s++to"
    r"|nearly|almost|maybe|either|circa|probably|perhaps)[.\s]*+[0-9]", re.IGNORECASE,
)  # fmt: skip
# Not one that is a mark itself, or a doubt: stars, thumbs down, crosses, a hundred, a shrug.
_PICTOGRAM = (
    "(?![\u2605\u2606\u2715-\u2718\u274c-\u2755\u2776-\u2793\u2b50\U0001f31f\U0001f320\U0001f44e\U0001f4a9\U0001f4af\U0001f51e-\U0001f524\U0001f5d9"
    "\U0001f645\U0001f914\U0001f937])[\u2600-\u27bf\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\U0001f900-\U0001faff]"
)
# French "car" is an English noun too.
_BECAUSE = (
    r"(?:because|since|as|due|for|given|weil|denn|parce|puisque|porque|perché|poiché|потому)\b"
    r"|car\s(?:(?:l[ea]s?|ils?|elles?|on|ce|une?|des|deux|aucune?)\b|[lc]['’])"
)
# Words after a number, in the forms that are prose: a pause, or a word that opens a reason.
_PROSE = re.compile(
    rf"\s*+(?:[.,;:!(\[|*_`\"'“”‘’—✅✓✔。，；：！？、（]|{_PICTOGRAM}|[-–]\s|(?<=\s)(?:{_BECAUSE}))",
    re.IGNORECASE,
)
_NEXT_LABEL = re.compile(r"[\s.,;|*_)\]]*+[A-Z][A-Za-z]{2,20}(?:\s[A-Za-z]{1,20})?[*_]*+\s*+[:：]")
_NO_VALUE = frozenset(
    {"na", "n/a", "none", "null", "nil", "nan", "unknown", "undefined", "true", "false", "inf", "infinity", "-infinity"}
)


def is_plain(text: str) -> bool:
    """Whether a value's text is a whole number in a few digits, and nothing else."""
    return len(text) < _N_DIGITS_PLAIN and text.isdigit() and text.isascii()


def read_number(text: str, dimension: Dimension, *, is_prose_allowed: bool) -> Value:
    """The one number a value's text says, or the reason it says none; the scale it states must be the dimension's.

    With `is_prose_allowed` words may follow the number, as long as no other digit stands among them.
    """
    if dimension.answers or dimension.not_applicable:
        word = declared_word(text, dimension, is_prose_allowed=is_prose_allowed)
        if word is not None:
            return word
    if is_plain(text):
        return Decimal(text)
    if "<" in text:
        text = _TAG.sub("", text)
    if "\\" in text:
        text = _BOXED.sub(r" \1 ", text)  # two boxes are two numbers
    text, is_enclosed = _undecorated(text if len(text) < _LENGTH_USUAL else " ".join(text.split()))
    if text.lower() in _NO_VALUE or is_placeholder(text, dimension, is_enclosed=is_enclosed):
        return ParseReason.WRONG_TYPE if text.lower() in _NO_VALUE else ParseReason.TEMPLATE_ECHO
    if found := NUMBER.match(text):
        return _after_word(found[0], text[found.end() :], dimension, is_prose_allowed=is_prose_allowed) or literal(found[0])
    if named := _NAMED.match(text):
        return _as_named(named, text[named.end() :], dimension, is_prose_allowed=is_prose_allowed)
    return ParseReason.AMBIGUOUS if _ABOUT.match(text) else ParseReason.WRONG_TYPE


def _after_word(number: str, rest: str, dimension: Dimension, *, is_prose_allowed: bool) -> ParseReason | None:
    """What stands behind the number, less its own word: 4 (four)."""
    if rest and (word := _WORD_AFTER.match(rest)):
        if number != str(_index_of(word[1])):
            return ParseReason.AMBIGUOUS
        rest = rest[word.end() :]
    return _after(number, rest, dimension, is_prose_allowed=is_prose_allowed)


def _as_named(named: re.Match[str], rest: str, dimension: Dimension, *, is_prose_allowed: bool) -> Value:
    """Four (4): the number, where the word before it says the same."""
    value = read_number(named[2], dimension, is_prose_allowed=False)
    if not isinstance(value, Decimal):
        return value
    if value != _index_of(named[1]):
        return ParseReason.AMBIGUOUS
    return _after(str(value), rest, dimension, is_prose_allowed=is_prose_allowed) or value


def literal(text: str) -> Value:
    """An ASCII number literal as an exact Decimal; one whose exponent no computer holds is out of range."""
    try:
        return Decimal(text.replace("−", "-").replace("–", "-"))
    except InvalidOperation:
        return ParseReason.OUT_OF_RANGE


def on_scale(value: Decimal, dimension: Dimension) -> Value:
    """The value, or why it is not on the dimension's scale. Decimal throughout: 10.00000000000000000001 is above 10."""
    if not value.is_finite():
        return ParseReason.WRONG_TYPE
    if dimension.step == 1 and value != value.to_integral_value():
        return ParseReason.NON_INTEGER
    if not _exactly(dimension.minimum) <= value <= _exactly(dimension.maximum):
        return ParseReason.OUT_OF_RANGE
    if dimension.step not in (None, 1) and not _is_on_step(value, dimension):
        return ParseReason.NON_INTEGER
    return value


@lru_cache(maxsize=256)
def _exactly(end: float) -> Decimal:
    return Decimal(str(end))


def as_score(value: Decimal) -> float:
    """Whole numbers as int, so that 4 and 4.0 print alike; the rest as the nearest float."""
    whole = value.to_integral_value()
    return int(whole) if whole == value else float(value)


def scale_stated(text: str, dimension: Dimension) -> ParseReason | None:
    """A scale said beside a number ("1-10", "out of 100"): SCALE_MISMATCH where its end is not the dimension's."""
    numbers = DIGITS.findall(text)
    return ParseReason.SCALE_MISMATCH if numbers and not is_number(numbers[-1], dimension.maximum) else None


def _undecorated(text: str) -> tuple[str, bool]:
    """Less white space, quotes, bold and brackets around it; whether brackets of any kind were there."""
    is_enclosed = False
    for _ in range(4):
        text = text.strip(_MARKS)
        if len(text) < 2 or _BRACKETS.get(text[0]) != text[-1]:
            break
        text, is_enclosed = text[1:-1], True
    is_ended = text[-1:] in _ENDS and any(c in "0123456789" for c in text)
    return text.rstrip(_MARKS + _ENDS) if is_ended else text, is_enclosed


def _after(number: str, rest: str, dimension: Dimension, *, is_prose_allowed: bool) -> ParseReason | None:
    """What stands behind the number: nothing, the same scale, or a reason not to take it."""
    if not rest:
        return None
    if _GLUED.match(rest):
        return ParseReason.MALFORMED
    rest = rest.lstrip("*_`")  # **4**/5
    behind = behind_units(number, rest, dimension)
    if behind is None:
        return ParseReason.SCALE_MISMATCH
    rest = behind
    return (
        _words_after(number, rest, dimension, is_prose_allowed=is_prose_allowed) if rest.strip(_MARKS + _ENDS + ")）") else None
    )


def _words_after(number: str, rest: str, dimension: Dimension, *, is_prose_allowed: bool) -> ParseReason | None:
    if rest[0].isalnum():
        return ParseReason.WRONG_TYPE
    if _SECOND.match(rest) or _HEDGE.match(rest):
        return ParseReason.AMBIGUOUS
    has_digits = any(map(str.isdigit, rest))
    if is_prose_allowed and (
        _NEXT_LABEL.match(rest) or (_PROSE.match(rest) and not (has_digits and _has_unexplained(rest, number, dimension)))
    ):
        return None
    return ParseReason.AMBIGUOUS if has_digits else ParseReason.WRONG_TYPE


def _has_unexplained(rest: str, number: str, dimension: Dimension) -> bool:
    """Whether other digits stand there than a reason's: 7. I deducted 3 points for the can."""
    score = literal(number)
    if not isinstance(score, Decimal) or len(rest) > _N_REASON_MAX:
        return True
    return any(map(str.isdigit, without_reasons(rest, [float(score)], dimension.maximum)))


def _is_on_step(value: Decimal, dimension: Dimension) -> bool:
    context = Context(prec=60, traps=[])
    rest = context.remainder(context.subtract(value, _exactly(dimension.minimum)), Decimal(str(dimension.step)))
    return rest == 0 and not context.flags[Inexact]
