"""A run that began to ask, until it has its row in `runs`: a note in the lake, `asking/<benchmark>/`, a file a run.

In a bucket too: the next start may come on another machine. The rows are record.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, Field

from flows.run.context import RunContext
from schemas.errors import StoreError
from schemas.tables.field import DIGEST_LENGTH
from tasks.ingest.samples import IngestResult
from tasks.judge.outcome import Outcome
from tasks.lake.atomic_files import write_bytes
from tasks.lake.object_store.cache_folder import pull
from tasks.ledger.mutex import silent_s
from tasks.ledger.open_ledgers import opened
from tasks.ledger.process_identity import Process, lives, this_process
from tasks.regular_files import content_of

FOLDER = "asking"
_PUT = ".put.json"
"""How a note's name ends that was put into the bucket, if there is one, before it stood here; version 0.1 kept it here alone."""
GONE_AFTER = timedelta(days=2)
"""A process of another machine, or of before this one's start, cannot be looked up where the ledger has no row of it."""
SILENT_S = 600.0
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


class Asking(Begun):
    """The note of a run, and the plans and judges of which it buys."""

    plan_ids: list[Annotated[str, Field(pattern=f"^[0-9a-f]{{{DIGEST_LENGTH}}}$")]]
    judges: list[str]
    process: Process

    def is_over(self, ledger_url: str) -> bool | None:
        """Whether its process is gone: seen here, else by what the ledger last heard of it, else by its age.

        None where it seems gone, and may be paused.
        """
        is_alive = lives(self.process)
        if is_alive is not None:
            return not is_alive
        with opened(ledger_url) as ledger:
            unheard_s = silent_s(ledger, self.process)
        if unheard_s is None:
            return datetime.now(UTC) - self.started_at > GONE_AFTER or None
        return unheard_s > SILENT_S or (None if unheard_s > 0 else False)

    @property
    def told(self) -> str:
        """What began when."""
        return f"the {self.asked_by} that began at {self.started_at:%Y-%m-%d %H:%M} UTC"


def write_note(run: RunContext, begun: Begun, plan_ids: Sequence[str]) -> None:
    """Note this process's run. Raises StoreError."""
    judges = [judge.id for judge in run.benchmark.asked_judges]
    note = Asking(**begun.model_dump(), plan_ids=list(plan_ids), judges=judges, process=this_process())
    target, content = folder(run) / f"{begun.started_at:%Y%m%dT%H%M%S%f}{_ending()}", note.model_dump_json(indent=1).encode()
    if run.lake.bucket is not None:  # before it stands here: who looks takes away what the bucket lacks
        run.lake.bucket.put(target.relative_to(run.lake.root).as_posix(), content)
    write_bytes(content, target, run.lake.root / "staging")


def forget_asking(run: RunContext) -> None:
    """What this process asked has its row, or is none. A note that cannot be taken away ends no run: the next start does it."""
    with suppress(StoreError, OSError):
        for path, note in notes(run, _ending()):
            if note.process == this_process():
                drop(run, path)


def begun_nights(run: RunContext) -> list[date]:
    """Of each night's run that is noted as asking, the date: whether it still does is for who looks."""
    return [note.run_date for _, note in notes(run) if note.asked_by == "nightly"]


def folder(run: RunContext) -> Path:
    """Where the notes of the benchmark's runs stand."""
    return run.lake.root / FOLDER / run.benchmark.name


def fetch(run: RunContext) -> None:
    """Make the notes here those that the bucket holds. Raises StoreError.

    Those of an older release are put there first, under a name of now: who looks next does not take them for new again.
    """
    bucket = run.lake.bucket
    if bucket is not None:
        for path in folder(run).glob("*.json"):
            if not path.name.endswith(_PUT):
                with suppress(FileNotFoundError):  # its process has taken it away meanwhile
                    bucket.put(path.with_suffix(_PUT).relative_to(run.lake.root).as_posix(), path)
    pull(run.lake.root, folder(run))


def drop(run: RunContext, path: Path) -> None:
    """Take a note away."""
    if run.lake.bucket is not None:
        run.lake.bucket.delete([path.relative_to(run.lake.root).as_posix()])
    path.unlink(missing_ok=True)


def _ending() -> str:
    """How the names of this process's notes end."""
    return f"-{this_process().pid}{_PUT}"


def notes(run: RunContext, ending: str = ".json") -> Iterator[tuple[Path, Asking]]:
    """Those of runs that have no row yet, as the bucket holds them now."""
    fetch(run)
    for path in sorted(folder(run).glob(f"*{ending}")):
        try:
            yield path, Asking.model_validate_json(content_of(path))
        except FileNotFoundError:  # another process has taken it away meanwhile
            continue
        except ValueError as error:
            run.reporter.say(f"{path} is not a note of a run ({str(error).splitlines()[0]}), and is left out; delete it")
