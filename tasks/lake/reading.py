"""The lake: how its tables are laid out, and their only reader. They are written in writing.py and declared in schemas/tables.

Layout, below the lake's root: `<table>/<key_name>=<key>/part-00000.parquet`, one file per shard; the completion marker in
`complete/<table>/<key>.json`, written last; `staging/` for what is being written; `locks/`. A partition never changes after its
marker is there: readers see all or nothing. A lake may stand in a bucket (`s3://bucket/prefix`): then the root is its working
folder, from which parts are sent and into which they are fetched as they are asked for (object_store/).
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from schemas.errors import CorruptLakeError, InputError, StoreError
from schemas.tables.table import Table, conform
from tasks.lake.atomic_files import locked, store_error, write_bytes, write_parquet
from tasks.lake.markers import describe, entries_in, entries_of, part_name, what_is_wrong
from tasks.lake.object_store.cache_folder import bucket_behind, is_url, pull, push, url_of, working_folder
from tasks.lake.object_store.client import Bucket
from tasks.lake.object_store.partitions import bring_parts, sweep_bucket
from tasks.lake.object_store.ranges import PICTURE, bring_slim, has_pictures, opened
from tasks.lake.own_places import own_folder, remove_in
from tasks.regular_files import content_of

PARTITION_KEYS = {
    "samples": "dataset_id",
    "pictures": "dataset_id",
    "judgements": "plan_id",
    "requests": "plan_id",
    "replies": "snapshot_id",
    "scores": "reading_id",
    "checks": "check_id",
    "quarantine": "check_id",
}
_PATTERN = frozenset("*?[")
_ROWS_SCANNED = 250_000


@dataclass(frozen=True)
class Lake:
    """A lake on a local folder, or on a bucket, worked in a local folder. Another machine opens it by its address."""

    root: Path

    @cached_property
    def bucket(self) -> Bucket | None:
        """The bucket it stands in; None for a lake that is the folder."""
        return bucket_behind(self.root)

    @property
    def place(self) -> str:
        """Where it is, as `--lake` takes it."""
        return url_of(self.root) or str(self.root)

    def __reduce__(self) -> tuple[Callable[[str], "Lake"], tuple[str]]:
        return open_lake, (self.place,)

    def sweep(self) -> None:
        """Remove from a bucket what killed runs left staged days ago; from a folder, stage() does it."""
        if self.bucket:
            sweep_bucket(self.bucket)

    def is_complete(self, table: Table, key: str) -> bool:
        """Whether the partition is wholly written."""
        marker = self.marker(table, key)
        if marker.is_file() or self.bucket is None:
            return marker.is_file()
        found = self.bucket.get(marker.relative_to(self.root).as_posix())
        if found is not None:
            self.keep_marker(table, key, found[0])
        return found is not None

    def keys(self, table: Table) -> set[str]:
        """The keys of all partitions that are wholly written."""
        return set(self.written_at(table))

    def written_at(self, table: Table) -> dict[str, float]:
        """When each partition was wholly written, in seconds of the clock of its disk or its store."""
        folder = self.marker(table, "any").parent
        if self.bucket:
            listed = self.bucket.folders(folder.relative_to(self.root).as_posix())[1]
            return {Path(one.path).stem: one.changed_at.timestamp() for one in listed}
        found = dict[str, float]()
        for marker in folder.glob("*.json"):
            with suppress(FileNotFoundError):  # cleared this moment
                found[marker.stem] = marker.stat().st_mtime
        return found

    def parts(self, table: Table, key: str) -> list[Path]:
        """The partition's files in order. Raises CorruptLakeError where one is gone, StoreError where none was written."""
        return self._there(table, key, self._entries(table, key).values())

    def n_rows(self, table: Table, key: str) -> int:
        """Rows of the partition, from its marker."""
        return sum(int(entry["n_rows"]) for entry in self._entries(table, key).values())

    def n_parts(self, table: Table, key: str) -> int:
        """Files of the partition, from its marker."""
        return len(self._entries(table, key))

    def shard_size(self, table: Table, key: str) -> int | None:
        """The size by which a dataset was cut into these files, from its marker; None where an earlier release wrote it."""
        self._entries(table, key)
        found = json.loads(content_of(self.marker(table, key))).get("shard_size")
        return found if isinstance(found, int) and found > 0 else None

    def parts_without_pictures(self, table: Table, key: str) -> list[Path]:
        """Files with all that the partition's hold but the bytes of pictures, under the same names and in the same order.

        They are the parts themselves in a folder. Out of a bucket come only these columns.
        """
        if self.bucket and has_pictures(table):
            return bring_slim(self.bucket, self.root, self.partition(table, key), self._entries(table, key).values())
        return self.parts(table, key)

    def scan(self, table: Table, key: str) -> pl.LazyFrame:
        """The whole partition, lazily; its pictures only where the lake is a folder."""
        paths = self.parts_without_pictures(table, key)
        return with_later_columns(pl.scan_parquet(paths), table) if paths else table.empty().lazy()

    def scans(self, table: Table, key: str) -> Iterator[pl.LazyFrame]:
        """scan() some parts at a time, in order: footers of ten million samples' row groups take 4.5 GB together."""
        for paths in self.parts_together(table, key):
            yield with_later_columns(pl.scan_parquet(paths, hive_partitioning=False), table)

    def parts_together(self, table: Table, key: str, n_rows: int = _ROWS_SCANNED) -> Iterator[list[Path]]:
        """parts_without_pictures() in order, some `n_rows` rows together."""
        paths = self.parts_without_pictures(table, key)
        n_together = max(1, n_rows * len(paths) // max(1, self.n_rows(table, key)))
        yield from (paths[start : start + n_together] for start in range(0, len(paths), n_together))

    def collect(self, table: Table, key: str, of: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
        """What `of` makes of some parts' rows, of all parts one behind the other."""
        return pl.concat(of(scan).collect(engine="streaming") for scan in [table.empty().lazy(), *self.scans(table, key)])

    def open_part(self, table: Table, key: str, name: str) -> pq.ParquetFile:
        """The part of this name, to read some of it: out of a bucket comes what is read."""
        folder, entry = self.partition(table, key), self._entries(table, key)[name]
        return opened(self.bucket, self.root, folder, entry) if self.bucket else pq.ParquetFile(folder / name)

    def part(self, table: Table, key: str, index: int) -> Path:
        """The file of part `index`: the number it was written under, whichever other parts there are. No other is fetched."""
        return self._there(table, key, [self._entry(table, key, index)])[0]

    def read_part(self, table: Table, key: str, index: int, columns: list[str] | None = None) -> pl.DataFrame:
        """The rows of part `index`, or some of its columns."""
        if self.bucket and has_pictures(table) and columns and PICTURE not in columns:
            entry = self._entry(table, key, index)
            (path,) = bring_slim(self.bucket, self.root, self.partition(table, key), [entry])
        else:
            path = self.part(table, key, index)
        rows = with_later_columns(pl.scan_parquet(path, hive_partitioning=False), table)
        return (rows if columns is None else rows.select(columns)).collect()

    def partition(self, table: Table, key: str) -> Path:
        """The folder of a partition."""
        return self.root / table.name / f"{PARTITION_KEYS[table.name]}={key}"

    def append_row(self, table: Table, name: str, frame: pl.DataFrame) -> Path:
        """Add one file to an append-only table (`runs`); `name` must be new."""
        target = self.root / table.name / f"{name}.parquet"
        write_parquet(conform(frame, table), target, self.root / "staging")
        push(self.root, target)
        return target

    def rows_files(self, table: Table) -> list[Path]:
        """The files of an append-only table, as they are now."""
        pull(self.root, table.name)
        return sorted((self.root / table.name).glob("*.parquet"))

    def marker(self, table: Table, key: str) -> Path:
        """The completion marker of a partition: names, rows, sizes and sha256 of its parts."""
        return self.root / "complete" / table.name / f"{key}.json"

    def bring_as_it_is(self, table: Table, key: str) -> None:
        """Fetch a partition's marker and files that are missing here, whatever they hold: for verifying them."""
        if self.bucket and self.is_complete(table, key):
            entries = self._entries(table, key).values()
            bring_parts(self.bucket, self.root, self.partition(table, key), entries, is_checked=False)

    def _entries(self, table: Table, key: str) -> Mapping[str, dict[str, Any]]:
        marker = self.marker(table, key)
        try:
            if self.is_complete(table, key):
                return entries_in(marker, marker.stat().st_mtime_ns)
        except FileNotFoundError:  # the working folder was deleted this moment
            pass
        raise StoreError(f"{table.name} {key[:12]} is not in the lake {self.place}; run the benchmark again to write it")

    def _entry(self, table: Table, key: str, index: int) -> dict[str, Any]:
        entry = self._entries(table, key).get(part_name(index))
        if entry is None:
            raise CorruptLakeError(
                f"{self.partition(table, key)} has no {part_name(index)}; delete {self.marker(table, key)} and run again"
            )
        return entry

    def _there(self, table: Table, key: str, entries: Collection[dict[str, Any]]) -> list[Path]:
        folder = self.partition(table, key)
        if self.bucket:
            bring_parts(self.bucket, self.root, folder, entries)
        paths = [folder / entry["name"] for entry in entries]
        for path, entry in zip(paths, entries, strict=True):
            wrong = what_is_wrong(path, entry, has_pictures(table))
            if wrong:
                raise CorruptLakeError(f"{path} {wrong}; delete {self.marker(table, key)} and run again")
        return paths

    def keep_marker(self, table: Table, key: str, content: bytes, staged: Path | None = None) -> None:
        """Keep a marker of the bucket here. Files kept under an earlier marker go; `staged` ones that it names are kept."""
        marker, folder = self.marker(table, key), self.partition(table, key)
        with store_error(f"writing {marker}"), locked(self.root, f"{table.name}-{key}"):
            if marker.is_file():
                return
            if folder.exists():
                with own_folder(self.root, folder.parent) as home:
                    remove_in(home, folder.name)
            folder.mkdir(parents=True)
            for entry in entries_of(marker, content) if staged else ():
                own = staged / entry["name"]
                if own.is_file() and describe(own) == entry:
                    own.rename(folder / own.name)
            write_bytes(content, marker, self.root / "staging")


def with_later_columns(scan: pl.LazyFrame, table: Table) -> pl.LazyFrame:
    """The rows with null in columns that came to the table after they were written."""
    if not table.later:
        return scan
    there, dtypes = set(scan.collect_schema().names()), table.empty().schema
    return scan.with_columns(pl.lit(None, dtypes[name]).alias(name) for name in table.later if name not in there)


def open_lake(place: str, folder: Path | None = None) -> Lake:
    """The lake at `s3://bucket/prefix` or in a folder, seen from `folder`. Raises InputError for another kind of address."""
    if is_url(place):
        return Lake(working_folder(place))
    root = (folder / place).resolve() if folder else Path(place)
    if _PATTERN & set(str(root)):
        raise InputError(
            f"lake: {root} contains one of {' '.join(sorted(_PATTERN))}, and Parquet readers treat such a path as a glob "
            "pattern; name a folder without them"
        )
    return Lake(root)
