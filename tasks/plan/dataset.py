"""The plan of a whole dataset: its samples under one rubric and one judge, written to the lake. What is asked is rows.py."""

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from rubrics.model import Rubric
from schemas.benchmark import Judge
from schemas.records import PlannedPart
from schemas.tables import JUDGEMENTS, REQUESTS, SAMPLES
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging, stage
from tasks.plan.checks import keep_first
from tasks.plan.rows import PLAN_COLUMNS, Planned, Planner
from tasks.stopping import check_not_stopped

ROWS_AT_ONCE = 50_000
"""Samples planned together, whole parts at a time: some 200 MB."""


def plan_rubric(
    lake: Lake,
    dataset_id: str,
    rubric: Rubric,
    judge: Judge,
    sources: Sequence[str],
    stagings: tuple[Staging | None, Staging | None],
    first_index: int,
    on_part: Callable[[PlannedPart], None] | None = None,
    occasion: str = "",
) -> list[PlannedPart]:
    """Plan the samples of `sources` into the stagings of judgements and of requests; what has no staging is not written.

    Parts of requests are those of samples, numbered from `first_index` on; judgements are written many parts together. A
    question that several samples ask stands in `requests` once, in the first part that asks it. Raises StoppedError.
    """
    judgements, requests = stagings
    seen: set[bytes] = set()
    found: list[PlannedPart] = []
    for samples_parts, planned in _planned(lake, dataset_id, Planner(rubric, judge, occasion), sources):
        asked = keep_first(planned.asked.with_columns(samples_part=samples_parts.gather(planned.asked["sample"])), seen)
        by_part = asked.partition_by("samples_part", as_dict=True)
        if judgements:
            judgements.write_part(first_index + len(found), planned.judgements)
        for samples_part in samples_parts.unique(maintain_order=True):
            check_not_stopped()
            mine = by_part.get((samples_part,), asked[:0])
            part = PlannedPart(first_index + len(found), samples_part, rubric.id, judge.model, mine.height)
            if requests:
                requests.write_part(part.index, planned.requests(mine))
            found.append(part)
            if on_part:
                on_part(part)
    return found


def staged_judgements(staging: Staging) -> pl.LazyFrame:
    """The judgements staged so far."""
    paths = list(staging.part_paths())
    return pl.scan_parquet(paths) if paths else pl.DataFrame(JUDGEMENTS.schema().empty_table()).lazy()


def new_stagings(lake: Lake) -> tuple[Staging, Staging]:
    """Places for a plan's judgements and requests."""
    return stage(lake, JUDGEMENTS), stage(lake, REQUESTS)


def is_planned(lake: Lake, plan_id: str) -> bool:
    """Whether the plan stands in the lake, judgements and requests."""
    return lake.is_complete(JUDGEMENTS, plan_id) and lake.is_complete(REQUESTS, plan_id)


def _planned(lake: Lake, dataset_id: str, planner: Planner, sources: Sequence[str]) -> Iterator[tuple[pl.Series, Planned]]:
    """(the samples part of each row, the rows planned), some ROWS_AT_ONCE samples at a time."""
    paths = lake.parts_without_pictures(SAMPLES, dataset_id)
    n_together = max(1, ROWS_AT_ONCE * len(paths) // max(1, lake.n_rows(SAMPLES, dataset_id)))
    for start in range(0, len(paths), n_together):
        numbers = {str(path): number for number, path in enumerate(paths[start : start + n_together], start)}
        samples = (
            pl.scan_parquet(list(numbers), include_file_paths="path")
            .filter(pl.col("source").is_in(list(sources)))
            .select(*PLAN_COLUMNS, samples_part=pl.col("path").replace_strict(numbers, return_dtype=pl.Int64))
            .collect()
        )
        if not samples.is_empty():
            yield samples["samples_part"], planner.plan(samples)
