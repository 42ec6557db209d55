"""Partitions being written: parts are durable one by one, and become the lake's all at once. Reading them is reading.py."""

import shutil
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa

from schemas.errors import StoreError
from schemas.tables.table import Table, conform
from tasks.lake.atomic_files import link_or_copy, locked, place_folder, store_error, write_bytes, write_tables
from tasks.lake.markers import content_of_marker, describe, describe_the_rest, part_name
from tasks.lake.object_store.client import Bucket
from tasks.lake.object_store.partitions import bring_staged, commit_staged, parts_staged, put_staged
from tasks.lake.object_store.ranges import has_pictures
from tasks.lake.own_places import sweep
from tasks.lake.reading import Lake


def stage(lake: Lake, table: Table, shard_size: int | None = None) -> "Staging":
    """A new place to write a partition's parts, before its key is known; `shard_size`: as its marker is to say."""
    sweep(lake.root)
    return Staging(lake, table, f"{table.name}-{uuid.uuid4().hex}", shard_size)


@dataclass(frozen=True, slots=True)
class Staging:
    """Parts being written. Every part is durable when write_part returns; commit() makes them the partition at once.

    In a lake on a bucket, that is where parts are durable: any machine may write them, and any commit them.
    """

    lake: Lake
    table: Table
    name: str
    shard_size: int | None = None

    def beside(self, table: Table) -> "Staging":
        """Where parts of another table are written that are committed together with these."""
        return Staging(self.lake, table, f"{self.name}-{table.name}")

    @property
    def folder(self) -> Path:
        """Where this machine's parts are."""
        return self.lake.root / "staging" / self.name

    def write_part(self, index: int, frame: pl.DataFrame | pa.Table) -> int:
        """Write part `index` (rows in the order given) and return its number of rows."""
        return self.write_tables(index, [frame])

    def write_tables(self, index: int, frames: Iterable[pl.DataFrame | pa.Table]) -> int:
        """The same from its rows as they come, one frame in memory at a time."""
        path = self.folder / part_name(index)
        tables = (conform(frame, self.table) for frame in frames)
        n_rows = write_tables(tables, self.table.schema, path, self.folder / "unfinished")
        if self.lake.bucket:
            put_staged(self.lake.bucket, self.lake.root, path)
        return n_rows

    def take_part(self, index: int, path: Path) -> None:
        """Make a file of another partition part `index`: the same file under a second name where the file system can."""
        own = self.folder / part_name(index)
        link_or_copy(path, own, self.folder / "unfinished")
        if self.lake.bucket:
            put_staged(self.lake.bucket, self.lake.root, own)

    def part_paths(self) -> Iterator[Path]:
        """The parts written so far, in order."""
        if self.lake.bucket:
            bring_staged(self.lake.bucket, self.lake.root, self.folder)
        yield from sorted(self.folder.glob("part-*.parquet"))

    def part_path(self, index: int) -> Path:
        """The file of one part that was written. No other is fetched."""
        if self.lake.bucket:
            bring_staged(self.lake.bucket, self.lake.root, self.folder, only=part_name(index))
        return self.folder / part_name(index)

    def commit(self, key: str, indices: Iterable[int] | None = None) -> str:
        """Move the parts to their partition and write its marker; where the partition is complete already, drop them.

        `indices`: the parts that were written. Raises StoreError where others are there: something else cleared the staging
        while it was written to, and a partition that lacks a part would be in the way for good.
        """
        written = None if indices is None else sorted(map(part_name, indices))
        if self.lake.bucket:
            return self._commit_to(self.lake.bucket, key, written)
        lock = f"{self.table.name}-{key}"
        with store_error(f"committing {self.table.name} {key[:12]}"), locked(self.lake.root, lock):
            if self.lake.is_complete(self.table, key):
                self.discard()
                return key
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(self.folder / "unfinished", ignore_errors=True)
            paths = list(self.part_paths())
            self._check_all_are_there([path.name for path in paths], written)
            entries = [describe(path) | (describe_the_rest(path) if has_pictures(self.table) else {}) for path in paths]
            place_folder(self.folder, self.lake.partition(self.table, key))
            content = content_of_marker(entries, self.shard_size)
            write_bytes(content, self.lake.marker(self.table, key), self.lake.root / "staging")
        return key

    def _check_all_are_there(self, staged: list[str], written: list[str] | None) -> None:
        if written is not None and staged != written:
            raise StoreError(
                f"{self.folder} holds {len(staged)} parts, not the {len(written)} that were written: another process removed "
                "them; run the same command again"
            )

    def _commit_to(self, bucket: Bucket, key: str, written: list[str] | None) -> str:
        lake = self.lake
        if not lake.is_complete(self.table, key):
            marker = lake.marker(self.table, key)
            there = parts_staged(bucket, lake.root, self.folder)
            self._check_all_are_there([Path(one.path).name for one in there], written)
            content = commit_staged(bucket, lake.root, there, lake.partition(self.table, key), marker, self.shard_size)
            lake.keep_marker(self.table, key, content, self.folder)
        self.discard()
        return key

    def discard(self) -> None:
        """Remove what was staged."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.lake.bucket:
            self.lake.bucket.delete(one.path for one in self.lake.bucket.below(f"staging/{self.name}"))
