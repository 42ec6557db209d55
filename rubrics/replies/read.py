"""Reply text -> the scores it says, or the one reason it says none. The policy, an example for each reason: docs/replies.md.

The forms are read in json_form.py, line_forms.py and items/; here stand the order of the questions and what the context
says. The lines of `salon parse` are jsonl.py.
"""

import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from rubrics.model import Dimension, ReplyFormat, Rubric, Variant
from rubrics.replies.cleaning import cleaned, thoughts_and_answer, with_plain_blanks, without_formulas
from rubrics.replies.doubts.doubt import Told, doubt, doubt_of_words, states_a_scale, told_by
from rubrics.replies.doubts.flags import flagged
from rubrics.replies.doubts.missing_input import Judged, judged_by, saw_nothing
from rubrics.replies.items.answers import of_item
from rubrics.replies.items.together import WITHOUT_ANSWER, read_together
from rubrics.replies.json_form import read_json
from rubrics.replies.json_objects import decoded
from rubrics.replies.line_forms import numbers_beside, read_bracket, read_label, read_whole
from rubrics.replies.numbers import BLANK, Found
from rubrics.replies.plain_forms import read_plain
from rubrics.replies.probabilities import read_probabilities
from rubrics.replies.program_numbers import read_numbers
from rubrics.replies.refusals import declined, declines
from rubrics.replies.remedies import CONTEXT_FULL
from rubrics.replies.spans import Spans, spans_of
from rubrics.replies.weighing.mentions import without_mentions
from rubrics.replies.weighing.settling import settle
from rubrics.rules import violations
from schemas.input_budget import REPLY_TEXT_BYTES
from schemas.records import ParsedScore, ReadScores, Unreadable
from schemas.statuses.rows import ParseReason

_N_NOTE_CHARACTERS_MAX = 4000
_N_FAULT_CHARACTERS_MAX = 200
READERS = {
    ReplyFormat.JSON: read_json, ReplyFormat.BRACKET: read_bracket, ReplyFormat.LABEL: read_label, ReplyFormat.ANSWER: read_whole,
}  # fmt: skip
# Providers behind one API say the same in several words.
_FILTERED = frozenset(
    {"content_filter", "content_filtered", "safety", "refusal", "prohibited_content", "blocklist", "image_safety", "spii"}
)
CUT = frozenset({"length", "max_tokens", "max_output_tokens", "max_length", *CONTEXT_FULL})
# Opens with a quote, not with the label: re skips to it. One of the two may be lost.
_QUOTES_OF_LABEL = re.compile(r"""(?<=[^"'“”\n])["'”](?=\s?[:：=])|["'“](?=[^"'“”\n]{1,60}["'”]\s?[:：=])""")
_BRACES = str.maketrans("{}", "  ")  # outside of an object: of one that is not whole
_OF_A_SCALE = frozenset({ParseReason.OUT_OF_RANGE, ParseReason.NON_INTEGER, ParseReason.AMBIGUOUS})


def parse_reply(rubric: Rubric, text: str | None, context: Mapping[str, Any]) -> ParsedScore:
    """What one reply says under a rubric: a number for every dimension, or the reason there is none.

    Never raises: a reply that breaks the reader is MALFORMED, and has a `fault` for the caller to tell.
    `context` may hold finish_reason, refusal, category, logprobs_json, and the facts of rubrics.rules and items. A fact that is
    not as declared says nothing here; rubrics.rules.unusable_fact names it.
    """
    try:
        return _parsed(rubric, text, context if isinstance(context, Mapping) else {})
    except MemoryError:  # of the process, not of this reply
        raise
    except Exception as fault:  # noqa: BLE001  the run's other replies are sound, and a stored one would end each later run too
        return Unreadable(ParseReason.MALFORMED, _last_line(fault))


def _last_line(fault: Exception) -> str:
    """The error and where it was raised; pieces of the reply may stand in it."""
    *_, (frame, line) = traceback.walk_tb(fault.__traceback__)
    file, said = Path(frame.f_code.co_filename).name, str(fault)[:_N_FAULT_CHARACTERS_MAX]
    return f"{type(fault).__name__}: {said!a} ({file}, line {line})"


def _parsed(rubric: Rubric, text: str | None, context: Mapping[str, Any]) -> ParsedScore:
    finish = context.get("finish_reason")
    finish = finish.strip().lower() if isinstance(finish, str) else ""
    if finish in _FILTERED or _is_said(context.get("refusal")):
        return Unreadable(ParseReason.REFUSAL)
    category = context.get("category")
    if rubric.requests and isinstance(category, str) and category in rubric.of_requests:
        rubric, category = rubric.of_requests[category], None
    variant = rubric.variant(category if isinstance(category, str) else None)
    reason = _unread(text, is_cut=finish in CUT)
    if reason or variant is None or not isinstance(text, str):
        return Unreadable(reason or ParseReason.NOT_FOUND)
    text = with_plain_blanks(text)
    if rubric.items:
        read = _read_items(rubric, variant, text, context, is_cut=finish in CUT)
    elif variant.dimensions[0].probability:
        read = read_probabilities(variant.dimensions[0], text, variant.prompt, context, judged_by(rubric))
    elif rubric.program:
        read = read_numbers(text, variant.dimensions)
    else:
        read = _read(rubric.reply_format, text, variant, context, judged_by(rubric), is_cut=finish in CUT)
    if isinstance(read, ReadScores) and rubric.rules:
        of_items = variant.dimensions[0].key if rubric.items else None
        return replace(read, violated=violations(rubric, read.scores, context, of_items))
    return read


def _read_items(rubric: Rubric, variant: Variant, text: str, context: Mapping[str, Any], *, is_cut: bool) -> ParsedScore:
    """The answer to each item, by its id; to one asked alone, by the dimension's key."""
    (dimension,), judged = variant.dimensions, judged_by(rubric)
    listed = context.get("items")
    items = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    if rubric.reply_format not in (ReplyFormat.LINES, ReplyFormat.LIST):
        asked = of_item(dimension, items[0] if items else {})
        if asked.probability:
            return read_probabilities(asked, text, variant.prompt, context, judged)
        return _read(rubric.reply_format, text, replace(variant, dimensions=(asked,)), context, judged, is_cut=is_cut)
    return read_together(rubric, variant, text, context, items, is_cut=is_cut)


def _unread(text: object, *, is_cut: bool) -> ParseReason | None:
    """What is known before reading: the reply is empty, or too long, or no text."""
    if text is None or (isinstance(text, str) and not text[:1].strip(BLANK) and not text.strip(BLANK)):
        return ParseReason.TRUNCATED if is_cut else ParseReason.EMPTY
    if not isinstance(text, str) or len(text) > REPLY_TEXT_BYTES:
        return ParseReason.MALFORMED
    if len(text) * 4 > REPLY_TEXT_BYTES and len(text.encode("utf-8", "surrogatepass")) > REPLY_TEXT_BYTES:
        return ParseReason.MALFORMED
    return None


def _read(
    form: ReplyFormat, text: str, variant: Variant, context: Mapping[str, Any], judged: Judged, *, is_cut: bool
) -> ParsedScore:
    thoughts, at = thoughts_and_answer(text)
    if at is None:
        return Unreadable(ParseReason.TRUNCATED)
    said = text[at:] if at else text
    answer = cleaned(said, variant.prompt)
    if answer is not said and not answer.strip(BLANK):  # the prompt and nothing else, or its form alone
        echo = settle(READERS[form](said, variant.dimensions, is_cut=is_cut), variant.dimensions)
        return Unreadable(echo if echo is ParseReason.TEMPLATE_ECHO else ParseReason.NOT_FOUND)
    bare = without_formulas(answer, is_json=form is ReplyFormat.JSON)
    own, unquoted = without_mentions(bare, variant.dimensions, form)
    told = told_by(unquoted, is_json=form is ReplyFormat.JSON)
    if saw_nothing(told.sentences, context, thoughts, judged):
        return Unreadable(ParseReason.MISSING_INPUT)
    found = found_in(form, own, variant.dimensions, is_cut=is_cut)
    flagged_as = flagged(found.flags, variant.prompt, context, has_text=judged.has_text) if found.flags else None
    settled = flagged_as or settle(found, variant.dimensions)
    if isinstance(settled, ParseReason):
        is_refused = settled is not ParseReason.TRUNCATED and declines(told.sentences, has_text=judged.has_text)
        return Unreadable(flagged_as or _reason(settled, answer, told, variant.dimensions, found, is_refused=is_refused))
    if settled and declines(told.sentences, has_text=judged.has_text):
        return Unreadable(ParseReason.REFUSAL)
    if own is not answer:
        found = replace(found, notes={key: _in_full(note, own, answer) for key, note in found.notes.items()})
    return _placed(form, own, variant, found, settled, told, at)


def _in_full(note: str, own: str, answer: str) -> str:
    """A note with what it mentions."""
    start = own.find(note)
    return answer[start : start + len(note)] if start >= 0 else note


def _placed(
    form: ReplyFormat, answer: str, variant: Variant, found: Found, scores: Mapping[str, float], told: Told, at: int
) -> ParsedScore:
    """The scores and where each stands in the reply, whose answer begins at `at`; or why words beside them make them none."""
    aside = frozenset(variant.read_keys) - scores.keys()
    if not scores:  # every dimension is said not to apply
        return ReadScores({}, not_applicable=aside)
    of_scores = tuple(dimension for dimension in variant.dimensions if dimension.key in scores)
    spans = spans_of(form, answer, of_scores, found, scores)
    numeric = tuple(dimension for dimension in of_scores if not dimension.answers)
    reason = doubt(told, scores, numeric, spans, _end_of_form(answer, found, spans)) if numeric else None
    if len(numeric) < len(of_scores) and not reason:
        reason = doubt_of_words(told, scores, tuple(one for one in of_scores if one.answers), spans)
    if reason:
        return Unreadable(reason)
    notes = {key: _storable(note) for key, note in found.notes.items()}
    places = {key: (start + at, end + at) for key, (start, end) in spans.items()}
    return ReadScores(scores, notes, spans=places, not_applicable=aside)


def found_in(form: ReplyFormat, answer: str, dimensions: tuple[Dimension, ...], *, is_cut: bool) -> Found:
    """What the form asked for says, or where it is not there another plain one; beside it, what another one says too."""
    found = READERS[form](answer, dimensions, is_cut=is_cut)
    if form is ReplyFormat.ANSWER:
        return found
    if found.reason is ParseReason.NOT_FOUND:
        plain = read_plain(answer, dimensions, form)
        return found if plain.reason else plain
    if found.reason is None:
        for key, number in _beside(form, answer, found, dimensions):
            if key in found.values and number not in found.values[key]:
                found = replace(found, values={**found.values, key: [*found.values[key], number]})
    return found


def _beside(form: ReplyFormat, answer: str, found: Found, dimensions: tuple[Dimension, ...]) -> Iterator[tuple[str, Decimal]]:
    """Numbers for the dimensions that another form says: what contradicts a line contradicts an object, and vice versa."""
    others: list[Found] = []
    if form is ReplyFormat.JSON:
        around = "\n".join(answer[start:end] for start, end in found.between) if len(decoded(answer)) == len(answer) else ""
        if any(mark in around for mark in ":：=") and all(dimension.at is None for dimension in dimensions):
            yield from numbers_beside(_QUOTES_OF_LABEL.sub("", around.translate(_BRACES)), dimensions)
        answer = around
    elif "{" in answer:
        others.append(read_json(answer, dimensions, is_cut=False))
    if "|" in answer or "#" in answer or "</" in answer or "**" in answer:
        others.append(read_plain(answer, dimensions, form))
    for other in others:
        yield from ((key, value) for key, values in other.values.items() for value in values if isinstance(value, Decimal))


def _end_of_form(answer: str, found: Found, spans: Spans) -> int:
    """Where what was asked for ends: behind the last object, or behind the line of the last number."""
    if found.between:
        return found.between[-1][0] if found.between[-1][1] == len(answer) else len(answer)
    if answer[:1] == "{" and answer[-1:] == "}":
        return len(answer)  # an object and nothing else
    end = max((end for _, end in spans.values()), default=len(answer))
    line = answer.find("\n", end)
    return line if line >= 0 else len(answer)


def _reason(
    settled: ParseReason, answer: str, told: Told, dimensions: tuple[Dimension, ...], found: Found, *, is_refused: bool
) -> ParseReason:
    """Why there is no score: the judge declines, or its number is one of another scale; else what its value says."""
    if settled in WITHOUT_ANSWER and not found.has_number and (reason := declined(answer)):
        return reason
    if is_refused:
        return ParseReason.REFUSAL
    return ParseReason.SCALE_MISMATCH if settled in _OF_A_SCALE and states_a_scale(told, dimensions) else settled


def _is_said(refusal: object) -> bool:
    """A refusal field that is neither null, false nor blank."""
    return bool(refusal.strip(BLANK)) if isinstance(refusal, str) else bool(refusal)


def _storable(note: str) -> str:
    """A note as Parquet can hold it: no lone surrogates, not the whole of a long reply."""
    return note[:_N_NOTE_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")
