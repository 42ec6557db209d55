"""One checkpoint of a backfill: asked what it lacks, and what became of it. Which are asked, and the table: backfill.py."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count

from flows.executors.base import End, stage_task
from flows.executors.local import asking_executor
from flows.observability.part import PartReporter
from flows.observability.progress import current
from flows.observability.terminal import format_cost
from flows.partitions.outage_backoff import heard_from, patiently
from flows.partitions.plan import BackfillPlan, PlannedCheckpoint, partitions_now
from flows.partitions.table import BACKFILL, PartitionState, write_partitions
from flows.run.begun import Begun, forget_asking
from flows.run.bought import bought_of
from flows.run.context import RunContext
from flows.run.judging import judge
from flows.run.record import STOPPED, note_asking, record
from schemas.errors import ProviderError, SalonError, StoppedError
from tasks.context import StageContext
from tasks.judge.outcome import Outcome
from tasks.judge.rate_limit.waiters import giving_way
from tasks.stopping import check_not_stopped


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What became of one checkpoint. `failure` is a sentence, None where nothing is left to ask or a limit of money was met.

    `n_got`: requests of those left that have a final reply now. Not `may_pass`: the others would end the same way.
    `is_tried_again`: what earlier tries bought is not in `outcome`.
    """

    name: str
    outcome: Outcome
    failure: str | None = None
    may_pass: bool = True
    n_got: int = 0
    is_tried_again: bool = False

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to ask."""
        return self.failure is None and not self.outcome.is_spent


@dataclass(frozen=True, slots=True)
class AskedCheckpoint:
    """A checkpoint to ask, and how long an endpoint that is out is waited for."""

    planned: PlannedCheckpoint
    patience_s: float

    @property
    def name(self) -> str:
        """As model/checkpoint."""
        return self.planned.name


def _end(done: Backfilled) -> End | None:
    if done.is_done:
        return None
    return End(done.failure or "max_usd was reached before every request was sent", is_failure=done.failure is not None)


@stage_task("backfill checkpoint", "backfill {shard.name}", n_retries=0, end_of=_end)
def ask_checkpoint(context: StageContext, shard: AskedCheckpoint) -> Backfilled:
    """Ask what one checkpoint lacks under every rubric, by every judge, and write down where its partitions stand."""
    reporter = PartReporter(current(), shard.planned.n_to_ask, heard_from)
    with asking_executor(context.benchmark.limits) as executor:
        return _ask_checkpoint(RunContext.of(context, executor, reporter), shard.planned, shard.patience_s)


def _ask_checkpoint(run: RunContext, shard: PlannedCheckpoint, patience_s: float) -> Backfilled:
    run = run.having(dataset_id=shard.dataset.dataset_id, plan_id=shard.plan.plan_id)
    write_partitions(run, shard.partitions, BACKFILL, state=PartitionState.RUNNING)
    outcome, failure, may_pass = Outcome(), None, True
    n_tries = count()

    def ask(n_of_outages: int) -> Outcome:
        next(n_tries)
        return judge(_with_attempts_anew(run) if n_of_outages else run, shard.plan.parts)

    try:
        with giving_way():
            judges = {part.judge_model for part in shard.plan.parts if part.n_requests}
            outcome = patiently(ask, patience_s, judges, lambda said: run.reporter.say(f"{shard.name}: {said}"))
        check_not_stopped()
    except StoppedError:
        write_partitions(
            run, partitions_now(run, shard.plan, shard.rubrics), BACKFILL, state=PartitionState.PLANNED, detail="told to stop"
        )
        raise
    except SalonError as error:  # what a provider ends one with, it ends all with
        failure, may_pass = str(error), not isinstance(error, ProviderError)
    left = partitions_now(run, shard.plan, shard.rubrics)
    n_left = int(left["n_left"].sum())
    n_got = max(0, shard.n_to_ask - n_left)
    is_tried_again = failure is not None or next(n_tries) > 1
    if failure is None and outcome.is_spent:
        write_partitions(run, left, BACKFILL, state=PartitionState.PLANNED, detail="max_usd was reached")
        return Backfilled(shard.name, outcome, n_got=n_got, is_tried_again=is_tried_again)
    if failure is None and n_left:
        failure = f"{n_left:,} of {shard.n_requests:,} requests have no final reply"
    failure = failure or next(iter(left["mixed"].drop_nulls()), None)
    write_partitions(run, left, BACKFILL, state=PartitionState.FAILED, detail=failure)
    return Backfilled(shard.name, outcome, failure, may_pass, n_got, is_tried_again)


def answered_since(run: RunContext, planned: BackfillPlan, found: Sequence[Backfilled]) -> Iterator[Backfilled]:
    """Of checkpoints that ended with something left, or were not begun, those whose last replies came with another's since.

    What checkpoints share is asked by one of them; where its turn came late, the others have ended by then.
    """
    ended = {one.name: one for one in found}
    for one in planned.open if planned.has_shared else ():
        was = ended.get(one.name, Backfilled(one.name, Outcome(n_requests=one.n_requests, n_cached=one.n_requests)))
        if was.is_done and one.name in ended:
            continue
        mine = run.having(dataset_id=one.dataset.dataset_id, plan_id=one.plan.plan_id)
        left = partitions_now(mine, one.plan, one.rubrics)
        if not left["n_left"].sum() and left["mixed"].is_null().all():
            write_partitions(mine, left, BACKFILL)
            run.reporter.say(f"{one.name} is done after all: its last replies came with those of a checkpoint that shares them")
            yield replace(was, failure=None)


def _with_attempts_anew(run: RunContext) -> RunContext:
    """For a try of an outage: those before it took attempts, and must not end it. The money stays the backfill's."""
    return run.having(run_id=secrets.token_hex(16), budget_id=run.ids.spends_from)


@contextmanager
def recorded_without_table(run: RunContext, planned: BackfillPlan) -> Iterator[None]:
    """While a backfill runs: one that ends without a table, by itself, by an error or told to stop, has its row, `stopped`.

    What it bought is counted from the ledger, as that of a run. Its dataset is the newest checkpoint's that had something to ask.
    """
    if not planned.open:
        yield
        return
    begun, before = Begun.of(run, datetime.now(UTC), planned.open[0].dataset, asked_by="backfill"), run.reporter.ran
    plan_ids = [one.plan.plan_id for one in planned.open]
    note_asking(run, begun, plan_ids)
    try:
        yield
    finally:
        if run.reporter.ran is before:
            try:
                bought = bought_of(run, begun.started_at, plan_ids).outcome
                if bought.may_cost:
                    record(run, begun, bought, STOPPED)
                    cost = format_cost(bought.cost_usd, is_at_least=bought.is_at_least)
                    run.reporter.say(f"{bought.n_asked:,} requests sent, {cost}; no new table was made")
                else:
                    forget_asking(run)
            except Exception as error:  # noqa: BLE001 - what ended the backfill is told, and this beside it
                run.reporter.say(f"the cost of this backfill could not be recorded in `runs`: {error}")
