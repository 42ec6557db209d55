"""A run's row in `runs`: of one that published or was blocked, and of one that ended while it asked. No writing of files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from flows.run.bought import bought_of, columns_of
from flows.run.context import RunContext
from flows.run.killed import STOPPED, forget_asking, note_asking
from schemas.errors import StoreError
from schemas.records import Plan
from tasks.ingest.samples import IngestResult
from tasks.judge.outcome import Outcome
from tasks.publish.machine_tables import record_run


def record(
    run: RunContext,
    started_at: datetime,
    dataset: IngestResult,
    asked: Outcome,
    outcome: str,
    publication_id: str | None = None,
    *,
    is_backfill: bool = False,
    is_at_least: bool = False,
) -> None:
    """Append the run's row, and let its reporter know it. `is_at_least`: `asked` is what this process heard alone."""
    row = {
        "started_at": started_at,
        "finished_at": datetime.now(UTC),
        "benchmark": run.benchmark.name,
        "run_date": run.run_date,
        "publication_id": publication_id,
        "outcome": outcome,
        "dataset_id": dataset.dataset_id,
        "n_samples": dataset.n_samples,
        "n_samples_ok": dataset.n_ok,
        "code_version": run.ids.code_version,
        "asked_by": asked_by(run, is_backfill=is_backfill),
        **columns_of(asked),
        "is_at_least": is_at_least or asked.is_at_least,
    }
    record_run(run.lake, row)
    forget_asking(run)
    run.reporter.ran = {**row, "n_by_status": dict(asked.n_by_status)}


def asked_by(run: RunContext, *, is_backfill: bool) -> str:
    """The command whose run it is."""
    return "backfill" if is_backfill else "nightly" if run.ids.budget_id else "run"


@contextmanager
def recorded_where_it_ends(
    run: RunContext, started_at: datetime, dataset: IngestResult, planned: Plan, before: Outcome | None = None
) -> Iterator[None]:
    """From the first request to its own row: a run that ends here, by an error or told to stop, has one, `stopped`.

    That is counted from the ledger, by when it came: outcomes of shards under way, and of other processes, never come back. What
    another run bought of the same requests meanwhile is in it. Where the ledger is what failed, it is what this process heard.
    `before`: what a backfill asked before this run of the same plan; the row is the backfill's.
    """
    run.reporter.heard, is_backfill, ran = Outcome(), before is not None, run.reporter.ran
    note_asking(run, started_at, dataset, [planned.plan_id], asked_by(run, is_backfill=is_backfill))
    try:
        yield
    except BaseException as ended:
        if run.reporter.ran is not ran:
            raise
        is_at_least = isinstance(ended, StoreError)  # the ledger may be away, and lacks what waits in the lake for it
        try:
            if is_at_least:
                asked = replace(run.reporter.heard or Outcome(), n_requests=planned.n_requests)
            else:
                is_sent = run.executor.is_remote or run.reporter.attempts
                asked = bought_of(run, started_at, [planned.plan_id]).outcome if is_sent else Outcome()
                asked = replace(asked, n_requests=planned.n_requests)
            if before is not None:
                n_cached = max(0, asked.n_cached - before.n_answered)
                asked = replace(before + asked, n_requests=planned.n_requests, n_cached=n_cached)
            if asked.n_asked:
                record(run, started_at, dataset, asked, STOPPED, is_backfill=is_backfill, is_at_least=is_at_least)
            else:
                forget_asking(run)
        except Exception as error:  # noqa: BLE001 - what ended the run is told, and this beside it
            run.reporter.say(f"the cost of this run could not be recorded in `runs`: {error}")
        raise
