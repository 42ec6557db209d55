"""The files of a batch, read without trust: every line says something typed, or is passed over."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.input_budget import REPLY_BYTES
from schemas.statuses.rows import ReplyStatus
from tasks.judge.batch.submit import RequestFile
from tasks.judge.provider.exchange import Ended
from tasks.judge.provider.openai.batch_files import read_batch, read_results, request_line
from tasks.judge.provider.openai.client import make_payload
from tasks.judge.provider.openai.responses import read_answer

COMPLETION = {"model": "m", "choices": [{"message": {"content": "4"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def read(folder: Path, *lines: bytes) -> list[tuple[str, Ended]]:
    path = folder / "results.jsonl"
    path.write_bytes(b"\n".join(lines))
    return list(read_results(path))


def line(name: str = "a-0", **more: Any) -> bytes:
    return orjson.dumps({"id": "x", "custom_id": name, "response": None, "error": None} | more)


def response(status_code: Any, body: Any) -> dict[str, Any]:
    return {"status_code": status_code, "request_id": "r", "body": body}


ANSWERS = {
    "a completion": (line(response=response(200, COMPLETION)), ReplyStatus.ANSWERED),
    "a policy error": (line(response=response(400, {"error": {"code": "content_policy_violation"}})), ReplyStatus.FILTERED),
    "a bad request": (line(response=response(400, {"error": {"message": "no"}})), ReplyStatus.REJECTED),
    "too many": (line(response=response(429, {"error": {"code": "rate_limit_exceeded"}})), ReplyStatus.RATE_LIMITED),
    "no credit": (line(response=response(429, {"error": {"code": "insufficient_quota"}})), ReplyStatus.NO_CREDIT),
    "a server error": (line(response=response(500, None)), ReplyStatus.SERVER_ERROR),
    "a 200 that is none": (line(response=response(200, {})), ReplyStatus.BAD_RESPONSE),
    "a body that is text": (line(response=response(200, "4")), ReplyStatus.BAD_RESPONSE),
    "no status": (line(response=response(None, COMPLETION)), ReplyStatus.BAD_RESPONSE),
    "a status that is true": (line(response=response(True, COMPLETION)), ReplyStatus.BAD_RESPONSE),
    "a status of its own": (line(response=response(7_000, COMPLETION)), ReplyStatus.BAD_RESPONSE),
    "expired": (line(error={"code": "batch_expired", "message": "late"}), ReplyStatus.NOT_ASKED),
    "cancelled": (line(error={"code": "batch_cancelled", "message": "so be it"}), ReplyStatus.NOT_ASKED),
    "another error": (line(error={"code": "request_timeout", "message": "slow"}), ReplyStatus.SERVER_ERROR),
    "an error without words": (line(error={"code": 7}), ReplyStatus.SERVER_ERROR),
    "neither": (line(), ReplyStatus.BAD_RESPONSE),
}


@pytest.mark.parametrize(("written", "status"), ANSWERS.values(), ids=ANSWERS)
def test_a_line_means_what_it_means_online(tmp_path: Path, written: bytes, status: ReplyStatus) -> None:
    assert [(name, answer.status) for name, answer in read(tmp_path, written)] == [("a-0", status)]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(status_code=st.integers(100, 599), body=JSON)
def test_a_response_is_read_as_online(tmp_path: Path, status_code: int, body: Any) -> None:
    written = json.dumps({"custom_id": "a", "response": response(status_code, body)}, allow_nan=False) if is_plain(body) else None
    if written is not None:
        found = read(tmp_path, written.encode())
        assert found == [("a", read_answer(status_code, {}, orjson.dumps(orjson.loads(written)["response"]["body"])))]


def is_plain(body: Any) -> bool:
    try:
        orjson.loads(json.dumps(body, allow_nan=False))
    except ValueError:
        return False
    return True


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=st.lists(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()), max_size=6))
def test_whatever_stands_in_a_file_the_good_line_is_read(tmp_path: Path, lines: list[bytes]) -> None:
    good = line("good", response=response(200, COMPLETION))
    assert ("good", ReplyStatus.ANSWERED) in statuses(read(tmp_path, *lines, good, *lines))


def statuses(found: Iterable[tuple[str, Ended]]) -> list[tuple[str, ReplyStatus]]:
    return [(name, answer.status) for name, answer in found]


@pytest.mark.parametrize("n_more", [-1, 0, 1, 2**20])
def test_a_line_that_is_too_long_is_passed_over_alone(tmp_path: Path, n_more: int) -> None:
    good = line("good", response=response(200, COMPLETION))
    empty = len(line("long", pad=""))
    long = line("long", pad="y" * (REPLY_BYTES - 1 - empty + n_more))
    names = [name for name, _ in read(tmp_path, good, long, good)]
    assert names == (["good", "long", "good"] if n_more <= 0 else ["good", "good"])


@settings(max_examples=100, deadline=None)
@given(content=st.dictionaries(st.sampled_from(["id", "status", "errors", "request_counts", "metadata", "created_at"]), JSON))
def test_a_batch_of_any_shape_is_read_or_refused(content: dict[str, Any]) -> None:
    seen = read_batch(content)
    assert (seen is None) == (not all(isinstance(content.get(name), str) and content[name] for name in ("id", "status")))
    assert seen is None or (seen.n_done >= 0 and len(seen.problem) <= 400)


FAILED = {
    "of none": ({"total": 9, "completed": 0, "failed": 9}, None, True),
    "of some, with a file": ({"total": 9, "completed": 6, "failed": 0}, "file-1", False),
    "of some, without": ({"total": 9, "completed": 6, "failed": 0}, None, False),
}


@pytest.mark.parametrize(("counts", "file_id", "is_failed"), FAILED.values(), ids=FAILED)
def test_a_batch_that_failed_after_some_were_answered_was_worked_on(counts: Any, file_id: str | None, is_failed: bool) -> None:
    seen = read_batch({"id": "b", "status": "failed", "request_counts": counts, "output_file_id": file_id})
    assert seen is not None
    assert (seen.is_failed, seen.is_ended, seen.n_completed) == (is_failed, True, 6 if file_id else 0)


def test_what_is_wrong_with_a_batch_is_told_by_line() -> None:
    errors = [{"code": "invalid_url", "message": f"wrong {n}", "line": n} for n in range(5)]
    seen = read_batch({"id": "b", "status": "failed", "errors": {"data": errors}})
    assert seen is not None
    assert seen.problem == "line 0: invalid_url: wrong 0; line 1: invalid_url: wrong 1; line 2: invalid_url: wrong 2 (and 2 more)"


def test_a_file_of_requests_keeps_to_its_limits_and_goes(tmp_path: Path) -> None:
    first, second = "a" * 64, "b" * 64
    lines = [request_line(name, make_payload("m", {}, [], [])) for name in (f"{first}-0", f"{second}-1")]
    file = RequestFile(tmp_path / "folder" / "requests.jsonl", max_bytes=10_000, max_lines=2)
    assert [file.add(first, 0, lines[0]), file.add(second, 1, lines[1]), file.add("c" * 64, 0, lines[0])] == [True, True, False]
    file.finish()
    written = file.path.read_bytes()
    assert file.n_bytes == len(written)
    assert [json.loads(each) for each in written.splitlines()] == [
        {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": []}}
        for name in ("a" * 64 + "-0", "b" * 64 + "-1")
    ]
    exact = RequestFile(tmp_path / "exact.jsonl", max_bytes=file.n_bytes, max_lines=9)
    assert [exact.add(first, 0, lines[0]), exact.add(second, 1, lines[1])] == [True, True]
    short = RequestFile(tmp_path / "short.jsonl", max_bytes=file.n_bytes - 1, max_lines=9)
    assert [short.add(first, 0, lines[0]), short.add(second, 1, lines[1])] == [True, False]
    for each in (file, exact, short):
        each.discard()
    assert not list(tmp_path.rglob("*.jsonl"))
