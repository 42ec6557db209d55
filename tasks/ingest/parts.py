"""Parts of a dataset that are staged: what became of each shard, duplicates across them. Who opens pictures is shards.py."""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.statuses import SampleStatus
from tasks.ingest.identity import ID_BYTES, Ids, in_order, packed, unpacked
from tasks.ingest.images.decode import STOPPED
from tasks.ingest.paths import UNREADABLE
from tasks.ingest.shards import as_duplicate
from tasks.lake.writing import Staging


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What became of a shard, and all that finish() needs of its part: packed ids and source_keys in order, counts."""

    index: int
    n_by_status: Mapping[str, int]
    ids: bytes = field(repr=False)
    packed_keys: bytes = field(repr=False)
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


def write_part(staging: Staging, index: int, tables: Iterable[pa.Table]) -> ShardResult:
    """Make rows of the samples table part `index`, durably, as they come."""
    n_by_status: Counter[str] = Counter()
    ids, keys, is_lasting = bytearray(), list[str](), [True]

    def noted() -> Iterator[pa.Table]:
        for table in tables:
            ids.extend(packed(table["sample_id"].to_pylist()))
            keys.extend(table["source_key"].to_pylist())
            n_by_status.update(table["status"].to_pylist())
            may_pass = pc.match_substring_regex(table["detail"], f"{STOPPED}|{UNREADABLE}")
            is_lasting.append(not pc.any(may_pass, min_count=0).as_py())
            yield table

    staging.write_tables(index, noted())
    return ShardResult(index, dict(n_by_status), bytes(ids), _packed_keys(keys), all(is_lasting))


def take_part(staging: Staging, index: int, path: Path) -> ShardResult:
    """Make a part of another dataset part `index` of this one, without reading its pictures."""
    rows = pq.read_table(path, columns=["sample_id", "source_key", "status"])
    staging.take_part(index, path)
    n_by_status, ids = Counter(rows["status"].to_pylist()), packed(rows["sample_id"].to_pylist())
    return ShardResult(index, dict(n_by_status), ids, _packed_keys(rows["source_key"].to_pylist()))


def _packed_keys(keys: list[str]) -> bytes:
    return zlib.compress(orjson.dumps(keys), level=1)


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
    written = write_part(staging, result.index, [_with_duplicates(table, firsts)])
    return replace(written, is_lasting=result.is_lasting, is_settled=True)


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
