"""A backfill as a flow: partitions asked checkpoint by checkpoint, then one table of what is done. Plan: partitions/.

It is granted only those requests of a limit that nobody else waits for (tasks/judge/rate_limit/).
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from flows.executors.base import ShardCall
from flows.executors.choose import opened_executor
from flows.nights.checkpoints import find_checkpoints
from flows.nights.drift import write_drift
from flows.nights.index import rewrite_index
from flows.nights.own_rubrics import keep_rubrics
from flows.observability.alerting import budget_reached
from flows.observability.artifacts import progress_in_prefect, show_in_prefect, tell_alerts
from flows.observability.progress import current
from flows.observability.redaction import redacted_errors
from flows.observability.waiting import say_stopping
from flows.partitions.asking import AskedCheckpoint, Backfilled, answered_since, ask_checkpoint, recorded_without_table
from flows.partitions.ends import BackfillSummary, check_failures, left_of
from flows.partitions.grid import kept_anew, write_grid
from flows.partitions.outage_backoff import PATIENCE_MINUTES
from flows.partitions.plan import (
    BackfillPlan,
    open_backfill,
    plan_backfill,
)
from flows.partitions.preview import say_preview
from flows.partitions.table import BACKFILL, PartitionState, write_partitions
from flows.partitions.whole import is_published, say_gone, whole_and_there
from flows.run.batches import say_left_behind
from flows.run.bought import bought_of
from flows.run.clock import check_today
from flows.run.context import RunContext, check_keys
from flows.run.judge_servers import served_around, servers_of, with_run
from flows.run.pipeline import run_pipeline
from flows.run.record import check_records
from schemas.benchmark.file import Retry, Runner
from tasks.context import StageContext
from tasks.judge.budget.budget import attempts_per_run
from tasks.judge.outcome import Outcome
from tasks.ledger.mutex import mutex
from tasks.ledger.open_ledgers import opened
from tasks.stopping import heeding_sigterm

AT_ONCE, MOST_AT_ONCE = 4, 64
"""Checkpoints asked at a time: enough to keep a limit busy while one of them reads its pictures; with batches, more is better."""
MOST_PATIENCE_MINUTES = 60 * 24 * 30.0


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
    patience_minutes: Annotated[float, Field(ge=0, le=MOST_PATIENCE_MINUTES)] = PATIENCE_MINUTES,
) -> BackfillSummary:
    """Judge what past checkpoints still lack, and publish everything done in one table. One backfill of a benchmark at a time.

    file: the benchmark file. checkpoints: these, as checkpoint or model/checkpoint. since: those made on this day or later (with
    neither: all). run_date: the publication's logical date (default: today in [nightly] timezone). judge_url: ask here in place
    of the judges' own addresses. max_usd: spend at most this in all. at_once: checkpoints asked at the same time, 64 at most.
    runner: local, processes or dask, in place of the file's own. retry: "rejected" asks again what the provider rejected.
    patience_minutes: how long to wait for an endpoint that is down, counted from its first failure.
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
            check_records(run)
            is_retrying, context = retry is not None, RunContext.of(run, executor, reporter)
            if run_date is None:
                check_today(context)
            planned = plan_backfill(run, checkpoints, since, reporter, is_retrying=is_retrying)  # once the one before is done
            say_preview(reporter, run.benchmark.name, planned)
            say_left_behind(context, [one.plan for one in planned.checkpoints])
            try:
                with recorded_without_table(context, planned):
                    summary = run_backfill(context, planned, 60 * patience_minutes, kept_anew(context, file))
            except Exception:
                if reporter.made is not None:  # another start finds it there, and would tell nobody of it
                    show_in_prefect(run, reporter.made, reporter.made.cells, is_backfill=True)
                raise
            finally:
                write_grid(run, file)
        if summary.run is not None:
            show_in_prefect(run, summary.run, summary.run.cells, is_backfill=True)
        _tell_of_money(run, summary)
        check_failures(summary)
        return summary


def _tell_of_money(run: StageContext, summary: BackfillSummary) -> None:
    if summary.is_spent:
        n_not_asked = sum(summary.left.values()) + summary.n_pairs_left
        tell_alerts(run.benchmark.name, run.run_date, [budget_reached(summary.max_usd, summary.asked, n_not_asked)])


def run_backfill(
    run: RunContext,
    planned: BackfillPlan,
    patience_s: float = 60 * PATIENCE_MINUTES,
    on_change: Callable[[], None] = lambda: None,
) -> BackfillSummary:
    """Ask what is open, one call of the executor a checkpoint, and publish every checkpoint that is whole; nothing new, no table.

    A checkpoint that fails does not stop the others, unless money, the account or an outage is what ended it: that one is
    waited for, `patience_s` long. `on_change` is called when one has ended. Raises StoppedError; what failed is in the summary.
    """
    found = [Backfilled(name, Outcome(), why) for name, why in planned.failed.items()]
    run = run.having(budget_id=secrets.token_hex(16))  # of the pairs too, which are asked as the table is made
    asking = _for_all(run, sum(one.n_to_ask for one in planned.open)).having(run_id=secrets.token_hex(16))

    def calls() -> Iterator[ShardCall[AskedCheckpoint, Backfilled]]:
        for one in planned.open:
            if not any(done.outcome.is_spent or not done.may_pass for done in found):
                yield ShardCall(ask_checkpoint, asking.stage, AskedCheckpoint(one, patience_s), spends_money=True)

    began_at = datetime.now(UTC)
    keep_rubrics(run.lake.root, run.rubrics, run.reporter.say)  # a row names a rubric by its digest
    write_partitions(run, planned.partitions, BACKFILL, state=PartitionState.PLANNED)
    run.reporter.start("backfill", len(planned.open))
    n_own = {one.name: one.n_own for one in planned.open}
    run.reporter.start("judge", sum(n_own.values()))
    with servers_of(run) as servers:  # around all that ask: one server is for all of them
        servers.start(with_run(run.benchmark, planned.judges))
        for done in run.executor.run(calls()):
            found.append(done)
            _tell_of_one(run, done, n_own[done.name])
            on_change()
    late = {one.name: one for one in answered_since(run, planned, found)}
    found = [*(one for one in found if one.name not in late), *late.values()]
    run.reporter.advance("backfill", len(late))
    run.reporter.finish("judge")
    run.reporter.finish("backfill")
    asked, counted = _asked_of(run, planned, began_at, found)
    max_usd, to_mend = run.benchmark.limits.max_usd, list(planned.failed)
    n_all = len({*planned.unreadable, *(one.name for one in planned.checkpoints)})
    told = partial(
        BackfillSummary, tuple(found), left=left_of(run, planned), max_usd=max_usd, n_checkpoints=n_all, to_mend=to_mend
    )
    names, gone = whole_and_there(run, planned)
    is_new = any(done.name in names for done in found)
    is_made = bool(names) and (is_new or not is_published(run, names, planned))
    say_gone(run, gone, is_made=is_made)
    if not is_made:
        if names:  # the start that published them may have ended before this was written
            write_drift(run.lake.root, run.benchmark.name, run.rubrics, run.reporter.say)
            rewrite_index(run.lake.root)
        return told(None, asked)
    others = [one for one in planned.checkpoints if one.name not in counted]
    n_others = sum(one.n_requests for one in others)
    known = Outcome(n_requests=n_others, n_cached=n_others - sum(one.n_to_ask for one in others))
    made = run_pipeline(run, names, known=find_checkpoints(run, {}), asked_before=known + asked)
    return told(made, made.asked, n_pairs_left=made.asked.n_left - (known + asked).n_left)


def _asked_of(
    run: RunContext, planned: BackfillPlan, began_at: datetime, found: Sequence[Backfilled]
) -> tuple[Outcome, set[str]]:
    """What was asked of the checkpoints together, and of which; counted in the ledger where some were tried again."""
    total = sum((one.outcome for one in found), Outcome())
    if not any(one.is_tried_again for one in found) and not run.executor.n_lost:
        return total, {one.name for one in found if one.outcome.n_requests}
    bought = bought_of(run, began_at, [one.plan.plan_id for one in planned.open]).outcome
    asked = replace(bought, is_spent=total.is_spent, refused_usd=total.refused_usd, n_in_flight=total.n_in_flight)
    return asked, {one.name for one in planned.open}


def _tell_of_one(run: RunContext, done: Backfilled, n_own: int) -> None:
    if run.executor.is_remote:  # else its replies were counted as they came
        run.reporter.advance("judge", min(done.n_got, n_own))
    if done.is_done:
        run.reporter.advance("backfill")
    if done.failure is not None:
        run.reporter.say(f"{done.name} is not done: {done.failure}")
    run.reporter.tell("backfill")


def _for_all(run: RunContext, n_to_ask: int) -> RunContext:
    """The run as each checkpoint asks: they share a counter of the attempts that all may take, and servers that are up."""
    limits = run.benchmark.limits
    most = {"attempts_per_run": attempts_per_run(limits, n_to_ask)}
    benchmark = served_around(run.benchmark)
    return replace(run, benchmark=benchmark.model_copy(update={"limits": limits.model_copy(update=most)}))
