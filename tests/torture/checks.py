"""What must hold after a crash, held against the provider's own log. Each check returns sentences of what is wrong."""

import hashlib
import re
import sqlite3
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
from database import ServerLedger
from harness import N_SAMPLES, Recorder

from schemas.errors import SalonError
from tasks.judge.session import SPARE
from tasks.publish.reading import current, load_cells

CONCURRENCY = 8
N_AT_RISK = CONCURRENCY + CONCURRENCY // SPARE


@dataclass
class Watch:
    """One lake through its crashes: what was stored when, and what the provider billed meanwhile.

    `versions` are the tables a reader may find, where they are known; `before` is stored already. `ledger`: None for the lake's.
    """

    lake: Path
    recorder: Recorder
    n_samples: int = N_SAMPLES
    before: frozenset[int] = frozenset()
    versions: Sequence[pl.DataFrame] = ()
    ledger: ServerLedger | None = None
    stored: set[int] = field(default_factory=set)
    billed: Counter[int] = field(default_factory=Counter)
    cut_off: set[str] = field(default_factory=set)  # attempts in flight at a crash: the ones that may be paid twice
    found: Counter[str] = field(default_factory=Counter)  # what was counted, for the campaign's table

    def __post_init__(self) -> None:
        self.n_start = len(self.recorder.billed)
        self.stored = set(self.before)

    @property
    def n_maybe_billed(self) -> int:
        """Attempts in flight at the crashes so far, each counted once."""
        return len(self.cut_off)

    def after(self, end: Mapping[str, object]) -> list[str]:
        """Check what a run left behind, however it ended."""
        stored, is_open = ledger_state(self.lake, self.ledger)
        billed = Counter(self.recorder.billed[self.n_start :])
        lost = sorted(self.stored - stored)
        again = sorted(number for number in self.stored if billed[number] != self.billed[number])
        never = sorted(stored - set(billed) - self.before)
        n_adrift = sum(billed.values()) - sum(self.billed.values()) - len(stored - self.stored)
        unreadable = unreadable_files(self.lake)
        self.found.update(
            lost=len(lost), bought_again=len(again), unreadable=len(unreadable), acknowledged=len(stored - self.stored)
        )
        self.cut_off |= is_open
        self.stored, self.billed = stored, billed
        wrong = {
            f"stored replies are gone: {lost}": bool(lost),
            f"bought again though stored: {again}": bool(again),
            f"stored and never billed: {never}": bool(never),
            f"{n_adrift} replies were billed and not stored, more than the {N_AT_RISK} in flight or ready": n_adrift > N_AT_RISK,
            f"an error without a sentence of its own: {end['said']}": end["code"] == 70,
            f"a traceback: {end['said']}": "Traceback (most recent call last)" in str(end["said"]),
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


def ledger_state(lake: Path, ledger: ServerLedger | None = None) -> tuple[set[int], set[str]]:
    """(numbers of the samples whose reply is stored, attempts without an end)."""
    read = partial(_read, lake / "ledger.db") if ledger is None else ledger.read
    texts = [bytes(row[0]).decode() for row in read("SELECT reply_text FROM replies")]
    is_open = {row[0] for row in read("SELECT attempt_id FROM attempts WHERE ended_at_us IS NULL")}
    return {int(text.split("number ")[1].split(".")[0]) for text in texts}, is_open


def _read(path: Path, statement: str) -> list[Any]:
    """The rows of a statement; none where the ledger or a table is missing: killed before they were made."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as ledger:
        try:
            return ledger.execute(statement).fetchall()
        except sqlite3.OperationalError:
            return []


def unreadable_files(lake: Path, read_before: Container[str] = ()) -> list[str]:
    """Parquet files outside the staging folder that cannot be read whole, and a pointer that does not lead to a whole table.

    `read_before`: names of files below the lake whose content was found whole.
    """
    wrong: list[str] = []
    for path in lake.rglob("*.parquet"):
        if "staging" not in path.parts and str(path.relative_to(lake)) not in read_before:
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
    stored, is_open = ledger_state(lake)
    return f"{stored} {len(is_open)} {Counter(names)}"
