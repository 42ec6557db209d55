"""The append-only `runs`: when a run started, what it cost, what it found. Nothing of it stands in a publication."""

import secrets
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from schemas.tables import RUNS
from tasks.lake.atomic_files import locked
from tasks.lake.object_store.cache_folder import push
from tasks.lake.reading import Lake, read_files
from tasks.publish.machine_tables import write_living_table


def record_run(lake: Lake, row: Mapping[str, object]) -> Path:
    """Append one row of RUNS (`started_at` in UTC) as a file of its own; two runs never share a name.

    The benchmark's runs among the tables for machines are then written anew, whole.
    """
    frame = RUNS.frame([row])
    started = frame["started_at"].dt.strftime("%Y%m%dT%H%M%S%6f")[0]
    path = lake.append_row(RUNS, f"{started}-{secrets.token_hex(4)}", frame)
    benchmark = str(row["benchmark"])
    with locked(lake.root, f"runs-{benchmark}"):  # whoever writes last has read every row appended before
        push(lake.root, write_living_table(lake.root, RUNS, benchmark, runs(lake).filter(benchmark=benchmark)))
    return path


def runs(lake: Lake) -> pl.DataFrame:
    """Every run, oldest first."""
    return read_files(lake.rows_files(RUNS), RUNS).sort("started_at", "benchmark")
