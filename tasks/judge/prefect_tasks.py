"""The Prefect tasks of judging: a shard asked, its replies taken from the ledger. The work is elsewhere."""

from prefect import task

from tasks.context import StageContext
from tasks.judge.batch.run import AskByBatch, judge_by_batch
from tasks.judge.outcome import Outcome
from tasks.judge.shard import AskShard, judge_shard
from tasks.ledger.snapshot import take_parts
from tasks.prefect_options import OPTIONS
from tasks.stopping import STOP


@task(name="ask judge", task_run_name="ask {shard.part.judge_model}, {shard.part.rubric_id}, shard {shard.part.index}", **OPTIONS)
def ask_judge(context: StageContext, shard: AskShard) -> Outcome:
    """Ask what the ledger lacks of a shard's requests."""
    return judge_shard(context, shard, stop=STOP)


@task(name="ask judge by batch", task_run_name="ask {shard.judge_model} by batch", **OPTIONS)
def ask_by_batch(context: StageContext, shard: AskByBatch) -> Outcome:
    """Ask what the ledger lacks of all of a judge's requests through its provider's Batch API."""
    return judge_by_batch(context, shard, stop=STOP)


take_replies = task(name="take replies", task_run_name="take replies, from shard {shard.indices[0]} on", **OPTIONS)(take_parts)
"""Write some shards' replies as the ledger holds them now; return their digests."""
