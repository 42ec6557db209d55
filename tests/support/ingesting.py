"""A benchmark's sources ingested in one process, shard after shard."""

from collections.abc import Collection

from schemas.benchmark import Benchmark
from schemas.tables import SAMPLES
from tasks.ingest.known_sources import KnownSources
from tasks.ingest.samples import IngestResult, find_shards, finish, open_and_write_shard
from tasks.lake.reading import Lake
from tasks.lake.writing import stage


def ingest(
    benchmark: Benchmark, lake: Lake, *, checkpoints: Collection[str] | None = None, known: KnownSources | None = None
) -> IngestResult:
    """Every source of the benchmark as one dataset of the lake."""
    staging = stage(lake, SAMPLES)
    try:
        shards = find_shards(benchmark, staging, checkpoints, known)
        return finish(staging, [open_and_write_shard(shard) for shard in shards], known)
    except BaseException:
        staging.discard()
        raise
