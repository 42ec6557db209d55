"""Which judgements a published cell is made of, and its mean taken again from their scores, by other code than published it."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import polars as pl

from schemas.metrics import MEAN, RUBRIC_CELL, TOTALS, Metric
from schemas.statuses import ScoreStatus, Total
from schemas.tables import JUDGEMENTS, SCORES
from tasks.lake.reading import Lake

_TOLERANCE = 1e-9


def members_of(lake: Lake, ids: Mapping[str, str], cell: Mapping[str, Any], cells: pl.DataFrame) -> pl.DataFrame:
    """The cell's judgements beside their scores: failures first, then by score.

    A total holds the categories that have a cell of their own in the publication (all, where none has): that is how the
    judgements that never were planned are told apart by dimension.
    """
    judgements = lake.scan(JUDGEMENTS, ids["plan_id"]).filter(
        pl.col("occasion") == "", *(pl.col(name) == cell[name] for name in RUBRIC_CELL)
    )
    named = cells.filter(dimension=cell["dimension"], **{name: cell[name] for name in RUBRIC_CELL})["category"]
    named = named.filter(~named.is_in(TOTALS))
    category = pl.col("category").fill_null(Total.UNNAMED.value)
    if cell["category"] not in TOTALS:
        judgements = judgements.filter(category == cell["category"])
    elif named.len():
        judgements = judgements.filter(category.is_in(named.to_list()))
    scores = lake.scan(SCORES, ids["reading_id"]).filter(pl.col("dimension") == cell["dimension"])
    scores = scores.select(
        "request_key", "score", "note", "bound_low", "bound_high", score_status="status", score_reason="reason"
    )
    joined = judgements.join(scores, on="request_key", how="left").collect()
    asked = joined.filter(pl.col("score_status").is_not_null() | pl.col("request_key").is_null())
    is_failure = pl.col("score_status").ne_missing(ScoreStatus.SCORED.value)
    return asked.with_columns(
        status=pl.coalesce("score_status", "status"), reason=pl.coalesce("score_reason", "reason"), is_failure=is_failure
    ).sort("is_failure", "score", "sample_id", "repeat", descending=[True, False, False, False])


def mean_again(members: pl.DataFrame, category: str, metric: str = MEAN) -> float | None:
    """Plain arithmetic: repeats of a sample, samples of a category, and for `__macro__` categories are averaged.

    What is averaged are the scores, or for `share_at_least_K` whether they are at least K.
    """
    at_least = Metric.named(metric).at_least
    samples: dict[tuple[str | None, str], list[float]] = defaultdict(list)
    for row in members.filter(~pl.col("is_failure")).iter_rows(named=True):
        samples[row["category"] if category == Total.MACRO.value else None, row["sample_id"]].append(
            row["score"] if at_least is None else float(row["score"] >= at_least)
        )
    categories: dict[str | None, list[float]] = defaultdict(list)
    for (name, _), scores in samples.items():
        categories[name].append(_mean(scores))
    return _mean([_mean(means) for means in categories.values()]) if categories else None


def is_reproduced(cell: Mapping[str, Any], members: pl.DataFrame, recomputed: float | None) -> bool:
    """Whether counts and mean are those of the table; a null estimate agrees where the counts do."""
    if members.height != cell["n_judgements"] or members["is_failure"].sum() != cell["n_failed"]:
        return False
    return cell["estimate"] is None or (recomputed is not None and abs(recomputed - cell["estimate"]) <= _TOLERANCE)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
