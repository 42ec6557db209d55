"""A run that asks is noted in the lake until it has its row in `runs`: the next start writes that of one that was killed.

`asking/<benchmark>/`, a file a run; of a lake in a bucket in the cache folder alone. Partitions are partitions/table.py.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from flows.run.bought import bought_of, columns_of
from flows.run.context import RunContext
from schemas.tables.field import DIGEST_LENGTH
from tasks.ingest.samples import IngestResult
from tasks.lake.atomic_files import locked, write_bytes
from tasks.ledger.process_identity import Process, lives, this_process
from tasks.publish.machine_tables import record_run
from tasks.regular_files import content_of

STOPPED = "stopped"
"""The outcome of a run that ended before it had published, or was blocked."""
_GONE_AFTER = timedelta(days=2)
"""A process of another machine, or of before this one's start, cannot be looked up."""


class _Asking(BaseModel):
    """A run's row but for what it buys, and the plans and judges of which that is."""

    started_at: datetime
    run_date: date
    dataset_id: str
    n_samples: int
    n_samples_ok: int
    code_version: str
    asked_by: str
    plan_ids: list[Annotated[str, Field(pattern=f"^[0-9a-f]{{{DIGEST_LENGTH}}}$")]]
    judges: list[str]
    process: Process

    @property
    def is_over(self) -> bool:
        """Whether its process is gone."""
        is_alive = lives(self.process)
        return datetime.now(UTC) - self.started_at > _GONE_AFTER if is_alive is None else not is_alive


def note_asking(run: RunContext, started_at: datetime, dataset: IngestResult, plan_ids: Sequence[str], asked_by: str) -> None:
    """Note a run that may ask from now on, after the rows of those were written that were killed. Raises StoreError."""
    record_killed(run)
    note = _Asking(
        started_at=started_at,
        run_date=run.run_date,
        dataset_id=dataset.dataset_id,
        n_samples=dataset.n_samples,
        n_samples_ok=dataset.n_ok,
        code_version=run.ids.code_version,
        asked_by=asked_by,
        plan_ids=list(plan_ids),
        judges=[judge.id for judge in run.benchmark.asked_judges],
        process=this_process(),
    )
    target = _folder(run) / f"{started_at:%Y%m%dT%H%M%S%f}{_ending()}"
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
            if note.is_over:
                _record(run, note)
                path.unlink(missing_ok=True)


def _record(run: RunContext, note: _Asking) -> None:
    bought = bought_of(run, note.started_at, note.plan_ids, note.judges)
    if not bought.outcome.n_asked:
        return
    row = {
        **note.model_dump(exclude={"plan_ids", "judges", "process"}),
        "finished_at": bought.last_heard_at,
        "benchmark": run.benchmark.name,
        "publication_id": None,
        "outcome": STOPPED,
        **columns_of(bought.outcome),
    }
    record_run(run.lake, row)
    began = f"{note.asked_by} that began at {note.started_at:%Y-%m-%d %H:%M} UTC"
    run.reporter.say(f"the {began} was killed; what it bought is in the table runs now")


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
