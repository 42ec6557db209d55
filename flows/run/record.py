"""A run's row in `runs`, made here alone: of one that published or was blocked, that ended while it asked, or was killed.

A run that asks is noted until it has its row (begun.py). The next start, on any machine, writes the row of one that was killed.
Partitions are partitions/table.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime

import polars as pl

from flows.observability.terminal import format_cost
from flows.run.begun import GONE_AFTER, SILENT_S, Asking, Begun, drop, fetch, folder, forget_asking, notes, write_note
from flows.run.bought import bought_of
from flows.run.context import RunContext
from schemas.errors import StoreError
from schemas.records import Plan
from schemas.tables.stored import PARTITIONS
from tasks.context import StageContext
from tasks.judge.outcome import Outcome
from tasks.lake.not_writable import barred_of_lake
from tasks.lake.object_store.cache_folder import pull
from tasks.lake.small_files import read_files
from tasks.ledger.mutex import mutex
from tasks.ledger.open_ledgers import opened
from tasks.ledger.process_identity import EXPIRES_AFTER_S
from tasks.plan.dataset import known_plan
from tasks.publish.machine_tables import record_run, runs
from tasks.publish.pointer import check_pointers

STOPPED = "stopped"
"""The outcome of a run that ended before it had published, or was blocked."""
JUDGED = "judged"
"""The outcome of an exam, a probe or a bridge, which publish nothing."""
_A_ROUNDING_USD = 1e-9


def check_records(run: StageContext) -> None:
    """Before anything is asked. Raises CorruptLakeError, StoreError: what a run's end reads or writes, it cannot."""
    if (found := barred_of_lake(run.lake.root, run.benchmark.name)) is not None:
        raise StoreError(f"{'; '.join(found)}. Nothing is asked until then")
    check_pointers(run.lake.root, run.benchmark.name)
    runs(run.lake)
    rows = run.lake.root / PARTITIONS.name / run.benchmark.name
    pull(run.lake.root, rows)
    read_files(sorted(rows.glob("*.parquet")), PARTITIONS)


def record(
    run: RunContext, begun: Begun, asked: Outcome, outcome: str, publication_id: str | None = None, *, is_at_least: bool = False
) -> None:
    """Append the run's row, and let its reporter know it. `is_at_least`: `asked` is what this process heard alone."""
    row = begun.row(run, datetime.now(UTC), asked, outcome) | {"publication_id": publication_id}
    row["is_at_least"] = is_at_least or asked.is_at_least
    record_run(run.lake, row)
    run.reporter.ran = {**row, "n_by_status": dict(asked.n_by_status)}
    forget_asking(run)


@contextmanager
def recorded_where_it_ends(run: RunContext, begun: Begun, planned: Plan, before: Outcome | None = None) -> Iterator[None]:
    """From the first request to its own row: a run that ends here, by an error or told to stop, has one, `stopped`.

    That is counted from the ledger, by when it came: outcomes of shards under way, and of other processes, never come back. What
    another run bought of the same requests meanwhile is in it. Where the ledger is what failed, it is what this process heard.
    `before`: what a backfill asked before this run of the same plan; the row is the backfill's.
    """
    run.reporter.heard, ran = Outcome(), run.reporter.ran
    note_asking(run, begun, [planned.plan_id])
    try:
        yield
    except BaseException as ended:
        if run.reporter.ran is not ran:
            raise
        is_at_least = isinstance(ended, StoreError)  # the ledger may be away, and lacks what waits in the lake for it
        heard = run.reporter.heard or Outcome()
        try:
            if is_at_least:
                asked = replace(heard, n_requests=planned.n_requests)
            else:
                is_sent = run.executor.is_remote or run.reporter.attempts or heard.may_cost
                asked = bought_of(run, begun.started_at, [planned.plan_id]).outcome if is_sent else Outcome()
                asked = replace(asked, n_requests=planned.n_requests)
            if before is not None:
                n_cached = max(0, asked.n_cached - before.n_answered)
                asked = replace(before + asked, n_requests=planned.n_requests, n_cached=n_cached)
            if asked.may_cost:
                record(run, begun, asked, STOPPED, is_at_least=is_at_least)
            else:
                forget_asking(run)
        except Exception as error:  # noqa: BLE001 - what ended the run is told, and this beside it
            run.reporter.say(f"the cost of this run could not be recorded in `runs`: {error}")
        raise


def note_asking(run: RunContext, begun: Begun, plan_ids: Sequence[str]) -> None:
    """Note a run that may ask from now on, after the rows of those were written that were killed. Raises StoreError."""
    record_killed(run)
    write_note(run, begun, plan_ids)


def record_killed(run: RunContext) -> None:
    """Write the row of each run of the benchmark that was killed, and take its note away. Raises StoreError."""
    fetch(run)
    if not any(folder(run).glob("*.json")):
        return
    with opened(run.ledger_url) as ledger, mutex(ledger, f"asking {run.name_in_ledger}"):  # of all machines
        for path, note in notes(run):
            is_over = note.is_over(run.ledger_url)
            if is_over is not False:
                _record_killed(run, note, is_sure=is_over is True)
            if is_over:
                drop(run, path)


def unpublished(run: RunContext) -> list[tuple[datetime, str, date]]:
    """Beginning, command and run date of each run that ended without a publication, or seems to have."""
    rows = runs(run.lake).filter(benchmark=run.benchmark.name, outcome=STOPPED).select("started_at", "asked_by", "run_date")
    begun = [note for _, note in notes(run) if note.is_over(run.ledger_url) is not False]
    return [*rows.rows(), *((note.started_at, note.asked_by, note.run_date) for note in begun)]


def _record_killed(run: RunContext, note: Asking, *, is_sure: bool) -> None:
    """Write its row, if it is sure that it is over, and tell what it bought; nothing of one that has it, and its note still."""
    if not runs(run.lake).filter(benchmark=run.benchmark.name, started_at=note.started_at).is_empty():
        return
    bought = bought_of(run, note.started_at, note.plan_ids, note.judges)
    own = _without_others(run, note, bought.outcome)
    if not own.may_cost:
        return
    usd = format_cost(own.cost_usd, is_at_least=own.is_at_least)
    doubt = f"; up to {bought.outcome.n_in_doubt:,} of them may be billed twice" if bought.outcome.n_in_doubt else ""
    sent = f"{own.n_asked:,} requests sent, {usd}{doubt}"
    if is_sure:
        record_run(run.lake, note.row(run, bought.last_heard_at, own, STOPPED))
        say = f"{note.told} was killed, or could not record what it bought; that is in the table runs now: {sent}"
    else:
        say = (
            f"the ledger hears nothing of {note.told} on another machine, in another container or before a restart: {sent}. A "
            f"start {(SILENT_S + EXPIRES_AFTER_S) / 60:.0f} minutes after it fell silent puts that into the table runs, or "
            f"{GONE_AFTER.days} days after it began, if the ledger knows nothing of it"
        )
    run.reporter.say(say)


def _without_others(run: RunContext, note: Asking, bought: Outcome) -> Outcome:
    """What came since it began, less what runs of the benchmark that went on beside have in rows of their own.

    Of such a row at most what came of the requests that its plan, as today's file makes it, shares with the killed run's.
    """
    rows = runs(run.lake).filter(pl.col("benchmark") == run.benchmark.name, pl.col("finished_at") > note.started_at)
    own = bought
    for row in rows.iter_rows(named=True):
        is_same = row["dataset_id"] == note.dataset_id  # whatever the file asked of it then
        plan = None if is_same else known_plan(run.having(dataset_id=row["dataset_id"]).stage)
        shared = bought if plan is None else bought_of(run, note.started_at, note.plan_ids, note.judges, plan.plan_id).outcome
        if not shared.may_cost:
            continue
        n_asked, n_input, n_output = (
            min(row[name] or 0, getattr(shared, name)) for name in ("n_asked", "n_input_tokens", "n_output_tokens")
        )
        cost_usd = (own.cost_usd or 0.0) - min(row["cost_usd"] or 0.0, shared.cost_usd or 0.0)
        own = replace(
            own,
            n_replies=0,  # whose they are is not told
            n_asked=max(0, own.n_asked - n_asked),
            n_input_tokens=max(0, own.n_input_tokens - n_input),
            n_output_tokens=max(0, own.n_output_tokens - n_output),
            cost_usd=cost_usd if cost_usd > _A_ROUNDING_USD else None,
        )
    if own is bought:
        return bought
    return replace(own, n_in_doubt=bought.n_in_doubt or int(own.n_asked > 0 or own.cost_usd is not None))
