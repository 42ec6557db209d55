"""The small tables for machines: the files of a benchmark that salon.duckdb is made of, and those of them that are damaged.

Each stands in the lake twice: a publication's table in its folder too, a run's row in `runs`. What is whole there is put back.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.tables.catalogue import OF_AGREEMENT, OF_PUBLICATION, TABLES
from schemas.tables.nights import DRIFT
from schemas.tables.stored import RUNS
from schemas.tables.table import Table
from tasks.lake.atomic_files import sha256_of_file, write_bytes
from tasks.lake.markers import part_name
from tasks.lake.object_store.cache_folder import bring, bucket_behind, pull, push
from tasks.lake.reading import Lake
from tasks.lake.small_files import is_table, read_files
from tasks.publish.folders import AGREEMENTS, MANIFEST
from tasks.publish.living_tables import living_table
from tasks.publish.machine_tables import LARGE_NAMES, LISTING, partition_folder, tables_folder
from tasks.publish.reading import Publication, read_manifest, readable

RESTORE = "restore it from a backup, or move it out of the lake"


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that is gone or not what was written, and the same one elsewhere where that is whole."""

    path: Path
    twin: Path | None


def files_of(
    lake_root: Path, table: Table, benchmark: str, older: Sequence[Publication], left_out: Collection[Path] = ()
) -> list[str]:
    """A benchmark's files of a table, or their pattern; and those of `older` publications, which stand in their folders alone."""
    folder = partition_folder(lake_root, table, benchmark)
    if table is DRIFT:
        return [str(path) for path in (living_table(lake_root, DRIFT, benchmark),) if path]
    patterns = [pattern for pattern in ("*/*.parquet", "*.parquet") if next(folder.glob(pattern), None)][:1]
    found = [f"{folder}/{pattern}" for pattern in patterns]
    if left_out:
        found = [str(path) for pattern in patterns for path in sorted(folder.glob(pattern)) if path not in left_out]
    if table is RUNS and older:
        named = {path.name for path in folder.glob("*.parquet")}
        found += [str(path) for path in Lake(lake_root).rows_files(RUNS) if path.name not in named and _is_of(path, benchmark)]
    elif table in OF_PUBLICATION:
        paths = [bring(one.folder / f"{table.name}.parquet") for one in older if f"{table.name}.parquet" in one.files]
        found += [str(path) for path in paths if path.is_file() and path not in left_out]
    return found


def _is_of(run: Path, benchmark: str) -> bool:
    return set(read_files([run], RUNS)["benchmark"]) == {benchmark}


def pull_small(lake_root: Path, benchmark: str) -> None:
    """The small tables of every publication out of the bucket, where the lake is in one."""
    bucket = bucket_behind(lake_root)
    there = bucket.folders(tables_folder(lake_root).relative_to(lake_root).as_posix())[0] if bucket else []
    for table in TABLES.values():
        if table.name in there and table.name not in LARGE_NAMES:
            pull(lake_root, partition_folder(lake_root, table, benchmark))


def damaged(lake_root: Path, benchmark: str) -> list[Damaged]:
    """Every damaged file of the benchmark's small tables. Publications whose manifest cannot be read are not looked at."""
    mine = [*readable(lake_root, benchmark)[0], *readable(lake_root, f"{benchmark}/{AGREEMENTS}")[0]]
    found = [one for publication in mine for one in _of_publication(lake_root, publication)]
    runs = {path.name: path for path in Lake(lake_root).rows_files(RUNS)}
    for path in sorted(partition_folder(lake_root, RUNS, benchmark).glob("*.parquet")):
        if not is_table(path):
            twin = runs.get(path.name)
            found.append(Damaged(path, twin if twin and is_table(twin) else None))
    return found


def _of_publication(lake_root: Path, one: Publication) -> Iterator[Damaged]:
    entries = read_manifest(one.folder / MANIFEST)["files"]
    for table in dict.fromkeys((*OF_PUBLICATION, *OF_AGREEMENT)):
        name = f"{table.name}.parquet"
        if name not in entries:
            continue
        path = own = one.folder / name
        if LISTING in entries:
            path = partition_folder(lake_root, table, one.benchmark, one.publication_id) / part_name(0)
        if not _is(path, sha256 := entries[name]["sha256"]):
            yield Damaged(path, own if path != own and _is(own, sha256) else None)


def _is(path: Path, sha256: str) -> bool:
    return bring(path).is_file() and sha256_of_file(path) == sha256


def put_back(lake_root: Path, benchmark: str) -> tuple[list[str], set[Path]]:
    """Make each damaged file again whose twin is whole: what became of each, in sentences, and those that stay damaged.

    Raises StoreError.
    """
    told, left_out = list[str](), set[Path]()
    for one in damaged(lake_root, benchmark):
        if one.twin is None:
            left_out.add(one.path)
            told.append(f"left out of salon.duckdb: {one.path} is not the file that was written; {RESTORE}")
        else:
            write_bytes(one.twin.read_bytes(), one.path, lake_root / "staging")
            push(lake_root, one.path)
            told.append(f"{one.path} was damaged, and is made again from {one.twin}")
    return told, left_out
