"""What must hold after a crash, held against the provider's own log. Each check returns sentences of what is wrong."""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
from rig import N_SAMPLES, Recorder

from schemas.errors import SalonError
from tasks.publish.reading import current, load_cells

CONCURRENCY = 8


@dataclass
class Watch:
    """One lake through its crashes: what was stored when, and what the provider billed meanwhile."""

    lake: Path
    recorder: Recorder
    stored: set[int] = field(default_factory=set)
    billed: Counter[int] = field(default_factory=Counter)
    n_maybe_billed: int = 0  # in flight at a crash: the ones that may be paid twice
    n_start: int = 0

    def __post_init__(self) -> None:
        self.n_start = len(self.recorder.billed)

    def after(self, end: Mapping[str, object]) -> list[str]:
        """Check what a run left behind, however it ended."""
        wrong: list[str] = []
        stored, n_open = ledger_state(self.lake)
        billed = Counter(self.recorder.billed[self.n_start :])
        lost = self.stored - stored
        if lost:
            wrong.append(f"stored replies are gone: {sorted(lost)}")
        again = sorted(number for number in self.stored if billed[number] != self.billed[number])
        if again:
            wrong.append(f"bought again though stored: {again}")
        never = sorted(stored - set(billed))
        if never:
            wrong.append(f"stored and never billed: {never}")
        n_adrift = sum(billed.values()) - sum(self.billed.values()) - len(stored - self.stored)
        if n_adrift > CONCURRENCY:
            wrong.append(f"{n_adrift} replies were billed and not stored, more than the {CONCURRENCY} in flight")
        if end["code"] == 70:
            wrong.append(f"an error without a sentence of its own: {end['said']}")
        self.n_maybe_billed += n_open
        self.stored, self.billed = stored, billed
        return wrong + unreadable_files(self.lake)

    def at_the_end(self, end: Mapping[str, object], reference: pl.DataFrame) -> list[str]:
        """Check an undisturbed run after all: everything bought, little twice, and the table that should be."""
        wrong = self.after(end)
        if end["code"] != 0:
            wrong.append(f"the last run ended with {end['code']}: {end['said']}")
        if set(self.billed) != set(range(N_SAMPLES)) or self.stored != set(range(N_SAMPLES)):
            wrong.append("not every sample was asked and stored")
        n_twice = sum(self.billed.values()) - N_SAMPLES
        if n_twice > self.n_maybe_billed:
            wrong.append(f"{n_twice} replies were paid twice, more than the {self.n_maybe_billed} that were in flight")
        if not wrong and not cells(self.lake).equals(reference):
            wrong.append("the table differs from that of an undisturbed run")
        return wrong


def ledger_state(lake: Path) -> tuple[set[int], int]:
    """(numbers of the samples whose reply is stored, attempts without an end)."""
    path = lake / "ledger.db"
    if not path.exists():
        return set(), 0
    with sqlite3.connect(path) as ledger:
        try:
            texts = [bytes(row[0]).decode() for row in ledger.execute("SELECT reply_text FROM replies")]
            n_open = ledger.execute("SELECT count(*) FROM attempts WHERE ended_at_us IS NULL").fetchone()[0]
        except sqlite3.OperationalError:  # killed before the tables were made
            return set(), 0
    return {int(text.split("number ")[1].split(".")[0]) for text in texts}, n_open


def unreadable_files(lake: Path) -> list[str]:
    """Parquet files outside the staging folder that cannot be read whole, and a pointer that does not lead to a whole table."""
    wrong: list[str] = []
    for path in lake.rglob("*.parquet"):
        if "staging" not in path.parts:
            try:
                pq.read_table(path)
            except Exception as error:  # noqa: BLE001 - whatever it is, the file is not readable
                wrong.append(f"{path.relative_to(lake)} cannot be read: {error}")
    if list(lake.glob("publish/v1/*/latest.json")):
        try:
            load_cells(current(lake))
        except SalonError as error:
            wrong.append(f"the pointer does not lead to a whole table: {error}")
    return wrong


def cells(lake: Path) -> pl.DataFrame:
    """The current table, less what names the run."""
    return load_cells(current(lake)).drop("run_id")
