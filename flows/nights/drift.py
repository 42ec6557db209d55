"""Drift over a lake's publications: which nights there are, what their anchors said. The statistics are tasks.aggregate.drift."""

from collections.abc import Collection, Mapping
from datetime import date
from pathlib import Path

import polars as pl

from flows.nights.bridges import bridges_of
from flows.nights.notes import notes
from rubrics.model import Rubric
from schemas.tables import DRIFT, JUDGEMENTS, SCORES, conform
from tasks.aggregate.drift import drift
from tasks.aggregate.drift_bridge import joined
from tasks.aggregate.drift_limits import N_BASELINE
from tasks.aggregate.drift_series import anchor_cells, night_series
from tasks.bucket.working import push
from tasks.durable import write_parquet
from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.folders import LAYOUT
from tasks.publish.machine_tables import write_living_table
from tasks.publish.reading import Publication, load_cells, publications
from tasks.publish.runs import runs
from tasks.stopping import check_not_stopped
from tasks.store import Lake

N_NIGHTS_MIN = 2


def write_drift(lake_root: Path, benchmark: str, rubrics: Mapping[str, Rubric]) -> Path | None:
    """Put the DRIFT table over all nights of a benchmark at `drift.parquet` beside its publications; None before a second night.

    It is derived from publications alone and made anew whole, so a reader meets the old table or the new one; so is
    `salon.duckdb`, which is written from the first night on and holds drift and runs too.
    """
    target = None
    if len(nightly_publications(lake_root, benchmark)) >= N_NIGHTS_MIN:
        found = drift_of_lake(lake_root, benchmark, rubrics, bridge=bridges_of(lake_root, benchmark))
        target = lake_root / "publish" / LAYOUT / benchmark / f"{DRIFT.name}.parquet"
        write_parquet(conform(found, DRIFT), target, lake_root / "staging")
        push(lake_root, target, write_living_table(lake_root, DRIFT, benchmark, found))
    write_duckdb(lake_root, benchmark)
    return target


def drift_of_lake(
    lake_root: Path,
    benchmark: str,
    rubrics: Mapping[str, Rubric],
    *,
    n_baseline: int = N_BASELINE,
    headline: Collection[str] = (),
    bridge: pl.DataFrame | None = None,
    until: date | None = None,
) -> pl.DataFrame:
    """The DRIFT table of a benchmark's nights up to `until`, from its publications and their anchors in the lake.

    `rubrics` are needed for the anchors; those judged by another digest of a rubric than given are left out. `bridge` is a
    BRIDGES table that joins a replaced judge's series.
    """
    nights = nightly_publications(lake_root, benchmark, until)
    cells, anchors = [], []
    for publication in nights:
        check_not_stopped()
        cells.append(own_cells(lake_root, publication))
        anchors.append(anchors_of(lake_root, publication, rubrics))
    series = night_series(cells, anchors)
    return drift(series if bridge is None else joined(series, bridge), n_baseline=n_baseline, headline=headline)


def own_cells(lake_root: Path, publication: Publication) -> pl.DataFrame:
    """A night's cells; where it is noted, those of the checkpoints it was about, without earlier ones and the baseline."""
    cells, note = load_cells(publication), notes(lake_root, publication.benchmark).get(publication.run_date)
    if note is None:
        return cells
    named = pl.concat_str("model", "checkpoint", separator="/").is_in([f"{m}/{c}" for m, c in note.checkpoints.items()])
    return cells.filter(named)


def nightly_publications(lake_root: Path, benchmark: str, until: date | None = None) -> list[Publication]:
    """One publication for each run date, oldest first: of several, the one the latest run made or found.

    Once `salon nightly` has noted a night of the benchmark, the nights are those it noted: a backfill's publication is none.
    """
    ran = {row["publication_id"]: row["finished_at"] for row in runs(Lake(lake_root)).sort("finished_at").to_dicts()}
    mine = [p for p in publications(lake_root) if p.benchmark == benchmark]
    noted = {note.publication_id for note in notes(lake_root, benchmark).values()}
    mine = [p for p in mine if p.publication_id in noted] if noted else mine
    known = [p for p in mine if until is None or p.run_date <= until.isoformat()]
    in_order = sorted(known, key=lambda p: (p.run_date, p.publication_id in ran, ran.get(p.publication_id), p.publication_id))
    return list({publication.run_date: publication for publication in in_order}.values())


def anchors_of(lake_root: Path, publication: Publication, rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    """The cells of the anchors asked on the publication's run date; none where the lake no longer holds its judgements."""
    lake, said = Lake(lake_root), publication.provenance()
    plan_id, reading_id = (str(said["identities"].get(name, "")) for name in ("plan_id", "reading_id"))
    same = {name: rubric for name, rubric in rubrics.items() if said["rubrics"].get(name, {}).get("digest") == rubric.digest}
    is_there = lake.is_complete(JUDGEMENTS, plan_id) and lake.is_complete(SCORES, reading_id)
    empty = pl.DataFrame(JUDGEMENTS.schema().empty_table()), pl.DataFrame(SCORES.schema().empty_table())
    judgements, scores = (lake.scan(JUDGEMENTS, plan_id), lake.scan(SCORES, reading_id)) if is_there else empty
    return anchor_cells(
        judgements,
        scores,
        same,
        benchmark=publication.benchmark,
        run_date=date.fromisoformat(publication.run_date),
        min_coverage=float(said["min_coverage"]),
    )
