"""The lines of `salon parse`: one {"raw", "context"} read, one answer printed. How a reply is read is read.py."""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rubrics.explaining import explained
from rubrics.model import ReplyFormat, Rubric
from rubrics.replies.probabilities import lacks_probabilities
from rubrics.replies.read import parse_reply
from rubrics.rules import unusable_fact
from schemas.errors import InputError
from schemas.records import ParsedScore, ReadScores, Unreadable
from schemas.statuses.rows import ParseReason

_log = logging.getLogger("salon.parse")

FACT = "fact"
"""The key under which a line names the fact of its context that is not as the rubric declares it."""
LACKS = "lacks"
"""The key under which a line says what of the reply was not given with it."""
_N_AROUND = 40
_LINE_FORM = '{"raw": "the reply\'s text", "context": {}}'


def parse_jsonl(
    rubric: Rubric, lines: Iterable[str | bytes], category: str | None = None, *, is_explained: bool = False
) -> Iterator[str]:
    """One JSON line for each line {"raw", "context"}, in order; blank lines are passed over.

    `lines` are parted by line feeds alone, as an open file's are. Raises InputError naming the first that cannot be used.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield parse_jsonl_line(rubric, line, number=number, category=category, is_explained=is_explained)


def parse_jsonl_line(
    rubric: Rubric, line: str | bytes, *, number: int = 1, category: str | None = None, is_explained: bool = False
) -> str:
    """One line {"raw", "context"} read: {"scores": …} or {"error": …} as JSON; explained, what follows and from where, too.

    A fact of another type, or a word that is not declared, is {"error", "fact", "value", "allowed"} whatever the reply says.

    `category`, where given, wins over the context's. Raises InputError naming the line where it is no such object, or where
    the rubric's prompt depends on a category and there is none, or an unknown one.
    """
    content = _content(line, number)
    if "raw" not in content or not isinstance(content["raw"], str | None):
        raise InputError(f'line {number}: "raw" must be the reply\'s text or null; write {_LINE_FORM}')
    context = {} if content.get("context") is None else content["context"]
    if not isinstance(context, Mapping):
        raise InputError(f'line {number}: "context" is {_short(context)}; it must be an object; write {_LINE_FORM}')
    if rubric.items and rubric.reply_format in (ReplyFormat.LINES, ReplyFormat.LIST):
        _check_items(context.get("items"), number)
    if rubric.dispatch:
        context = {**context, "category": _category(rubric, category or context.get("category"), number)}
    read = parse_reply(rubric, content["raw"], context)
    if isinstance(read, Unreadable) and read.fault:
        _log.error("line %d broke the reader and is malformed; a fault of Salon: %s", number, read.fault)
    said = said_of(rubric, read, context)
    if is_explained and isinstance(content["raw"], str) and FACT not in said:
        if isinstance(read, ReadScores):
            said["found"] = {key: _place(content["raw"], *read.spans[key]) for key in read.scores if key in read.spans}
        said |= explained(rubric, read, content["raw"], context)
    return json.dumps(said)


def said_of(rubric: Rubric, read: ParsedScore, context: Mapping[str, Any]) -> dict[str, object]:
    """What is printed of a reply that was read: where it lacks the log probabilities that the rubric reads, that too.

    Where a fact of the context is not as declared, a rule would be passed over: then that, and nothing of the reply.
    """
    if unusable := unusable_fact(rubric, context):
        return unusable
    said, category = read.as_dict(), context.get("category")
    is_unfound = isinstance(read, Unreadable) and read.reason is ParseReason.NOT_FOUND
    variant = category if isinstance(category, str) else None
    if is_unfound and lacks_probabilities(rubric, variant, context.get("logprobs_json")):
        said[LACKS] = "logprobs_json"
    return said


def _place(raw: str, start: int, end: int) -> dict[str, object]:
    """The characters a number came from, and the words around them."""
    around = raw[max(0, start - _N_AROUND) : end + _N_AROUND]
    return {"span": [start, end], "text": raw[start:end], "in": around}


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


def _check_items(items: object, number: int) -> None:
    """Answers are printed by the items' ids: two of one id would be one."""
    ids = [str(item.get("id", "")) for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    if twice := [id_ for id_, n in Counter(ids).items() if n > 1]:
        raise InputError(f'line {number}: two "items" have the id {twice[0]!r}; give each another')


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
