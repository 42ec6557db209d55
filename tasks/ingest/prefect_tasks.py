"""The Prefect task of ingest: one shard of samples opened and written. The work is in samples.py."""

from prefect import task

from tasks.context import StageContext
from tasks.ingest.samples import OpenShard, ShardResult, open_and_write_shard
from tasks.prefect_options import OPTIONS


@task(name="open samples", task_run_name="open samples, shard {shard.index}", **OPTIONS)
def open_samples(context: StageContext, shard: OpenShard) -> ShardResult:  # noqa: ARG001  # every stage is given both
    """Open a shard's pictures and write it."""
    return open_and_write_shard(shard)
