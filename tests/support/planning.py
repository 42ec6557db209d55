"""What a part of samples is asked, without a lake. No tests here."""

import polars as pl

from rubrics.model import Rubric
from schemas.benchmark.judges import Judge
from tasks.plan.rows import Planner


def plan_part(samples: pl.DataFrame, rubric: Rubric, judge: Judge, occasion: str = "") -> tuple[pl.DataFrame, pl.DataFrame]:
    """(judgements, requests) of one part of samples."""
    planned = Planner(rubric, judge, occasion).plan(samples)
    return planned.judgements, planned.requests(planned.asked)
