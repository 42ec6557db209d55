"""A run's row in `runs`, made here alone: of one that published or was blocked, that ended while it asked, or was killed.

A run that asks is noted in the lake until it has its row, `asking/<benchmark>/`, a file a run; of a lake in a bucket in the cache
folder alone. The next start writes the row of one that was killed. Partitions are partitions/table.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Self

import polars as pl
from pydantic import BaseModel, Field

from flows.run.bought import bought_of
from flows.run.context import RunContext
from schemas.errors import StoreError
from schemas.records import Plan
from schemas.tables.field import DIGEST_LENGTH
from tasks.context import StageContext
from tasks.ingest.samples import IngestResult
from tasks.judge.outcome import Outcome
from tasks.lake.atomic_files import locked, write_bytes
from tasks.ledger.mutex import silent_s
from tasks.ledger.open_ledgers import opened
from tasks.ledger.process_identity import Process, lives, this_process
from tasks.publish.machine_tables import record_run, runs
from tasks.publish.pointer import check_pointers
from tasks.regular_files import content_of

STOPPED = "stopped"
"""The outcome of a run that ended before it had published, or was blocked."""
JUDGED = "judged"
"""The outcome of an exam or a probe, which publish nothing."""
_A_ROUNDING_USD = 1e-9
_GONE_AFTER = timedelta(days=2)
"""A process of another machine, or of before this one's start, cannot be looked up where the ledger has no row of it."""
_SILENT_S = 600.0
"""One of which it has: a paused one that goes on has a row in `runs` of its own, and what both have would count twice."""


class Begun(BaseModel):
    """A run's row but for what it buys and how it ends."""

    started_at: datetime
    run_date: date
    dataset_id: str
    n_samples: int
    n_samples_ok: int
    code_version: str
    asked_by: str

    @classmethod
    def of(cls, run: RunContext, started_at: datetime, dataset: IngestResult, *, asked_by: str | None = None) -> Self:
        """That of a run which has read its sources; `asked_by`: the command, where it is none of a run or a night."""
        return cls(
            started_at=started_at,
            run_date=run.run_date,
            dataset_id=dataset.dataset_id,
            n_samples=dataset.n_samples,
            n_samples_ok=dataset.n_ok,
            code_version=run.ids.code_version,
            asked_by=asked_by or ("nightly" if run.ids.budget_id else "run"),
        )

    def row(self, run: RunContext, finished_at: datetime, asked: Outcome, outcome: str) -> dict[str, object]:
        """The row of one that published nothing."""
        return {
            **self.model_dump(include=set(Begun.model_fields)),
            "finished_at": finished_at,
            "benchmark": run.benchmark.name,
            "publication_id": None,
            "outcome": outcome,
            "n_requests": asked.n_requests,
            "n_cached": asked.n_cached,
            "n_asked": asked.n_asked,
            "n_input_tokens": asked.n_input_tokens or (None if asked.n_without_cost else 0),  # a question has some
            "n_output_tokens": asked.n_output_tokens or (None if asked.n_without_cost else 0),
            "cost_usd": asked.cost_usd,
            "is_at_least": asked.is_at_least,
        }


class _Asking(Begun):
    """The note of a run, and the plans and judges of which it buys."""

    plan_ids: list[Annotated[str, Field(pattern=f"^[0-9a-f]{{{DIGEST_LENGTH}}}$")]]
    judges: list[str]
    process: Process

    def is_over(self, ledger_url: str) -> bool:
        """Whether its process is gone: seen here, else by what the ledger last heard of it, else by its age."""
        is_alive = lives(self.process)
        if is_alive is not None:
            return not is_alive
        with opened(ledger_url) as ledger:
            unheard_s = silent_s(ledger, self.process)
        return datetime.now(UTC) - self.started_at > _GONE_AFTER if unheard_s is None else unheard_s > _SILENT_S


def check_records(run: StageContext) -> None:
    """Before anything is paid for: raises CorruptLakeError where what a run's end reads and writes cannot be read."""
    check_pointers(run.lake.root, run.benchmark.name)
    runs(run.lake)


def record(
    run: RunContext, begun: Begun, asked: Outcome, outcome: str, publication_id: str | None = None, *, is_at_least: bool = False
) -> None:
    """Append the run's row, and let its reporter know it. `is_at_least`: `asked` is what this process heard alone."""
    row = begun.row(run, datetime.now(UTC), asked, outcome) | {"publication_id": publication_id}
    row["is_at_least"] = is_at_least or asked.is_at_least
    record_run(run.lake, row)
    forget_asking(run)
    run.reporter.ran = {**row, "n_by_status": dict(asked.n_by_status)}


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
    judges = [judge.id for judge in run.benchmark.asked_judges]
    note = _Asking(**begun.model_dump(), plan_ids=list(plan_ids), judges=judges, process=this_process())
    target = _folder(run) / f"{begun.started_at:%Y%m%dT%H%M%S%f}{_ending()}"
    write_bytes(note.model_dump_json(indent=1).encode(), target, run.lake.root / "staging")


def forget_asking(run: RunContext) -> None:
    """What this process asked has its row, or is none."""
    for path, note in _notes(run, _ending()):
        if note.process == this_process():
            path.unlink(missing_ok=True)


def record_killed(run: RunContext) -> None:
    """Write the row of each run of the benchmark that was killed, and take its note away. Raises StoreError."""
    if not any(_folder(run).glob("*.json")):
        return
    with locked(run.lake.root, f"asking-{run.benchmark.name}"):
        for path, note in _notes(run):
            if note.is_over(run.ledger_url):
                _record_killed(run, note)
                path.unlink(missing_ok=True)


def who_asked(run: RunContext, moment: datetime) -> tuple[str, date] | None:
    """Command and run date of the run that last began before a moment, of those that ended without a publication."""
    rows = runs(run.lake).filter(benchmark=run.benchmark.name, outcome=STOPPED).select("started_at", "asked_by", "run_date")
    begun = [
        *rows.rows(),
        *((note.started_at, note.asked_by, note.run_date) for _, note in _notes(run) if note.is_over(run.ledger_url)),
    ]
    found = max((one for one in begun if one[0] <= moment), default=None)
    return None if found is None else (str(found[1]), found[2])


def begun_nights(run: RunContext) -> list[date]:
    """Of each night's run that is noted as asking, the date: whether it still does is for who looks."""
    return [note.run_date for _, note in _notes(run) if note.asked_by == "nightly"]


def _record_killed(run: RunContext, note: _Asking) -> None:
    bought = bought_of(run, note.started_at, note.plan_ids, note.judges)
    own = _without_others(run, note.started_at, bought.outcome)
    if not own.may_cost:
        return
    record_run(run.lake, note.row(run, bought.last_heard_at, own, STOPPED))
    began = f"{note.asked_by} that began at {note.started_at:%Y-%m-%d %H:%M} UTC"
    run.reporter.say(f"the {began} was killed, or could not record what it bought; that is in the table runs now")


def _without_others(run: RunContext, since: datetime, bought: Outcome) -> Outcome:
    """What came since a moment, less what runs of the benchmark that went on beside have in rows of their own."""
    rows = runs(run.lake).filter(pl.col("benchmark") == run.benchmark.name, pl.col("finished_at") > since)
    if rows.is_empty():
        return bought
    counts = ("n_asked", "n_input_tokens", "n_output_tokens", "cost_usd")
    n_asked, n_input, n_output, cost = rows.select(pl.col(counts).sum()).row(0)
    cost_usd = max(0.0, (bought.cost_usd or 0.0) - cost)
    own = replace(
        bought,
        n_replies=0,  # whose they are is not told
        n_asked=max(0, bought.n_asked - n_asked),
        n_input_tokens=max(0, bought.n_input_tokens - n_input),
        n_output_tokens=max(0, bought.n_output_tokens - n_output),
        cost_usd=cost_usd if cost_usd > _A_ROUNDING_USD else None,
    )
    return replace(own, n_in_doubt=bought.n_in_doubt or int(own.n_asked > 0 or own.cost_usd is not None))


def _folder(run: RunContext) -> Path:
    return run.lake.root / "asking" / run.benchmark.name


def _ending() -> str:
    """How the names of this process's notes end."""
    return f"-{this_process().pid}.json"


def _notes(run: RunContext, ending: str = ".json") -> Iterator[tuple[Path, _Asking]]:
    for path in sorted(_folder(run).glob(f"*{ending}")):
        try:
            yield path, _Asking.model_validate_json(content_of(path))
        except FileNotFoundError:  # another process has taken it away meanwhile
            continue
        except ValueError as error:
            run.reporter.say(f"{path} is not a note of a run ({str(error).splitlines()[0]}), and is left out; delete it")
