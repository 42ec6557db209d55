"""From requests the ledger lacks to batches at the provider: claimed, written into files up to the limits, handed over."""

import asyncio
import secrets
import uuid
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import orjson
import polars as pl

from schemas.statuses import ReplyStatus
from tasks.judge.batch.asks import PlannedAsks
from tasks.judge.batch.backoff import BatchRules
from tasks.judge.batch.files import RequestFile
from tasks.judge.batch.results import LostHoldError
from tasks.judge.batch.state import Batch, BatchState, ClaimsLostError, declare, hold
from tasks.judge.batch.state_machine import Steps
from tasks.judge.provider.payload import request_body
from tasks.judge.shard import PartPictures
from tasks.judge.work_queue import Ask
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger

Reserve = Callable[[Sequence[Ask]], int]
"""How many of these asks, from the first on, the budget has room for; their price at worst is set aside."""


@dataclass(slots=True)
class Sender:
    """Makes batches of requests and hands them to the provider. `left_out`: requests that are not asked in this run."""

    ledger: Ledger
    asks: PlannedAsks
    claims: Claims
    steps: Steps
    folder: Path
    rules: BatchRules
    reserve: Reserve | None = None
    n_sent: int = 0
    n_elsewhere: int = 0  # of the last round's requests, those that another process is asking
    left_out: set[str] = field(default_factory=set)
    is_over_budget: bool = False
    on_step: Callable[[Batch], None] | None = None
    _file: RequestFile | None = None

    async def send(self, keys: Collection[str]) -> int:
        """Hand over what can be claimed of these requests, a batch for each file; returns how many lines that was."""
        n_before, self.n_elsewhere = self.n_sent, 0
        try:
            with closing(self.asks.blocks(keys)) as blocks:
                for rows, pictures in blocks:
                    for ask in self._within_budget(await self._claim(rows)):
                        await self._add(ask, pictures)
                        await asyncio.sleep(0)  # claims are renewed meanwhile
            if self._file is not None:
                await self._hand_over(self._file)
        finally:
            if self._file is not None:
                self._file.discard()
                self._file = None
        return self.n_sent - n_before

    async def _claim(self, rows: pl.DataFrame) -> list[Ask]:
        """The asks among these rows that are ours to make."""
        taken = await self.claims.take(rows["request_key"].to_list())
        self.n_elsewhere += len(taken.elsewhere)
        asks = (Ask(*row) for row in rows.iter_rows() if row[0] in taken.ours)
        asked = (replace(ask, ask_index=int(ask.request_key in taken.due)) for ask in asks)
        return [ask for ask in asked if not self.steps.results.collector.is_used_up(ask.request_key, ask.ask_index)]

    def _within_budget(self, asks: list[Ask]) -> list[Ask]:
        if self.reserve is None or not asks:
            return asks
        n_affordable = 0 if self.is_over_budget else self.reserve(asks)
        self.is_over_budget |= n_affordable < len(asks)
        self.left_out.update(ask.request_key for ask in asks[n_affordable:])
        return asks[:n_affordable]

    async def _add(self, ask: Ask, pictures: PartPictures) -> None:
        """One line into the file that is being written, or into the next one where it does not fit in any more."""
        picture = pictures(ask.image_sha256) if ask.image_sha256 is not None else None
        parameters, messages = orjson.loads(ask.parameters_json), orjson.loads(ask.messages_json)
        body = request_body(self.steps.client.judge.model, parameters, messages, picture)
        while True:
            if self._file is None:
                path = self.folder / f"batch-{uuid.uuid4().hex}.jsonl"
                self._file = RequestFile(path, self.rules.max_file_bytes, self.rules.max_lines)
            if self._file.add(ask.request_key, ask.ask_index, body):
                return
            if not self._file.asks:
                await self._leave_out(ask, len(body))
                return
            await self._hand_over(self._file)

    async def _leave_out(self, ask: Ask, n_bytes: int) -> None:
        why = f'{n_bytes} bytes do not fit into a batch file of {self.rules.max_file_bytes}; ask it online (mode = "online")'
        attempt_id = await self.ledger.begin(ask.request_key, ask.ask_index, self.steps.client.judge.model)
        await self.ledger.fail(attempt_id, ReplyStatus.NOT_ASKED, why)
        self.left_out.add(ask.request_key)

    async def _hand_over(self, file: RequestFile) -> None:
        """Declare a batch of this file and see it through to its creation."""
        self._file = None
        judge, token = self.steps.client.judge, secrets.token_hex(16)
        try:
            file.finish()
            batch = Batch(
                token=token,
                endpoint=self.steps.client.endpoint,
                api_key_env=judge.api_key_env,
                judge_model=judge.model,
                state=BatchState.INTENDED,
                n_lines=len(file.asks),
                n_bytes=file.n_bytes,
                holder_id=self.claims.owner_id,
            )
            await self.ledger.alone(partial(declare, batch=batch, asks=file.asks))
            self.n_sent += len(file.asks)
            self.steps.files[token] = file.path
            await self._until_created(token)
        except ClaimsLostError:
            self.claims.is_lost = False  # the next round takes them anew, as far as nobody else has
        finally:
            self.steps.files.pop(token, None)
            file.discard()

    async def _until_created(self, token: str) -> None:
        while True:
            batch = await self.ledger.alone(partial(hold, token=token, holder_id=self.claims.owner_id))
            if batch is None or batch.state not in (BatchState.INTENDED, BatchState.UPLOADED):
                return
            if self.on_step is not None:
                self.on_step(batch)
            with suppress(LostHoldError):  # then another process sees it through
                await self.steps.step(batch)
