"""Bridges kept beside the publications, which join the series of a judge and its successor. Making one is flows/bridging.py."""

from hashlib import sha256
from pathlib import Path

import polars as pl

from schemas.tables import BRIDGES, conform
from tasks.context import StageContext
from tasks.lake.atomic_files import write_parquet
from tasks.lake.object_store.cache_folder import pull, push


def keep_bridge(run: StageContext, bridge: pl.DataFrame, judge_old: str, judge_new: str) -> None:
    """Keep a bridge (BRIDGES rows) under the run's date, in place of an earlier one of that date and these judges."""
    pair = sha256(f"{judge_old}\n{judge_new}".encode()).hexdigest()[:12]
    target = _folder(run.lake.root, run.benchmark.name) / f"{run.run_date.isoformat()}-{pair}.parquet"
    write_parquet(conform(bridge, BRIDGES), target, run.lake.root / "staging")
    push(run.lake.root, target)


def bridges_of(lake_root: Path, benchmark: str) -> pl.DataFrame | None:
    """The bridges of a benchmark, in the order they are crossed: by date, of one pair of judges the latest. None without any."""
    found: dict[str, Path] = {}
    folder = _folder(lake_root, benchmark)
    pull(lake_root, folder.relative_to(lake_root).as_posix())
    for path in sorted(folder.glob("*.parquet")):
        pair = path.stem.rpartition("-")[2]
        found.pop(pair, None)
        found[pair] = path
    return pl.concat([pl.read_parquet(path) for path in found.values()]) if found else None


def _folder(lake_root: Path, benchmark: str) -> Path:
    return lake_root / BRIDGES.name / benchmark
