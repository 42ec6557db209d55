"""The plan of a whole dataset: every part of samples under one rubric and one judge, written to the lake. One part is plan.py."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from rubrics.model import Rubric
from schemas.benchmark import Judge
from schemas.tables import JUDGEMENTS, REQUESTS, SAMPLES
from tasks.judge.plan import PLAN_COLUMNS, plan_part
from tasks.judge.plan_checks import keep_first
from tasks.store import Lake, Staging


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """Part `index` of judgements and requests: one part of samples under one rubric and one judge."""

    index: int
    samples_part: int
    rubric_id: str
    judge_model: str
    n_requests: int


def plan_rubric(
    lake: Lake,
    dataset_id: str,
    rubric: Rubric,
    judge: Judge,
    sources: Sequence[str],
    stagings: tuple[Staging, Staging],
    first_index: int,
    on_part: Callable[[PlannedPart], None] | None = None,
) -> list[PlannedPart]:
    """Plan the samples of `sources`, a part at a time, into the stagings of judgements and requests from part `first_index` on.

    A question that several samples ask stands in `requests` once, in the first part that asks it.
    """
    judgements, requests = stagings
    seen: set[bytes] = set()
    planned: list[PlannedPart] = []
    for samples_part in range(len(lake.parts(SAMPLES, dataset_id))):
        samples = lake.read_part(SAMPLES, dataset_id, samples_part, ["source", *PLAN_COLUMNS])
        samples = samples.filter(pl.col("source").is_in(list(sources)))
        if samples.is_empty():
            continue
        judged, asked = plan_part(samples, rubric, judge)
        asked = keep_first(asked, seen)
        part = PlannedPart(first_index + len(planned), samples_part, rubric.id, judge.model, asked.height)
        judgements.write_part(part.index, judged)
        requests.write_part(part.index, asked)
        planned.append(part)
        if on_part:
            on_part(part)
    return planned


def staged_judgements(staging: Staging) -> pl.LazyFrame:
    """The judgements staged so far."""
    paths = list(staging.part_paths())
    return pl.scan_parquet(paths) if paths else pl.DataFrame(JUDGEMENTS.schema().empty_table()).lazy()


def new_stagings(lake: Lake) -> tuple[Staging, Staging]:
    """Places for a plan's judgements and requests."""
    return lake.stage(JUDGEMENTS), lake.stage(REQUESTS)
