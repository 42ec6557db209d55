"""How much of somebody's Parquet file is held at once, by what its footer says. Salon's own tables are read in reading.py."""

import glob
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.parquet as pq

from schemas.errors import SourceError
from schemas.input_budget import PARQUET_BATCH_BYTES, PARQUET_BATCH_ROWS, PARQUET_CHUNK_BYTES, PARQUET_LISTED, PARQUET_UNPACKED

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class _ColumnChunk(NamedTuple):
    """A column of one row group, `column` as in the file's schema (a.b: a field of it), bytes packed, unpacked, values."""

    column: str
    n_bytes: int
    n_unpacked: int
    n_values: int


def rows_at_once(
    path: Path, metadata: pq.FileMetaData, wanted: Collection[str] | None, name: str, n_most: int = PARQUET_BATCH_ROWS
) -> Iterator[int]:
    """Of each row group in order, how many of its rows are held at once, `n_most` at most. `wanted`: the columns read; None: all.

    Raises SourceError where the footer says nonsense, or a column unpacks to more than is read; `name` is what it calls the file.
    """
    for group, chunks in enumerate(_column_chunks(path, metadata, name)):
        mine = [chunk for chunk in chunks if wanted is None or any(_is_of(chunk.column, column) for column in wanted)]
        for column, n_bytes, n_unpacked, n_values in mine:
            if n_unpacked > max(PARQUET_CHUNK_BYTES, n_bytes * PARQUET_UNPACKED):
                raise SourceError(
                    f"{name}: column {column} unpacks from {n_bytes:,} bytes to {n_unpacked:,}; allowed are "
                    f"{PARQUET_UNPACKED} times its size, or {PARQUET_CHUNK_BYTES:,} bytes; write it in smaller row groups"
                )
            # Nulls in a list take no bytes, and a list of any length stands in one row.
            if n_values > max(metadata.row_group(group).num_rows, PARQUET_LISTED, n_bytes):
                raise SourceError(
                    f"{name}: column {column} has {n_values:,} values in {metadata.row_group(group).num_rows:,} rows and "
                    f"{n_bytes:,} bytes; for lists, {PARQUET_LISTED:,} values per row group are allowed, or one per byte; "
                    "write it in smaller row groups, or without that column"
                )
        n_bytes_a_row = sum(chunk.n_unpacked for chunk in mine) // max(1, metadata.row_group(group).num_rows)
        yield max(1, min(n_most, PARQUET_BATCH_BYTES // max(1, n_bytes_a_row)))


def _column_chunks(path: Path, metadata: pq.FileMetaData, name: str) -> list[list[_ColumnChunk]]:
    """Of each row group the chunks of its columns.

    Read by DuckDB: pyarrow's own `RowGroupMetaData.column` ends the process where a chunk's statistics do not fit its column, as
    in files of some writers (apache/arrow issue 45283); all else in pyarrow raises there.
    """
    import duckdb

    columns = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    groups: list[list[_ColumnChunk]] = [[] for _ in range(metadata.num_row_groups)]
    try:
        with _footers().cursor() as footers:
            said = footers.execute(
                "SELECT row_group_id, column_id, total_compressed_size, total_uncompressed_size, num_values "
                "FROM parquet_metadata(?)",
                [glob.escape(str(path))],
            ).fetchall()
        for group, column, *sizes in said:
            groups[group].append(_ColumnChunk(columns[column], *sizes))
    except (duckdb.Error, IndexError, TypeError) as error:
        why = str(error).partition("\n")[0][:200]
        raise SourceError(f"{name}: its footer cannot be read ({type(error).__name__}: {why}); write the file again") from error
    return groups


@cache
def _footers() -> "DuckDBPyConnection":
    """One database, of nothing, for a process: opening it takes thirty times as long as reading a footer."""
    import duckdb

    return duckdb.connect(config={"threads": 1})


def _is_of(path: str, column: str) -> bool:
    return path == column or path.startswith(column + ".")
