"""Whether the last night came, as `salon nightly FILE --check` asks, and whether batches wait for somebody to fetch them."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import partial

import polars as pl

from flows.doctor.findings import Finding, ok, skipped, wrong
from flows.doctor.prefect_server import failed_night as failed_at_server
from flows.doctor.stores import MAX_AWAY_S, is_there
from flows.nights.anchors import gone_anchors, newest_anchor_set
from flows.nights.ended import ended_series
from flows.nights.failed import why_failed
from flows.nights.record import mutex_name, notes
from flows.nights.shortfall import shortfall
from flows.nights.shut_out import why_shut_out
from flows.partitions.table import read_partitions
from flows.run.batches import told
from flows.run.begun import begun_nights
from flows.run.context import RunContext
from schemas.errors import CorruptLakeError
from tasks.context import StageContext, name_in_ledger
from tasks.judge.batch.out import BatchOut, batches_out
from tasks.lake.identity import find_lake_id
from tasks.lake.pictures import StoredDataset
from tasks.ledger.ledger import Ledger
from tasks.ledger.mutex import is_held
from tasks.plan import anchors
from tasks.publish.machine_tables import runs
from tasks.publish.standings.wording import counted

NIGHT, SERIES, ANCHORS, BATCHES, RECORDS = "last night", "series", "anchors", "batches", "records"


def check_night(run: StageContext) -> Iterator[Finding]:
    """The latest night that is due; none is missed before the first was published."""
    now = datetime.now(UTC)
    due, shut_out = run.benchmark.nightly.newest_due(now), why_shut_out(run, now)
    if shut_out is not None:
        said, _, advice = shut_out.partition(". ")
        yield wrong(NIGHT, said, advice)
        return
    shown, noted = f"the night of {due.date()}", notes(run.lake.root, run.benchmark.name)
    day = due.date().isoformat()
    if day in noted:
        short = shortfall(run.lake.root, run.benchmark.name, day, noted[day], run.benchmark.gate.exit_1)
        gone, lacks = noted[day].gone, "; ".join([f"{shown} is published", *noted[day].gone, *noted[day].late])
        if short is not None:
            yield wrong(NIGHT, short.says, short.advice)
        elif gone and run.benchmark.nightly.on_no_fresh_checkpoint == "fail":
            yield wrong(NIGHT, lacks, "are all disks mounted, and does training still write there?")
        else:
            yield ok(NIGHT, lacks)
    elif _is_under_way(run):
        yield ok(NIGHT, f"{shown} is under way")
    else:
        why, failed = why_failed(run.lake.root, run.benchmark.name, day), "" if noted else _failed_tries(run)
        if not (noted or why or failed):
            yield skipped(NIGHT, "no night is published yet")
            return
        last = f"the last one is of {max(noted)}" if noted else ": ".join(filter(None, ["none is yet", failed]))
        said = f"{shown} was due at {due:%H:%M %Z} and is not published; {last}" + (f"; {why}" if why else "")
        advice = ("then " if why else "the log of its run says why; ") + "salon nightly FILE starts or continues it"
        tried = failed.rpartition(" ")[2]
        yield wrong(NIGHT, said, advice + (f", --run-date {tried} the night of {tried}" if tried not in ("", day) else ""))


def check_series(run: StageContext) -> Iterator[Finding]:
    """Series that end as their judge was replaced, which nobody may have meant; nothing where none do."""
    yield from (skipped(SERIES, says, advice) for says, advice in ended_series(run))


def check_anchors(run: StageContext) -> Iterator[Finding]:
    """Whether the anchors that nights ask are there: record, markers and parts. Nothing where none were ever frozen."""
    if (gone := gone_anchors(run.lake.root, run.benchmark.name)) is not None:
        said, _, advice = gone.rpartition(": ")
        yield wrong(ANCHORS, said, advice)
    if (key := newest_anchor_set(run.lake.root, run.benchmark.name)) is not None:
        anchors.check_anchors(StoredDataset(run.lake, key))
        yield ok(ANCHORS, f"{key[:12]} are whole: record, markers and parts")


def check_batches(run: StageContext) -> Iterator[Finding]:
    """What of the benchmark's judges is with their Batch APIs, and whether a run waits for it."""
    out: list[BatchOut] = []
    if is_there(run.ledger_url):
        with Ledger(run.ledger_url, max_away_s=MAX_AWAY_S) as ledger:
            out = batches_out(ledger, [judge.id for judge in run.benchmark.asked_judges])
    held, left = ([one for one in out if one.is_held is is_held] for is_held in (True, False))
    yield from (ok(BATCHES, f"{said}; a run waits for them") for said, _ in told(RunContext.of(run), held))
    for said, fetched_by in told(RunContext.of(run), left):
        yield wrong(BATCHES, f"{said}, and no run waits for them", fetched_by)
    if not out:
        yield ok(BATCHES, "none is with a provider")


def check_readable(run: StageContext) -> Iterator[Finding]:
    """The records of runs and partitions that a night reads, where a file of them cannot be read; nothing where all can."""
    for read in (partial(runs, run.lake), partial(read_partitions, run)):
        try:
            read()
        except CorruptLakeError as error:
            said, _, advice = str(error).rpartition("; ")
            yield wrong(RECORDS, said, f"{advice}: the next night ends on it")


def _failed_tries(run: StageContext) -> str:
    """In clauses, the runs of nights that asked and published nothing, that never ended, or failed; "" where none did."""
    rows = runs(run.lake).filter(pl.col("publication_id").is_null(), benchmark=run.benchmark.name, asked_by="nightly")
    killed, told = begun_nights(RunContext.of(run)), list[str]()
    if not rows.is_empty():
        last: date = max(rows["run_date"].to_list())
        told.append(
            f"{counted(rows.height, 'run')} sent requests and ended without a publication, the last for the night of {last}"
        )
    if killed:
        told.append(f"{counted(len(killed), 'run')} began and did not end, the last for the night of {max(killed)}")
    if (failed := failed_at_server(run.benchmark.name)) is not None:
        night = run.benchmark.nightly.newest_due(failed[1]).date()
        told.append(f"its run on the Prefect server is {failed[0]}, the one for the night of {night}")
    return "; ".join(told)


def _is_under_way(run: StageContext) -> bool:
    of_lake = find_lake_id(run.lake.root)
    if of_lake is None or not is_there(run.ledger_url):
        return False
    with Ledger(run.ledger_url, max_away_s=MAX_AWAY_S) as ledger:
        return is_held(ledger, mutex_name(name_in_ledger(run.benchmark.name, of_lake)))
