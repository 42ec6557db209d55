"""Scores that a reply speaks of instead of giving them: quoted behind words, or in the middle of a sentence. They are blanked.

A judge that reports what a poster says ("Score: 5") has not said 5. Behind an answer of its own such words may still take it
back, and are left where they may. Nothing is moved: spans stay true.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from rubrics.model import Dimension, ReplyFormat
from rubrics.replies.labels import label_pattern
from rubrics.replies.numbers import BLANK
from rubrics.replies.weighing.leads import ANOTHERS, EARNED, IGNORING, LEADING_ON, OWN, SAYING, TURNING, UNEARNED, is_led_above

_N_LOOKED_AT_MAX = 200
_N_BEFORE_MAX = 2000  # before a line that ends in a quote
_N_WORD_MAX = 24
_N_NEAR = 120  # of what leads on to a score
_N_LINE_MAX = 400  # of a line before a score and behind it
_CLOSING = {'"': '"', "“": "”", "„": "“”", "‘": "’", "'": "'", "«": "»", "»": "«", "「": "」", "『": "』", "《": "》"}
_ENDING = "\"”’'»」』》"
_QUOTES = re.compile(r"[\"“”„‘«»「」『』《》]|(?<!\w)'(?!\s)|(?<=\S)['’](?!\w)")
_SIGN = re.compile("[\"“”„‘’'«»「」『』《》]")  # of which no other pattern has to be looked for where there is none
_WORD = re.compile(r"\w")
_INTRODUCING = frozenset({"", ":", "：", ","})
_FENCE = BLANK + "`"
_OTHER_COLON = frozenset("：–—")
_BRACE = re.compile(r"[{}]")
_NOT_BREAK = re.compile(r"[^\n]")
_BEGUN = BLANK + "*_#>|-•–—([{【（<+~"
_LAST_WORD = re.compile(r"[^\W\d_]+\Z")
_CLAUSE = re.compile(r"[.!?;,]\s")
_OWN_NAME = re.compile(r"(?:\b(?:the|my|final|correct|overall|total|revised|new)\s++)+\Z", re.IGNORECASE)
_ONE_LINE = re.compile(r"[\s*_#>-]{0,8}+[^\W\d_]{2,20}+[*_]{0,2}[:：]")
_OWN_WORDS = re.compile(
    r"[\s*_#>-]{0,8}+(?:reason(?:ing)?|rationale|analysis|explanation|justification)[*_]{0,2}[:：][\s*_]{0,6}", re.IGNORECASE
)
_ENDS_QUOTED = re.compile(rf"[^\n{_ENDING}]{{0,40}}+[{_ENDING}]")
_NUMBER_ALONE = re.compile(r"[ \t*_`]{0,6}+[0-9][0-9./ ]{0,12}+[*_`]{0,3}[ \t]{0,3}(?=\n|\Z)")
_VALUE = re.compile(r"[ \t*_`]{0,6}+[\w./%]{1,20}+(?:\s(?:out\s)?of\s[0-9]{1,3})?+")


class _Unit(NamedTuple):
    """A label with its colon, a bracket or an object: where it begins, where its values do, and where it ends if it says so."""

    start: int
    values: int
    end: int | None


class _Mention(NamedTuple):
    start: int
    end: int
    is_quoted: bool


def without_mentions(text: str, dimensions: tuple[Dimension, ...], form: ReplyFormat) -> tuple[str, str]:
    """(the text with what it only mentions as blanks, that with quoted mentions alone as blanks): doubts look into the rest."""
    if form is not ReplyFormat.JSON and _is_plain(text):
        return text, text
    spans = _objects_mentioned(text, dimensions) if form is ReplyFormat.JSON else _labels_mentioned(text, dimensions)
    if not spans:
        return text, text
    return _blanked(text, spans), _blanked(text, [span for span in spans if span.is_quoted])


def _is_plain(text: str) -> bool:
    """Whether each colon stands behind a line's only word, or in a line that is a bracket: most replies need no more looks."""
    if "=" in text or not (text.isascii() or _OTHER_COLON.isdisjoint(text)):
        return False
    at = text.find(":")
    while at >= 0:
        line = text.rfind("\n", 0, at) + 1
        if at - line > _N_WORD_MAX or not text[line:at].isalpha():
            end = text.find("\n", at)
            end = end if end >= 0 else len(text)
            if text[line] != "[" or text[end - 1] != "]" or text.find("[", line + 1, end) >= 0:
                return False
            at = end
        elif _ENDS_QUOTED.match(text, at + 1):
            return False
        at = text.find(":", at + 1)
    return True


def _blanked(text: str, spans: list[_Mention]) -> str:
    pieces, done = list[str](), 0
    for start, end, _ in sorted(spans):
        pieces += [text[done:start], _NOT_BREAK.sub(" ", text[max(start, done) : end])]
        done = max(done, end)
    return "".join([*pieces, text[done:]])


def _labels_mentioned(text: str, dimensions: tuple[Dimension, ...], first: int = 0, last: int | None = None) -> list[_Mention]:
    found: list[_Mention] = []
    is_answered, done = False, first
    last = len(text) if last is None else last
    for n_seen, label in enumerate(_labels(dimensions).finditer(text, first, last)):
        start = label.start()
        if n_seen > _N_LOOKED_AT_MAX:
            break
        if start < done:
            continue
        if start and (text[start - 1] != "\n" or _ENDS_QUOTED.match(text, label.end()) or is_led_above(text, start)):
            unit = _unit(text, label)
            span = _mentioned(text, unit, last, is_behind=is_answered)
            done = unit.end or label.end()
            if span:
                found.append(span)
                done = max(done, span.end)
                continue
        is_answered = True
    return found


def _objects_mentioned(text: str, dimensions: tuple[Dimension, ...]) -> list[_Mention]:
    opening, closing = text.find("{"), text.rfind("}") + 1
    if opening < 0 or not (text[:opening].removeprefix("```json").strip(_FENCE) or text[closing:].strip(_FENCE)):
        return [] if opening >= 0 else _labels_mentioned(text, dimensions)
    key, found, is_answered, at, n_seen = _keys(dimensions), list[_Mention](), False, opening, 0
    while at >= 0 and n_seen < _N_LOOKED_AT_MAX:
        end, n_seen = _closed(text, at), n_seen + 1
        if end is None:
            return []  # what of it is an object is not told by counting braces
        if key.search(text, at, end):
            span = _mentioned(text, _Unit(at, end, end), len(text), is_behind=is_answered)
            found += [span] if span else []
            is_answered = is_answered or not span
        at = text.find("{", end)
    return [*found, *_labels_mentioned(text, dimensions, 0, opening), *_labels_mentioned(text, dimensions, closing)]


def _unit(text: str, label: re.Match[str]) -> _Unit:
    """The label; or the bracket that it opens."""
    before = text[max(0, label.start() - 8) : label.start()].rstrip(" \t*_`")
    if before[-1:] in {"[", "［", "【"} and "】" not in label[0]:
        start = label.start() - 1 - (len(text[max(0, label.start() - 8) : label.start()]) - len(before))
        ends = [place for closing in "]］】" if (place := text.find(closing, label.end(), label.end() + 2000)) >= 0]
        if ends:
            return _Unit(start, min(ends) + 1, min(ends) + 1)
    return _Unit(label.start(), label.end(), None)


def _mentioned(text: str, unit: _Unit, last: int, *, is_behind: bool) -> _Mention | None:
    """What is to be blanked of a unit that is only mentioned; None where it is the judge's own, or may take its answer back."""
    least = max(0, unit.start - _N_LINE_MAX)
    line = max(least, text.rfind("\n", least, unit.start) + 1)
    head = text[line : unit.start]
    tail = text[unit.values : min(unit.values + _N_LINE_MAX, last)].partition("\n")[0]
    is_alone = not head.strip(_BEGUN)
    is_led = is_alone and is_led_above(text, line)
    if is_alone and not is_led and not any(quote in tail for quote in _ENDING):
        return None
    quoted = _quotation(text, line, unit, tail)
    if quoted is not None:
        is_own, end = quoted
        return None if is_own or (is_behind and TURNING.search(head)) else _Mention(unit.start, end, is_quoted=True)
    if is_behind or not (is_led or _is_in_a_sentence(head, tail, is_closed=unit.end is not None)):
        return None
    value = _VALUE.match(tail) if unit.end is None else None
    return _Mention(unit.start, unit.values + (value.end() if value else 0), is_quoted=False)


def _quotation(text: str, line: int, unit: _Unit, tail: str) -> tuple[bool, int] | None:
    """(whether the quotation that holds the unit is the judge's own answer, where it ends); None where none holds it."""
    opened = _open(text, line, unit.start)
    if opened is None:
        stripped = tail.rstrip(BLANK + "*_.,;")
        if stripped[-1:] not in _ENDING or not stripped or (opened := _open(text, max(0, line - _N_BEFORE_MAX), line)) is None:
            return None
        line = text.rfind("\n", max(0, opened - _N_LINE_MAX), opened) + 1
    closing = _CLOSING[text[opened]]
    ends = [place for one in closing if (place := tail.find(one)) >= 0]
    end = min(ends) + 1 if ends else len(tail)
    if unit.end is None and (any(one in text[unit.start : unit.values] for one in closing) or not _WORD.search(tail[:end])):
        return None  # "Score": 4, a label in quotes
    is_led = _WORD.search(text, opened, unit.start) is not None
    if is_led and not ends:
        return None  # a quotation mark that is none: 'Tis, a 12" plate
    intro = text[line:opened]
    if not _WORD.search(intro) and is_led_above(text, line):
        return False, unit.values + end
    if not _WORD.search(intro) or (is_led and _OWN_WORDS.fullmatch(intro)):
        return not (ends and _WORD.search(tail, end)), unit.values + end
    return bool(OWN.search(intro)) and not SAYING.search(intro), unit.values + end


def _open(text: str, first: int, last: int) -> int | None:
    """Where a quotation begins that is still open at `last`."""
    opened: int | None = None
    any_sign = _SIGN.search(text, first, last)
    for quote in _QUOTES.finditer(text, any_sign.start(), last) if any_sign else ():
        sign = quote[0]
        if opened is not None and sign in _CLOSING[text[opened]]:
            opened = None
        elif opened is None and sign in _CLOSING and not (sign in "\"'" and quote.start() and text[quote.start() - 1].isalnum()):
            opened = quote.start()
    return opened


def _is_in_a_sentence(head: str, tail: str, *, is_closed: bool) -> bool:
    """Whether a score behind `head` on its line is a part of what is said there."""
    bare = head.rstrip(BLANK + "*_`")
    last = bare[-1:]
    if last in _INTRODUCING:
        near = bare[-_N_NEAR:] if last and _WORD.search(bare) else ""
        return bool((SAYING.search(near) and not OWN.search(near)) or ANOTHERS.search(near))
    if not last.isalpha():
        return False  # a pause
    near = bare[-_N_NEAR:]
    named = _OWN_NAME.search(near + " ")
    before = near[: named.start()].rstrip(BLANK) if named else near
    word = _LAST_WORD.search(before[-_N_WORD_MAX:])
    if word is None or OWN.search(near) or (named and OWN.search(before)):
        return IGNORING.search(near) is not None  # otherwise an introduction
    if EARNED.search(before) and not UNEARNED.search(_CLAUSE.split(before)[-1]):
        return False
    if word[0].lower() in LEADING_ON or is_closed:
        return word[0].lower() in LEADING_ON or bool(_WORD.search(tail))
    # "Realism Score": line_forms.py knows whose it is
    return before.count(" ") >= 2 and not (_ONE_LINE.match(head) and _NUMBER_ALONE.match(tail))


def _closed(text: str, start: int) -> int | None:
    """Where the brace at `start` is closed; None where it is not."""
    depth = 0
    for n_seen, brace in enumerate(_BRACE.finditer(text, start, start + 8000)):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
        if n_seen > _N_LOOKED_AT_MAX:
            break
    return None


@lru_cache(maxsize=256)
def _labels(dimensions: tuple[Dimension, ...]) -> re.Pattern[str]:
    """A label with its colon."""
    marks = r"[ \t*_`\"'”’]{0,6}+"
    return re.compile(
        rf"{label_pattern(dimensions)}{marks}】?+(?:(?:\([^()\n]{{0,40}}+\)|\[[0-9][^\[\]\n]{{0,20}}+\]){marks})?[:：=–—]"
    )


@lru_cache(maxsize=256)
def _keys(dimensions: tuple[Dimension, ...]) -> re.Pattern[str]:
    return re.compile(label_pattern(dimensions))
