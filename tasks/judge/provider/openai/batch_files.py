"""Batches on the wire: a request as a line, results read line by line, a batch object read without trust in its shape."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.batch_api import ProviderBatch
from tasks.judge.provider.batch_calls import read_result_lines
from tasks.judge.provider.exchange import Answer, Ended, NotSent, Payload
from tasks.judge.provider.failures import one_line
from tasks.judge.provider.json_bodies import count, listed, mapping, text, total
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


def read_results(
    path: Path, clean: Callable[[bytes], bytes] = bytes, on_line: Callable[[int, bool], object] | None = None
) -> Iterator[tuple[str, Ended]]:
    """(custom_id, answer) of every line of a file of results that can be told apart; see read_result_lines."""
    return read_result_lines(path, "custom_id", _answer, clean, on_line)


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
    errors = listed(mapping(content.get("errors")).get("data"))
    said = [f"{_place(error)}{error.get('code') or 'error'}: {error.get('message') or 'no message'}" for error in errors[:3]]
    more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    output, n_good = text(content.get("output_file_id")), count(counts.get("completed")) or 0
    return ProviderBatch(
        provider_id=provider_id,
        status=status,
        created_s=count(content.get("created_at")) or 0,
        output_file_id=output,
        error_file_id=text(content.get("error_file_id")),
        n_completed=n_good if status != "failed" or output else 0,  # else there are no results to wait for
        n_done=total(count(counts.get("completed")), count(counts.get("failed"))) or 0,
        problem=one_line("; ".join(said) + more) if said else "no reason given",
        is_ended=status in _ENDED,
        is_failed=status == "failed" and not (n_good or output),  # else some were worked on
        is_cancelled=status == "cancelled",
        is_over_capacity=any(text(error.get("code")) in _CAPACITY_CODES for error in errors),
    )


def _place(error: Mapping[str, Any]) -> str:
    line = error.get("line")
    return f"line {line}: " if isinstance(line, int) else ""
