"""Publishing: one immutable folder per publication, then one pointer, written last. Finding and reading them is reading.py."""

import hashlib
import json
import logging
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from schemas.errors import CorruptLakeError
from schemas.tables import BENCHMARK_LONG, CHECKS, QUARANTINE, SCHEMA_VERSION, Table, conform
from tasks.durable import locked, write_bytes, write_parquet
from tasks.publish.exports import to_csv
from tasks.publish.folders import LAYOUT, MANIFEST, POINTER, PROVENANCE, as_json, is_published, manifest_of, take_place
from tasks.publish.latex import leaderboard_tex
from tasks.publish.machine_tables import LARGE, LISTING, place_tables
from tasks.publish.page import leaderboard_page
from tasks.publish.views import views_sql
from tasks.store import Lake

CELL_ORDER = ["rubric_id", "judge_model", "model", "checkpoint", "dimension", "category", "metric", "estimand"]

_log = logging.getLogger("salon.publish")


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
    Raises StoreError where the disk refuses; the pointer then says what it said before.
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
                is_new = take_place(staged, folder)
            finally:
                shutil.rmtree(staged, ignore_errors=True)
    has_estimate = cells["estimate"].count() > 0
    is_current = _point(lake_root, home, folder, benchmark=benchmark, run_date=run_date, has_estimate=has_estimate)
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


def read_pointer(home: Path) -> dict[str, str] | None:
    """What latest.json of a benchmark's folder says; None where there is none. Raises CorruptLakeError where it is not whole."""
    path = home / POINTER
    try:
        found = json.loads(path.read_bytes())
        return {name: str(found[name]) for name in ("publication_id", "run_date", "manifest_sha256")}
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptLakeError(f"{path} is not a pointer Salon wrote ({error}); delete it and run the benchmark again") from error


def _write_tables(staged: Path, lake_root: Path, tables: Mapping[Table, pl.DataFrame]) -> dict[Table, Path]:
    written = {}
    for table, frame in tables.items():
        order = CELL_ORDER if table is BENCHMARK_LONG else list(table.key)
        arrow = conform(frame.sort(order).rechunk(), table).combine_chunks()
        written[table] = staged / f"{table.name}.parquet"
        write_parquet(arrow, written[table], lake_root / "staging")
    return written


def _point(lake_root: Path, home: Path, folder: Path, *, benchmark: str, run_date: date, has_estimate: bool) -> bool:
    """Move the pointer to `folder` unless that would show less or older: see docs/decisions. Returns whether it stands there.

    A publication without any estimate never becomes current, nor one whose run date is before the current one's.
    """
    with locked(lake_root, f"pointer-{benchmark}"):
        current = read_pointer(home)
        if current and current["publication_id"] == folder.name:
            return True
        if not has_estimate:
            _log.warning("no cell of %s has an estimate: the current publication stays what it was", folder.name[:12])
            return False
        if current and current["run_date"] > run_date.isoformat():
            return False
        content = {
            "benchmark": benchmark,
            "manifest_sha256": hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
            "publication_id": folder.name,
            "run_date": run_date,
            "schema_version": SCHEMA_VERSION,
            "tables": {path.stem: f"{folder.name}/{path.name}" for path in sorted(folder.glob("*.parquet"))},
            "large_tables": _large_tables(folder),
        }
        write_bytes(as_json(content), home / POINTER, lake_root / "staging")
        return True


def _large_tables(folder: Path) -> dict[str, list[str]]:
    """The files of the tables that do not stand in the folder, relative to the pointer's."""
    if not (folder / LISTING).is_file():  # published before there were tables for machines
        return {}
    files = json.loads((folder / LISTING).read_bytes())["files"]
    large = {table.name for table, _ in LARGE}
    return {
        name: [f"../{file['path']}" for file in files if file["table"] == name]
        for name in dict.fromkeys(file["table"] for file in files if file["table"] in large)
    }
