"""Publications taken back: `withdrawn/<publication>.json` in the lake says when and why. The doing is flows/withdrawing.py.

They stay where they are; no pointer names one and no series holds it, until a run makes or finds the same again: told by how
many have, not by when, for a machine whose clock was ahead is why most are taken back.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from schemas.errors import CorruptLakeError
from tasks.lake.atomic_files import write_bytes
from tasks.lake.object_store.cache_folder import pull, push
from tasks.lake.reading import Lake
from tasks.publish.machine_tables import runs
from tasks.regular_files import content_of

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
    target = lake_root / FOLDER / f"{withdrawal.publication_id}.json"
    write_bytes(json.dumps(asdict(withdrawal), sort_keys=True, indent=1).encode(), target, lake_root / "staging")
    push(lake_root, target)


def taken_back(lake_root: Path, of: str = "*") -> dict[str, Withdrawal]:
    """The publications that were taken back, by id, and that no run has made or found since; `of` one alone.

    Raises CorruptLakeError.
    """
    found = dict[str, Withdrawal]()
    pull(lake_root, FOLDER)
    for path in sorted((lake_root / FOLDER).glob(f"{of}.json")):
        try:
            said = json.loads(content_of(path))
            found[path.stem] = Withdrawal(**{name: str(said[name]) for name in _TEXTS}, n_runs=int(said["n_runs"]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CorruptLakeError(
                f"{path} is not a withdrawal that Salon wrote ({error}); withdraw that publication again"
            ) from error
    n_made = Counter(runs(Lake(lake_root))["publication_id"]) if found else {}
    return {one: why for one, why in found.items() if n_made.get(one, 0) <= why.n_runs}


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
