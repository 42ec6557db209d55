"""The Prefect tasks of validation: a shard's replies read into scores, and the data checks over the stored tables."""

from collections.abc import Mapping, Sequence

import polars as pl
from prefect import task

from rubrics.model import Rubric
from schemas.tables import REPLIES, REQUESTS
from tasks.prefect_options import OPTIONS
from tasks.store import Lake, Staging, part_name
from tasks.validate.checks import validate
from tasks.validate.parse import REPLY_COLUMNS, REQUEST_COLUMNS, parse_part


@task(name="read replies", task_run_name="read replies, from shard {indices[0]} on", **OPTIONS)
def read_replies(
    lake: Lake, plan_id: str, snapshot_id: str, indices: Sequence[int], rubrics: Mapping[str, Rubric], staging: Staging
) -> int:  # fmt: skip
    """Write some shards' scores; return how many rows."""
    asked, answered = (
        {path.name: path for path in lake.parts(*stored)} for stored in ((REQUESTS, plan_id), (REPLIES, snapshot_id))
    )
    n_rows = 0
    for index in indices:
        requests = pl.read_parquet(asked[part_name(index)], columns=REQUEST_COLUMNS)
        replies = pl.read_parquet(answered[part_name(index)], columns=REPLY_COLUMNS)
        n_rows += staging.write_part(index, parse_part(requests, replies, rubrics))
    return n_rows


check_data = task(name="check data", task_run_name="check data", **OPTIONS)(validate)
"""Run the data checks over the stored tables of a run."""
