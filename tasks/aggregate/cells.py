"""The means for prompts like these alone: the part of benchmark_long a leaderboard is made of. All tables: published.py."""

from collections.abc import Mapping
from datetime import date

import polars as pl

from rubrics.model import Rubric
from schemas.statuses import Estimand
from tasks.aggregate.figures import MEAN, cell_id
from tasks.aggregate.published import Run, long_table

__all__ = ["cell_id", "cells"]


def cells(
    judgements: pl.LazyFrame | pl.DataFrame,
    scores: pl.LazyFrame | pl.DataFrame,
    rubrics: Mapping[str, Rubric],
    *,
    benchmark: str,
    dataset_id: str,
    run_id: str,
    run_date: date,
    min_coverage: float,
) -> pl.DataFrame:
    """The means of one run, sorted. Raises RubricError where a judgement's rubric is not given."""
    run = Run(benchmark, dataset_id, run_id, run_date, min_coverage)
    table = long_table(judgements.lazy(), scores.lazy(), rubrics, run)
    return table.filter(pl.col("metric") == MEAN, pl.col("estimand") == Estimand.PROMPTS_LIKE_THESE)
