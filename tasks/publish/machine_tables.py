"""The tables for machines: hive folders that a reader can glob, and among them the append-only `runs`.

Sealed folders are publication.py, SQL over the tables duckdb_views.py.

`publish/v1/tables/<table>/benchmark_name=<name>/publication=<id>/part-00000.parquet`, and a file a run in
`publish/v1/tables/runs/benchmark_name=<name>/`. None is ever replaced: whoever globs reads what was there when he looked. The
keys are no columns' names, so that readers that refuse a column given twice can read them. What has versions: living_tables.py.
"""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.tables.field import IMAGE_TYPE
from schemas.tables.stored import JUDGEMENTS, PICTURES, RUNS, SAMPLES, SCORES
from schemas.tables.table import Table, conform
from tasks.lake.atomic_files import place_folder, scratch, sha256_of_file, store_error, write_bytes, write_parquet
from tasks.lake.markers import part_name
from tasks.lake.object_store.cache_folder import push
from tasks.lake.reading import Lake
from tasks.lake.small_files import read_files
from tasks.publish.folders import LAYOUT, PROVENANCE, PublicationName
from tasks.regular_files import content_of
from tasks.stopping import check_not_stopped

FOLDER, LISTING = "tables", "tables.json"
_SLIM = tuple(
    replace(table, fields=tuple(field for field in table.fields if field.arrow_type != IMAGE_TYPE))
    for table in (SAMPLES, PICTURES)
)
LARGE = (*((table, "dataset_id") for table in _SLIM), (JUDGEMENTS, "plan_id"), (SCORES, "reading_id"))
"""The tables of single samples and scores, and the identity in provenance.json that names their partition of the lake."""
LARGE_NAMES = frozenset(table.name for table, _ in LARGE)
N_ROWS_PER_FILE = 500_000  # about 50 MB of scores: few files for a reader, a bounded table in memory for us
_BATCH_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """One file of the tree; `path` is relative to `publish/v1/`."""

    table: str
    path: str
    n_rows: int
    n_bytes: int
    sha256: str


def tables_folder(lake_root: Path) -> Path:
    """Where the tables for machines stand."""
    return lake_root / "publish" / LAYOUT / FOLDER


def partition_folder(lake_root: Path, table: Table, benchmark: str, publication_id: str | None = None) -> Path:
    """The folder of a benchmark's rows of a table, or of one publication's rows of them."""
    mine = tables_folder(lake_root) / table.name / f"benchmark_name={benchmark}"
    return mine / f"publication={publication_id}" if publication_id else mine


def place_tables(
    lake: Lake, name: PublicationName, small: Mapping[Table, Path], identities: Mapping[str, str]
) -> list[PlacedFile]:
    """Put the publication's small tables (files) and the lake's large ones into the tree; what was placed, by table and path.

    Large tables are copied out of their partitions in the lake's order, without pictures, into files of N_ROWS_PER_FILE rows,
    so that the bytes do not depend on the size of shards; where an earlier publication is of the same partition, its files
    are linked. One that the lake does not hold is left out. Call it under the
    publication's lock: a folder of another content is what a killed run left, and is replaced. Raises StoreError.
    """
    placed: list[PlacedFile] = []
    large = {table: identities[key] for table, key in LARGE if lake.is_complete(table, identities.get(key, ""))}
    for table in sorted([*small, *large], key=lambda table: table.name):
        check_not_stopped()
        target = partition_folder(lake.root, table, name.benchmark, name.publication_id)
        with scratch(lake.root, "table") as staged:
            if table in small:
                write_bytes(small[table].read_bytes(), staged / part_name(0), lake.root / "staging")
            elif not _link_large(lake, table, (large[table], identities.get("code_version")), name.benchmark, staged):
                for index, rows in enumerate(_rebatched(_streamed(lake, table, large[table]), table)):
                    write_parquet(rows, staged / part_name(index), lake.root / "staging")
            _settle(staged, target)
        placed += [_describe(lake.root, table, path) for path in sorted(target.glob("*.parquet"))]
    return placed


def _rebatched(stream: Iterable[pl.DataFrame], table: Table) -> Iterator[pa.Table]:
    """The rows in order, N_ROWS_PER_FILE at a time, in one piece each; one empty table where there are none.

    Rows wait as what is written: half a million samples are 0.3 GB, and would be there three times.
    """
    waiting: list[pa.Table] = [conform(table.empty(), table)]
    n_waiting, has_any = 0, False
    for some in stream:
        check_not_stopped()
        rows = conform(some, table)
        while n_waiting + rows.num_rows > N_ROWS_PER_FILE:
            n_more = N_ROWS_PER_FILE - n_waiting
            yield pa.concat_tables([*waiting, rows[:n_more]]).combine_chunks()
            rows, waiting, n_waiting, has_any = rows[n_more:], [], 0, True
        waiting.append(rows)
        n_waiting += rows.num_rows
    if n_waiting or not has_any:
        yield pa.concat_tables(waiting).combine_chunks()


def _streamed(lake: Lake, table: Table, key: str) -> Iterator[pl.DataFrame]:
    for rows in lake.scans(table, key):
        yield from rows.select(table.columns).collect_batches(chunk_size=_BATCH_ROWS, maintain_order=True, engine="streaming")


def _link_large(lake: Lake, table: Table, key: tuple[object, object], benchmark: str, staged: Path) -> bool:
    """Stage the files that an earlier publication has of the same partition: the same rows are on the disk once.

    `key`: the partition's and the code's version. False, and nothing staged, where no publication is of them, or the newest
    one's files are not what they were.
    """
    root = tables_folder(lake.root).parent
    folders = sorted(root.joinpath(benchmark).glob(f"*/{LISTING}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    listing = next((path for path in folders if _made_of(path.parent, table) == key), None)
    files = [] if listing is None else _said(listing).get("files", [])
    there = [(root / file["path"], file["sha256"]) for file in files if file["table"] == table.name]
    if not there or any(not path.is_file() or sha256_of_file(path) != sha256 for path, sha256 in there):
        return False
    staged.mkdir(parents=True, exist_ok=True)
    for path, _ in there:
        try:
            (staged / path.name).hardlink_to(path)
        except OSError:  # a file system without links
            write_bytes(path.read_bytes(), staged / path.name, lake.root / "staging")
    return True


def _made_of(folder: Path, table: Table) -> tuple[object, object]:
    """The partition that a publication has a large table of, and the code that placed it."""
    identities = _said(folder / PROVENANCE).get("identities") or {}
    identity = next(name for one, name in LARGE if one is table)
    return identities.get(identity), identities.get("code_version")


def _said(path: Path) -> dict[str, Any]:
    """What a JSON file of an earlier publication says; nothing where it cannot be read: its files are only not linked."""
    try:
        return dict(json.loads(content_of(path)))
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def _settle(staged: Path, target: Path) -> None:
    """Rename the staged folder to its place, whole; where the same files stand there already, touch nothing."""
    with store_error(f"writing {target}"):
        if _contents(staged) != _contents(target):
            place_folder(staged, target)


def _contents(folder: Path) -> dict[str, str]:
    return {path.name: sha256_of_file(path) for path in sorted(folder.glob("*"))}


def _describe(lake_root: Path, table: Table, path: Path) -> PlacedFile:
    relative = path.relative_to(tables_folder(lake_root).parent).as_posix()
    return PlacedFile(table.name, relative, pq.read_metadata(path).num_rows, path.stat().st_size, sha256_of_file(path))


def changed_tables(lake_root: Path, folder: Path) -> list[str]:
    """The paths below `publish/v1/` whose bytes are not those that the publication in `folder` lists; empty where all are."""
    root = tables_folder(lake_root).parent
    files = json.loads(content_of(folder / LISTING))["files"]
    return [file["path"] for file in files if not _is_as_listed(root / file["path"], file)]


def _is_as_listed(path: Path, file: Mapping[str, object]) -> bool:
    return path.is_file() and path.stat().st_size == file["n_bytes"] and sha256_of_file(path) == file["sha256"]


def record_run(lake: Lake, row: Mapping[str, object]) -> Path:
    """Append one row of RUNS (`started_at` in UTC) as a file of its own, to the lake's and to the benchmark's for machines.

    Two runs never share a name.
    """
    frame = RUNS.frame([row])
    started = frame["started_at"].dt.strftime("%Y%m%dT%H%M%S%6f")[0]
    path = lake.append_row(RUNS, f"{started}-{secrets.token_hex(4)}", frame)
    target = partition_folder(lake.root, RUNS, str(row["benchmark"])) / path.name
    write_bytes(path.read_bytes(), target, lake.root / "staging")
    push(lake.root, target)
    return path


def runs(lake: Lake) -> pl.DataFrame:
    """Every run, oldest first. Of unknown cost and requests sent it is "at least", also where an older row lacks that."""
    is_unknown = pl.col("cost_usd").is_null() & (pl.col("n_asked") > 0)
    found = read_files(lake.rows_files(RUNS), RUNS).sort("started_at", "benchmark")
    return found.with_columns(is_at_least=pl.col("is_at_least") | is_unknown.fill_null(value=False))


def cost_of(rows: pl.DataFrame) -> tuple[float | None, bool]:
    """What rows of runs() cost together in USD, None where it is known of none, and whether more may have been billed."""
    costs = rows["cost_usd"].drop_nulls()
    return None if costs.is_empty() else float(costs.sum()), bool(rows["is_at_least"].any())


def first_made(lake: Lake) -> dict[str, datetime]:
    """When (UTC) the first run ended that made or found each publication: it holds no time itself."""
    first = runs(lake).drop_nulls("publication_id").group_by("publication_id").agg(pl.col("finished_at").min())
    return dict(first.iter_rows())
