"""Which rows of benchmark_long a leaderboard and a cell's path mean. The table holds other metrics and estimands beside them."""

import polars as pl

from schemas.statuses import Estimand

MEAN = "mean"


def means_for_prompts_like_these(cells: pl.DataFrame) -> pl.DataFrame:
    """The rows whose metric is the mean and whose estimand is prompts like these: one for each address."""
    return cells.filter(pl.col("metric") == MEAN, pl.col("estimand") == Estimand.PROMPTS_LIKE_THESE.value)
