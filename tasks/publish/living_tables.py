"""Tables that live on from run to run, one at a time: each version a file of its own, and a pointer to the newest.

Tables that only grow (`runs`) are machine_tables.py's. Readers of Parquet open a path twice, for the footer and for the rows: a
file replaced between the two gives an error, or the rows of one version under the footer of another. So no version is replaced.

`publish/v1/<benchmark>/<table>.json` says {"path": "<table>/<digest>.parquet", "sha256", "n_rows", "schema_version"}.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

import polars as pl

from schemas.errors import CorruptLakeError
from schemas.tables.nights import DRIFT
from schemas.tables.table import SCHEMA_VERSION, Table, conform
from tasks.lake.atomic_files import scratch, sha256_of_file, write_bytes, write_parquet
from tasks.lake.object_store.cache_folder import bring, bucket_behind, fresh, push
from tasks.lake.own_places import remove
from tasks.lake.reading import with_later_columns
from tasks.publish.folders import LAYOUT, as_json
from tasks.regular_files import content_of

KEPT_S: Final = 86_400.0
"""How long a version stays after a newer one was written: a reader that was told of it may still open it."""


def write_living_table(lake_root: Path, table: Table, benchmark: str, frame: pl.DataFrame) -> Path:
    """Make `frame` the table's newest version; its file. For one process at a time. Raises StoreError."""
    pointer, staging = _pointer(lake_root, table, benchmark), lake_root / "staging"
    with scratch(lake_root, table.name) as staged:
        written = staged / f"{table.name}.parquet"
        write_parquet(conform(frame.rechunk(), table).combine_chunks(), written, staging)
        digest = sha256_of_file(written)
        target = pointer.with_suffix("") / f"{digest[:16]}.parquet"
        write_bytes(written.read_bytes(), target, staging)
    said = {"path": f"{table.name}/{target.name}", "sha256": digest, "n_rows": frame.height, "schema_version": SCHEMA_VERSION}
    push(lake_root, target)
    write_bytes(as_json(said), pointer, staging)
    push(lake_root, pointer)
    _drop_old_versions(lake_root, target)
    return target


def living_table(lake_root: Path, table: Table, benchmark: str) -> Path | None:
    """The file of the table's newest version; None before there is one. Raises CorruptLakeError."""
    pointer = _pointer(lake_root, table, benchmark)
    fresh(pointer)
    try:
        said = json.loads(content_of(pointer))
        path, sha256 = pointer.parent / table.name / Path(str(said["path"])).name, said["sha256"]
        if sha256_of_file(bring(path)) == sha256:
            return path
    except FileNotFoundError:
        if not pointer.exists():
            return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):  # OSError: a name longer than the file system has
        pass
    raise CorruptLakeError(
        f"{pointer} is damaged, or the file it names is missing or was changed; delete the pointer and run the benchmark again"
    )


def drift_rows(lake_root: Path, benchmark: str) -> pl.DataFrame | None:
    """The newest DRIFT with one column more; None before there is one. Raises CorruptLakeError.

    `changed_under`: who measured the night of `changed_on`. Where a bridge joins judges, it may be another than `measured_by`.
    """
    path = living_table(lake_root, DRIFT, benchmark)
    if path is None:
        return None
    rows = with_later_columns(pl.scan_parquet(path), DRIFT).select(DRIFT.columns).collect()
    series = [name for name in DRIFT.key if name != "run_date"]
    nights = rows.select(*series, changed_on="run_date", changed_under="measured_by")
    return rows.join(nights, on=[*series, "changed_on"], how="left")


def _pointer(lake_root: Path, table: Table, benchmark: str) -> Path:
    return lake_root / "publish" / LAYOUT / benchmark / f"{table.name}.json"


def _drop_old_versions(lake_root: Path, newest: Path) -> None:
    here = {path.name: path.lstat().st_mtime for path in newest.parent.glob("*.parquet")}
    for name in _outlived(here, newest.name):
        with suppress(OSError):
            remove(lake_root, newest.with_name(name))
    bucket = bucket_behind(lake_root)
    if bucket:
        there = {one.path: one.changed_at.timestamp() for one in bucket.below(newest.parent.relative_to(lake_root).as_posix())}
        bucket.delete(_outlived(there, newest.relative_to(lake_root).as_posix()))


def _outlived(written_s: Mapping[str, float], newest: str) -> list[str]:
    """Of versions, by when each was written, those whose next one was written more than KEPT_S ago."""
    ordered = sorted(written_s, key=lambda name: written_s[name])
    return [one for one, after in pairwise(ordered) if written_s[after] < time.time() - KEPT_S and one != newest]
