"""A judge asked through its provider's Batch API: what a flow calls. See docs/batch.md."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.errors import InputError
from schemas.records import JudgeReply, PlannedPart
from schemas.statuses.rows import FINAL_REPLY_STATUSES, ReplyStatus
from tasks.context import StageContext
from tasks.judge.batch.collect import Collector
from tasks.judge.batch.rounds import BatchRun, OnProgress
from tasks.judge.batch.state import (
    AUTO_AT_LEAST,
    WITH_PROVIDER,
    BatchRules,
    lines_of,
    open_batches,
    release_lines,
)
from tasks.judge.batch.state_machine import BatchMachine
from tasks.judge.batch.submit import Submitter
from tasks.judge.batch.usage import BatchUsage
from tasks.judge.model_pin import ModelPin
from tasks.judge.outcome import Outcome, outage
from tasks.judge.provider.base import Provider, provider_of
from tasks.judge.provider.batch_api import BatchApi, CallFailedError
from tasks.judge.retries import MAX_RETRY_AFTER_S
from tasks.judge.work_queue import PlannedRequests
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened

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
    """Whether batches of this judge are not settled, whoever handed them over."""
    with opened(ledger_url) as ledger:
        return bool(ledger.read(partial(open_batches, judge_model=judge_model)))


def n_under_way(judge_model: str, ledger_url: str) -> int:
    """Requests to this judge in batches that its provider has, or may have."""
    with opened(ledger_url) as ledger:
        batches = ledger.read(partial(open_batches, judge_model=judge_model))
        return sum(len(ledger.read(partial(lines_of, token=one.token))) for one in batches if one.state in WITH_PROVIDER)


@dataclass(frozen=True, slots=True)
class JudgeByBatch:
    """Parts of one judge to ask by its Batch API; without `is_asking`, only what is under way there is fetched.

    `on_reply`, `on_progress`, `on_sent`, which is told of lines handed over, `on_look`, of each word of the provider on a batch,
    and `say`, of what people are to know meanwhile, are called in the calling thread. `leaving`: once set, it leaves its batches
    at the provider, as where the process is told to stop. `in_doubt`, by request key, are lines that may have been billed, in all
    tries: one made again finds them ended. `own`: tokens of batches this run handed over, in all its tries.
    """

    parts: Sequence[PlannedPart]
    limits: Limits
    on_reply: Callable[[JudgeReply], None] | None = None
    on_progress: OnProgress | None = None
    on_sent: Callable[[int], None] | None = None
    on_look: Callable[[], object] = lambda: None
    say: Callable[[str], object] = lambda _: None
    is_asking: bool = True
    leaving: threading.Event = field(default_factory=threading.Event)
    in_doubt: Counter[str] = field(default_factory=Counter)
    own: set[str] = field(default_factory=set)

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
        if not n_in_flight and not (asked.is_asking and n_done < len(requests.part_of)) and not asked.in_doubt:
            return Outcome(n_requests=len(requests.part_of), n_cached=n_done)
        usage = BatchUsage(ledger, requests, judge, ids.spends_from, limits.max_usd or 0.0)

        async def work() -> Outcome:
            provider = provider_of(judge)(judge, 1, limits.deadline_s)
            pin, most = ModelPin(ledger, ids.plan_id, judge), limits.attempts_per_request
            told = asked.on_reply, asked.on_sent
            collector = Collector(
                ledger, requests, judge.id, pin, most, usage.cost_usd, *told, usage, own=asked.own, in_doubt=asked.in_doubt
            )
            machine = BatchMachine(
                ledger, provider, _api_of(provider), collector, rules, context.lake.root / "staging", asked.is_asking,
                asked.on_look, asked.say,
            )  # fmt: skip
            claims = Claims(ledger)
            submitter = Submitter(ledger, requests, claims, machine, rules, usage if limits.max_usd is not None else None)
            run = BatchRun(ledger, requests, claims, submitter, machine, collector, rules, asked.on_progress)
            is_stopped = await _until_stopped(run, [asked.leaving, *([] if stop is None else [stop])])
            outcome = _outcome(ledger, run, judge.id, usage.refused_usd, is_stopped=is_stopped)
            outcome.n_in_doubt, outcome.in_doubt_usd = await usage.unseen(collector.in_doubt)
            return outcome

        return asyncio.run(work())


def _api_of(provider: Provider) -> BatchApi:
    if provider.batch is None:
        raise InputError(f'judge {provider.judge.id}: {provider.endpoint} has no Batch API; set mode = "online"')
    return provider.batch


async def _until_stopped(run: BatchRun, stops: Sequence[threading.Event]) -> bool:
    """Run the rounds; True where one of `stops` ended them. What is durable by then is all that is needed to go on."""
    provider, beside = run.machine.provider, asyncio.create_task(run.claims.renew())
    work = asyncio.create_task(run.run())
    try:
        while not work.done() and not any(stop.is_set() for stop in stops):
            await asyncio.wait({work}, timeout=STOP_POLL_S)
        is_stopped = not work.done()
        if is_stopped:
            work.cancel()
            await asyncio.wait({work})
        if not work.cancelled():
            work.result()
    except CallFailedError as error:
        answer, asked_for_s = error.answer, error.answer.retry_after_s or 0.0
        pause_s = asked_for_s if answer.status == ReplyStatus.RATE_LIMITED and asked_for_s > MAX_RETRY_AFTER_S else None
        silent_s = None if pause_s is None else 0.0
        raise outage(provider.judge, provider.endpoint, answer.status, answer.detail, silent_s, pause_s) from error
    else:
        return is_stopped
    finally:
        async with AsyncExitStack() as ends:  # each of them, also where one before it fails
            ends.push_async_callback(provider.close)
            ends.push_async_callback(run.claims.release)
            ends.push_async_callback(run.collector.finish)
            beside.cancel()


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


def _outcome(ledger: Ledger, run: BatchRun, judge_model: str, refused_usd: float, *, is_stopped: bool) -> Outcome:
    """The counts of a run. What other processes bought meanwhile counts as cached."""
    outcome, ended, done = run.collector.outcome, run.collector.ended, _done(ledger, run.requests)
    outcome.n_requests = len(run.requests.part_of)
    outcome.n_by_status = Counter(status.value for status in ended.values())
    outcome.n_by_status.update([ReplyStatus.NOT_ASKED.value] * len(run.submitter.left_out | run.submitter.refused))
    outcome.n_cached = len(done) - sum(status in FINAL_REPLY_STATUSES and key in done for key, status in ended.items())
    outcome.n_in_flight = _n_in_flight(ledger, run.requests, judge_model)
    outcome.is_stopped, outcome.is_spent, outcome.refused_usd = is_stopped, bool(run.submitter.refused), refused_usd
    return outcome
