"""Ingest as a whole: sources -> shards -> parts of the samples table -> one committed dataset. No Prefect: flows wrap these.

A flow runs find_shards() in order, open_and_write_shard() for each (in threads, in any order, again after a failure),
and finish() at the end.
"""

import itertools
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.benchmark import Benchmark, source_name
from schemas.errors import SourceError
from schemas.records import Sample
from schemas.statuses import SampleStatus
from tasks.ingest.identity import ID_BYTES, Ids, dataset_id, in_order, packed, unpacked
from tasks.ingest.readers import read
from tasks.ingest.shards import as_duplicate, open_shard, shards
from tasks.ingest.sources import expand
from tasks.lake.writing import Staging


class SampleList:
    """A shard's samples, opaque to Prefect, which would otherwise look into every one of them."""

    def __init__(self, samples: list[Sample]) -> None:
        self.samples = samples

    @property
    def has_pictures(self) -> bool:
        """Whether the samples carry their pictures' bytes: too much to send to another process."""
        return any(sample.image_bytes is not None for sample in self.samples)


@dataclass(frozen=True, slots=True)
class OpenShard:
    """Some samples of one folder, in order, to be opened and made part `index` of what is staged."""

    staging: Staging
    index: int
    samples: SampleList
    root: Path


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What became of a shard, and all that finish() needs of its part: packed ids and source_keys in order, counts."""

    index: int
    n_by_status: Mapping[str, int]
    ids: bytes = field(repr=False)
    packed_keys: bytes = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Samples, whatever their status."""
        return sum(self.n_by_status.values())

    @property
    def n_ok(self) -> int:
        """Samples that can be judged."""
        return self.n_by_status.get(SampleStatus.OK.value, 0)

    def source_keys(self) -> list[str]:
        """The source_key of each row."""
        found: list[str] = orjson.loads(zlib.decompress(self.packed_keys))
        return found


def write_part(staging: Staging, index: int, tables: Iterable[pa.Table]) -> ShardResult:
    """Make rows of the samples table part `index`, durably, as they come."""
    n_by_status: Counter[str] = Counter()
    ids, keys = bytearray(), list[str]()

    def noted() -> Iterator[pa.Table]:
        for table in tables:
            ids.extend(packed(table["sample_id"].to_pylist()))
            keys.extend(table["source_key"].to_pylist())
            n_by_status.update(table["status"].to_pylist())
            yield table

    staging.write_tables(index, noted())
    return ShardResult(index, dict(n_by_status), bytes(ids), zlib.compress(orjson.dumps(keys), level=1))


def settled(staging: Staging, results: Sequence[ShardResult]) -> list[ShardResult]:
    """The results, every sample that an earlier shard holds made a duplicate and its part written anew. All shards, in order."""
    several = _several([one.ids for one in results])
    first_keys: dict[bytes, str] = {}  # of ids that several shards hold
    return [_settle(staging, result, several, first_keys) for result in results] if several.size else list(results)


def _several(ids: Sequence[bytes]) -> Ids:
    """The ids that stand there more than once, sorted."""
    found = [some[1:][some[1:] == some[:-1]] for some in in_order(ids)]
    return np.unique(np.concatenate(found)) if found else np.empty(0, f"S{ID_BYTES}")


def _settle(staging: Staging, result: ShardResult, several: Ids, first_keys: dict[bytes, str]) -> ShardResult:
    mine = unpacked(result.ids)
    rows = np.flatnonzero(several[np.searchsorted(several, mine).clip(max=several.size - 1)] == mine).tolist()
    keys = result.source_keys() if rows else []
    firsts: dict[int, str] = {}
    for row in rows:
        own = result.ids[row * ID_BYTES : (row + 1) * ID_BYTES]
        if own in first_keys:
            firsts[row] = first_keys[own]
        else:
            first_keys[own] = keys[row]
    if not firsts:
        return result
    table = pq.ParquetFile(staging.part_path(result.index)).read()
    return write_part(staging, result.index, [_with_duplicates(table, firsts)])


def _with_duplicates(table: pa.Table, firsts: Mapping[int, str]) -> pa.Table:
    """The table with the rows of `firsts` (row -> source_key of the sample that counts) made duplicates."""
    pieces: list[pa.Table] = []
    done = 0
    for index, first in sorted(firsts.items()):
        row = table.slice(index, 1).to_pylist()[0]
        as_duplicate(row, first)
        pieces += [table.slice(done, index - done), pa.Table.from_pylist([row], schema=table.schema)]
        done = index + 1
    return pa.concat_tables([*pieces, table.slice(done)])


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The dataset that stands in the lake."""

    dataset_id: str
    n_samples: int
    n_ok: int
    n_by_status: dict[str, int]
    n_parts: int


def find_shards(benchmark: Benchmark, staging: Staging, checkpoints: Collection[str] | None = None) -> Iterator[OpenShard]:
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
            yield OpenShard(staging, next(index), SampleList(samples), source.root)
    empty = [name for name, n in n_rows.items() if not n]
    # Of some checkpoints alone a source may well have nothing; of all of them, an empty source is a mistake.
    if empty and (checkpoints is None or len(empty) == len(n_rows)):
        raise _no_rows(benchmark, empty[0], checkpoints)


def open_and_write_shard(shard: OpenShard) -> ShardResult:
    """Open a shard's pictures and make it a part, durably. Run again it writes the same part anew."""
    return write_part(shard.staging, shard.index, open_shard(shard.samples.samples, shard.root))


def finish(staging: Staging, results: Sequence[ShardResult]) -> IngestResult:
    """Settle duplicates across the staged parts, name the dataset by its content and commit it.

    Only parts that hold a duplicate are read: no other picture comes to this machine. Raises StoreError where one of the
    parts is not staged.
    """
    if not results:
        raise SourceError("the dataset is empty: no source gave a row")
    counts: Counter[str] = Counter()
    found = settled(staging, sorted(results, key=lambda one: one.index))
    for one in found:
        counts.update(one.n_by_status)
    key = staging.commit(dataset_id([one.ids for one in found]), range(len(results)))
    return IngestResult(key, counts.total(), counts[SampleStatus.OK.value], dict(sorted(counts.items())), len(found))


def _no_rows(benchmark: Benchmark, name: str, checkpoints: Collection[str] | None) -> SourceError:
    source = next(one for index, one in enumerate(benchmark.sources) if source_name(one, index) == name)
    where = f", where = {dict(source.where)}" if source.where else ""
    only = f", checkpoints {', '.join(sorted(checkpoints))}" if checkpoints else ""
    return SourceError(f"source {name!r} is empty: reader {source.reader} finds no row at path = {source.path!r}{where}{only}")
