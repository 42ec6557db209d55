"""Ingest as a whole: sources -> shards -> parts of the samples table -> one committed dataset. No Prefect: flows wrap these.

A flow runs find_shards() in order, open_and_write_shard() for each (in threads, in any order, again after a failure),
and finish() at the end; ingest() is the three in a row.
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.benchmark import Benchmark, source_name
from schemas.errors import SourceError, StoreError
from schemas.records import Sample
from schemas.statuses import SampleStatus
from schemas.tables import SAMPLES
from tasks.ingest.identity import dataset_id, sample_id
from tasks.ingest.readers import read
from tasks.ingest.shards import as_duplicate, open_shard, shards
from tasks.ingest.sources import expand
from tasks.store import Lake, Staging, part_name

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
class ShardResult:
    """What became of a shard. `rows` is all that finish() needs of its part: sample_id, source_key and status, in order."""

    index: int
    n_rows: int
    n_ok: int
    rows: pl.DataFrame = field(compare=False, repr=False)


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
    staging = lake.stage(SAMPLES)
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


def write_part(staging: Staging, index: int, tables: Iterable[pa.Table]) -> ShardResult:
    """Make rows of the samples table part `index`, durably, as they come."""
    named: list[pa.Table] = []

    def noted() -> Iterator[pa.Table]:
        for table in tables:
            named.append(table.select(["sample_id", "source_key", "status"]))
            yield table

    n_rows = staging.write_tables(index, noted())
    rows = pl.DataFrame(pl.from_arrow(pa.concat_tables(named)))
    return ShardResult(index, n_rows, int((rows["status"] == SampleStatus.OK.value).sum()), rows)


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
    rows = pl.concat(_settled(staging, sorted(results, key=lambda one: one.index)))
    counts = dict(rows.group_by("status").len().sort("status").iter_rows())
    key = staging.commit(dataset_id(rows["sample_id"].sort()))
    return IngestResult(key, rows.height, counts.get(SampleStatus.OK.value, 0), counts, len(results))


def _settled(staging: Staging, results: list[ShardResult]) -> list[pl.DataFrame]:
    """The shards' rows, every sample that an earlier shard holds already a duplicate; the parts concerned are written anew."""
    found = {one.index: one.rows for one in results}
    ids = pl.concat(
        one.rows.select("sample_id", "source_key").with_row_index("row").with_columns(part=pl.lit(one.index, pl.Int64))
        for one in results
    ).with_columns(is_first=pl.col("sample_id").is_first_distinct(), first=pl.col("source_key").first().over("sample_id"))
    for (part,), repeated in ids.filter(~pl.col("is_first")).group_by("part", maintain_order=True):
        assert isinstance(part, int)
        firsts = dict(repeated.select("row", "first").iter_rows())
        table = pq.ParquetFile(staging.part_path(part)).read()
        found[part] = write_part(staging, part, [_with_duplicates(table, firsts)]).rows
    return list(found.values())


def _with_duplicates(table: pa.Table, firsts: dict[int, str]) -> pa.Table:
    """The table with the rows of `firsts` (row -> source_key of the sample that counts) made duplicates."""
    pieces: list[pa.Table] = []
    done = 0
    for index, first in sorted(firsts.items()):
        row = table.slice(index, 1).to_pylist()[0]
        as_duplicate(row, first)
        pieces += [table.slice(done, index - done), pa.Table.from_pylist([row], schema=table.schema)]
        done = index + 1
    return pa.concat_tables([*pieces, table.slice(done)])


def _no_rows(benchmark: Benchmark, name: str, checkpoints: Collection[str] | None) -> SourceError:
    source = next(one for index, one in enumerate(benchmark.sources) if source_name(one, index) == name)
    where = f", where = {dict(source.where)}" if source.where else ""
    only = f", checkpoints {', '.join(sorted(checkpoints))}" if checkpoints else ""
    return SourceError(f"source {name!r} is empty: reader {source.reader} finds no row at path = {source.path!r}{where}{only}")
