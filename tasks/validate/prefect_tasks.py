"""The Prefect tasks of validation: a shard's replies read into scores, and the data checks over the stored tables."""

from collections.abc import Mapping, Sequence

from prefect import task

from rubrics.model import Rubric
from schemas.tables import REPLIES, REQUESTS
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging
from tasks.prefect_options import OPTIONS
from tasks.stopping import check_not_stopped
from tasks.validate.check_cache import checked
from tasks.validate.parse import REPLY_COLUMNS, REQUEST_COLUMNS, parse_part


@task(name="read replies", task_run_name="read replies, from shard {indices[0]} on", **OPTIONS)
def read_replies(
    lake: Lake, plan_id: str, snapshot_id: str, indices: Sequence[int], rubrics: Mapping[str, Rubric], staging: Staging
) -> int:  # fmt: skip
    """Write some shards' scores; return how many rows."""
    n_rows = 0
    for index in indices:
        check_not_stopped()
        requests = lake.read_part(REQUESTS, plan_id, index, REQUEST_COLUMNS)
        replies = lake.read_part(REPLIES, snapshot_id, index, REPLY_COLUMNS)
        n_rows += staging.write_part(index, parse_part(requests, replies, rubrics))
    return n_rows


check_data = task(name="check data", task_run_name="check data", **OPTIONS)(checked)
"""Run the data checks over the stored tables of a run, unless they passed over the same bytes before."""
