"""Publishing: one immutable folder per publication, then the pointer (pointer.py). Finding and reading them is reading.py."""

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from schemas.metrics import CELL_ORDER
from schemas.tables import BENCHMARK_LONG, CHECKS, QUARANTINE, SCHEMA_VERSION, Table, conform
from tasks.lake.atomic_files import locked, write_bytes, write_parquet
from tasks.lake.object_store.cache_folder import pull
from tasks.lake.reading import Lake
from tasks.publish.exports import to_csv
from tasks.publish.folders import LAYOUT, MANIFEST, PROVENANCE, as_json, is_published, manifest_of, take_place
from tasks.publish.latex import leaderboard_tex
from tasks.publish.machine_tables import LISTING, place_tables
from tasks.publish.page import leaderboard_page
from tasks.publish.pointer import move_pointer
from tasks.publish.views import views_sql


@dataclass(frozen=True, slots=True)
class Published:
    """Where a publication stands; whether this call wrote it; whether the pointer says it is the current one."""

    folder: Path
    publication_id: str
    is_new: bool
    is_current: bool


def publish(
    lake_root: Path,
    *,
    publication_id: str,
    benchmark: str,
    run_date: date,
    cells: pl.DataFrame,
    checks: pl.DataFrame,
    quarantine: pl.DataFrame,
    provenance: Mapping[str, object],
    further: Mapping[Table, pl.DataFrame] | None = None,
    pages: Mapping[str, bytes] | None = None,
) -> Published:
    """Write `publish/v1/<benchmark>/<publication_id>/` whole, unless it is there, then move the pointer where it should move.

    `further` tables are written beside benchmark_long, as Parquet and CSV, `pages` as they are under their plain file names.
    Before the folder takes its place, its tables and the lake's large ones are placed among the tables for machines.
    In a lake on a bucket all of it is put there, the manifest last; where another run was first, its folder counts.
    Raises StoreError where the disk or the bucket refuses; the pointer then says what it said before.
    """
    home = lake_root / "publish" / LAYOUT / benchmark
    folder = home / publication_id
    named = {"benchmark": benchmark, "publication_id": publication_id, "run_date": run_date, "schema_version": SCHEMA_VERSION}
    tables = {BENCHMARK_LONG: cells, CHECKS: checks, QUARANTINE: quarantine} | dict(further or {})
    with locked(lake_root, f"publication-{publication_id}"):
        is_new = not is_published(folder)
        if is_new:
            staged = lake_root / "staging" / f"publication-{uuid.uuid4().hex}"
            texts = _texts(cells, dict(further or {}), dict(pages or {}), named)
            try:
                _write(lake_root, staged, tables, texts, provenance, named)
                is_new = take_place(staged, folder, _tables_of(staged, home))
            finally:
                shutil.rmtree(staged, ignore_errors=True)
        if not is_new:
            pull(lake_root, folder.relative_to(lake_root).as_posix())
    has_estimate = cells["estimate"].count() > 0
    is_current = move_pointer(lake_root, folder, benchmark=benchmark, run_date=run_date, has_estimate=has_estimate)
    return Published(folder, publication_id, is_new, is_current)


def _write(
    lake_root: Path,
    staged: Path,
    tables: Mapping[Table, pl.DataFrame],
    texts: dict[str, bytes],
    provenance: Mapping[str, Any],
    named: dict[str, Any],
) -> None:
    """Write the folder's files, the manifest last, and place its tables among those for machines."""
    staging = lake_root / "staging"
    texts = texts | {PROVENANCE: as_json(dict(provenance) | named)}
    written = _write_tables(staged, lake_root, tables)
    identities = provenance.get("identities") or {}
    placed = place_tables(Lake(lake_root), named["benchmark"], named["publication_id"], written, identities)
    texts[LISTING] = as_json(named | {"files": [asdict(file) for file in placed]})
    for name, content in texts.items():
        write_bytes(content, staged / name, staging)
    write_bytes(manifest_of(staged, named), staged / MANIFEST, staging)


def _tables_of(staged: Path, home: Path) -> Iterator[Path]:
    """The files among the tables for machines that a staged publication lists."""
    for file in json.loads((staged / LISTING).read_bytes())["files"]:
        yield home.parent / file["path"]


def _texts(
    cells: pl.DataFrame, further: dict[Table, pl.DataFrame], pages: dict[str, bytes], named: dict[str, Any]
) -> dict[str, bytes]:
    """The publication's files that are no Parquet, by name. Raises ValueError where a page would take another file's name."""
    ordered = cells.sort(CELL_ORDER)
    said = {name: named[name] for name in ("benchmark", "publication_id", "run_date")}
    texts = {
        "benchmark_long.csv": to_csv(ordered.select(BENCHMARK_LONG.columns)),
        "leaderboard.md": leaderboard_page(ordered, **said).encode(),
        "leaderboard.tex": leaderboard_tex(ordered, **said).encode(),
        "views.sql": views_sql(said["benchmark"], said["publication_id"]).encode(),
    }
    texts |= {f"{t.name}.csv": to_csv(frame.sort(list(t.key)).select(t.columns)) for t, frame in further.items()}
    taken = {*texts, PROVENANCE, LISTING, MANIFEST}
    wrong = [name for name in pages if not name or name in taken or Path(name).name != name or name.endswith(".parquet")]
    if wrong:
        raise ValueError(f"pages are named by plain file names that no other file of a publication has; not so: {wrong}")
    return texts | pages


def _write_tables(staged: Path, lake_root: Path, tables: Mapping[Table, pl.DataFrame]) -> dict[Table, Path]:
    written = {}
    for table, frame in tables.items():
        order = CELL_ORDER if table is BENCHMARK_LONG else list(table.key)
        arrow = conform(frame.sort(order).rechunk(), table).combine_chunks()
        written[table] = staged / f"{table.name}.parquet"
        write_parquet(arrow, written[table], lake_root / "staging")
    return written
