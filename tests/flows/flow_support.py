"""What the tests of whole runs say and ask: a command's outcome, a lake's current cells and its runs."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tasks.lake.reading import Lake
from tasks.publish.machine_tables import runs
from tasks.publish.reading import current, load_cells


@dataclass(frozen=True)
class Said:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


def cells_of(lake: Path, benchmark: str | None = None) -> pl.DataFrame:
    """The current publication's cells."""
    return load_cells(current(lake, benchmark))


def runs_of(lake: Path) -> pl.DataFrame:
    """Every run recorded in a lake."""
    return runs(Lake(lake))


def findings(said: str) -> dict[str, str]:
    """What `salon doctor` says of each thing, by its name: how it is, and what was found."""
    found = {}
    for line in said.splitlines():
        state, what = line[:8].strip(), line[8:24].strip()
        if state in {"ok", "wrong", "skipped"}:
            found[what] = f"{state}: {line[24:]}"
    return found
