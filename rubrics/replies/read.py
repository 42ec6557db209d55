"""Reply text -> the scores it says, or the one reason it says none. The policy, an example for each reason: docs/replies.md.

The forms are read in json_form.py and line_forms.py; here stand the order of the questions, what the context says and
the lines of `salon parse`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from rubrics.model import Dimension, ReplyFormat, Rubric
from rubrics.replies.json_form import read_json
from rubrics.replies.line_forms import read_bracket, read_label
from rubrics.replies.numbers import BLANK, Found, Value, as_score, on_scale
from rubrics.replies.refusals import declined
from rubrics.rules import violations
from schemas.errors import InputError
from schemas.input_budget import REPLY_TEXT_BYTES
from schemas.records import ParsedScore, ReadScores, Unreadable
from schemas.statuses import ParseReason

_N_NOTE_CHARACTERS_MAX = 4000
_READERS = {ReplyFormat.JSON: read_json, ReplyFormat.BRACKET: read_bracket, ReplyFormat.LABEL: read_label}
# Providers behind one API say the same in several words.
_FILTERED = frozenset(
    {"content_filter", "content_filtered", "safety", "refusal", "prohibited_content", "blocklist", "image_safety", "spii"}
)
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "max_length"})
_LINE_FORM = '{"raw": "the reply\'s text", "context": {}}'
_ORDER = {reason: index for index, reason in enumerate(ParseReason)}
_WITHOUT_ANSWER = frozenset({ParseReason.NOT_FOUND, ParseReason.MISSING_KEY, ParseReason.WRONG_TYPE})
_THINKING = re.compile(rf"[{BLANK}]*+<think(?:ing)?>", re.IGNORECASE)
_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
# Some models' opening tag is part of their prompt. Alone at a line's end: a text may speak of the tag.
_THOUGHT_UNOPENED = re.compile(r"</think(?:ing)?>[ \t\r]*+(?:\n|\Z)", re.IGNORECASE)


def parse_reply(rubric: Rubric, text: str | None, context: Mapping[str, Any]) -> ParsedScore:
    """What one reply says under a rubric: a number for every dimension, or the reason there is none. Never raises.

    `context` may hold finish_reason, refusal, category and the facts of rubrics.rules.
    """
    context = _mapping(context)
    finish = context.get("finish_reason")
    finish = finish.strip().lower() if isinstance(finish, str) else ""
    if finish in _FILTERED or _is_said(context.get("refusal")):
        return Unreadable(ParseReason.REFUSAL)
    category = context.get("category")
    variant = rubric.variant(category if isinstance(category, str) else None)
    reason = _unread(text, is_cut=finish in _CUT)
    if reason or variant is None or not isinstance(text, str):
        return Unreadable(reason or ParseReason.NOT_FOUND)
    read = _read(rubric.reply_format, text, variant.dimensions, is_cut=finish in _CUT)
    if isinstance(read, ReadScores) and rubric.rules:
        return ReadScores(read.scores, read.notes, violations(rubric, read.scores, context))
    return read


def _mapping(context: object) -> Mapping[str, Any]:
    return context if isinstance(context, Mapping) else {}


def _unread(text: object, *, is_cut: bool) -> ParseReason | None:
    """What is known before reading: the reply is empty, or too long, or no text."""
    if text is None or (isinstance(text, str) and not text[:1].strip(BLANK) and not text.strip(BLANK)):
        return ParseReason.TRUNCATED if is_cut else ParseReason.EMPTY
    if not isinstance(text, str) or len(text) > REPLY_TEXT_BYTES:
        return ParseReason.MALFORMED
    if len(text) * 4 > REPLY_TEXT_BYTES and len(text.encode("utf-8", "surrogatepass")) > REPLY_TEXT_BYTES:
        return ParseReason.MALFORMED
    return None


def _read(form: ReplyFormat, text: str, dimensions: tuple[Dimension, ...], *, is_cut: bool) -> ParsedScore:
    thoughts, answer = _thoughts(text)
    if answer is None:
        return Unreadable(ParseReason.TRUNCATED)
    found = _READERS[form](answer, dimensions, is_cut=is_cut)
    settled = _settle(found, dimensions)
    if isinstance(settled, ParseReason):
        is_answerless = settled in _WITHOUT_ANSWER and not found.has_number
        return Unreadable((declined(answer) if is_answerless else None) or settled)
    if thoughts and _is_contradicted(settled, _READERS[form](thoughts, dimensions, is_cut=False)):
        return Unreadable(ParseReason.AMBIGUOUS)
    return ReadScores(settled, {key: _storable(note) for key, note in found.notes.items()})


def _settle(found: Found, dimensions: Iterable[Dimension]) -> dict[str, float] | ParseReason:
    """The score of every dimension, or the earliest reason in the order of ParseReason: all dimensions or none."""
    if found.reason:
        return found.reason
    settled = {dimension.key: _settle_one(found.values.get(dimension.key, ()), dimension) for dimension in dimensions}
    problems = [value for value in settled.values() if isinstance(value, ParseReason)]
    if problems:
        return min(problems, key=_ORDER.__getitem__)
    return {key: as_score(value) for key, value in settled.items() if isinstance(value, Decimal)}


def _settle_one(values: Sequence[Value], dimension: Dimension) -> Value:
    """One number said once, or again and again the same. An unfilled form beside a real answer says nothing."""
    if len(values) > 1:
        values = [value for value in values if value is not ParseReason.TEMPLATE_ECHO] or values[:1]
    if not values:
        return ParseReason.MISSING_KEY
    distinct = set(values)
    if len(distinct) == 1:
        value = values[0]
        return on_scale(value, dimension) if isinstance(value, Decimal) else value
    problems = [value for value in distinct if isinstance(value, ParseReason)]
    if len(problems) == len(distinct):
        return min(problems, key=_ORDER.__getitem__)
    return ParseReason.AMBIGUOUS


def _thoughts(text: str) -> tuple[str, str | None]:
    """(what a reasoning model thought aloud, its answer); the answer is None where the thinking never ended."""
    is_opened = _THINKING.match(text) is not None
    end = (_THOUGHT if is_opened else _THOUGHT_UNOPENED).search(text) if "</" in text else None
    if end:
        return text[: end.start()], text[end.end() :]
    return "", None if is_opened else text


def _is_contradicted(scores: Mapping[str, float], thoughts: Found) -> bool:
    """Whether the thinking says another number for a dimension, in the form asked for."""
    said = ((key, value) for key, values in thoughts.values.items() for value in values)
    return any(isinstance(value, Decimal) and value != Decimal(str(scores[key])) for key, value in said)


def _is_said(refusal: object) -> bool:
    """A refusal field that is neither null, false nor blank."""
    return bool(refusal.strip(BLANK)) if isinstance(refusal, str) else bool(refusal)


def _storable(note: str) -> str:
    """A note as Parquet can hold it: no lone surrogates, not the whole of a long reply."""
    return note[:_N_NOTE_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")


def parse_jsonl(rubric: Rubric, lines: Iterable[str | bytes], category: str | None = None) -> Iterator[str]:
    """One JSON line for each line {"raw", "context"}, in order; blank lines are passed over.

    `lines` are parted by line feeds alone, as an open file's are. Raises InputError naming the first that cannot be used.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield parse_jsonl_line(rubric, line, number=number, category=category)


def parse_jsonl_line(rubric: Rubric, line: str | bytes, *, number: int = 1, category: str | None = None) -> str:
    """One line {"raw", "context"} read: {"scores": …} or {"error": …} as JSON.

    `category`, where given, wins over the context's. Raises InputError naming the line where it is no such object, or where
    the rubric's prompt depends on a category and there is none, or an unknown one.
    """
    content = _content(line, number)
    if "raw" not in content or not isinstance(content["raw"], str | None):
        raise InputError(f'line {number}: "raw" must be the reply\'s text or null; write {_LINE_FORM}')
    context = {} if content.get("context") is None else content["context"]
    if not isinstance(context, Mapping):
        raise InputError(f'line {number}: "context" is {_short(context)}; it must be an object; write {_LINE_FORM}')
    if rubric.dispatch:
        context = {**context, "category": _category(rubric, category or context.get("category"), number)}
    return json.dumps(parse_reply(rubric, content["raw"], context).as_dict())


def _content(line: str | bytes, number: int) -> Mapping[str, Any]:
    try:
        text = line.decode("utf-8") if isinstance(line, bytes) else line
        content = json.loads(text.removeprefix("\ufeff") if number == 1 else text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {number}: not JSON in UTF-8 ({error}); write {_LINE_FORM}") from error
    if not isinstance(content, Mapping):
        raise InputError(f"line {number}: {_short(content)} is not an object; write {_LINE_FORM}")
    return content


def _category(rubric: Rubric, category: object, number: int) -> str:
    if isinstance(category, str) and rubric.variant(category):
        return category
    known = ", ".join(sorted(str(name) for name in rubric.variants))
    said = "no category is given" if category is None else f"{_short(category)} is not a category"
    raise InputError(
        f"line {number}: {said}, and {rubric.id} needs one: name it as {rubric.id}:CATEGORY; the categories are {known}"
    )


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
