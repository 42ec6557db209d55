"""Batches on the wire: a request as a line, results read line by line, a batch object read without trust in its shape."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import orjson

from schemas.input_budget import JSON_LEVELS, REPLY_BYTES, is_too_deep
from schemas.statuses import ReplyStatus
from tasks.judge.provider.base import Answer, Ended, NotSent, Payload, ProviderBatch
from tasks.judge.provider.openai.completions import AmbiguousError, refuse_repeated_keys
from tasks.judge.provider.openai.failures import one_line
from tasks.judge.provider.openai.responses import read_answer

ASKED_PATH = "/v1/chat/completions"
TOKEN_NAME = "salon_batch"  # noqa: S105 - the name of a piece of metadata, no secret
"""The metadata by which a batch is found whose creation was never heard of."""

_NOT_WORKED_ON = frozenset({"batch_expired", "batch_cancelled"})
_BEGINNING = b'{"custom_id":"%b","method":"POST","url":"' + ASKED_PATH.encode() + b'","body":'
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_CAPACITY_CODES = frozenset({"token_limit_exceeded"})
"""Why a batch failed that would have been taken had less been enqueued."""


def request_line(custom_id: str, payload: Payload) -> bytes:
    """One request as a line of a batch's file."""
    return b"".join((_BEGINNING % custom_id.encode(), *payload, b"}\n"))


def read_results(path: Path, clean: Callable[[bytes], bytes] = bytes) -> Iterator[tuple[str, Ended]]:
    """(custom_id, answer) of every line of a file of results that can be told apart. Lines without that are passed over.

    `clean` takes secrets out of a line before it is read: an answer holds no more than the beginning of some texts.
    """
    with path.open("rb") as file:
        while line := file.readline(REPLY_BYTES):
            if len(line) == REPLY_BYTES and not line.endswith(b"\n"):
                _skip_line(file)
                continue
            found = _result(clean(line))
            if found is not None:
                yield found


def _skip_line(file: IO[bytes]) -> None:
    while (piece := file.readline(2**20)) and not piece.endswith(b"\n"):
        pass


def _result(line: bytes) -> tuple[str, Ended] | None:
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    name = text(mapping(content).get("custom_id"))
    if name is None:
        return None
    if is_too_deep(content):
        return name, Answer(ReplyStatus.BAD_RESPONSE, f"a line nested in more than {JSON_LEVELS} levels")
    try:
        refuse_repeated_keys(line)
    except AmbiguousError as error:
        return name, Answer(ReplyStatus.BAD_RESPONSE, one_line(f"a line that says two things: {error}"))
    return name, _answer(content)


def _answer(content: dict[str, Any]) -> Ended:
    """The answer a line holds, by the same reading as online: a response, or why there is none."""
    response, error = content.get("response"), mapping(content.get("error"))
    if isinstance(response, dict):
        status_code = response.get("status_code")
        if isinstance(status_code, int) and 100 <= status_code < 600:
            return read_answer(status_code, {}, orjson.dumps(response.get("body")))
        return Answer(ReplyStatus.BAD_RESPONSE, one_line(f"a line whose status_code is {status_code!r:.40}"))
    code, said = text(error.get("code")), one_line(f"{error.get('code') or 'error'}: {error.get('message') or 'no message'}")
    if code in _NOT_WORKED_ON:
        return NotSent(said)
    if error:
        return Answer(ReplyStatus.SERVER_ERROR, said)
    return Answer(ReplyStatus.BAD_RESPONSE, "a line with neither a response nor an error")


def read_batch(content: Mapping[str, Any]) -> ProviderBatch | None:
    """A batch object of the API; None where it has no id or no status."""
    provider_id, status = text(content.get("id")), text(content.get("status"))
    if provider_id is None or status is None:
        return None
    counts = mapping(content.get("request_counts"))
    listed = mapping(content.get("errors")).get("data")
    errors = [mapping(error) for error in listed] if isinstance(listed, list) else []
    said = [f"{_place(error)}{error.get('code') or 'error'}: {error.get('message') or 'no message'}" for error in errors[:3]]
    more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    return ProviderBatch(
        provider_id=provider_id,
        status=status,
        created_s=count(content.get("created_at")),
        output_file_id=text(content.get("output_file_id")),
        error_file_id=text(content.get("error_file_id")),
        n_completed=count(counts.get("completed")),
        n_done=count(counts.get("completed")) + count(counts.get("failed")),
        problem=one_line("; ".join(said) + more) if said else "no reason given",
        is_ended=status in _ENDED,
        is_failed=status == "failed",
        is_cancelled=status == "cancelled",
        is_over_capacity=any(text(error.get("code")) in _CAPACITY_CODES for error in errors),
    )


def text(value: object) -> str | None:
    """A short text that is not empty, else None."""
    return value if isinstance(value, str) and 0 < len(value) <= 200 else None


def count(value: object) -> int:
    """A number of things; 0 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def _place(error: Mapping[str, Any]) -> str:
    line = error.get("line")
    return f"line {line}: " if isinstance(line, int) else ""
