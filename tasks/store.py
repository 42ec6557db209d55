"""The lake: the only reader and writer of its tables. What the tables hold is declared in schemas/tables.py.

Layout, below the lake's root: `<table>/<key_name>=<key>/part-00000.parquet`, one file per shard; the completion marker
in `complete/<table>/<key>.json`, written last, outside the data so that a folder scan meets Parquet files alone;
`staging/` for what is being written; `locks/`. A partition never changes after its marker is there: readers see all or nothing.
"""

import json
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import CorruptLakeError, StoreError
from schemas.tables import Table, conform
from tasks.durable import fsync_folder, locked, sha256_of_file, store_error, sweep, write_bytes, write_parquet

PARTITION_KEYS = {
    "samples": "dataset_id",
    "judgements": "plan_id",
    "requests": "plan_id",
    "replies": "snapshot_id",
    "scores": "reading_id",
    "checks": "check_id",
    "quarantine": "check_id",
}


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake on a local folder."""

    root: Path

    def stage(self, table: Table) -> "Staging":
        """A new place to write a partition's parts, before its key is known."""
        staging = self.root / "staging"
        sweep(staging)
        return Staging(self, table, staging / f"{table.name}-{uuid.uuid4().hex}")

    def is_complete(self, table: Table, key: str) -> bool:
        """Whether the partition is wholly written."""
        return self.marker(table, key).is_file()

    def parts(self, table: Table, key: str) -> list[Path]:
        """The partition's files in order. Raises CorruptLakeError where one is gone, StoreError where none was written."""
        marker = self.marker(table, key)
        try:
            entries = json.loads(marker.read_bytes())["parts"]
        except FileNotFoundError as error:
            raise StoreError(
                f"{table.name} {key[:12]} is not in the lake {self.root}; run the benchmark again to write it"
            ) from error
        paths = [self.partition(table, key) / entry["name"] for entry in entries]
        for path, entry in zip(paths, entries, strict=True):
            if not path.is_file() or path.stat().st_size != entry["n_bytes"]:
                raise CorruptLakeError(f"{path} is missing or not {entry['n_bytes']} bytes long; delete {marker} and run again")
        return paths

    def n_rows(self, table: Table, key: str) -> int:
        """Rows of the partition, from its marker."""
        entries = json.loads(self.marker(table, key).read_bytes())["parts"]
        return sum(int(entry["n_rows"]) for entry in entries)

    def scan(self, table: Table, key: str) -> pl.LazyFrame:
        """The whole partition, lazily."""
        return pl.scan_parquet(self.parts(table, key))

    def part(self, table: Table, key: str, index: int) -> Path:
        """The file of part `index`: the number it was written under, whichever other parts there are."""
        name = part_name(index)
        for path in self.parts(table, key):
            if path.name == name:
                return path
        raise CorruptLakeError(f"{self.partition(table, key)} has no {name}; delete {self.marker(table, key)} and run again")

    def read_part(self, table: Table, key: str, index: int, columns: list[str] | None = None) -> pl.DataFrame:
        """The rows of part `index`, or some of its columns."""
        return pl.read_parquet(self.part(table, key, index), columns=columns)

    def partition(self, table: Table, key: str) -> Path:
        """The folder of a partition."""
        return self.root / table.name / f"{PARTITION_KEYS[table.name]}={key}"

    def append_row(self, table: Table, name: str, frame: pl.DataFrame) -> Path:
        """Add one file to an append-only table (`runs`); `name` must be new."""
        target = self.root / table.name / f"{name}.parquet"
        write_parquet(conform(frame, table), target, self.root / "staging")
        return target

    def marker(self, table: Table, key: str) -> Path:
        """The completion marker of a partition: names, rows, sizes and sha256 of its parts."""
        return self.root / "complete" / table.name / f"{key}.json"


@dataclass(frozen=True, slots=True)
class Staging:
    """Parts being written. Every part is durable when write_part returns; commit() makes them the partition at once."""

    lake: Lake
    table: Table
    folder: Path

    def write_part(self, index: int, frame: pl.DataFrame | pa.Table) -> int:
        """Write part `index` (rows in the order given) and return its number of rows."""
        table = conform(frame, self.table)
        write_parquet(table, self.folder / part_name(index), self.folder / "unfinished")
        return int(table.num_rows)

    def part_paths(self) -> Iterator[Path]:
        """The parts written so far, in order."""
        yield from sorted(self.folder.glob("part-*.parquet"))

    def commit(self, key: str) -> str:
        """Move the parts to their partition and write its marker; where the partition is complete already, drop them."""
        lock = f"{self.table.name}-{key}"
        with store_error(f"committing {self.table.name} {key[:12]}"), locked(self.lake.root, lock):
            if self.lake.is_complete(self.table, key):
                self.discard()
                return key
            target = self.lake.partition(self.table, key)
            target.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(self.folder / "unfinished", ignore_errors=True)
            entries = [_describe(path) for path in self.part_paths()]
            _take_place(self.folder, target)
            fsync_folder(target.parent)
            write_bytes(
                json.dumps({"parts": entries}, indent=1).encode(), self.lake.marker(self.table, key), self.lake.root / "staging"
            )
        return key

    def discard(self) -> None:
        """Remove what was staged."""
        shutil.rmtree(self.folder, ignore_errors=True)


def part_name(index: int) -> str:
    """The file name of a part."""
    return f"part-{index:05d}.parquet"


def _take_place(staged: Path, target: Path) -> None:
    """Rename a staged folder into place. A target without a marker is a leftover of a killed run: it is replaced."""
    fsync_folder(staged)
    if target.exists():
        aside = staged.with_name(f"{staged.name}.leftover")
        target.rename(aside)
        staged.rename(target)
        shutil.rmtree(aside, ignore_errors=True)
    else:
        staged.rename(target)


def _describe(path: Path) -> dict[str, object]:
    return {
        "name": path.name,
        "n_rows": pq.read_metadata(path).num_rows,
        "n_bytes": path.stat().st_size,
        "sha256": sha256_of_file(path),
    }
