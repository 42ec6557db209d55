"""The series of nights: published cells and the anchors' cells, night after night, as the table drift.py looks at.

Which publications a lake holds is tasks/publish; limits and verdicts are drift.py.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from rubrics.model import Rubric
from schemas.metrics import MEAN, NO_TOTAL
from schemas.statuses.cells import Estimand, Total
from schemas.statuses.nights import DriftReason
from schemas.tables.nights import NIGHTS
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.table import conform
from tasks.aggregate.tables import Settings, cells

ANCHORS = "__anchors__"
"""What stands for model and checkpoint of the anchors' cells: the frozen set may hold several."""

_JUDGED = ["benchmark", "run_date", "rubric_id", "rubric_version", "judge_model", "dimension", "category"]
_NEEDED = [
    *_JUDGED, "model", "checkpoint", "metric", "estimand", "dataset_id", "estimate", "se", "n_judgements", "n_failed",
    "scale_low", "scale_high", "reason",
]  # fmt: skip


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
    tonight = judgements.lazy().filter(
        pl.col("occasion") == run.run_date.isoformat(), pl.col("rubric_id").is_in(sorted(rubrics))
    ).collect()  # fmt: skip
    found = [BENCHMARK_LONG.empty()]
    for asked in tonight.sort("rubric_id", "judge_model").partition_by("rubric_id", "judge_model", maintain_order=True):
        named = asked.with_columns(occasion=pl.lit(""), model=pl.lit(ANCHORS), checkpoint=pl.lit(ANCHORS))
        replies = scores.lazy().join(asked.lazy().select("request_key"), on="request_key", how="semi")
        mine = {name: rubrics[name] for name in asked["rubric_id"].unique()}
        found.append(cells(named, replies, mine, replace(run, publication_id=_set_id(asked), dataset_id=_set_id(asked))))
    return pl.concat(found)


def night_series(nights: Sequence[pl.DataFrame], anchors: Sequence[pl.DataFrame] = ()) -> pl.DataFrame:
    """The NIGHTS table from the cells of each night and the anchors' cells of each night (both benchmark_long).

    One row per night × rubric × judge × model × dimension. Of two frames of one night, the later in the list counts. A night with
    several checkpoints of a model is a row without estimate (`several_checkpoints`): hand over the night's own checkpoint alone.
    Dimensions that have no total are in no series.
    """
    own = _latest(nights).filter(pl.col("model") != ANCHORS)
    rows = own.sort("checkpoint").group_by([*_JUDGED, "model"], maintain_order=True).agg(
        pl.len().alias("n"),
        pl.col("checkpoint").first(),
        *(pl.col(name).first() for name in ("estimate", "se", "reason")),
        pl.col("n_judgements").max(),
        (pl.col("scale_high") - pl.col("scale_low")).first().alias("scale_width"),
    )  # fmt: skip
    several = pl.col("n") > 1
    known = rows.with_columns(
        *(pl.when(~several).then(name).alias(name) for name in ("checkpoint", "estimate", "se")),
        reason=pl.when(several)
        .then(pl.lit(DriftReason.SEVERAL_CHECKPOINTS.value))
        .when(pl.col("estimate").is_null())
        .then("reason"),
        measured_by="judge_model",
        bridge_se=0.0,
        anchor_bridge_se=0.0,
    )
    asked = _latest(anchors).filter(pl.col("estimate").is_not_null())
    frozen = asked.select(
        *_JUDGED, anchor_set="dataset_id", anchor_estimate="estimate", anchor_se="se", n_anchors_failed="n_failed"
    )
    joined = known.join(frozen, on=_JUDGED, how="left").sort(NIGHTS.key)
    return pl.DataFrame(conform(joined, NIGHTS))


def series_cells(cells: pl.DataFrame) -> pl.DataFrame:
    """Of a night's cells (benchmark_long) the rows and columns that series are made of: the means over categories."""
    return cells.select(_NEEDED).filter(  # publications of an older schema lack columns that were added since
        pl.col("category") == Total.MACRO.value,
        pl.col("metric") == MEAN,
        pl.col("estimand") == Estimand.PROMPTS_LIKE_THESE.value,
        ~pl.col("reason").is_in(NO_TOTAL).fill_null(value=False),
    )


def _latest(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The means over categories of every night, one frame for a night and benchmark: the last in the list."""
    empty = BENCHMARK_LONG.empty().select(_NEEDED)
    placed = pl.concat(
        frame.select(_NEEDED).with_columns(place=pl.lit(place, pl.Int64)) for place, frame in enumerate([empty, *frames])
    )
    newest = placed.filter(pl.col("place") == pl.col("place").max().over("benchmark", "run_date"))
    return series_cells(newest.drop("place"))


def _set_id(asked: pl.DataFrame) -> str:
    joined = "\n".join(asked["sample_id"].unique().sort())
    return hashlib.sha256(joined.encode()).hexdigest()
