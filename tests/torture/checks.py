"""What must hold after a crash, held against the provider's own log. Each check returns sentences of what is wrong."""

import hashlib
import re
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
from harness import N_SAMPLES, Recorder

from schemas.errors import SalonError
from tasks.judge.session import SPARE
from tasks.publish.reading import current, load_cells

CONCURRENCY = 8
N_AT_RISK = CONCURRENCY + CONCURRENCY // SPARE


@dataclass
class Watch:
    """One lake through its crashes: what was stored when, and what the provider billed meanwhile.

    `versions` are the tables a reader may find, where they are known; `before` is stored already.
    """

    lake: Path
    recorder: Recorder
    n_samples: int = N_SAMPLES
    before: frozenset[int] = frozenset()
    versions: Sequence[pl.DataFrame] = ()
    stored: set[int] = field(default_factory=set)
    billed: Counter[int] = field(default_factory=Counter)
    n_maybe_billed: int = 0  # in flight at a crash: the ones that may be paid twice
    found: Counter[str] = field(default_factory=Counter)  # what was counted, for the campaign's table

    def __post_init__(self) -> None:
        self.n_start = len(self.recorder.billed)
        self.stored = set(self.before)

    def after(self, end: Mapping[str, object]) -> list[str]:
        """Check what a run left behind, however it ended."""
        stored, n_open = ledger_state(self.lake)
        billed = Counter(self.recorder.billed[self.n_start :])
        lost = sorted(self.stored - stored)
        again = sorted(number for number in self.stored if billed[number] != self.billed[number])
        never = sorted(stored - set(billed) - self.before)
        n_adrift = sum(billed.values()) - sum(self.billed.values()) - len(stored - self.stored)
        unreadable = unreadable_files(self.lake)
        self.found.update(
            lost=len(lost), bought_again=len(again), unreadable=len(unreadable), acknowledged=len(stored - self.stored)
        )
        self.n_maybe_billed += n_open
        self.stored, self.billed = stored, billed
        wrong = {
            f"stored replies are gone: {lost}": bool(lost),
            f"bought again though stored: {again}": bool(again),
            f"stored and never billed: {never}": bool(never),
            f"{n_adrift} replies were billed and not stored, more than the {N_AT_RISK} in flight or ready": n_adrift > N_AT_RISK,
            f"an error without a sentence of its own: {end['said']}": end["code"] == 70,
        }
        return [sentence for sentence, is_so in wrong.items() if is_so] + unreadable + self._third_version()

    def at_the_end(self, end: Mapping[str, object], reference: pl.DataFrame) -> list[str]:
        """Check an undisturbed run after all: everything bought, little twice, and the table that should be."""
        wrong = self.after(end)
        if end["code"] != 0:
            wrong.append(f"the last run ended with {end['code']}: {end['said']}")
        every = set(range(self.n_samples))
        if set(self.billed) | self.before != every or self.stored != every:
            wrong.append("not every sample was asked and stored")
        n_twice = sum(self.billed.values()) - len(every - self.before)
        self.found.update(paid_twice=n_twice, in_flight=self.n_maybe_billed)
        if n_twice > self.n_maybe_billed:
            wrong.append(f"{n_twice} replies were paid twice, more than the {self.n_maybe_billed} that were in flight")
        if not wrong and not cells(self.lake).equals(reference):
            wrong.append("the table differs from that of an undisturbed run")
        return wrong

    def _third_version(self) -> list[str]:
        if not self.versions or any(cells(self.lake).equals(version) for version in self.versions):
            return []
        return ["a reader finds neither the old table nor the new one"]


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
    return load_cells(current(lake)).drop("publication_id", "run_date")  # the date is that of the run: midnight comes in between


def digest_of(folder: Path) -> str:
    """sha256 over the names and bytes of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def shape_of(lake: Path) -> str:
    """What a crash left, less what is another in every run: which files there are, what the ledger holds.

    Two lakes of one shape and one past go on alike.
    """
    names = sorted(re.sub(r"[0-9a-f]{8,}", "#", str(path.relative_to(lake))) for path in lake.rglob("*") if path.is_file())
    return f"{ledger_state(lake)} {Counter(names)}"
