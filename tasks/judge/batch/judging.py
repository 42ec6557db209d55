"""A judge asked through its provider's Batch API: what a flow calls. How it goes is rounds.py; see docs/batch.md."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rubrics.model import Rubric
from schemas.benchmark import Judge, Limits
from schemas.records import JudgeReply
from schemas.statuses import FINAL_REPLY_STATUSES, ReplyStatus
from tasks.judge.answering import AnsweringModel
from tasks.judge.batch.asks import PlannedAsks
from tasks.judge.batch.client import BatchClient
from tasks.judge.batch.collect import Collector, CostOf
from tasks.judge.batch.failures import CallFailedError
from tasks.judge.batch.patience import Patience
from tasks.judge.batch.results import Results
from tasks.judge.batch.rounds import OnProgress, Rounds
from tasks.judge.batch.rules import AUTO_AT_LEAST, BatchRules
from tasks.judge.batch.sending import Reserve, Sender
from tasks.judge.batch.steps import Steps
from tasks.judge.batch.store import lines_of, open_batches, settle
from tasks.judge.bodies import check_parameters
from tasks.judge.claims import Claims
from tasks.judge.ledger import Ledger
from tasks.judge.outage import outage
from tasks.judge.outcome import Outcome
from tasks.judge.planning import PlannedPart
from tasks.store import Lake

STOP_POLL_S = 0.1
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
    with Ledger(ledger_url) as ledger:
        return bool(ledger.read(partial(open_batches, judge_model=judge_model)))


def judge_by_batch(
    lake: Lake,
    dataset_id: str,
    parts: Sequence[PlannedPart],
    plan_id: str,
    rubrics: Mapping[str, Rubric],
    judge: Judge,
    limits: Limits,
    ledger_url: str,
    *,
    cost_of: CostOf | None = None,
    reserve: Reserve | None = None,
    on_reply: Callable[[JudgeReply], None] | None = None,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
    rules: BatchRules = RULES,
    is_asking: bool = True,
) -> Outcome:
    """Ask what the ledger lacks of these parts' requests, all of one judge; without `is_asking`, only fetch what is under way.

    `stop` leaves batches at the provider (`Outcome.n_in_flight`); the same call again collects them. `on_reply` and `on_progress`
    are called in the calling thread. Raises MissingKeyError, InputError, ProviderError, StoreError.
    """
    check_parameters(judge.parameters)
    with Ledger(ledger_url) as ledger:
        asks = PlannedAsks(lake, dataset_id, plan_id, parts, rubrics)
        n_in_flight, n_done = _n_in_flight(ledger, asks, judge.model), len(_done(ledger, asks))
        if not n_in_flight and not (is_asking and n_done < len(asks.part_of)):
            return Outcome(n_requests=len(asks.part_of), n_cached=n_done)

        async def work() -> Outcome:
            client = BatchClient(judge)
            answering, most = AnsweringModel(ledger, plan_id, judge), limits.attempts_per_request
            collector = Collector(ledger, asks, judge.model, answering, most, client.clean, client.clean_bytes, cost_of, on_reply)
            folder, claims, patience = lake.root / "staging", Claims(ledger), Patience(rules)
            results = Results(ledger, client, collector, patience, folder)
            steps = Steps(ledger, client, results, rules, patience, is_asking)
            sender = Sender(ledger, asks, claims, steps, folder, rules, reserve)
            rounds = Rounds(ledger, asks, claims, sender, steps, collector, rules, on_progress)
            is_stopped = await _until_stopped(rounds, stop)
            return _outcome(ledger, rounds, judge.model, is_stopped=is_stopped)

        return asyncio.run(work())


async def _until_stopped(rounds: Rounds, stop: threading.Event | None) -> bool:
    """Run the rounds; True where `stop` ended them. What is durable by then is all that is needed to go on."""
    client, beside = rounds.steps.client, asyncio.create_task(rounds.claims.renew())
    work = asyncio.create_task(rounds.run())
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
        raise outage(client.judge, client.endpoint, error.answer.status, error.answer.detail) from error
    else:
        return is_stopped
    finally:
        beside.cancel()
        await rounds.collector.finish()
        await rounds.claims.release()
        await client.close()


async def _is_offered(judge: Judge) -> bool:
    client = BatchClient(judge)
    try:
        return await client.is_offered()
    finally:
        await client.close()


def _done(ledger: Ledger, asks: PlannedAsks) -> set[str]:
    """The requests that need nothing more."""
    known = ledger.known(asks.part_of)
    return known - ledger.reasks_due(known)


def _n_in_flight(ledger: Ledger, asks: PlannedAsks, judge_model: str) -> int:
    """Requests of ours that are in a batch and have no reply yet. Lines whose reply a killed run stored are let go."""
    n_in_flight = 0
    for batch in ledger.read(partial(open_batches, judge_model=judge_model)):
        lines = ledger.read(partial(lines_of, token=batch.token))
        ours = [line for line in lines if line.request_key in asks.part_of]
        stored = [line.request_key for line in ours if line.is_stored]
        n_in_flight += len(ours) - len(stored)
        if stored:
            ledger.alone_now(partial(settle, token=batch.token, keys=stored))
    return n_in_flight


def _outcome(ledger: Ledger, rounds: Rounds, judge_model: str, *, is_stopped: bool) -> Outcome:
    """The counts of a run. What other processes bought meanwhile counts as cached."""
    outcome, ended, done = rounds.collector.outcome, rounds.collector.ended, _done(ledger, rounds.asks)
    outcome.n_requests = len(rounds.asks.part_of)
    outcome.n_asked = rounds.sender.n_sent
    outcome.n_by_status = Counter(status.value for status in ended.values())
    outcome.n_by_status.update([ReplyStatus.NOT_ASKED.value] * len(rounds.sender.left_out))
    outcome.n_answered = outcome.n_by_status[ReplyStatus.ANSWERED.value]
    outcome.n_cached = len(done) - sum(status in FINAL_REPLY_STATUSES and key in done for key, status in ended.items())
    outcome.n_in_flight = _n_in_flight(ledger, rounds.asks, judge_model)
    outcome.is_stopped = is_stopped
    return outcome
