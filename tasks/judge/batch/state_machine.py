"""The state machine of one batch: what is done in each state, and where that may lead. Its results: results.py.

Each state is durable before the next action: any process goes on, and asks the provider first what a kill or lost reply left.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from schemas.errors import BatchCancelledError, InputError
from schemas.statuses.rows import ReplyStatus
from tasks.judge.batch.absence import Absences, saying_away
from tasks.judge.batch.collect import RESULTS_LOST, Collector
from tasks.judge.batch.results import ResultFiles
from tasks.judge.batch.state import Batch, BatchRules, BatchState, LostHoldError, batch_of, change, check_is_here, keys_of
from tasks.judge.provider.base import Provider
from tasks.judge.provider.batch_api import BatchApi, CallFailedError, ProviderBatch, UndecidedError
from tasks.judge.provider.exchange import InDoubt, NotSent
from tasks.judge.retries import MAX_RETRY_AFTER_S, RETRIES, CallBackoff
from tasks.ledger.ledger import Ledger
from tasks.ledger.statements import now_us

N_CREATIONS = 3  # of one batch without a word from the provider, after which the run gives up


@dataclass(slots=True)
class BatchMachine:
    """Does the next step of batches this process holds. Without `is_asking`, what the provider does not have is given back.

    `files`: those on this disk, by token; `seen`: the last look at each batch; `problem`: why the last failed as a whole;
    `over_capacity`: the lines of batches that failed for being too much at once.
    """

    ledger: Ledger
    provider: Provider
    api: BatchApi
    collector: Collector
    rules: BatchRules
    folder: Path
    is_asking: bool = True
    on_look: Callable[[], object] = lambda: None  # told each time the provider says how it is with a batch
    say: Callable[[str], object] = lambda _: None  # what people are to know while they wait
    files: dict[str, Path] = field(default_factory=dict)
    seen: dict[str, ProviderBatch] = field(default_factory=dict)
    over_capacity: list[int] = field(default_factory=list)
    problem: str | None = None
    is_refused: bool = False  # the provider calls a creation invalid: the same one again would end the same way
    _n_refused: Counter[str] = field(default_factory=Counter)
    absent: Absences = field(init=False)
    _sought_s: dict[tuple[str, int | None], float] = field(default_factory=dict)  # since when a creation is looked for
    _backoff: CallBackoff = field(init=False)
    _results: ResultFiles = field(init=False)

    def __post_init__(self) -> None:
        rules, on_wait = self.rules, saying_away(self.provider.judge.id, self.say)
        self._backoff = CallBackoff(rules.patience_s, rules.first_patience_s, self.ledger.machine.uniform, on_wait=on_wait)
        self.absent = Absences(rules.patience_s, self.say)
        self._results = ResultFiles(self.api, self.collector, self._backoff, self.folder, Absences(rules.patience_s, self.say))

    async def step(self, batch: Batch) -> None:
        """One step of a batch that is held. Raises CallFailedError, LostHoldError, ProviderError, InputError, StoreError."""
        check_is_here(batch, self.provider)
        await TRANSITIONS[batch.state].act(self, batch)

    async def upload(self, batch: Batch) -> None:
        """Send the file; where the process that wrote it is gone, look whether it had arrived."""
        path = self.files.get(batch.token)
        found = partial(self.api.find_file, batch.file_name, batch.n_bytes) if path is None else partial(self._send, path, batch)
        file_id = await self._backoff.until_done(found)
        if file_id is None:
            await self._give_up(batch, NotSent("the process stopped before its file was uploaded"))
        else:
            await self._move(batch, BatchState.UPLOADED, file_id=file_id)

    async def create(self, batch: Batch) -> None:
        """Create the batch of an uploaded file."""
        if not self.is_asking:
            await self._give_up(batch, NotSent("the process stopped before its batch was created"))
            return
        batch = await self._move(batch, BatchState.CREATING, create_sent_at_us=await self.ledger.alone(now_us))
        try:
            seen = await self.api.create(batch.file_id or "", batch.token)
        except CallFailedError as error:
            await self._not_created(batch, error)
            return
        except asyncio.CancelledError:  # told to stop amid the call: it may have been created
            self.collector.hand_over(batch.token, batch.n_lines)
            raise
        self.collector.hand_over(batch.token, batch.n_lines)
        try:
            await self._adopt(batch, seen)
        except LostHoldError:  # this process was thought dead in between: another may have created the batch once more
            now = await self.ledger.alone(partial(batch_of, token=batch.token))
            if now is not None and now.provider_id not in (None, seen.provider_id):
                await self._cancel(seen)
            raise

    async def find(self, batch: Batch) -> None:
        """Look for a batch that may have been created; where it never was, and cannot be under way, create it."""
        since_s = batch.intended_at_us // 1_000_000 - 3600  # clocks differ
        sought_s = self._sought_s.setdefault((batch.token, batch.create_sent_at_us), asyncio.get_running_loop().time())
        try:
            found = await self._backoff.until_done(partial(self.api.find, batch.token, since_s, batch.n_lines))
        except UndecidedError as undecided:
            self.absent.add(batch.token) if undecided.is_lost else self.absent.forget(batch.token)
            if not self.absent.is_believed(batch.token):
                return  # the next step looks again
            found = []
        if found:
            self.absent.forget(batch.token)
            await self._adopt(batch, found[0])
            for more in found[1:]:
                await self._cancel(more)
        elif asyncio.get_running_loop().time() - sought_s > self.rules.settle_s:  # by a clock that nobody sets
            if self.absent.is_believed(batch.token):  # one that may be it has lost its results
                await self._give_up(batch, RESULTS_LOST)
            else:
                await self._move(batch, BatchState.UPLOADED, create_sent_at_us=None)

    async def look(self, batch: Batch) -> None:
        """See how far it is at the provider; where it has ended, collect its lines."""
        assert batch.provider_id is not None
        try:
            seen = await self._backoff.until_done(partial(self.api.look, batch.provider_id))
        except CallFailedError as error:
            if not error.is_absent:
                raise
            if (ended := self.absent.look(batch, error.answer.detail, batch.token in self.collector.own)) is not None:
                await self._give_up(batch, ended)
            return
        self.absent.forget(batch.token)
        self.seen[batch.token] = seen
        self.on_look()
        if seen.status == "failed":
            self.problem = f"the provider failed batch {seen.provider_id}: {seen.problem}"
            self.over_capacity += [batch.n_lines] * seen.is_over_capacity
            if seen.is_failed:
                await self._give_up(batch, NotSent(self.problem))
                return
        if seen.is_ended:
            await self._collect(batch, seen)

    async def _move(self, batch: Batch, to: BatchState, **values: Any) -> Batch:
        """Bring a batch to its next state, durably; returns it as it is then. Raises LostHoldError."""
        assert to in TRANSITIONS[batch.state].leads_to, f"{batch.state} does not lead to {to}"
        await self._change(batch, state=to.value, **values)
        return replace(batch, state=to, **values)

    async def _change(self, batch: Batch, **values: Any) -> None:
        """Change the batch's row. Raises LostHoldError."""
        if not await self.ledger.alone(partial(change, batch=batch, values=values)):
            raise LostHoldError

    async def _send(self, path: Path, batch: Batch) -> str:
        try:
            return await self.api.upload(path, batch.file_name, batch.n_bytes)
        except CallFailedError as error:
            if error.is_unsupported:
                await self._give_up(batch, NotSent("the endpoint has no Batch API"))
                raise InputError(
                    f"judge {batch.judge_model}: {batch.endpoint} has no Batch API ({error.answer.detail}); "
                    'set mode = "online", or "auto" to use it only where available'
                ) from error
            found = await self.api.find_file(batch.file_name, batch.n_bytes) if error.may_have_worked else None
            if found is None:
                raise
            return found

    async def _not_created(self, batch: Batch, error: CallFailedError) -> None:
        """Go on after a creation that failed: look for the batch, try again after a wait, or give its lines back."""
        self._n_refused[batch.token] = n_tried = self._n_refused[batch.token] + 1
        if error.may_have_worked:
            self.collector.hand_over(batch.token, batch.n_lines)
            if n_tried >= N_CREATIONS:
                raise error
            return  # the next step looks for it
        if error.is_absent or error.answer.status in (ReplyStatus.REJECTED, ReplyStatus.FILTERED):
            is_sent = error.answer.status != ReplyStatus.NOT_ASKED
            self.is_refused |= is_sent and not error.is_absent
            self.problem = f"{'the provider refused to create a' if is_sent else 'there is no'} batch: {error.answer.detail}"
            await self._give_up(batch, NotSent(self.problem))
            return
        await self._move(batch, BatchState.UPLOADED, create_sent_at_us=None)
        retry, asked_for_s = RETRIES.get(error.answer.status), error.answer.retry_after_s or 0.0
        if retry is None or n_tried >= retry.n_attempts or asked_for_s > MAX_RETRY_AFTER_S:
            raise error  # the next run creates it, of the file that is there
        await asyncio.sleep(asked_for_s + retry.wait_s(n_tried, self.ledger.machine.uniform))

    async def _adopt(self, batch: Batch, seen: ProviderBatch) -> None:
        self.seen[batch.token] = seen
        self.on_look()
        await self._move(batch, BatchState.LIVE, provider_id=seen.provider_id)

    async def _cancel(self, seen: ProviderBatch) -> None:
        with suppress(CallFailedError):
            await self.api.cancel(seen.provider_id)

    async def _collect(self, batch: Batch, seen: ProviderBatch) -> None:
        if not await self._results.collect(batch, seen):
            return  # the next step looks again
        if await self.ledger.alone(partial(keys_of, token=batch.token)):  # the lines that are left are another run's
            await self._change(batch, holder_id=None)
        if seen.is_cancelled:
            raise BatchCancelledError(
                f"judge {batch.judge_model} at {batch.endpoint}: batch {seen.provider_id} was cancelled at the provider. The "
                "replies it had are stored; run the same command again to ask the rest"
            )

    async def _give_up(self, batch: Batch, ended: NotSent | InDoubt) -> None:
        """End a batch whose lines nobody has worked on, or may have."""
        await self._change(batch, detail=(ended.detail or "").encode())
        await self.collector.give_up_whole(batch.token, ended)


@dataclass(frozen=True, slots=True)
class Transition:
    """What is done with a batch in a state, the states that may lead to, and what people are told meanwhile."""

    act: Callable[[BatchMachine, Batch], Awaitable[None]]
    leads_to: frozenset[BatchState]
    meaning: str


TRANSITIONS: Mapping[BatchState, Transition] = MappingProxyType({
    BatchState.INTENDED: Transition(
        BatchMachine.upload, frozenset({BatchState.UPLOADED, BatchState.ENDED}), "its file is being uploaded"
    ),
    BatchState.UPLOADED: Transition(
        BatchMachine.create, frozenset({BatchState.CREATING, BatchState.ENDED}), "its file is uploaded"
    ),
    BatchState.CREATING: Transition(
        BatchMachine.find,
        frozenset({BatchState.LIVE, BatchState.UPLOADED, BatchState.ENDED}), "waiting to see whether the provider has it",
    ),
    BatchState.LIVE: Transition(BatchMachine.look, frozenset({BatchState.ENDED}), "at the provider"),
})  # fmt: skip
"""Every way a batch can go. It ends, from any state, when its last line is let go of (state.release_lines)."""
