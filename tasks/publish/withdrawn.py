"""Publications taken back: `withdrawn/<publication>.json` in the lake says when and why. The doing is flows/withdrawing.py.

They stay where they are; no pointer names one and no series holds it, until a run makes or finds the same again: told by how
many have, not by when, for a machine whose clock was ahead is why most are taken back.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import CorruptLakeError
from tasks.lake.notes import read_notes, write_note
from tasks.lake.reading import Lake
from tasks.publish.machine_tables import runs

FOLDER = "withdrawn"
_TEXTS = ("publication_id", "benchmark", "run_date", "withdrawn_at", "host", "because")


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A publication that was taken back: of which benchmark and run date, when (ISO, UTC), on which machine, and what for.

    `n_runs`: how many runs had made or found it until then.
    """

    publication_id: str
    benchmark: str
    run_date: str
    withdrawn_at: str
    host: str
    because: str
    n_runs: int

    @property
    def told(self) -> str:
        """Which, when and why, in a clause."""
        when = self.withdrawn_at[:16].replace("T", " ")
        return f"publication {self.publication_id[:12]} of {self.run_date} was taken back on {when} UTC: {self.because}"


def note_withdrawn(lake_root: Path, withdrawal: Withdrawal) -> None:
    """Write it down, in place of an earlier one of the same publication."""
    write_note(lake_root, lake_root / FOLDER / f"{withdrawal.publication_id}.json", withdrawal)


def taken_back(lake_root: Path, of: str = "*") -> dict[str, Withdrawal]:
    """The publications that were taken back, by id, and that no run has made or found since; `of` one alone.

    Raises CorruptLakeError.
    """
    what, remedy = "a withdrawal that Salon wrote", "withdraw that publication again"
    found = read_notes(lake_root, lake_root / FOLDER, _withdrawal, what, remedy, of)
    n_made = Counter(runs(Lake(lake_root))["publication_id"]) if found else {}
    return {one: why for one, why in found.items() if n_made.get(one, 0) <= why.n_runs}


def had_nights(lake_root: Path, benchmark: str) -> bool:
    """Whether a publication of `salon nightly` was taken back, and its note with it: what is left is no night by that."""
    gone = taken_back(lake_root)
    if not gone:  # nearly always: the rows of all runs are not read for it
        return False
    made = runs(Lake(lake_root)).filter(benchmark=benchmark, asked_by="nightly")["publication_id"]
    return not gone.keys().isdisjoint(made)


def _withdrawal(said: Any) -> Withdrawal:
    return Withdrawal(**{name: str(said[name]) for name in _TEXTS}, n_runs=int(said["n_runs"]))


def each_taken_back(lake_root: Path, ids: Iterable[str]) -> tuple[dict[str, Withdrawal], dict[str, str]]:
    """Which of these publications were taken back, and of which that cannot be known, and why."""
    try:
        return taken_back(lake_root), {}
    except CorruptLakeError:  # of one of them
        gone, faults = dict[str, Withdrawal](), dict[str, str]()
        for one in ids:
            try:
                gone |= taken_back(lake_root, one)
            except CorruptLakeError as error:
                faults[one] = str(error)
        return gone, faults
