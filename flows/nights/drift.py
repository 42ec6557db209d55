"""Drift over a lake's publications: which nights there are, and the bridges that join the series of a judge and its successor.

What each night said: series.py; the statistics: tasks/aggregate/drift/; making a bridge: flows/bridging.py.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from flows.nights.left_out import left_out
from flows.nights.own_rubrics import asks_the_same
from flows.nights.record import notes
from flows.nights.series import cells_of_nights
from rubrics.model import Rubric
from schemas.statuses.cells import CellStatus
from schemas.tables.nights import BRIDGES, DRIFT
from schemas.tables.table import conform
from tasks.aggregate.drift.bridge import joined
from tasks.aggregate.drift.drift import drift
from tasks.aggregate.drift.series import night_series
from tasks.context import StageContext
from tasks.lake.atomic_files import write_parquet
from tasks.lake.object_store.cache_folder import pull, push
from tasks.lake.reading import Lake
from tasks.lake.small_files import read_files
from tasks.publish.duckdb_file import WARN, deriving, write_duckdb
from tasks.publish.identity import asked_otherwise
from tasks.publish.living_tables import living_table, write_living_table
from tasks.publish.machine_tables import runs
from tasks.publish.reading import Publication, readable
from tasks.publish.withdrawn import had_nights, taken_back
from tasks.verify.publication import read_provenance

N_NIGHTS_MIN = 2


def write_drift(lake_root: Path, benchmark: str, rubrics: Mapping[str, Rubric], say: Callable[[str], None] = WARN) -> Path | None:
    """Write the DRIFT table over all nights of a benchmark beside its publications; its file, None before a second night.

    It is derived from publications alone and made anew whole, so a reader meets the old table or the new one; so is
    `salon.duckdb`, which is written from the first night on and holds drift and runs too. Of two runs that end together on a
    machine the second begins after the first: who writes last has read all that was published before. `say` is told what is left
    out, and of damaged files.
    """
    with deriving(lake_root, benchmark):
        target, lost = None, list(left_out(lake_root, benchmark))
        for one in lost:
            say(f"left out of {one.of}: {one.why}")
        gone = {one.publication_id for one in lost}
        nights = [one for one in nightly_publications(lake_root, benchmark) if one.publication_id not in gone]
        if len(nights) >= N_NIGHTS_MIN:
            found = drift(series_of(lake_root, nights, rubrics, bridges_of(lake_root, benchmark)))
            target = write_living_table(lake_root, DRIFT, benchmark, found)
        elif living_table(lake_root, DRIFT, benchmark) is not None:  # of nights that were taken back, or are left out
            target = write_living_table(lake_root, DRIFT, benchmark, DRIFT.empty())
        write_duckdb(lake_root, benchmark, say)
        return target


def series_of(
    lake_root: Path, nights: Sequence[Publication], rubrics: Mapping[str, Rubric], bridge: pl.DataFrame | None = None
) -> pl.DataFrame:
    """What each night said (NIGHTS), from nightly_publications() and their anchors in the lake.

    `rubrics` are those of today: anchors of nights of the same version that asked or read otherwise are left out. `bridge` is
    a BRIDGES table that joins a replaced judge's series.
    """
    found = cells_of_nights(lake_root, nights, rubrics)
    series = night_series([found.own], [found.anchors], [found.scored])
    return series if bridge is None else joined(series, bridge)


def nightly_publications(lake_root: Path, benchmark: str) -> list[Publication]:
    """One publication for each run date, oldest first: of several, the one the latest run made or found.

    Once `salon nightly` has noted a night of the benchmark, the nights are those it noted: a backfill's publication is none,
    also where all that it noted were taken back.
    """
    mine = standing_publications(lake_root, benchmark)
    noted = {note.publication_id for note in notes(lake_root, benchmark).values()}
    mine = [p for p in mine if p.publication_id in noted] if noted or had_nights(lake_root, benchmark) else mine
    return list({publication.run_date: publication for publication in mine}.values())


def standing_publications(lake_root: Path, benchmark: str) -> list[Publication]:
    """Those of a benchmark that are whole and nobody took back since; by run date, of one date the latest run's last.

    A manifest that is not whole is named by the run and by `salon doctor`; it keeps no later night back.
    """
    rows = runs(Lake(lake_root)).sort("finished_at").to_dicts()
    ran = {row["publication_id"]: row["finished_at"] for row in rows}
    gone = taken_back(lake_root)
    mine = [one for one in readable(lake_root, benchmark)[0] if one.publication_id not in gone]
    return sorted(mine, key=lambda p: (p.run_date, p.publication_id in ran, ran.get(p.publication_id), p.publication_id))


def read_otherwise(lake_root: Path, benchmark: str, publication_id: str) -> str | None:
    """In a sentence, that the nights before a night's publication were read by another version of the code; None where not.

    Once at each change: only where the night just before is of another version than this one, and asked the same.
    """
    nights = nightly_publications(lake_root, benchmark)
    mine = next((place for place, one in enumerate(nights) if one.publication_id == publication_id), 0)
    said = [read_provenance(one.folder) or {} for one in nights[max(0, mine - 1) : mine + 1]]
    if len({_code_of(one) for one in said} - {None}) < N_NIGHTS_MIN:  # one that cannot be read is of no version that is known
        return None
    if asked_otherwise(said[0], said[1], partial(asks_the_same, lake_root, {})):
        return None
    others = [one for one in nights[:mine] if _code_of(read_provenance(one.folder) or {}) not in (None, _code_of(said[1]))]
    which = others[0].run_date + (f" to {others[-1].run_date}" if len(others) > 1 else "")
    return (
        f"earlier nights of the series ({len(others)}: {which}) were read and published by another version of the code, under "
        "whose rules the same replies may have other scores: a step on this night may be the code's. CHANGELOG.md says under "
        f'"Scores that change" which, docs/nights.md (After an upgrade) what it takes to have this version read such a night'
    )


def _code_of(said: Mapping[str, Any]) -> object:
    identities = said.get("identities")
    return identities.get("code_version") if isinstance(identities, dict) else None


def keep_bridge(run: StageContext, bridge: pl.DataFrame, judge_old: str, judge_new: str) -> None:
    """Keep what a bridge (BRIDGES rows) joins, under the run's date. What it could not join leaves an earlier one as it is."""
    pair = sha256(f"{judge_old}\n{judge_new}".encode()).hexdigest()[:12]
    target = _folder(run.lake.root, run.benchmark.name) / f"{run.run_date.isoformat()}-{pair}.parquet"
    of_that_date = read_files([path for path in _files(run.lake.root, run.benchmark.name) if path == target], BRIDGES)
    joins = _in_use(pl.concat([of_that_date, pl.DataFrame(conform(bridge, BRIDGES))]))
    if not joins.is_empty():
        write_parquet(conform(joins, BRIDGES), target, run.lake.root / "staging")
        push(run.lake.root, target)


def bridges_of(lake_root: Path, benchmark: str) -> pl.DataFrame | None:
    """The bridges of a benchmark, in the order they are crossed: by date, of two judges and a series the latest; None without."""
    paths = _files(lake_root, benchmark)
    return _in_use(read_files(paths, BRIDGES)) if paths else None


def _in_use(bridges: pl.DataFrame) -> pl.DataFrame:
    """Of bridges in the order they were made: one that failed takes the place of none."""
    return bridges.filter(status=CellStatus.OK.value).unique(BRIDGES.key, keep="last", maintain_order=True)


def _files(lake_root: Path, benchmark: str) -> list[Path]:
    folder = _folder(lake_root, benchmark)
    pull(lake_root, folder)
    return sorted(folder.glob("*.parquet"))


def _folder(lake_root: Path, benchmark: str) -> Path:
    return lake_root / BRIDGES.name / benchmark
