"""What a stage is given: the context of a small benchmark file, and what a part of samples is asked. No tests here."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from rubrics.model import Rubric
from schemas.benchmark.file import Benchmark
from schemas.benchmark.judges import Judge
from schemas.identities import RunIds
from tasks.context import StageContext
from tasks.lake.reading import Lake
from tasks.plan.rows import Planner


def stage_context(
    lake: Lake, rubrics: Mapping[str, Rubric], ids: RunIds, run_date: date = date(2026, 11, 3), **sections: Any
) -> StageContext:
    """What a stage gets; `sections` stand in the benchmark file in place of these."""
    file = {
        "name": "nightly",
        "sources": [{"reader": "geneval", "path": "outputs"}],
        "rubrics": [{"id": rubric_id} for rubric_id in rubrics],
        "judges": [{"model": "eye-2026-01-01"}],
    }
    return StageContext(Benchmark.model_validate(file | sections), rubrics, lake, "sqlite://", run_date, ids)


def plan_part(samples: pl.DataFrame, rubric: Rubric, judge: Judge, occasion: str = "") -> tuple[pl.DataFrame, pl.DataFrame]:
    """(judgements, requests) of one part of samples."""
    planned = Planner(rubric, judge, occasion).plan(samples)
    return planned.judgements, planned.requests(planned.asked)
