"""The pointer of a benchmark, latest.json, and when it moves: docs/decisions/10-publishing-and-report.md."""

import hashlib
import json
import logging
from datetime import date
from pathlib import Path

from schemas.errors import CorruptLakeError, StoreError
from schemas.tables import SCHEMA_VERSION
from tasks.lake.atomic_files import locked, write_bytes
from tasks.lake.object_store.cache_folder import fresh
from tasks.lake.object_store.client import Bucket
from tasks.lake.reading import Lake
from tasks.publish.folders import MANIFEST, POINTER, as_json
from tasks.publish.machine_tables import LARGE, LISTING

N_TRIES = 100  # in a bucket; each failure is another run's success

_log = logging.getLogger("salon.publish")


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


def move_pointer(lake_root: Path, folder: Path, *, benchmark: str, run_date: date, has_estimate: bool) -> bool:
    """Move the pointer to `folder` unless that would show less or older. Returns whether it stands there.

    A publication without any estimate never becomes current, nor one whose run date is before the current one's. In a bucket it
    is put in place of the very pointer that was read; where another run moved that meanwhile, all is decided anew.
    """
    path, bucket = folder.parent / POINTER, Lake(lake_root).bucket
    for _ in range(N_TRIES):
        with locked(lake_root, f"pointer-{benchmark}"):
            e_tag = fresh(path)
            current = read_pointer(folder.parent)
            if current and current["publication_id"] == folder.name:
                return True
            if not _may_move(current, folder.name, run_date, has_estimate=has_estimate):
                return False
            content = _content(folder, benchmark, run_date)
            if bucket is None or _put(bucket, path.relative_to(lake_root).as_posix(), content, e_tag):
                write_bytes(content, path, lake_root / "staging")
                return True
    raise StoreError(f"the pointer of {benchmark} was moved {N_TRIES} times while it was to be moved; run the same command again")


def _may_move(current: dict[str, str] | None, name: str, run_date: date, *, has_estimate: bool) -> bool:
    if not has_estimate:
        _log.warning("no cell of %s has an estimate: the current publication stays what it was", name[:12])
        return False
    return current is None or current["run_date"] <= run_date.isoformat()


def _put(bucket: Bucket, name: str, content: bytes, e_tag: str | None) -> bool:
    return bucket.create(name, content) if e_tag is None else bucket.replace(name, content, e_tag)


def _content(folder: Path, benchmark: str, run_date: date) -> bytes:
    return as_json(
        {
            "benchmark": benchmark,
            "manifest_sha256": hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
            "publication_id": folder.name,
            "run_date": run_date,
            "schema_version": SCHEMA_VERSION,
            "tables": {path.stem: f"{folder.name}/{path.name}" for path in sorted(folder.glob("*.parquet"))},
            "large_tables": _large_tables(folder),
        }
    )


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
