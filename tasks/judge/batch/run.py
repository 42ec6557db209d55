"""A judge asked through its provider's Batch API: what a flow calls. See docs/batch.md."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from schemas.benchmark import Judge, Limits
from schemas.errors import InputError, ProviderError
from schemas.records import JudgeReply, PlannedPart
from schemas.statuses import FINAL_REPLY_STATUSES, ReplyStatus
from tasks.context import StageContext
from tasks.judge.batch.collect import Collector
from tasks.judge.batch.state import (
    AUTO_AT_LEAST,
    Batch,
    BatchRules,
    BatchState,
    hold,
    keys_of,
    lines_of,
    open_batches,
    release_lines,
)
from tasks.judge.batch.state_machine import BatchMachine, LostHoldError
from tasks.judge.batch.submit import Submitter
from tasks.judge.budget.budget import reserve_for_good
from tasks.judge.budget.cost import Costs
from tasks.judge.model_pin import ModelPin
from tasks.judge.outcome import Outcome, outage
from tasks.judge.provider.base import BatchApi, CallFailedError, Provider, provider_of
from tasks.judge.retries import ENDPOINT_FAILURES
from tasks.judge.work_queue import PlannedRequests, QueuedRequest
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger, opened

OnProgress = Callable[[str], None]
_SLOWER = 1.5


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
    reported: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.submitter.on_step, self.submitter.before_next = self._meet, self._look_between

    async def run(self) -> None:
        """Ask until nothing is left that asking again would mend; without `is_asking`, only collect what is at the provider."""
        n_fruitless, before = 0, None
        await self._register()
        while True:
            await self.drive()
            await self._check_rejected()
            if self.collector.changed is not None:
                raise self.collector.changed
            missing = self.missing()
            now = (len(missing), self.collector.n_final)
            if before is not None:
                n_fruitless = 0 if now[0] < before[0] or now[1] > before[1] or self._halve() else n_fruitless + 1
            if not missing or not self.machine.is_asking or n_fruitless >= self.rules.n_fruitless:
                break
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
                await asyncio.sleep(wait_s * random.uniform(0.8, 1.2))  # noqa: S311 - so that processes do not look all at once
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
        if self.submitter.n_sent or not self.machine.is_asking:
            provider = self.machine.provider
            raise outage(provider.judge, provider.endpoint, ReplyStatus.REJECTED, self.collector.rejected_with)

    async def open_batches(self) -> list[Batch]:
        """The batches with lines of ours that are not settled."""
        found = []
        for batch in await self.ledger.alone(partial(open_batches, judge_model=self.collector.judge_model)):
            keys = await self.ledger.alone(partial(keys_of, token=batch.token))
            if any(key in self.requests.part_of for key in keys):
                found.append(batch)
        return found

    async def _register(self) -> None:
        """Become an owner of claims, so that others see that this process lives."""
        await self.claims.take(sorted(self.requests.part_of)[:1])

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
        what = self.machine.progress(batch) if is_ours else f"another process looks after it, {batch.n_lines:,} lines"
        text = f"batch {self.tokens.index(batch.token) + 1} of {len(self.tokens)}: {what}"
        if self.reported.get(batch.token) != text:
            self.reported[batch.token] = text
            if self.on_progress is not None:
                self.on_progress(text)

    def _raise_outage(self, *, is_fruitless: bool) -> None:
        """Raise where the batches, or the endpoint, are what fails."""
        judge, endpoint = self.machine.provider.judge, self.machine.provider.endpoint
        if is_fruitless and self.machine.problem is not None:
            raise ProviderError(
                f"judge {judge.id} at {endpoint}: {self.machine.problem}. Replies already stored are kept; "
                'mend it and run the same command again, or set mode = "online"'
            )
        failure, ended = self.collector.last_failure, self.collector.ended
        if failure is not None and ended and set(ended.values()) <= ENDPOINT_FAILURES:
            raise outage(judge, endpoint, failure.status, failure.detail)


def _states(batches: Sequence[Batch]) -> list[tuple[str, BatchState]]:
    return [(batch.token, batch.state) for batch in batches]


STOP_POLL_S = 0.1
CALL_DEADLINE_S = 60.0
RULES = BatchRules()


def is_by_batch(judge: Judge, n_to_ask: int, *, at_least: int = AUTO_AT_LEAST) -> bool:
    """Whether this many requests go through the Batch API: as the judge's mode says, and for auto as the endpoint does.

    For auto there must be `at_least` so many, and the endpoint is asked whether it offers one. Raises MissingKeyError.
    """
    if judge.mode != "auto":
        return judge.mode == "batch"
    return n_to_ask >= at_least and asyncio.run(_is_offered(judge))


def is_under_way(judge_model: str, ledger_url: str) -> bool:
    """Whether requests to this judge are with a Batch API, whoever handed them over."""
    with opened(ledger_url) as ledger:
        return bool(ledger.read(partial(open_batches, judge_model=judge_model)))


@dataclass(frozen=True, slots=True)
class JudgeByBatch:
    """Parts of one judge to ask by its Batch API; without `is_asking`, only what is under way there is fetched.

    `on_reply` and `on_progress` are called in the calling thread.
    """

    parts: Sequence[PlannedPart]
    limits: Limits
    on_reply: Callable[[JudgeReply], None] | None = None
    on_progress: OnProgress | None = None
    is_asking: bool = True

    @property
    def judge_model(self) -> str:
        """The judge that all parts are for."""
        return self.parts[0].judge_model


def judge_by_batch(
    context: StageContext, asked: JudgeByBatch, stop: threading.Event | None = None, rules: BatchRules = RULES
) -> Outcome:
    """Ask what the ledger lacks of these parts' requests.

    `stop` leaves batches at the provider (`Outcome.n_in_flight`); the same call again collects them.
    Raises MissingKeyError, InputError, ProviderError, StoreError.
    """
    judge, ids, limits = context.judge(asked.judge_model), context.ids, asked.limits
    with opened(context.ledger_url) as ledger:
        requests = PlannedRequests(context, asked.parts)
        n_in_flight, n_done = _n_in_flight(ledger, requests, judge.id), len(_done(ledger, requests))
        if not n_in_flight and not (asked.is_asking and n_done < len(requests.part_of)):
            return Outcome(n_requests=len(requests.part_of), n_cached=n_done)
        declared = max(context.rubrics[part.rubric_id].n_output_tokens_expected for part in asked.parts)
        costs = Costs(judge, declared, is_batch=True)

        def reserve(queued: Sequence[QueuedRequest]) -> int:
            """Nothing set aside is given back: the replies may come in another run. A picture counts at the largest size."""
            each = (costs.estimate(one.messages_json, one.parameters_json, one.image_sha256) for one in queued)
            return reserve_for_good(ledger, ids.run_id, limits.max_usd or 0.0, [one.worst_usd or 0.0 for one in each])

        async def work() -> Outcome:
            provider = provider_of(judge)(judge, 1, limits.deadline_s)
            pin, most = ModelPin(ledger, ids.plan_id, judge), limits.attempts_per_request
            collector = Collector(ledger, requests, judge.id, pin, most, costs.cost_usd, asked.on_reply)
            machine = BatchMachine(
                ledger, provider, _api_of(provider), collector, rules, context.lake.root / "staging", asked.is_asking
            )
            claims = Claims(ledger)
            submitter = Submitter(ledger, requests, claims, machine, rules, reserve if limits.max_usd is not None else None)
            run = BatchRun(ledger, requests, claims, submitter, machine, collector, rules, asked.on_progress)
            is_stopped = await _until_stopped(run, stop)
            return _outcome(ledger, run, judge.id, is_stopped=is_stopped)

        return asyncio.run(work())


def _api_of(provider: Provider) -> BatchApi:
    if provider.batch is None:
        raise InputError(f'judge {provider.judge.id}: {provider.endpoint} has no Batch API; set mode = "online"')
    return provider.batch


async def _until_stopped(run: BatchRun, stop: threading.Event | None) -> bool:
    """Run the rounds; True where `stop` ended them. What is durable by then is all that is needed to go on."""
    provider, beside = run.machine.provider, asyncio.create_task(run.claims.renew())
    work = asyncio.create_task(run.run())
    try:
        while not work.done() and not (stop is not None and stop.is_set()):
            await asyncio.wait({work}, timeout=STOP_POLL_S)
        is_stopped = not work.done()
        if is_stopped:
            work.cancel()
            await asyncio.wait({work})
        if not work.cancelled():
            work.result()
    except CallFailedError as error:
        raise outage(provider.judge, provider.endpoint, error.answer.status, error.answer.detail) from error
    else:
        return is_stopped
    finally:
        beside.cancel()
        await run.collector.finish()
        await run.claims.release()
        await provider.close()


async def _is_offered(judge: Judge) -> bool:
    provider = provider_of(judge)(judge, 1, CALL_DEADLINE_S)
    try:
        return provider.batch is not None and await provider.batch.is_offered()
    finally:
        await provider.close()


def _done(ledger: Ledger, requests: PlannedRequests) -> set[str]:
    """The requests that need nothing more."""
    known = ledger.known(requests.part_of)
    return known - ledger.reasks_due(known)


def _n_in_flight(ledger: Ledger, requests: PlannedRequests, judge_model: str) -> int:
    """Requests of ours that are in a batch and have no reply yet. Lines whose reply a killed run stored are let go."""
    n_in_flight = 0
    for batch in ledger.read(partial(open_batches, judge_model=judge_model)):
        lines = ledger.read(partial(lines_of, token=batch.token))
        ours = [line for line in lines if line.request_key in requests.part_of]
        stored = [line.request_key for line in ours if line.is_stored]
        n_in_flight += len(ours) - len(stored)
        if stored:
            ledger.alone_now(partial(release_lines, token=batch.token, keys=stored))
    return n_in_flight


def _outcome(ledger: Ledger, run: BatchRun, judge_model: str, *, is_stopped: bool) -> Outcome:
    """The counts of a run. What other processes bought meanwhile counts as cached."""
    outcome, ended, done = run.collector.outcome, run.collector.ended, _done(ledger, run.requests)
    outcome.n_requests = len(run.requests.part_of)
    outcome.n_asked = run.submitter.n_sent
    outcome.n_by_status = Counter(status.value for status in ended.values())
    outcome.n_by_status.update([ReplyStatus.NOT_ASKED.value] * len(run.submitter.left_out))
    outcome.n_cached = len(done) - sum(status in FINAL_REPLY_STATUSES and key in done for key, status in ended.items())
    outcome.n_in_flight = _n_in_flight(ledger, run.requests, judge_model)
    outcome.is_stopped = is_stopped
    return outcome
