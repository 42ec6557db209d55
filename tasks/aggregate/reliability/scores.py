"""Every score that counts beside who, what and whom it judges: what variance components, juries and bridges are made of."""

import polars as pl

from schemas.statuses import JudgementStatus, ScoreStatus, Total

JUDGED = ["rubric_id", "rubric_version", "judge_model", "model", "checkpoint", "dimension"]
UNIT = ["category", "prompt_id", "sample_id"]


def scored(judgements: pl.LazyFrame | pl.DataFrame, scores: pl.LazyFrame | pl.DataFrame, occasion: str = "") -> pl.DataFrame:
    """One row per score that counts: JUDGED, UNIT, repeat, score; sorted. A null category is `__unnamed__`.

    `occasion` is empty, or the date whose anchors are meant. A failure is no row: nothing is put in its place.
    """
    asked = judgements.lazy().filter(pl.col("occasion") == occasion, pl.col("status") == JudgementStatus.PLANNED.value)
    read = scores.lazy().filter(pl.col("status") == ScoreStatus.SCORED.value).select("request_key", "dimension", "score")
    rows = asked.join(read, on="request_key").select(
        *JUDGED, pl.col("category").fill_null(Total.UNNAMED.value), "prompt_id", "sample_id", "repeat", "score"
    )
    return rows.sort([*JUDGED, *UNIT, "repeat"]).collect()


def image_means(rows: pl.DataFrame) -> pl.DataFrame:
    """The mean of each image's repeats: JUDGED, UNIT, score; sorted. Sums run over sorted rows, in that order."""
    means = rows.group_by([*JUDGED, *UNIT], maintain_order=True).agg(pl.col("score"))
    return means.with_columns(pl.col("score").list.sum() / pl.col("score").list.len())
