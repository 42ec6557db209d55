"""A backfill as a flow: partitions asked checkpoint by checkpoint, then one table of what is done. Plan: partitions/.

It is granted only those requests of a limit that nobody else waits for (tasks/judge/rate_limit/).
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from flows.executors.base import ShardCall, stage_task
from flows.executors.choose import opened_executor
from flows.executors.local import asking_executor
from flows.observability.artifacts import progress_in_prefect, show_in_prefect
from flows.observability.events import emit_budget_reached
from flows.observability.progress import current, say_stopping
from flows.observability.redaction import redacted_errors
from flows.partitions.ends import Backfilled, BackfillSummary, check_failures, left_of
from flows.partitions.grid import write_grid
from flows.partitions.plan import (
    BackfillPlan,
    PlannedCheckpoint,
    open_backfill,
    plan_backfill,
    prices_of,
    print_preview,
)
from flows.partitions.table import BACKFILL, PartitionState, find_partitions, write_partitions
from flows.partitions.whole import is_published, whole_and_there
from flows.run.clock import check_today
from flows.run.context import RunContext, check_keys
from flows.run.judging import judge
from flows.run.pipeline import run_pipeline
from schemas.benchmark.file import Retry, Runner
from schemas.errors import ProviderError, SalonError, StoppedError
from tasks.context import StageContext
from tasks.judge.budget.budget import attempts_per_run
from tasks.judge.outcome import Outcome
from tasks.judge.rate_limit.waiters import giving_way
from tasks.ledger.mutex import mutex
from tasks.ledger.open_ledgers import opened
from tasks.stopping import check_not_stopped, heeding_sigterm

AT_ONCE, MOST_AT_ONCE = 4, 64
"""Checkpoints asked at a time: enough to keep a limit busy while one of them reads its pictures; with batches, more is better."""


def backfill(
    file: Path,
    checkpoints: Sequence[str] | None = None,
    since: date | None = None,
    run_date: date | None = None,
    judge_url: str | None = None,
    max_usd: float | None = None,
    at_once: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = AT_ONCE,
    runner: Runner | None = None,
    retry: Retry | None = None,
) -> BackfillSummary:
    """Ask past checkpoints what they lack, and publish all that is done in one table. One backfill of a benchmark at a time.

    file: the benchmark file. checkpoints: these, as checkpoint or model/checkpoint. since: those made on this day or later (with
    neither: all). run_date: the publication's logical date (default: today, UTC). judge_url: ask here in place of the judges' own
    addresses. max_usd: spend at most this in all. at_once: checkpoints asked at the same time, 64 at most. runner: local,
    processes or dask, in place of the file's own. retry: "rejected" asks again what the provider rejected.
    """
    with heeding_sigterm(say_stopping), redacted_errors():
        run = open_backfill(file, run_date, judge_url, max_usd)
        check_keys(run)
        reporter = current()
        reporter.on_share = progress_in_prefect(run.benchmark.name)
        with (
            opened(run.ledger_url) as ledger,
            mutex(ledger, f"{BACKFILL} {run.name_in_ledger}", reporter.say_who_is_waited_for),
            opened_executor(run, runner, at_once) as executor,
        ):
            is_retrying, context = retry is not None, RunContext.of(run, executor, reporter)
            if run_date is None:
                check_today(context)
            planned = plan_backfill(run, checkpoints, since, reporter, is_retrying=is_retrying)  # once the one before is done
            if reporter.console is not None:
                print_preview(reporter.console, run.benchmark.name, planned)
            try:
                summary = run_backfill(context, planned)
            finally:
                write_grid(run, file)
        if summary.run is not None:
            show_in_prefect(run, summary.run, summary.run.cells, is_backfill=True)
        _tell_of_money(run, summary)
        check_failures(summary)
        return summary


def _tell_of_money(run: StageContext, summary: BackfillSummary) -> None:
    if summary.is_spent:
        spent_usd, n_not_asked = summary.asked.cost_usd or 0.0, sum(summary.left.values())
        emit_budget_reached(run, limit_usd=summary.max_usd or 0.0, spent_usd=spent_usd, n_not_asked=n_not_asked)


def run_backfill(run: RunContext, planned: BackfillPlan) -> BackfillSummary:
    """Ask what is open, one call of the executor a checkpoint, and publish every checkpoint that is whole; nothing new, no table.

    A checkpoint that fails does not stop the others, unless money or the account is what ended it. Raises StoppedError; what
    failed is in the summary.
    """
    found = [Backfilled(name, Outcome(), why) for name, why in planned.unreadable.items()]
    asking = _with_attempts_for_all(run, sum(one.n_to_ask for one in planned.open)).having(run_id=secrets.token_hex(16))

    def calls() -> Iterator[ShardCall[PlannedCheckpoint, Backfilled]]:
        for one in planned.open:
            if not any(done.outcome.is_spent or not done.may_pass for done in found):
                yield ShardCall(ask_checkpoint, asking.stage, one, spends_money=True)

    write_partitions(run, planned.partitions, BACKFILL, state=PartitionState.PLANNED)
    run.reporter.start("backfill", len(planned.open))
    for done in run.executor.run(calls()):
        found.append(done)
        run.reporter.advance("backfill")
        run.reporter.tell("backfill")
    run.reporter.finish("backfill")
    told = partial(BackfillSummary, tuple(found), left=left_of(run, planned), max_usd=run.benchmark.limits.max_usd)
    names = whole_and_there(run, planned.unreadable)
    is_new = any(done.name in names for done in found)
    if not names or (not is_new and is_published(run, names)):
        return told(None)
    counted = {done.name for done in found if done.outcome.n_requests}
    others = [one for one in planned.checkpoints if one.name not in counted]
    n_others = sum(one.n_requests for one in others)
    known = Outcome(n_requests=n_others, n_cached=n_others - sum(one.n_to_ask for one in others))
    return told(run_pipeline(run, names, asked_before=known + told(None).asked))


@stage_task("backfill checkpoint", "backfill {shard.name}", n_retries=0)
def ask_checkpoint(context: StageContext, shard: PlannedCheckpoint) -> Backfilled:
    """Ask what one checkpoint lacks under every rubric, by every judge, and write down where its partitions stand."""
    with asking_executor(context.benchmark.limits) as executor:
        return _ask_checkpoint(RunContext.of(context, executor), shard)


def _ask_checkpoint(run: RunContext, shard: PlannedCheckpoint) -> Backfilled:
    run = run.having(dataset_id=shard.dataset.dataset_id, plan_id=shard.plan.plan_id)
    write_partitions(run, shard.partitions, BACKFILL, state=PartitionState.RUNNING)
    outcome, failure, may_pass = Outcome(), None, True
    try:
        with giving_way():
            outcome = judge(run, shard.plan.parts)
        check_not_stopped()
    except StoppedError:
        write_partitions(
            run, find_partitions(run, prices_of(shard.rubrics)), BACKFILL, state=PartitionState.PLANNED, detail="told to stop"
        )
        raise
    except SalonError as error:
        failure, may_pass = str(error), not isinstance(error, ProviderError) or error.may_pass
    left = find_partitions(run, prices_of(shard.rubrics))
    if failure is None and outcome.is_spent:
        write_partitions(run, left, BACKFILL, state=PartitionState.PLANNED, detail="max_usd was reached")
        return Backfilled(shard.name, outcome)
    n_left = int(left["n_left"].sum())
    if failure is None and n_left:
        failure = f"{n_left:,} of {shard.n_requests:,} requests have no final reply"
    write_partitions(run, left, BACKFILL, state=PartitionState.FAILED, detail=failure)
    return Backfilled(shard.name, outcome, failure, may_pass)


def _with_attempts_for_all(run: RunContext, n_to_ask: int) -> RunContext:
    """The run with the attempts that the requests of all its checkpoints may take together: they share one counter."""
    limits = run.benchmark.limits
    most = {"attempts_per_run": attempts_per_run(limits, n_to_ask)}
    return replace(run, benchmark=run.benchmark.model_copy(update={"limits": limits.model_copy(update=most)}))
