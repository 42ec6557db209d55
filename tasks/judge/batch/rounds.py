"""A judge asked by batches, round after round: each open batch a step further, what is missing handed over. Called by run.py."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from schemas.errors import BatchFailedError, BatchLostError, RejectedError
from schemas.statuses.rows import ReplyStatus
from tasks.judge.batch.collect import Collector
from tasks.judge.batch.state import Batch, BatchRules, BatchState, LostHoldError, hold, keys_of, open_batches
from tasks.judge.batch.state_machine import TRANSITIONS, BatchMachine
from tasks.judge.batch.submit import Submitter
from tasks.judge.outcome import outage
from tasks.judge.retries import ENDPOINT_FAILURES
from tasks.judge.work_queue import PlannedRequests
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger

OnProgress = Callable[[str, bool], None]
"""Told how far a batch is, and whether its state is another than what was told before: else more of its lines are done."""
_SLOWER = 1.5
MOST_LEFT = 10
"""What replies give back of a budget is spent in a further round, unless the last one was but a tenth of what had no room: a
batch may take a day."""


@dataclass(slots=True)
class BatchRun:
    """One judge asked by batches, round after round. `tokens`: the batches met so far, in the order they are counted in."""

    ledger: Ledger
    requests: PlannedRequests
    claims: Claims
    submitter: Submitter
    machine: BatchMachine
    collector: Collector
    rules: BatchRules
    on_progress: OnProgress | None = None
    tokens: list[str] = field(default_factory=list)
    reported: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.submitter.on_step, self.submitter.before_next = self._meet, self._look_between

    async def run(self) -> None:
        """Ask until nothing is left that asking again would mend; without `is_asking`, only collect what is at the provider."""
        n_fruitless, n_sent, before = 0, 0, None
        await self._register()
        while True:
            await self.drive()
            await self._check_rejected()
            if self.collector.changed is not None:
                raise self.collector.changed
            if self.machine.is_refused:
                break
            self._check_forgotten()
            missing = self.missing()
            is_spent = len(self.submitter.refused) > MOST_LEFT * n_sent and not self.submitter.n_elsewhere
            now = (len(missing), self.collector.n_final)
            if before is not None:
                n_fruitless = 0 if now[0] < before[0] or now[1] > before[1] or self._halve() else n_fruitless + 1
            if not missing or not self.machine.is_asking or is_spent or n_fruitless >= self.rules.n_fruitless:
                break
            self.machine.problem = None  # what an earlier round failed of may be mended
            n_sent = await self.submitter.submit(missing)
            before = now if n_sent else None
            if not n_sent and not self.submitter.n_elsewhere:
                break
            if not n_sent:
                await asyncio.sleep(self.rules.poll_s)
        self._raise_outage(is_fruitless=n_fruitless > 0)

    def missing(self) -> set[str]:
        """The requests that are to be asked: without a reply, or with a re-ask that is owed, and not left out."""
        known = self.ledger.known(self.requests.part_of)
        due = self.ledger.reasks_due(known)
        return {
            key
            for key in self.requests.part_of
            if (key not in known or key in due)
            and key not in self.submitter.left_out
            and not self.collector.is_used_up(key, int(key in due))
        }

    async def drive(self) -> None:
        """Do the next step of every open batch with requests of ours, until there is none; those others hold are waited for."""
        n_idle, batches = 0, await self.open_batches()
        while batches:
            before = dict(self.reported)
            await self._step_all(batches)
            await self._check_rejected()
            after = await self.open_batches()
            if _states(after) == _states(batches):
                n_idle = 0 if self.reported != before else n_idle + 1
                wait_s = min(self.rules.poll_s * _SLOWER**n_idle, self.rules.poll_at_most_s)
                await asyncio.sleep(wait_s * self.ledger.machine.uniform(0.8, 1.2))  # so that processes do not look all at once
                after = await self.open_batches()
            batches = after

    async def _step_all(self, batches: Sequence[Batch]) -> None:
        if self.claims.is_lost:
            self.claims.is_lost = False
            await self._register()
        self.tokens += [batch.token for batch in batches if batch.token not in self.tokens]
        for batch in batches:
            held = await self.ledger.alone(partial(hold, token=batch.token, holder_id=self.claims.owner_id))
            self._report(held or batch, is_ours=held is not None)
            if held is not None:
                with suppress(LostHoldError):
                    await self.machine.step(held)
                self._report(held, is_ours=True)

    async def _look_between(self) -> None:
        """See, before a batch is handed over, whether the last one was rejected meanwhile."""
        await self._step_all(await self.open_batches())
        await self._check_rejected()

    async def _check_rejected(self) -> None:
        """Stop where a batch was rejected whole, in the same words; of batches handed over by an earlier run, ask once more."""
        if not self.collector.rejected:
            return
        await self.collector.forget_rejected()
        if self.submitter.n_declared or self.collector.own or not self.machine.is_asking:
            provider = self.machine.provider
            raise outage(provider.judge, provider.endpoint, ReplyStatus.REJECTED, self.collector.rejected_with)

    def _check_forgotten(self) -> None:
        """Hand over no more where the provider has just lost what this run handed over: it would lose the next one too."""
        if self.machine.absent.forgotten is not None:
            provider = self.machine.provider
            raise BatchLostError(
                f"judge {provider.judge.id} at {provider.endpoint}: {self.machine.absent.forgotten}. This run handed it "
                "over, so no other is made now. See whether the provider lists it; the same command asks its requests again"
            )

    async def open_batches(self) -> list[Batch]:
        """The batches with lines of ours that are not settled."""
        found = []
        for batch in await self.ledger.alone(partial(open_batches, judge_model=self.collector.judge_model)):
            keys = await self.ledger.alone(partial(keys_of, token=batch.token))
            if any(key in self.requests.part_of for key in keys):
                found.append(batch)
        return found

    async def _register(self) -> None:
        """Become an owner, of no claim yet, so that others see that this process lives."""
        await self.claims.take(())

    def _halve(self) -> bool:
        """After batches that were too much at once, smaller ones; whether there are such."""
        if not self.machine.over_capacity:
            return False
        max_lines = max(1, min(self.machine.over_capacity) // 2)
        is_smaller = max_lines < self.submitter.rules.max_lines
        self.submitter.rules = replace(self.submitter.rules, max_lines=min(max_lines, self.submitter.rules.max_lines))
        self.machine.over_capacity.clear()
        return is_smaller

    def _meet(self, batch: Batch) -> None:
        """A new batch, at a step before its creation."""
        if batch.token not in self.tokens:
            self.tokens.append(batch.token)
        self._report(batch, is_ours=True)

    def _report(self, batch: Batch, *, is_ours: bool) -> None:
        seen = self.machine.seen.get(batch.token)
        if not is_ours:
            state, far = "handled by another process", f", {batch.n_lines:,} lines"
        elif seen:
            state, far = seen.status, f", {seen.n_done:,} of {batch.n_lines:,}"
        else:
            state, far = TRANSITIONS[batch.state].meaning, ""
        text = f"batch {self.tokens.index(batch.token) + 1} of {len(self.tokens)}: {state}{far}"
        before = self.reported.get(batch.token)
        self.reported[batch.token] = (state, text)
        if self.on_progress is not None and before != (state, text):
            self.on_progress(text, before is None or before[0] != state)

    def _raise_outage(self, *, is_fruitless: bool) -> None:
        """Raise where the batches, or the endpoint, are what fails."""
        judge, endpoint = self.machine.provider.judge, self.machine.provider.endpoint
        if (is_fruitless or self.machine.is_refused) and self.machine.problem is not None:
            raise (RejectedError if self.machine.is_refused else BatchFailedError)(
                f"judge {judge.id} at {endpoint}: {self.machine.problem}. Replies already stored are kept; "
                'fix this and run the same command again, or set mode = "online"'
            )
        failure, ended = self.collector.last_failure, self.collector.ended
        if failure is not None and ended and set(ended.values()) <= ENDPOINT_FAILURES:
            raise outage(judge, endpoint, failure.status, failure.detail)


def _states(batches: Sequence[Batch]) -> list[tuple[str, BatchState]]:
    return [(batch.token, batch.state) for batch in batches]
