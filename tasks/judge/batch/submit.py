"""From requests the ledger lacks to batches at the provider: claimed, written into files up to the limits, handed over."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO

import orjson
import polars as pl

from schemas.statuses.rows import ReplyStatus
from tasks.judge.batch.state import Batch, BatchRules, BatchState, ClaimsLostError, LostHoldError, custom_id, declare, hold
from tasks.judge.batch.state_machine import BatchMachine
from tasks.judge.batch.usage import BatchUsage
from tasks.judge.part_pictures import PartPictures
from tasks.judge.pictures import digests_of
from tasks.judge.work_queue import PlannedRequests, QueuedRequest
from tasks.lake.atomic_files import store_error
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger


@dataclass(slots=True)
class RequestFile:
    """A file of requests being written, to be discarded in the end. `ask_indexes`: by request key."""

    path: Path
    max_bytes: int
    max_lines: int
    ask_indexes: dict[str, int] = field(default_factory=dict)
    n_bytes: int = 0
    _file: IO[bytes] = field(init=False)

    def __post_init__(self) -> None:
        with store_error(f"writing {self.path}"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb")

    def add(self, request_key: str, ask_index: int, line: bytes) -> bool:
        """Write one line; False, and nothing written, where it does not fit in any more."""
        if len(self.ask_indexes) >= self.max_lines or self.n_bytes + len(line) > self.max_bytes:
            return False
        with store_error(f"writing {self.path}"):
            self._file.write(line)
        self.ask_indexes[request_key] = ask_index
        self.n_bytes += len(line)
        return True

    def finish(self) -> None:
        """Nothing more is added."""
        with store_error(f"writing {self.path}"):
            self._file.close()

    def discard(self) -> None:
        """Remove it from the disk."""
        self._file.close()
        self.path.unlink(missing_ok=True)


@dataclass(slots=True)
class Submitter:
    """Makes batches of requests and hands them to the provider. `left_out`: requests that are not asked in this run.

    `usage`: where there is a budget, it sets aside what requests may cost at worst. `refused`: those it had no room for last.
    """

    ledger: Ledger
    requests: PlannedRequests
    claims: Claims
    machine: BatchMachine
    rules: BatchRules
    usage: BatchUsage | None = None
    n_declared: int = 0
    n_elsewhere: int = 0  # of the last round's requests, those that another process is asking
    left_out: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    on_step: Callable[[Batch], None] | None = None
    before_next: Callable[[], Awaitable[None]] | None = None  # what is done between two batches; it may raise
    _file: RequestFile | None = None
    _reserved_nusd: dict[str, int] = field(default_factory=dict)  # of requests that are in no batch yet

    async def submit(self, keys: Collection[str]) -> int:
        """Hand over what can be claimed of these requests, a batch for each file; returns how many lines that was."""
        n_before, self.n_elsewhere = self.n_declared, 0
        self.refused.clear()
        try:
            with closing(self.requests.blocks(keys)) as blocks:
                for rows, pictures in blocks:
                    queued = await self._claim(rows)
                    affordable = self._within_budget(queued, pictures)
                    if len(affordable) < len(queued):
                        await self.claims.give_back(*(request.request_key for request in queued[len(affordable) :]))
                    for request in affordable:
                        await self._add(request, pictures)
                        await asyncio.sleep(0)  # claims are renewed meanwhile
            if self._file is not None and self._file.ask_indexes:  # else none fits into a file
                await self._hand_over(self._file)
        finally:
            if self._file is not None:
                self._file.discard()
                self._file = None
            if self.usage is not None:
                await self.usage.unreserve(sum(self._reserved_nusd.values()))
                self._reserved_nusd.clear()
        return self.n_declared - n_before

    async def _claim(self, rows: pl.DataFrame) -> list[QueuedRequest]:
        """The requests among these rows that are ours to ask."""
        taken = await self.claims.take(rows["request_key"].to_list())
        self.n_elsewhere += len(taken.elsewhere)
        ours = (QueuedRequest(*row) for row in rows.iter_rows() if row[0] in taken.ours)
        queued = (replace(request, ask_index=int(request.request_key in taken.due)) for request in ours)
        is_used_up = self.machine.collector.is_used_up
        return [request for request in queued if not is_used_up(request.request_key, request.ask_index)]

    def _within_budget(self, queued: list[QueuedRequest], pictures: PartPictures) -> list[QueuedRequest]:
        if self.usage is None or not queued:
            return queued
        reserved = [] if self.refused else self.usage.reserve(queued, pictures)
        affordable = queued[: len(reserved)]
        self._reserved_nusd.update(zip((request.request_key for request in affordable), reserved, strict=True))
        self.refused.update(request.request_key for request in queued[len(reserved) :])
        return affordable

    async def _add(self, request: QueuedRequest, pictures: PartPictures) -> None:
        """One line into the file that is being written, or into the next one where it does not fit in any more."""
        shown = [pictures(digest) for digest in digests_of(request.messages_json)]
        parameters, messages = orjson.loads(request.parameters_json), orjson.loads(request.messages_json)
        payload = self.machine.provider.payload(parameters, messages, shown)
        line = self.machine.api.line(custom_id(request.request_key, request.ask_index), payload)
        while True:
            if self._file is None:
                path = self.machine.folder / f"batch-{uuid.uuid4().hex}.jsonl"
                self._file = RequestFile(path, self.rules.max_file_bytes, self.rules.max_lines)
            if self._file.add(request.request_key, request.ask_index, line):
                return
            if not self._file.ask_indexes:
                await self._leave_out(request, len(line))
                return
            await self._hand_over(self._file)
            if self.before_next is not None:
                await self.before_next()

    async def _leave_out(self, request: QueuedRequest, n_bytes: int) -> None:
        why = f'{n_bytes} bytes do not fit into a batch file of {self.rules.max_file_bytes}; send it online (mode = "online")'
        attempt_id = await self.ledger.begin(request.request_key, request.ask_index, self.machine.provider.judge.id)
        await self.ledger.fail(attempt_id, ReplyStatus.NOT_ASKED, why)
        self.left_out.add(request.request_key)
        await self.claims.give_back(request.request_key)

    async def _hand_over(self, file: RequestFile) -> None:
        """Declare a batch of this file and see it through to its creation."""
        self._file = None
        judge, token = self.machine.provider.judge, self.ledger.machine.token_hex(16)
        try:
            file.finish()
            batch = Batch(
                token=token,
                endpoint=self.machine.provider.endpoint,
                api_key_env=judge.api_key_env,
                judge_model=judge.id,
                state=BatchState.INTENDED,
                n_lines=len(file.ask_indexes),
                n_bytes=file.n_bytes,
                holder_id=self.claims.owner_id,
                budget_id=None if self.usage is None else self.usage.budget_id,
            )
            # Whatever becomes of this process, its lines hold it from now on.
            held = {key: self._reserved_nusd.pop(key) for key in file.ask_indexes if key in self._reserved_nusd}
            try:
                await self.ledger.alone(partial(declare, batch=batch, ask_indexes=file.ask_indexes, reserved_nusd=held))
            except ClaimsLostError:
                self._reserved_nusd |= held
                raise
            self.n_declared += len(file.ask_indexes)
            self.machine.files[token] = file.path
            await self._until_created(token)
        except ClaimsLostError:
            self.claims.is_lost = False  # the next round takes them anew, as far as nobody else has
        finally:
            self.machine.files.pop(token, None)
            file.discard()

    async def _until_created(self, token: str) -> None:
        while True:
            batch = await self.ledger.alone(partial(hold, token=token, holder_id=self.claims.owner_id))
            if batch is None or batch.state not in (BatchState.INTENDED, BatchState.UPLOADED):
                return
            if self.on_step is not None:
                self.on_step(batch)
            with suppress(LostHoldError):  # then another process sees it through
                await self.machine.step(batch)
