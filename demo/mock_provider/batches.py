"""The Batch API: files, the checks an input file meets, and batches, each a task that lives through the API's statuses.

The routes are in admin_api.py.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from demo.mock_provider.faults import Draws
from demo.mock_provider.provider import Provider
from demo.mock_provider.scenario import BatchRules

_EXPIRED = {"code": "batch_expired", "message": "This request could not be executed before the completion window expired."}
_CANCELLED = {"code": "batch_cancelled", "message": "This request was not executed: its batch was cancelled."}
_FAILING = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached.", "param": None, "line": None}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file, and what the API says of it."""

    id: str
    name: str
    purpose: str
    created_at: int
    path: Path

    def as_json(self) -> dict[str, Any]:
        """The file object of the API."""
        return {
            "id": self.id, "object": "file", "bytes": self.path.stat().st_size, "created_at": self.created_at,
            "filename": self.name, "purpose": self.purpose, "status": "processed", "expires_at": None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One request of an input file."""

    custom_id: str
    body: Any


@dataclass(slots=True)
class BatchJob:
    """One batch; `stamps` are the times at which it came to each status."""

    id: str
    input: StoredFile
    endpoint: str
    metadata: dict[str, str] | None
    status: str = "validating"
    stamps: dict[str, int] = field(default_factory=dict)
    errors: list[dict[str, Any]] = field(default_factory=list)
    n_lines: int = 0
    model: str | None = None
    output: list[bytes] = field(default_factory=list)
    error_output: list[bytes] = field(default_factory=list)
    file_ids: dict[str, str] = field(default_factory=dict)
    cancel: asyncio.Event = field(default_factory=asyncio.Event)

    def as_json(self) -> dict[str, Any]:
        """The batch object of the API."""
        names = ("created", "in_progress", "expires", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
        return {
            "id": self.id, "object": "batch", "endpoint": self.endpoint, "input_file_id": self.input.id,
            "completion_window": "24h", "status": self.status, "metadata": self.metadata, "model": self.model,
            "errors": {"object": "list", "data": self.errors} if self.errors else None,
            "output_file_id": self.file_ids.get("output"), "error_file_id": self.file_ids.get("error"),
            "request_counts": {"total": self.n_lines, "completed": len(self.output), "failed": len(self.error_output)},
        } | {f"{name}_at": self.stamps.get(name) for name in names}  # fmt: skip

    def come_to(self, status: str) -> None:
        """Change the status."""
        self.status = status
        self.stamps[status] = int(time.time())


class Batches:
    """All files and batches of one provider. `folder` takes the files."""

    def __init__(self, provider: Provider, folder: Path) -> None:
        self._provider, self._folder = provider, folder
        self.rules = provider.scenario.batch
        self.files: dict[str, StoredFile] = {}
        self.batches: dict[str, BatchJob] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def new_path(self) -> Path:
        """Where the next upload may be written."""
        return self._folder / f"upload-{len(self.files)}-{time.monotonic_ns()}"

    def keep(self, path: Path, name: str, purpose: str) -> StoredFile:
        """A file the provider has from now on."""
        stored = StoredFile(f"file-{_name(len(self.files))}", name, purpose, int(time.time()), path)
        self.files[stored.id] = stored
        return stored

    def create(self, source: StoredFile, endpoint: str, metadata: dict[str, str] | None) -> BatchJob:
        """A new batch, on its way from now on."""
        batch = BatchJob(f"batch_{_name(len(self.batches))}", source, endpoint, metadata)
        batch.stamps = {"created": int(time.time()), "expires": int(time.time() + self._real_s(self.rules.window_s))}
        is_failing = len(self.batches) < self.rules.n_failing
        self.batches[batch.id] = batch
        task = asyncio.create_task(self._live(batch, is_failing=is_failing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return batch

    async def close(self) -> None:
        """Stop all batches where they are."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _live(self, batch: BatchJob, *, is_failing: bool) -> None:
        """Validate, answer line by line until the last, the window's end or a cancellation, then write the files."""
        started_s = time.monotonic()
        await self._wait_until(batch, started_s + self._real_s(self.rules.validating_s))
        lines, batch.errors = read_lines(batch.input.path, batch.endpoint, self.rules)
        if is_failing:
            batch.errors = [_FAILING]
        if batch.errors:
            batch.come_to("failed")
            return
        batch.n_lines, batch.model = len(lines), lines[0].body.get("model")
        left: list[BatchRequest] = lines
        if not batch.cancel.is_set():
            batch.come_to("in_progress")
            left = await self._answer_lines(batch, lines, started_s)
        is_late = bool(left) and not batch.cancel.is_set()
        if not is_late and not batch.cancel.is_set():
            batch.come_to("finalizing")
        why = _EXPIRED if is_late else _CANCELLED
        batch.error_output += [self._output_line(batch, line, None, why) for line in left]
        await asyncio.sleep(self._real_s(self.rules.finalizing_s))
        self._write(batch)
        batch.come_to("expired" if is_late else "cancelled" if batch.cancel.is_set() else "completed")

    async def _answer_lines(self, batch: BatchJob, lines: list[BatchRequest], started_s: float) -> list[BatchRequest]:
        """Answer the lines in an order of the provider's own, evenly over the time; returns those it did not come to.

        Which lines the window cuts off follows from the scenario's times alone, so a slow machine cuts off no others.
        """
        rules, seed = self.rules, self._provider.scenario.seed
        order = sorted(lines, key=lambda line: Draws(seed, line.custom_id.encode(), 0).share("order"))
        for index, line in enumerate(order):
            due_s = rules.validating_s + rules.in_progress_s * (index + 1) / len(order)
            await self._wait_until(batch, started_s + self._real_s(min(due_s, rules.window_s)))
            if batch.cancel.is_set() or due_s > rules.window_s:
                return order[index:]
            status, body = self._provider.answer_line(line.body)
            output = batch.output if status == 200 else batch.error_output
            output.append(self._output_line(batch, line, {"status_code": status, "body": body}, None))
        return []

    async def _wait_until(self, batch: BatchJob, due_s: float) -> None:
        """Wait for a time of the monotonic clock, or for the batch to be cancelled."""
        wait_s = due_s - time.monotonic()
        if wait_s <= 0:
            await asyncio.sleep(0)
        else:
            with suppress(TimeoutError):
                await asyncio.wait_for(batch.cancel.wait(), wait_s)

    def _output_line(
        self, batch: BatchJob, line: BatchRequest, response: dict[str, Any] | None, error: dict[str, Any] | None
    ) -> bytes:
        number = len(batch.output) + len(batch.error_output)
        name = sha256(f"{batch.id} {line.custom_id} {number}".encode()).hexdigest()[:24]
        answered = response and {"status_code": response["status_code"], "request_id": f"req_{name}", "body": response["body"]}
        content = {"id": f"batch_req_{name}", "custom_id": line.custom_id, "response": answered, "error": error}
        return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)

    def _write(self, batch: BatchJob) -> None:
        for kind, lines in (("output", batch.output), ("error", batch.error_output)):
            if lines:
                path = self.new_path()
                path.write_bytes(b"".join(lines))
                batch.file_ids[kind] = self.keep(path, f"{batch.id}_{kind}.jsonl", "batch_output").id

    def _real_s(self, seconds: float) -> float:
        return seconds / self.rules.time_scale


def _name(number: int) -> str:
    """A name such as the API gives: not to be guessed at, and not a count."""
    return sha256(f"{number} {time.time_ns()}".encode()).hexdigest()[:24]


def read_lines(path: Path, endpoint: str, rules: BatchRules) -> tuple[list[BatchRequest], list[dict[str, Any]]]:
    """The requests of an input file, or what is wrong with it: then nothing of the file is done."""
    lines: list[BatchRequest] = []
    problems: list[dict[str, Any]] = []
    seen: set[str] = set()
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if number > rules.max_lines:
                return [], [_problem("too_many_requests", f"the file has more than {rules.max_lines} requests", None)]
            found = _read_line(raw, endpoint, number)
            if isinstance(found, dict):
                problems.append(found)
            elif found.custom_id in seen:
                problems.append(_problem("duplicate_custom_id", f"duplicate custom_id {found.custom_id!r}", number))
            else:
                seen.add(found.custom_id)
                lines.append(found)
    models = {line.body.get("model") for line in lines}
    if len(models) > 1:
        problems.append(_problem("mismatched_model", "all requests of a batch must be for the same model", None))
    if not lines and not problems:
        problems.append(_problem("empty_file", "the file has no requests", None))
    return ([], problems) if problems else (lines, [])


def _read_line(raw: bytes, endpoint: str, number: int) -> BatchRequest | dict[str, Any]:
    try:
        content = orjson.loads(raw)
    except ValueError:
        return _problem("invalid_json_line", "this line is not JSON", number)
    if not isinstance(content, dict) or not isinstance(content.get("body"), dict):
        return _problem("invalid_request", "a line is an object with custom_id, method, url and body", number)
    custom_id = content.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id:
        return _problem("missing_required_parameter", "custom_id is missing", number)
    if content.get("method") != "POST":
        return _problem("invalid_method", "method must be POST", number)
    if content.get("url") != endpoint:
        return _problem("invalid_url", f"the url must be the batch's endpoint, {endpoint}", number)
    return BatchRequest(custom_id, content["body"])


def _problem(code: str, message: str, line: int | None) -> dict[str, Any]:
    return {"code": code, "message": message, "param": None, "line": line}
