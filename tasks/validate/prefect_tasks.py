"""The Prefect tasks of validation: shards' replies read into scores, and the data checks over the stored tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from prefect import task

from schemas.tables import REPLIES, REQUESTS
from tasks.context import StageContext
from tasks.lake.writing import Staging
from tasks.prefect_options import OPTIONS
from tasks.stopping import check_not_stopped
from tasks.validate.check_cache import checked
from tasks.validate.parse import REPLY_COLUMNS, REQUEST_COLUMNS, parse_part


@dataclass(frozen=True, slots=True)
class ReadShard:
    """The parts of a plan whose replies are read together, and where their scores go."""

    indices: Sequence[int]
    staging: Staging


@task(name="read replies", task_run_name="read replies, from shard {shard.indices[0]} on", **OPTIONS)
def read_replies(context: StageContext, shard: ReadShard) -> int:
    """Write some shards' scores; return how many rows."""
    n_rows = 0
    for index in shard.indices:
        check_not_stopped()
        requests = context.lake.read_part(REQUESTS, context.ids.plan_id, index, REQUEST_COLUMNS)
        replies = context.lake.read_part(REPLIES, context.ids.snapshot_id, index, REPLY_COLUMNS)
        n_rows += shard.staging.write_part(index, parse_part(requests, replies, context.rubrics))
    return n_rows


check_data = task(name="check data", task_run_name="check data", **OPTIONS)(checked)
"""Run the data checks over the stored tables of a run, unless they passed over the same bytes before."""
