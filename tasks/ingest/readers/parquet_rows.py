"""Rows of a Parquet file, some at a time: a value that cannot be read costs its row alone. Other files of rows: tables.py."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.errors import SourceError
from schemas.input_budget import PARQUET_CHUNK_BYTES, PARQUET_TEXT_BYTES, PARQUET_UNPACKED, PARQUET_USUAL_TEXT_BYTES
from tasks.ingest.paths import quote
from tasks.ingest.rows import Record
from tasks.lake.row_groups import rows_at_once
from tasks.regular_files import opened


def parquet_rows(path: Path, name: str, columns: set[str]) -> Iterator[Record]:
    """The file's rows in order, of them only `columns`. Raises SourceError where the file cannot be read."""
    number, most = 0, max(PARQUET_CHUNK_BYTES, path.stat().st_size * PARQUET_UNPACKED)
    n_long: Counter[str] = Counter()
    try:
        opened(path).close()  # what follows opens it by its name, several times
        schema = pq.read_schema(path)
        there = tuple(schema.names)
        wanted = [column for column in there if column in columns]
        texts = [column for column in wanted if _is_text(schema.field(column).type)]
        with pq.ParquetFile(path, read_dictionary=texts) as file:  # a text that stands in many rows is held once
            if not wanted:  # without columns Parquet has no rows either, and the first row must say what is missing
                yield from ((index, {}, there) for index in range(1, file.metadata.num_rows + 1))
                return
            for group, n_rows in enumerate(rows_at_once(path, file.metadata, wanted, name)):
                for batch in file.iter_batches(batch_size=n_rows, row_groups=[group], columns=wanted):
                    _refuse_long(batch, n_long, most, f"{name}, after row {number}")
                    for values in _values_of(batch):
                        number += 1
                        yield number, values, there
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"{name}, after row {number}: cannot be read as Parquet ({quote(str(error))}); write the file again"
        ) from error


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_held_once(column: pa.Array) -> bool:
    return pa.types.is_dictionary(column.type) and _is_text(column.type.value_type)


def _refuse_long(batch: pa.RecordBatch, n_long: Counter[str], most: int, place: str) -> None:
    """Count the long texts of a batch. Raises SourceError where those of a column are more than is read of a file."""
    for column, n_bytes in _long_texts(batch):
        n_long[column] += n_bytes
        if n_long[column] > most:
            raise SourceError(
                f"{place}: the texts of column {column} that are longer than {PARQUET_USUAL_TEXT_BYTES:,} bytes total more than "
                f"{most:,} bytes, a repeated text counted in each row; allowed are {PARQUET_UNPACKED} times the file's "
                f"size, or {PARQUET_CHUNK_BYTES:,} bytes; shorten the texts, or split the file"
            )


def _long_texts(batch: pa.RecordBatch) -> Iterator[tuple[str, int]]:
    """Of each column of long texts that are held once, how many bytes they are in all rows; less those too long for any row."""
    for column_name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not _is_held_once(column):
            continue
        lengths = pc.binary_length(column.dictionary)
        if (pc.max(lengths).as_py() or 0) > PARQUET_USUAL_TEXT_BYTES:
            held = [0 if n_bytes is None or n_bytes > PARQUET_TEXT_BYTES else n_bytes for n_bytes in lengths.to_pylist()]
            yield column_name, sum(held[at] for at in column.indices.to_pylist() if at is not None and 0 <= at < len(held))


def _values_of(batch: pa.RecordBatch) -> list[dict[str, Any] | str]:
    texts = [column for column in batch.columns if _is_held_once(column)]
    if any((pc.max(pc.binary_length(column.dictionary)).as_py() or 0) > PARQUET_TEXT_BYTES for column in texts):
        return [_value_of(batch.slice(index, 1)) for index in range(batch.num_rows)]
    try:
        rows: list[dict[str, Any] | str] = list(batch.to_pylist())
    except Exception:  # noqa: BLE001  not UTF-8, a year 10000, an unknown time zone, …: only that row is lost
        return [_value_of(batch.slice(index, 1)) for index in range(batch.num_rows)]
    return rows


def _value_of(row: pa.RecordBatch) -> dict[str, Any] | str:
    for column in row.columns:
        if _is_held_once(column) and (at := column.indices[0].as_py()) is not None:
            if not 0 <= at < len(column.dictionary):
                return f"refers to entry {at} of a dictionary of {len(column.dictionary)}"
            n_bytes = pc.binary_length(column.dictionary.slice(at, 1))[0].as_py()
            if n_bytes > PARQUET_TEXT_BYTES:
                return f"holds a text of {n_bytes:,} bytes; at most {PARQUET_TEXT_BYTES:,} are allowed"
    try:
        found: dict[str, Any] = row.to_pylist()[0]
    except UnicodeDecodeError:
        return "holds a text that is not UTF-8"
    except Exception as error:  # noqa: BLE001  types of Parquet raise what Python's raise: ValueError, OverflowError, KeyError
        return f"holds a value that cannot be read ({type(error).__name__}: {quote(str(error))})"
    return found
