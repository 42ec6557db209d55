"""What differs between two tables, JSON values or texts, and between samples and their digests. Of what: recomputed_tables.py."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from schemas.records import SAMPLE_TEXTS, texts_of
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import SAMPLES
from tasks.ingest.identity import id_of_row
from tasks.ingest.text_flags import text_flags

MAX_LISTED = 10_000
"""Differences listed of one table; what is beyond is counted. A table whose every number is wrong needs no longer list."""

NOTHING = "(nothing)"
_ROW = "row in file"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was derived again. `row` is a key or a line, `column` a column or a JSON path."""

    place: str
    row: str
    column: str
    published: str
    derived: str


@dataclass(frozen=True, slots=True)
class Values:
    """How many values are published in the columns that the tables made again have too, and how many of them differ."""

    n: int = 0
    n_differing: int = 0

    def __add__(self, other: "Values") -> "Values":
        """Those of two tables."""
        return Values(self.n + other.n, self.n_differing + other.n_differing)


def n_rows_of(path: Path) -> int:
    """The rows of a Parquet file; 0 where it is none."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (ValueError, OSError):
        return 0


def compare_rows(place: str, published: pl.DataFrame, derived: pl.DataFrame, key: Sequence[str]) -> list[Difference]:
    """Rows of one table only, and values that differ in rows of both. Order counts only where all else is equal."""
    if published.equals(derived, null_equal=True) and published.schema == derived.schema:
        return []
    shared = [name for name in published.columns if name in derived.columns]
    found = [Difference(place, "", name, "a column", NOTHING) for name in published.columns if name not in shared]
    found += [Difference(place, "", name, NOTHING, "a column") for name in derived.columns if name not in shared]
    for name in shared:
        if published.schema[name] != derived.schema[name]:
            found.append(Difference(place, "", name, f"type {published.schema[name]}", f"type {derived.schema[name]}"))
    if not all(name in shared and published.schema[name] == derived.schema[name] for name in key):
        return found
    found += list(islice(_differing(place, published.select(shared), derived.select(shared), key), MAX_LISTED))
    return found or [Difference(place, "", "", "the same rows in another order", "rows in order of their key")]


def _differing(place: str, published: pl.DataFrame, derived: pl.DataFrame, key: Sequence[str]) -> Iterator[Difference]:
    for frame, other, is_published in ((published, derived, True), (derived, published, False)):
        for row in frame.join(other, on=list(key), how="anti", nulls_equal=True).select(key).iter_rows(named=True):
            yield Difference(place, _named(row), "", *(("a row", NOTHING) if is_published else (NOTHING, "a row")))
        repeated = frame.filter(frame.select(key).is_duplicated()).select(key).unique(maintain_order=True)
        if is_published:
            for row in repeated.iter_rows(named=True):
                yield Difference(place, _named(row), "", "a row more than once", "once")
    both = published.unique(key, keep="first", maintain_order=True).join(
        derived, on=list(key), how="inner", suffix=" derived", nulls_equal=True, maintain_order="left"
    )
    for name in published.columns:
        if name not in key and published.schema[name] == derived.schema[name]:
            again = f"{name} derived"
            unequal = both.filter(pl.col(name).ne_missing(pl.col(again)))
            for row in unequal.select(*key, pl.col(name).alias(_ROW), again).iter_rows(named=True):
                yield Difference(place, _named({k: row[k] for k in key}), name, shown(row[_ROW]), shown(row[again]))


def count_values(published: pl.DataFrame, derived: pl.DataFrame, key: Sequence[str]) -> Values:
    """The values of columns that both have, by rows of the same key. One whose row was not made again, or is other, differs."""
    shared = [name for name in published.columns if name in derived.columns]
    n = published.height * len(shared)
    if not all(name in shared and published.schema[name] == derived.schema[name] for name in key):
        return Values(n, n)
    again = derived.select(shared).unique(key, keep="first").with_columns(pl.lit(value=True).alias(_ROW))
    both = published.select(shared).join(again, on=list(key), how="left", suffix=" derived", nulls_equal=True)
    there = both.filter(pl.col(_ROW))
    n_differing = (both.height - there.height) * len(shared)
    for name in (name for name in shared if name not in key):
        is_alike = published.schema[name] == derived.schema[name]
        n_differing += there.filter(pl.col(name).ne_missing(pl.col(f"{name} derived"))).height if is_alike else there.height
    return Values(n, n_differing)


def compare_json(place: str, published: object, derived: object, path: str = "") -> Iterator[Difference]:
    """Values that differ, by their path."""
    if isinstance(published, dict) and isinstance(derived, dict):
        for name in sorted(published.keys() | derived.keys()):
            below = f"{path}.{name}" if path else str(name)
            yield from compare_json(place, published.get(name, NOTHING), derived.get(name, NOTHING), below)
    elif published != derived:
        yield Difference(place, "", path, shown(published), shown(derived))


def compare_texts(place: str, published: str, derived: str) -> Iterator[Difference]:
    """Lines that differ, by their number from 1."""
    pairs = zip_longest(published.splitlines(keepends=True), derived.splitlines(keepends=True), fillvalue=None)
    for number, (mine, again) in enumerate(pairs, 1):
        if mine != again:
            yield Difference(place, f"line {number}", "", shown(mine), shown(again))


def shown(value: Any, limit: int = 200) -> str:
    """A value as a message shows it: null said, numbers in full, texts quoted and clipped."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return (
            value if value == NOTHING else json.dumps(value if len(value) <= limit else f"{value[:limit]}…", ensure_ascii=False)
        )
    return str(value)[:limit]


def _named(row: dict[str, Any]) -> str:
    if len(row) == 1:
        return str(next(iter(row.values())))
    return ", ".join(f"{name} {value}" for name, value in row.items())


_PLAIN = [
    "sample_id", "source", "source_key", "model", "checkpoint", *SAMPLE_TEXTS, "item_id", "seed", "status", "image_sha256",
    "text_flags", "texts_json", "pictures",
]  # fmt: skip
_STATUSES = frozenset(status.value for status in SampleStatus)


def changed_samples(samples: pl.DataFrame) -> Iterator[tuple[str, str, str | None, str | None]]:
    """(sample_id, column, stored, computed) wherever pictures' digests and texts do not give the id and flags beside them.

    What an older release did not write is not held against anything.
    """
    there = [name for name in _PLAIN if name in samples.columns or name not in SAMPLES.later]
    for row in samples.select(there).iter_rows(named=True):
        flags = text_flags(texts_of(row))
        if "text_flags" in row and flags != row["text_flags"]:
            yield row["sample_id"], "text_flags", row["text_flags"], flags
        if row["status"] not in _STATUSES:
            yield row["sample_id"], "status", row["status"], None
            continue
        computed = id_of_row(row, SampleStatus(row["status"]))
        if computed != row["sample_id"]:
            yield row["sample_id"], "sample_id", row["sample_id"], computed
