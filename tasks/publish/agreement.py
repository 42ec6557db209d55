"""Publishing agreement with people: one immutable folder per agreement, then its pointer. The benchmark's own is publication.py.

`publish/v1/<benchmark>/agreement/<agreement_id>/` holds agreement, corrected and ratings (Parquet and CSV), agreement.md,
provenance.json and the manifest.
"""

import hashlib
import json
import shutil
import uuid
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import polars as pl

from schemas.tables import AGREEMENT, CORRECTED, RATINGS, SCHEMA_VERSION, Table, conform
from tasks.lake.atomic_files import write_bytes, write_parquet
from tasks.lake.object_store.cache_folder import pull, push
from tasks.publish.agreement_page import agreement_page
from tasks.publish.exports import to_csv
from tasks.publish.folders import LAYOUT, MANIFEST, POINTER, PROVENANCE, as_json, is_published, manifest_of, take_place
from tasks.publish.publication import Published

FOLDER = "agreement"


def agreement_id(
    ratings: pl.DataFrame, *, reading_id: str, plan_id: str, dataset_id: str, run_date: date, code_version: str
) -> str:
    """sha256 hex of everything an agreement is made from: the same inputs are the same publication."""
    inputs = {
        "code_version": code_version, "dataset_id": dataset_id, "plan_id": plan_id, "ratings": ratings_digest(ratings),
        "reading_id": reading_id, "run_date": run_date.isoformat(), "schema_version": SCHEMA_VERSION,
    }  # fmt: skip
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def ratings_digest(ratings: pl.DataFrame) -> str:
    """sha256 hex over the rows of the ratings table as canonical JSON lines, in their order."""
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in ratings.select(RATINGS.columns).iter_rows())
    whole = hashlib.sha256()
    for line in lines:
        whole.update(f"{line}\n".encode())
    return whole.hexdigest()


def find_agreement(lake_root: Path, benchmark: str, key: str) -> Path | None:
    """The folder of an agreement that was published before. Raises CorruptLakeError where it is not whole."""
    folder = lake_root / "publish" / LAYOUT / benchmark / FOLDER / key
    if not is_published(folder):
        return None
    pull(lake_root, folder.relative_to(lake_root).as_posix())
    return folder


def publish_agreement(
    lake_root: Path,
    *,
    key: str,
    benchmark: str,
    run_date: date,
    agreement: pl.DataFrame,
    corrected: pl.DataFrame,
    ratings: pl.DataFrame,
    provenance: Mapping[str, object],
) -> Published:
    """Write the folder whole, unless it is there, then point `agreement/latest.json` to it. Raises StoreError."""
    home = lake_root / "publish" / LAYOUT / benchmark / FOLDER
    folder, staging = home / key, lake_root / "staging"
    is_new = not is_published(folder)
    if is_new:
        named = {"benchmark": benchmark, "publication_id": key, "run_date": run_date, "schema_version": SCHEMA_VERSION}
        staged = staging / f"agreement-{uuid.uuid4().hex}"
        try:
            for table, frame in ((AGREEMENT, agreement), (CORRECTED, corrected), (RATINGS, ratings)):
                _write(table, frame, staged, staging)
            page = agreement_page(agreement, corrected, benchmark=benchmark, run_date=run_date, key=key)
            write_bytes(page.encode(), staged / "agreement.md", staging)
            write_bytes(as_json(dict(provenance) | named), staged / PROVENANCE, staging)
            write_bytes(manifest_of(staged, named), staged / MANIFEST, staging)
            is_new = take_place(staged, folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    if not is_new:
        pull(lake_root, folder.relative_to(lake_root).as_posix())
    pointer = {
        "benchmark": benchmark,
        "manifest_sha256": hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
        "publication_id": key,
        "run_date": run_date,
        "schema_version": SCHEMA_VERSION,
    }
    write_bytes(as_json(pointer), home / POINTER, staging)
    push(lake_root, home / POINTER)
    return Published(folder, key, is_new, is_current=True)


def _write(table: Table, frame: pl.DataFrame, staged: Path, staging: Path) -> None:
    write_parquet(conform(frame.rechunk(), table).combine_chunks(), staged / f"{table.name}.parquet", staging)
    write_bytes(to_csv(frame.select(table.columns)), staged / f"{table.name}.csv", staging)
