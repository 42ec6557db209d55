"""Ingest as a whole: sources -> shards -> parts of the samples table -> one committed dataset. No Prefect: flows wrap these.

A flow runs find_shards() in order, open_and_write_shard() for each (in threads, in any order, again after a failure),
and finish() at the end; ingest() is the three in a row.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.benchmark import Benchmark, source_name
from schemas.errors import SourceError, StoreError
from schemas.records import Sample
from schemas.statuses import SampleStatus
from schemas.tables import SAMPLES
from tasks.ingest.identity import dataset_id, sample_id
from tasks.ingest.readers import read
from tasks.ingest.settling import ShardResult, settled, write_part
from tasks.ingest.shards import open_shard, shards
from tasks.ingest.sources import expand
from tasks.staging import Staging, stage
from tasks.store import Lake, part_name

__all__ = [
    "IngestResult",
    "Shard",
    "ShardResult",
    "find_shards",
    "finish",
    "ingest",
    "open_and_write_shard",
    "open_shard",
    "sample_id",
    "shards",
]


@dataclass(frozen=True, slots=True)
class Shard:
    """Some samples of one folder, in order; `index` is the number of the part they become."""

    index: int
    samples: list[Sample]
    root: Path


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The dataset that stands in the lake."""

    dataset_id: str
    n_samples: int
    n_ok: int
    n_by_status: dict[str, int]
    n_parts: int


def ingest(
    benchmark: Benchmark,
    lake: Lake,
    *,
    checkpoints: Collection[str] | None = None,
    on_shard: Callable[[ShardResult], None] | None = None,
) -> IngestResult:
    """Read every source of the benchmark into one dataset of the lake, one shard in memory at a time.

    Raises SourceError where a source cannot be read, lacks a column or has no rows. The same data gives the same id.
    """
    staging = stage(lake, SAMPLES)
    try:
        results: list[ShardResult] = []
        for shard in find_shards(benchmark, checkpoints):
            results.append(open_and_write_shard(staging, shard.index, shard.samples, shard.root))
            if on_shard:
                on_shard(results[-1])
        return finish(staging, results)
    except BaseException:
        staging.discard()
        raise


def find_shards(benchmark: Benchmark, checkpoints: Collection[str] | None = None) -> Iterator[Shard]:
    """The benchmark's samples in shards of `limits.shard_size`, lazily, sources in order; a shard has one folder.

    Raises SourceError as reading goes on, and at its end where a source had no row
    (where only some checkpoints are wanted: where all had none).
    """
    index = itertools.count()
    n_rows: dict[str, int] = {}
    for source in expand(benchmark, checkpoints):
        n_rows.setdefault(source.name, 0)
        for samples in shards(read(source), benchmark.limits.shard_size):
            n_rows[source.name] += len(samples)
            yield Shard(next(index), samples, source.root)
    empty = [name for name, n in n_rows.items() if not n]
    # Of some checkpoints alone a source may well have nothing; of all of them, an empty source is a mistake.
    if empty and (checkpoints is None or len(empty) == len(n_rows)):
        raise _no_rows(benchmark, empty[0], checkpoints)


def open_and_write_shard(staging: Staging, index: int, samples: list[Sample], root: Path) -> ShardResult:
    """Open a shard's pictures and make it part `index`, durably. Run again it writes the same part anew."""
    return write_part(staging, index, open_shard(samples, root))


def finish(staging: Staging, results: Sequence[ShardResult]) -> IngestResult:
    """Settle duplicates across the staged parts, name the dataset by its content and commit it.

    Only parts that hold a duplicate are read: no other picture comes to this machine. Raises StoreError where one of the
    parts is not staged.
    """
    if not results:
        raise SourceError("the dataset is empty: no source gave a row")
    staged = staging.part_names()
    if staged != [part_name(index) for index in range(len(results))]:
        raise StoreError(f"{staging.folder} holds {len(staged)} parts, not the {len(results)} in a row; run the command again")
    counts: Counter[str] = Counter()
    found = settled(staging, sorted(results, key=lambda one: one.index))
    for one in found:
        counts.update(one.n_by_status)
    key = staging.commit(dataset_id([one.ids for one in found]))
    return IngestResult(key, counts.total(), counts[SampleStatus.OK.value], dict(sorted(counts.items())), len(found))


def _no_rows(benchmark: Benchmark, name: str, checkpoints: Collection[str] | None) -> SourceError:
    source = next(one for index, one in enumerate(benchmark.sources) if source_name(one, index) == name)
    where = f", where = {dict(source.where)}" if source.where else ""
    only = f", checkpoints {', '.join(sorted(checkpoints))}" if checkpoints else ""
    return SourceError(f"source {name!r} is empty: reader {source.reader} finds no row at path = {source.path!r}{where}{only}")
