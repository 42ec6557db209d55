"""What the series need of each night, derived once and kept. Which nights there are, and the statistics over them: drift.py.

`series/<benchmark>.parquet` is a row a night: its cells and its anchors' that the series are made of, under a name that says what
they were derived from. It is derived from publications and the lake alone and can be deleted at any time; without it each run
would open every night's publication and judgements anew, 0.13 s of CPU and 15 files a night, for ever.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from pathlib import Path

import polars as pl

from flows.nights.own_rubrics import rubrics_of_night
from flows.nights.record import NightNote, notes
from rubrics.model import Rubric
from schemas.identities import canonical_json
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.stored import JUDGEMENTS, SCORES
from tasks.aggregate.drift.anchors import SCORED, anchor_cells, anchor_scores
from tasks.aggregate.drift.series import series_cells
from tasks.aggregate.tables import Settings
from tasks.lake.atomic_files import write_parquet
from tasks.lake.object_store.cache_folder import fresh, push
from tasks.lake.reading import Lake
from tasks.publish.folders import MANIFEST, publication_folder
from tasks.publish.identity import code_version
from tasks.publish.reading import Publication, load_cells
from tasks.regular_files import content_of
from tasks.stopping import check_not_stopped

_NIGHT = {"benchmark": pl.String(), "run_date": pl.Date()}


@cache
def _no_cells() -> pl.DataFrame:
    """Not made at import: Polars would start its threads then, and a process forked from this one would wait for them."""
    return series_cells(BENCHMARK_LONG.empty())


def _schema() -> pl.Schema:
    rows = pl.List(pl.Struct(_no_cells().schema))
    scored = pl.List(pl.Struct(SCORED))
    named = {"night": pl.String(), "run_date": pl.String(), "rubrics": pl.String(), "read": pl.List(pl.String())}
    return pl.Schema(named | {"own": rows, "anchors": rows, "scored": scored})


@dataclass(frozen=True, slots=True)
class Nights:
    """Of nights of one benchmark their own cells and their anchors' (BENCHMARK_LONG), and `scored` as night_series() takes it."""

    own: pl.DataFrame
    anchors: pl.DataFrame
    scored: pl.DataFrame


def cells_of_nights(lake_root: Path, nights: Sequence[Publication], rubrics: Mapping[str, Rubric]) -> Nights:
    """What the series are made of these nights of one benchmark, one publication a date.

    What was derived before, from the same publications by the same code, is read from the kept file; the rest is derived now and
    kept. A night's anchors are read by its own rubrics: own_rubrics.py. Of a night whose judgements the lake no longer holds,
    nothing is kept.
    """
    if not nights:
        return Nights(_no_cells(), _no_cells(), pl.DataFrame(schema=_NIGHT | SCORED))
    noted = notes(lake_root, nights[0].benchmark)
    names = {one.run_date: _name(one.publication_id, noted.get(one.run_date)) for one in nights}
    target = lake_root / "series" / f"{nights[0].benchmark}.parquet"
    kept = _read(target)
    known = kept.filter(pl.col("night").is_in(list(names.values())), _is_read_by_the_same(lake_root, kept, rubrics))
    there = set(known["night"])
    rows, is_whole = list[dict[str, object]](), list[bool]()
    for one in nights:
        if names[one.run_date] not in there:
            check_not_stopped()
            said = {name: str(rubric.get("digest")) for name, rubric in one.provenance()["rubrics"].items()}
            own_rubrics = rubrics_of_night(lake_root, said, rubrics)
            anchors = anchors_of(lake_root, one, own_rubrics)
            own = series_cells(own_cells(one, noted.get(one.run_date)))
            rows.append({
                "night": names[one.run_date], "run_date": one.run_date, "rubrics": json.dumps(said), "read": sorted(own_rubrics),
                "own": own.to_dicts(),
                "anchors": [] if anchors is None else series_cells(anchors.cells).to_dicts(),
                "scored": [] if anchors is None else anchors.scores.to_dicts(),
            })  # fmt: skip
            is_whole.append(anchors is not None)
    found = pl.concat([known, pl.DataFrame(rows, schema=_schema())]).sort("run_date")
    if any(is_whole):
        passing = [row["night"] for row, whole in zip(rows, is_whole, strict=True) if not whole]
        others = kept.filter(~pl.col("run_date").is_in(list(names)))
        _write(lake_root, target, pl.concat([others, found.filter(~pl.col("night").is_in(passing))]).sort("run_date"))
    return Nights(_unnested(found["own"]), _unnested(found["anchors"]), _scored(found, nights[0].benchmark))


def own_cells(publication: Publication, note: NightNote | None) -> pl.DataFrame:
    """A night's cells; where it is noted, those of the checkpoints it was about, without earlier ones and the baseline."""
    cells = load_cells(publication)
    if note is None:
        return cells
    named = pl.concat_str("model", "checkpoint", separator="/").is_in([f"{m}/{c}" for m, c in note.checkpoints.items()])
    return cells.filter(named)


@dataclass(frozen=True, slots=True)
class Asked:
    """The anchors asked on one date: their cells (BENCHMARK_LONG) and their scores (SCORED)."""

    cells: pl.DataFrame
    scores: pl.DataFrame


def anchors_of(lake_root: Path, publication: Publication, rubrics: Mapping[str, Rubric]) -> Asked | None:
    """The anchors asked on the publication's run date under its `rubrics`; None where the lake lost its judgements."""
    lake, said = Lake(lake_root), publication.provenance()
    plan_id, reading_id = (str(said["identities"].get(name, "")) for name in ("plan_id", "reading_id"))
    if not (lake.is_complete(JUDGEMENTS, plan_id) and lake.is_complete(SCORES, reading_id)):
        return None
    run_date = date.fromisoformat(publication.run_date)
    settings = Settings(publication.benchmark, "", publication.publication_id, run_date, float(said["min_coverage"]))
    asked, read = lake.scan(JUDGEMENTS, plan_id), lake.scan(SCORES, reading_id)
    return Asked(anchor_cells(asked, read, rubrics, settings), anchor_scores(asked, read, rubrics, run_date))


def anchor_scores_of(lake_root: Path, benchmark: str, publication_ids: Mapping[str, str]) -> dict[str, pl.DataFrame]:
    """The scores (SCORED) of the anchors asked on each date (ISO), of its night's publication; none of what the lake lost.

    From the kept file, and of nights that it lacks from the lake.
    """
    noted = notes(lake_root, benchmark)
    names = [_name(id_, noted.get(day)) for day, id_ in publication_ids.items()]  # a date's earlier publication may be kept yet
    kept = _read(lake_root / "series" / f"{benchmark}.parquet").filter(pl.col("night").is_in(names))
    found = {day: pl.DataFrame(scored, schema=SCORED) for day, scored in kept.select("run_date", "scored").iter_rows() if scored}
    for day in publication_ids.keys() - set(kept["run_date"]):
        folder = publication_folder(lake_root, benchmark, publication_ids[day])
        if not (folder / MANIFEST).is_file():
            continue
        said = Publication(benchmark, folder.name, day, folder, is_current=False).provenance()
        lake, (plan_id, reading_id) = Lake(lake_root), (said["identities"].get(name, "") for name in ("plan_id", "reading_id"))
        if lake.is_complete(JUDGEMENTS, plan_id) and lake.is_complete(SCORES, reading_id):
            asked, read = lake.scan(JUDGEMENTS, plan_id), lake.scan(SCORES, reading_id)
            found[day] = anchor_scores(asked, read, said["rubrics"], date.fromisoformat(day))
    return found


def _is_read_by_the_same(lake_root: Path, kept: pl.DataFrame, rubrics: Mapping[str, Rubric]) -> pl.Expr:
    """Of kept nights: those whose anchors would be read under the same rubrics today."""
    read = {said: sorted(rubrics_of_night(lake_root, json.loads(said), rubrics)) for said in kept["rubrics"].unique()}
    return pl.col("read") == pl.col("rubrics").replace_strict(read, return_dtype=pl.List(pl.String()))


def _name(publication_id: str, note: NightNote | None) -> str:
    """sha256 of everything a night's cells depend on, but for the rubrics its anchors are read by."""
    named = [publication_id, dict(note.checkpoints) if note else None, code_version()]
    return sha256(canonical_json(named)).hexdigest()


def _read(path: Path) -> pl.DataFrame:
    """The kept nights. A file that is not there, cannot be read or is another version's holds none."""
    fresh(path)
    try:
        found = pl.read_parquet(content_of(path))  # at once: another run may replace it
    except (OSError, pl.exceptions.PolarsError):
        return pl.DataFrame(schema=_schema())
    return found if found.schema == _schema() else pl.DataFrame(schema=_schema())


def _write(lake_root: Path, target: Path, kept: pl.DataFrame) -> None:
    """Of two runs that end together the later file stays; what it lacks is derived again."""
    write_parquet(kept.to_arrow(), target, lake_root / "staging")
    push(lake_root, target)


def _unnested(rows: pl.Series) -> pl.DataFrame:
    cells = rows.filter(rows.list.len() > 0).explode()
    return cells.struct.unnest() if len(cells) else _no_cells()


def _scored(nights: pl.DataFrame, benchmark: str) -> pl.DataFrame:
    """The scores of the nights' anchors, a row a night, dimension and category."""
    each = nights.select(
        pl.lit(benchmark).alias("benchmark"), pl.col("run_date").str.to_date(), "scored"
    ).filter(pl.col("scored").list.len() > 0)  # fmt: skip
    return each.explode("scored").unnest("scored")
