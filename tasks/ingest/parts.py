"""Parts of a dataset that are staged: what became of each shard, what several of them hold. Who opens pictures is shards.py."""

import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import PICTURES, SAMPLES
from schemas.tables.table import conform
from tasks.ingest.identity import ID_BYTES, Ids, in_order, named_sources, packed, unpacked
from tasks.ingest.images.decode import STOPPED
from tasks.ingest.paths import UNREADABLE
from tasks.ingest.shards import as_duplicate
from tasks.lake.pictures import StoredDataset, digests_in, with_pictures
from tasks.lake.writing import Staging


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What became of a shard, and all that finish() needs of its part: packed ids and source_keys in order, counts."""

    index: int
    n_by_status: Mapping[str, int]
    ids: bytes = field(repr=False)
    pictures: bytes = field(repr=False)  # packed digests
    packed_keys: bytes = field(repr=False)
    of_sources: int = 0  # named_sources() of the rows
    is_lasting: bool = True  # False: another try might end otherwise, though no file changed
    is_settled: bool = False  # some rows are duplicates of another shard's

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


def write_part(staging: Staging, index: int, pictures: Iterable[pa.Table], rows: Callable[[], pa.Table]) -> ShardResult:
    """Make pictures, as they come, and then the rows of the samples that show them part `index` of their tables, durably."""
    digests = _write_pictures(staging, index, pictures)
    table = rows()
    staging.write_part(index, table)
    return _result(index, table, digests)


def take_part(staging: Staging, index: int, dataset: StoredDataset, part: int) -> ShardResult:
    """Make a part of another dataset part `index` of this one, without opening its pictures.

    What earlier parts of that dataset showed first is fetched from these.
    """
    lake = dataset.lake
    path = lake.part(SAMPLES, dataset.id, part)
    rows = pq.read_table(path)
    staging.take_part(index, path)
    held = lake.read_part(PICTURES, dataset.id, part, ["image_sha256"])["image_sha256"]
    missing = digests_in(pl.DataFrame(rows)).difference(held)
    if not missing:
        staging.beside(PICTURES).take_part(index, lake.part(PICTURES, dataset.id, part))
        return _result(index, rows, packed(held))
    pictures = dataset.pictures(missing.union(held))
    return _result(index, rows, _write_pictures(staging, index, pictures))


def copy_part(
    staging: Staging, index: int, rows: pl.DataFrame, dataset: StoredDataset, changed: Iterable[pa.Table] = ()
) -> ShardResult:
    """Make rows of `samples` part `index`, with the pictures they show: those of `dataset`, and `changed` ones."""
    table = conform(with_pictures(rows).with_columns(image=pl.lit(None, SAMPLES.empty().schema["image"])), SAMPLES)
    known = dataset.pictures(digests_in(rows))
    return write_part(staging, index, itertools.chain(known, changed), lambda: table)


def _write_pictures(staging: Staging, index: int, tables: Iterable[pa.Table]) -> bytes:
    digests = bytearray()

    def noted() -> Iterator[pa.Table]:
        for table in tables:
            digests.extend(packed(table["image_sha256"].to_pylist()))
            yield table

    staging.beside(PICTURES).write_tables(index, noted())
    return bytes(digests)


def _result(index: int, rows: pa.Table, digests: bytes) -> ShardResult:
    n_by_status, ids = Counter(rows["status"].to_pylist()), packed(rows["sample_id"].to_pylist())
    is_lasting = not any(STOPPED in why or UNREADABLE in why for why in rows["detail"].drop_null().to_pylist())
    of_sources = named_sources(rows["sample_id"].to_pylist(), rows["source"].to_pylist())
    keys = zlib.compress(orjson.dumps(rows["source_key"].to_pylist()), level=1)
    return ShardResult(index, dict(n_by_status), ids, digests, keys, of_sources, is_lasting)


def commit(staging: Staging, key: str, n_parts: int) -> None:
    """Make the staged parts the dataset of this key; where the lake holds it, as an older release wrote it too, drop them.

    Pictures come first, and again where they are gone: nobody meets samples without them.
    """
    if not StoredDataset(staging.lake, key).is_whole:
        staging.beside(PICTURES).commit(key, range(n_parts))
    staging.commit(key, range(n_parts))
    staging.beside(PICTURES).discard()


def discard(staging: Staging) -> None:
    """Remove what was staged of samples and pictures."""
    staging.discard()
    staging.beside(PICTURES).discard()


def settle_pictures(staging: Staging, results: Sequence[ShardResult]) -> None:
    """Take every picture that an earlier shard holds out of the later ones' parts. All shards, in order."""
    several = _several([one.pictures for one in results])
    seen: set[bytes] = set()
    for result in results if several.size else ():
        mine = unpacked(result.pictures)
        shared = np.flatnonzero(several[np.searchsorted(several, mine).clip(max=several.size - 1)] == mine).tolist()
        again = {row for row in shared if result.pictures[row * ID_BYTES : (row + 1) * ID_BYTES] in seen}
        seen |= {result.pictures[row * ID_BYTES : (row + 1) * ID_BYTES] for row in shared}
        if again:
            _write_pictures(staging, result.index, _without(staging.beside(PICTURES).part_path(result.index), again))


def _without(path: Path, rows: Collection[int]) -> Iterator[pa.Table]:
    """The row groups of a file less these rows, one in memory at a time."""
    start = 0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            n_rows = file.metadata.row_group(group).num_rows
            kept = [row for row in range(n_rows) if start + row not in rows]
            if kept:
                yield file.read_row_group(group).take(kept)
            start += n_rows


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
    changed = _with_duplicates(table, firsts)
    staging.write_part(result.index, changed)
    return replace(_result(result.index, changed, result.pictures), is_lasting=result.is_lasting, is_settled=True)


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
