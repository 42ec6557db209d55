"""A benchmark's sources ingested in one process, shard after shard."""

from collections.abc import Collection, Iterable
from pathlib import Path

import pyarrow as pa

from schemas.benchmark.file import Benchmark
from schemas.records import Sample
from schemas.tables.stored import PICTURES, SAMPLES
from tasks.ingest.known_sources import KnownSources
from tasks.ingest.parts import discard
from tasks.ingest.samples import IngestResult, find_shards, finish, open_and_write_shard
from tasks.ingest.shards import OpenedShard
from tasks.lake.reading import Lake
from tasks.lake.writing import stage


def opened_rows(samples: Iterable[Sample], root: Path) -> tuple[pa.Table, pa.Table]:
    """A shard's samples opened: the rows of `samples`, and of `pictures`."""
    shard = OpenedShard(samples, root)
    pictures = pa.concat_tables([PICTURES.schema.empty_table(), *shard.pictures()])
    return shard.rows(), pictures


def ingest(
    benchmark: Benchmark, lake: Lake, *, checkpoints: Collection[str] | None = None, known: KnownSources | None = None
) -> IngestResult:
    """Every source of the benchmark as one dataset of the lake."""
    staging = stage(lake, SAMPLES)
    try:
        shards = find_shards(benchmark, staging, checkpoints, known)
        return finish(staging, [open_and_write_shard(shard) for shard in shards], known)
    except BaseException:
        discard(staging)
        raise
