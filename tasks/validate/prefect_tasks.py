"""The Prefect tasks of validation: a shard's replies read into scores, and the data checks over the stored tables."""

from collections.abc import Mapping

from prefect import task

from rubrics.model import Rubric
from schemas.tables import REPLIES, REQUESTS
from tasks.prefect_options import OPTIONS
from tasks.store import Lake, Staging
from tasks.validate.checks import validate
from tasks.validate.parse import parse_part


@task(name="read replies", task_run_name="read replies, shard {index}", **OPTIONS)
def read_replies(
    lake: Lake, plan_id: str, snapshot_id: str, index: int, rubrics: Mapping[str, Rubric], staging: Staging
) -> int:  # fmt: skip
    """Write a shard's scores; return how many rows."""
    requests, replies = lake.read_part(REQUESTS, plan_id, index), lake.read_part(REPLIES, snapshot_id, index)
    return staging.write_part(index, parse_part(requests, replies, rubrics))


check_data = task(name="check data", task_run_name="check data", **OPTIONS)(validate)
"""Run the data checks over the stored tables of a run."""
