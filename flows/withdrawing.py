"""`salon withdraw`: a publication taken back, written down and for good reason: off the pointers, its nights to be run again."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

from flows.executors.lake_use import lake_in_use
from flows.nights.drift import standing_publications, write_drift
from flows.nights.index import rewrite_index
from flows.nights.record import forget_nights, mutex_name, notes_mutex
from flows.run.context import RunContext
from schemas.errors import InputError
from tasks.ledger.mutex import mutex
from tasks.ledger.open_ledgers import opened
from tasks.ledger.process_identity import this_process
from tasks.publish.folders import LAYOUT
from tasks.publish.machine_tables import runs
from tasks.publish.pointer import move_back, read_pointer
from tasks.publish.reading import find_publication
from tasks.publish.withdrawn import Withdrawal, note_withdrawn


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What was taken back, the nights (ISO) that may be run again, and what is current now; None: nothing is."""

    withdrawal: Withdrawal
    nights: list[str]
    current: tuple[str, str] | None  # its id and run date


def withdraw(run: RunContext, prefix: str, because: str) -> Withdrawn:
    """Take back the publication of the run's benchmark whose id begins so; a night under way is waited for.

    Its folder stays. Killed in between, the same command goes on. Raises InputError, StoreError.
    """
    root, name = run.lake.root, run.benchmark.name
    if not because.strip():
        raise InputError('--because is empty; say why it is withdrawn, such as --because "a clock was two days ahead"')
    with (
        lake_in_use(run),
        opened(run.ledger_url) as ledger,
        mutex(ledger, mutex_name(run.name_in_ledger), run.reporter.say_who_is_waited_for),
    ):
        found = find_publication(root, prefix)
        if found.benchmark != name:
            raise InputError(f"{found.publication_id[:12]} is of {found.benchmark!r}, but the file's benchmark is {name!r}")
        now = datetime.now(UTC).isoformat()
        host = this_process().host or ""
        n_runs = runs(run.lake).filter(publication_id=found.publication_id).height
        made = Withdrawal(found.publication_id, name, found.run_date, now, host, because, n_runs)
        note_withdrawn(root, made)
        with mutex(ledger, notes_mutex(run.name_in_ledger)):
            nights = forget_nights(root, name, found.publication_id)
        others = standing_publications(root, name)  # without what is noted just now
        move_back(root, found.folder, [(one.folder, date.fromisoformat(one.run_date)) for one in others])
        write_drift(root, name, run.rubrics, run.reporter.say)
        rewrite_index(root)
    pointer = read_pointer(root / "publish" / LAYOUT / name)
    return Withdrawn(made, nights, (pointer["publication_id"], pointer["run_date"]) if pointer else None)
