"""The frozen anchors of a night: their cells, each one's score, and their mean where some have none. Charts are charts.py.

A mean over those that were scored moves with which they are: the hardest anchor refused looks like a milder judge. What a night
says is how far the anchors that were scored lie from themselves on other nights; so a mean that lacks some is the mean of all on
the baseline's nights, plus that. All are those that the set's first night scored: one that is scored later would be a step.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.statuses.cells import Total
from schemas.statuses.nights import N_BASELINE
from schemas.statuses.rows import ScoreStatus
from schemas.tables.published import BENCHMARK_LONG
from tasks.aggregate.intervals import Floats
from tasks.aggregate.tables import Settings, cells
from tasks.lake.request_rows import number_of

ANCHORS = "__anchors__"
"""What stands for model and checkpoint of the anchors' cells: the frozen set may hold several."""

ANCHOR = ["rubric_id", "rubric_version", "judge_model", "dimension", "category"]
SCORED = pl.Schema(dict.fromkeys(ANCHOR, pl.String()) | {"anchors": pl.List(pl.UInt64()), "scores": pl.List(pl.Float64())})
"""A night's scores of anchors, by dimension and category: the first 64 bits of their sample ids, in order, and the scores."""

_N_STEPS = 200
_SERIES = ["benchmark", *ANCHOR[:-1], "anchor_set"]


def anchor_cells(
    judgements: pl.LazyFrame | pl.DataFrame,
    scores: pl.LazyFrame | pl.DataFrame,
    rubrics: Mapping[str, Rubric],
    run: Settings,
) -> pl.DataFrame:
    """Cells (benchmark_long) of the anchors asked on the run's date: the judgements whose occasion is that date.

    `dataset_id` is the anchor set: sha256 over its sorted sample ids, rubric by rubric and judge by judge, so that a set
    frozen anew is a series of its own. Empty where the night has no anchors, or none under the rubrics given.
    """
    tonight = _asked(judgements, rubrics, run.run_date).collect()
    found = [BENCHMARK_LONG.empty()]
    for asked in tonight.sort("rubric_id", "judge_model").partition_by("rubric_id", "judge_model", maintain_order=True):
        named = asked.with_columns(occasion=pl.lit(""), model=pl.lit(ANCHORS), checkpoint=pl.lit(ANCHORS))
        replies = scores.lazy().join(asked.lazy().select("request_key"), on="request_key", how="semi")
        mine = {name: rubrics[name] for name in asked["rubric_id"].unique()}
        anchor_set = _set_id(asked)
        found.append(cells(named, replies, mine, replace(run, publication_id=anchor_set, dataset_id=anchor_set)))
    return pl.concat(found)


def anchor_scores(
    judgements: pl.LazyFrame | pl.DataFrame,
    scores: pl.LazyFrame | pl.DataFrame,
    rubrics: Collection[str],
    run_date: date,
) -> pl.DataFrame:
    """The scores (SCORED) of the anchors asked on a date under these rubrics, the mean of an anchor's repeats."""
    asked = _asked(judgements, rubrics, run_date).select(
        "request_key", "rubric_id", "rubric_version", "judge_model", "sample_id",
        category=pl.col("category").fill_null(Total.UNNAMED.value),
    )  # fmt: skip
    read = scores.lazy().filter(pl.col("status") == ScoreStatus.SCORED.value)
    each = asked.join(read.select("request_key", "rubric_id", "dimension", "score"), on=["request_key", "rubric_id"])
    means = each.group_by(*ANCHOR, anchors=number_of("sample_id")).agg(scores=pl.col("score").mean())
    found = means.sort("anchors").group_by(*ANCHOR, maintain_order=True).agg("anchors", "scores").sort(ANCHOR)
    return found.cast(SCORED).select(list(SCORED)).collect()


def with_the_missing(frozen: pl.DataFrame, scored: pl.DataFrame) -> pl.DataFrame:
    """`frozen` with the means of nights that lack anchors made comparable, or null; others stay to the last digit.

    `frozen`: a row for each night of a series, with run_date, _SERIES and anchor_estimate; `scored`: benchmark, run_date and
    SCORED of the same nights. No night looks at a later one, nor at one whose anchors have no mean.
    """
    own = frozen.filter(pl.col("anchor_estimate").is_not_null()).drop("category")  # of all of them together
    rows = own.join(scored, on=["benchmark", "run_date", *ANCHOR[:-1]]).sort("run_date", "category")
    moved = [one for series in rows.partition_by(_SERIES) for one in _moves(series)]
    schema = {name: frozen.schema[name] for name in (*_SERIES, "run_date")} | {"move": pl.Float64()}
    moves = pl.DataFrame(moved, schema=schema)
    joined = frozen.join(moves, on=[*_SERIES, "run_date"], how="left", maintain_order="left")
    return joined.with_columns(
        anchor_estimate=pl.when(pl.col("move").is_null())
        .then("anchor_estimate")
        .otherwise((pl.col("anchor_estimate") + pl.col("move")).fill_nan(None))
    ).drop("move")


def _moves(series: pl.DataFrame) -> Iterator[dict[str, object]]:
    """For each night of one series that lacks anchors, what its mean of those scored is to be moved by."""
    by_category = [_by_night(one) for one in series.partition_by("category", maintain_order=True)]
    key = {name: series[name][0] for name in _SERIES}
    for night in series["run_date"].unique().sort():
        found = [moves[night] for moves in by_category if night in moves]
        if any(found):
            yield key | {"run_date": night, "move": sum(found) / len(found)}


def _by_night(category: pl.DataFrame) -> dict[date, float]:
    """By night, what the mean over the scored anchors of one category is to be moved by: as _move(), 0 where none is missing."""
    nights = category["run_date"].to_list()
    each = category.select(pl.int_range(pl.len()).alias("night"), "anchors", "scores").explode("anchors", "scores")
    names, place = np.unique(each["anchors"].to_numpy(), return_inverse=True)
    values = np.full((len(nights), len(names)), np.nan)
    values[each["night"].to_numpy(), place] = each["scores"].to_numpy()
    if not np.isnan(values).any():
        return dict.fromkeys(nights, 0.0)
    held = np.where(np.isnan(values[0]), np.nan, values)  # all nights against one set of anchors: those of the first
    fits = {n: _levels(held[:n]) for n in range(1, min(len(nights), N_BASELINE) + 1)}
    return {night: _move(row, fits[min(n, N_BASELINE)]) for n, (night, row) in enumerate(zip(nights, values, strict=True), 1)}


def _levels(values: Floats) -> Floats:
    """Each anchor's level over the nights it was scored on, shape (anchors,), nan where on none.

    Least squares for `values` = night + level, shape (nights, anchors), nan in gaps: one after the other until nothing moves.
    """
    known = ~np.isnan(values)
    n_nights, n_anchors = known.sum(axis=0), known.sum(axis=1)
    levels = np.where(n_nights > 0, np.nansum(values, axis=0) / np.maximum(n_nights, 1), np.nan)
    for _ in range(_N_STEPS):
        nights = np.nansum(values - levels, axis=1) / np.maximum(n_anchors, 1)
        better = np.where(n_nights > 0, np.nansum(values - nights[:, None], axis=0) / np.maximum(n_nights, 1), np.nan)
        if np.nanmax(np.abs(better - levels), initial=0.0) < 1e-12:
            break
        levels = better
    return levels


def _move(scores: Floats, levels: Floats) -> float:
    """Of one night: from the mean of the anchors scored to that of all whose level is known; 0 where those are the same.

    nan where no anchor scored has a level: the mean of others is none of these.
    """
    known, scored = ~np.isnan(levels), ~np.isnan(scores)
    here = known & scored
    if (known == scored).all():
        return 0.0
    if not here.any():
        return float("nan")
    return float(levels[known].mean() + (scores[here] - levels[here]).mean() - np.nanmean(scores))


def _asked(judgements: pl.LazyFrame | pl.DataFrame, rubrics: Collection[str], run_date: date) -> pl.LazyFrame:
    return judgements.lazy().filter(pl.col("occasion") == run_date.isoformat(), pl.col("rubric_id").is_in(sorted(rubrics)))


def _set_id(asked: pl.DataFrame) -> str:
    joined = "\n".join(asked["sample_id"].unique().sort())
    return hashlib.sha256(joined.encode()).hexdigest()
