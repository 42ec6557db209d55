"""The series of nights: published cells and the anchors' cells, night after night, as the table drift.py looks at.

Which publications a lake holds is tasks/publish; the anchors of a night are anchors.py; limits and verdicts are drift.py.
"""

from collections.abc import Sequence

import polars as pl

from schemas.metrics import MEAN, NO_TOTAL
from schemas.statuses.cells import Estimand, Total
from schemas.statuses.nights import DriftReason
from schemas.tables.nights import NIGHTS
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.table import conform
from tasks.aggregate.drift.anchors import ANCHORS, with_the_missing

_JUDGED = ["benchmark", "run_date", "rubric_id", "rubric_version", "judge_model", "dimension", "category"]
_NEEDED = [
    *_JUDGED, "model", "checkpoint", "metric", "estimand", "dataset_id", "estimate", "se", "n_judgements", "n_failed",
    "scale_low", "scale_high", "reason",
]  # fmt: skip


def night_series(
    nights: Sequence[pl.DataFrame], anchors: Sequence[pl.DataFrame] = (), scored: Sequence[pl.DataFrame] = ()
) -> pl.DataFrame:
    """The NIGHTS table from the cells of each night and the anchors' cells of each night (both benchmark_long).

    `scored`: benchmark, run_date and the anchors' scores (SCORED) of each night; without them a mean is over those scored.
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
    frozen = _latest(anchors).select(
        *_JUDGED, anchor_set="dataset_id", anchor_estimate="estimate", anchor_se="se", n_anchors_failed="n_failed"
    )
    if scored:
        frozen = with_the_missing(frozen, pl.concat(scored)).with_columns(
            anchor_se=pl.when(pl.col("anchor_estimate").is_not_null()).then("anchor_se")
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
