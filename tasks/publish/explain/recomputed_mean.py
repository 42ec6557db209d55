"""A published mean recomputed from the scores behind it, by other code than published it."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import polars as pl

from schemas.metrics import MEAN, Metric
from schemas.statuses.cells import Total

TOLERANCE = 1e-9


def recomputed_mean(members: pl.DataFrame, category: str, metric: str = MEAN) -> float | None:
    """Plain arithmetic: repeats of a sample, or of each item, samples of a category, and for `__macro__` categories are averaged.

    What is averaged are the scores, or for `share_at_least_K` whether they are at least K.
    """
    at_least = Metric.named(metric).at_least
    samples: dict[tuple[str | None, str, str | None], list[float]] = defaultdict(list)
    for row in members.filter(~pl.col("is_failure")).iter_rows(named=True):
        samples[row["category"] if category == Total.MACRO.value else None, row["sample_id"], row["item"]].append(
            row["score"] if at_least is None else float(row["score"] >= at_least)
        )
    categories: dict[str | None, list[float]] = defaultdict(list)
    for (name, *_), scores in samples.items():
        categories[name].append(mean(scores))
    return mean([mean(means) for means in categories.values()]) if categories else None


def is_reproduced(cell: Mapping[str, Any], members: pl.DataFrame, recomputed: float | None) -> bool:
    """Whether counts and mean are those of the table; a null estimate agrees where the counts do."""
    if members.height != cell["n_judgements"] or members["is_failure"].sum() != cell["n_failed"]:
        return False
    return cell["estimate"] is None or (recomputed is not None and abs(recomputed - cell["estimate"]) <= TOLERANCE)


def mean(values: list[float]) -> float:
    """Their exact sum over their number."""
    return math.fsum(values) / len(values)
