"""The stored tables of a run, dealt into buckets small enough to be checked one at a time. What is checked is in frames.py.

Rows that have to do with one another are in one bucket: requests, replies and scores by request, samples and judgements by
sample. The rows are dealt once, some parts at a time, into files beside the lake's other unfinished
ones; small tables are not dealt.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from rubrics.model import Rubric
from schemas.errors import CorruptLakeError
from schemas.tables.stored import JUDGEMENTS, REPLIES, REQUESTS, SAMPLES, SCORES
from schemas.tables.table import Table
from tasks.lake.atomic_files import scratch, store_error, write_scratch
from tasks.lake.reading import PARTITION_KEYS, Lake, with_later_columns
from tasks.lake.request_rows import each_request
from tasks.stopping import check_not_stopped

ROWS_AT_ONCE = 250_000
"""About so many rows of the longest table are in memory together: some 0.7 GB with what the checks make of them."""

ROW = "row"
"""The column that numbers a table's stored rows, from 0."""

CELL = ["rubric_id", "judge_model", "model", "checkpoint"]
PARTITIONS = {table: PARTITION_KEYS[table.name] for table in (SAMPLES, JUDGEMENTS, REQUESTS, REPLIES, SCORES)}
"""The checked tables, and the identity that names each one's partition."""

# Texts that no check reads beyond "is it null" and that may be large stay on disk.
_LEFT_OUT = frozenset({"image", "pictures", "messages_json", "reply_text", "note", "error_detail", "refusal_text"})

_SEED = 5  # not the one that Polars joins by: a bucket's keys would all fall on a few of the join's own
_BUCKET = "bucket"
_LINK = [*CELL, "request_key"]
_UNLINKED = [*_LINK, "items_json"]


@dataclass(frozen=True, slots=True)
class Buckets:
    """The tables of one run. Rows of a bucket stand in stored order, with their number in ROW."""

    lake: Lake
    ids: Mapping[str, str]
    n: int
    folder: Path
    n_rows: Mapping[Table, int]
    rubrics: Mapping[str, Rubric]

    def rows(self, table: Table, number: int) -> pl.DataFrame:
        """Bucket `number` of a table, with the columns the checks need: samples and judgements by sample, others by request."""
        return self._load(table, table.name, number, _columns(table))

    def links(self, number: int) -> pl.DataFrame:
        """Of the judgements of a bucket's requests: ROW, the cell's columns and request_key, a row for each request."""
        if self.n > 1:
            return self._load(JUDGEMENTS, "links", number, _LINK)
        return _links(self._load(JUDGEMENTS, "links", number, _UNLINKED), self.rubrics)

    def is_empty(self, table: Table) -> bool:
        """Whether the whole table has no rows."""
        return self.n_rows[table] == 0

    def _load(self, table: Table, name: str, number: int, columns: list[str]) -> pl.DataFrame:
        if self.n == 1:
            found = _collected(self.lake, table, self.ids[PARTITIONS[table]], columns)
        else:
            files = sorted((self.folder / name / f"{_BUCKET}={number}").glob("*.ipc"))
            found = pl.scan_ipc(files, hive_partitioning=False).collect() if files else _nothing(table, columns)
            found = found if found[ROW].is_sorted() else found.sort(ROW)
        # Great Expectations takes NaN for null and lets it pass; as minus infinity it fails every bound, as it should.
        return found.select(ROW, *columns).with_columns(pl.col(pl.Float64).fill_nan(float("-inf")))


@contextmanager
def dealt(
    lake: Lake, ids: Mapping[str, str], rubrics: Mapping[str, Rubric], rows_at_once: int = ROWS_AT_ONCE
) -> Iterator[Buckets]:
    """The run's tables in buckets for as long as the block lasts.

    Raises StoreError where a partition is not there, CorruptLakeError where a column is missing or of another type.
    """
    for table, key in PARTITIONS.items():
        _check_types(lake, table, ids[key], n_parts=1)
    n_rows = {table: lake.n_rows(table, ids[key]) for table, key in PARTITIONS.items()}
    n = max(1, -(-max(n_rows.values()) // rows_at_once))
    with scratch(lake.root, "checked") as folder:
        if n > 1:
            for table, key in PARTITIONS.items():
                by = "sample_id" if table in {SAMPLES, JUDGEMENTS} else "request_key"
                _deal((lake, table, ids[key]), (by, _columns(table)), folder / table.name, n, rows_at_once)
            links, n_asked = ("request_key", _UNLINKED), max(1, n_rows[JUDGEMENTS], n_rows[REQUESTS])
            at_once = rows_at_once * n_rows[JUDGEMENTS] // n_asked  # of a list a row becomes several
            _deal((lake, JUDGEMENTS, ids["plan_id"]), links, folder / "links", n, at_once, rubrics)
        yield Buckets(lake, ids, n, folder, n_rows, rubrics)


def _deal(
    stored: tuple[Lake, Table, str],
    dealt_by: tuple[str, list[str]],
    folder: Path,
    n: int,
    rows_at_once: int,
    linked: Mapping[str, Rubric] | None = None,
) -> None:
    """Write the columns of a table to `folder`, rows by a hash of one column; some parts are in memory at a time.

    Where rubrics are given, the rows become links.
    """
    (lake, table, key), (by, columns) = stored, dealt_by
    first = 0
    for number, paths in enumerate(lake.parts_together(table, key, rows_at_once)):
        check_not_stopped()
        with _types_told(lake, table, key):
            rows = _scanned(paths, table, columns).with_columns(pl.col(ROW) + first).collect()
        first += rows.height
        rows = rows if linked is None else _links(rows, linked)
        bucket = (pl.col(by).hash(_SEED) % n).alias(_BUCKET)
        mine = rows.with_columns(bucket).partition_by(_BUCKET, include_key=False, as_dict=True, maintain_order=True)
        with store_error(f"dealing {table.name} for the data checks"):
            for (name,), dealt_rows in mine.items():
                write_scratch(dealt_rows, folder / f"{_BUCKET}={name}" / f"{number:05d}.ipc")


def _links(judgements: pl.DataFrame, rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    return each_request(judgements.lazy(), rubrics).select(ROW, *_LINK).collect()


def _collected(lake: Lake, table: Table, key: str, columns: list[str]) -> pl.DataFrame:
    paths = lake.parts_without_pictures(table, key)
    with _types_told(lake, table, key):
        return _scanned(paths, table, columns).collect() if paths else _nothing(table, columns)


def _scanned(paths: list[Path], table: Table, columns: list[str]) -> pl.LazyFrame:
    """Many parts in one scan: read one by one, a thousand of them cost more than twice as much.

    All of ten million samples in one, and the footers of their row groups of 64 pictures take 4.5 GB.
    """
    scan = pl.scan_parquet(paths, hive_partitioning=False, extra_columns="ignore", row_index_name=ROW)
    return with_later_columns(scan, table).select(ROW, *columns)


def _nothing(table: Table, columns: list[str]) -> pl.DataFrame:
    return table.empty().select(columns).with_row_index(ROW)


def _columns(table: Table) -> list[str]:
    return [name for name in table.columns if name not in _LEFT_OUT]


@contextmanager
def _types_told(lake: Lake, table: Table, key: str) -> Iterator[None]:
    """Let what Polars cannot read be told by file and column."""
    try:
        yield
    except pl.exceptions.PolarsError:
        _check_types(lake, table, key)
        raise


def _check_types(lake: Lake, table: Table, key: str, n_parts: int | None = None) -> None:
    """Raise CorruptLakeError for the first part whose columns are not those declared."""
    fields = [one for one in table.schema if one.name not in _LEFT_OUT]
    for path in lake.parts_without_pictures(table, key)[:n_parts]:
        stored = pq.read_schema(path)
        for one in fields:
            found = stored.field(one.name).type if one.name in stored.names else "not there"
            is_later = one.name in table.later and one.name not in stored.names
            if found != one.type and not is_later:
                raise CorruptLakeError(
                    f"{path}: column {one.name} is {found}, not {one.type}; delete {lake.marker(table, key)} and run again"
                )
