"""The index of pages made anew, with what nights alone know: that the newest did not become current. The page: tasks/publish."""

from pathlib import Path

import polars as pl

from flows.nights.shortfall import newest_night_behind
from schemas.errors import SalonError
from tasks.lake.object_store.cache_folder import push
from tasks.publish.report.index import write_index


def rewrite_index(lake_root: Path) -> None:
    """Write the index of a lake, and to its store."""
    push(lake_root, write_index(lake_root, _behind))


def _behind(lake_root: Path, benchmark: str) -> list[str]:
    """Notes that are spoiled keep no index back: it says so."""
    try:
        return newest_night_behind(lake_root, benchmark)
    except (SalonError, OSError, pl.exceptions.PolarsError) as error:
        return [f"whether the newest night is the current one is unknown: {error}"]
