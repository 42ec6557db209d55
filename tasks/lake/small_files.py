"""Small files of a lake, each read whole at once, so that one that is replaced meanwhile is the old or the new."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from schemas.errors import CorruptLakeError
from schemas.tables.table import Table
from tasks.regular_files import NotRegularError, content_of


def read_files(paths: Sequence[Path], table: Table) -> pl.DataFrame:
    """The rows of many small files of a table, in order: read at once, three times as quick as one after the other.

    Each is opened once: Polars opens a path twice. Raises CorruptLakeError.
    """
    empty = table.empty()
    if not paths:
        return empty
    contents = [_content_of(path) for path in paths]
    options: dict[str, Any] = {"missing_columns": "insert", "extra_columns": "ignore", "hive_partitioning": False}
    try:
        return pl.scan_parquet(contents, schema=empty.schema, **options).collect()
    except pl.exceptions.PolarsError as error:
        broken = next((path for path, content in zip(paths, contents, strict=True) if not _is_parquet(content)), paths[0].parent)
        raise CorruptLakeError(
            f"{broken} is not a table {table.name} that Salon wrote ({str(error)[:200]}); restore it, or move it out of the lake"
        ) from error


def _content_of(path: Path) -> bytes:
    try:
        return content_of(path)
    except NotRegularError as error:
        raise CorruptLakeError(f"{path} is not one of the lake's files ({error}); move it out of the lake") from error


def is_table(path: Path) -> bool:
    """Whether every row of a file can be read."""
    try:
        pl.read_parquet(content_of(path))
    except (OSError, NotRegularError, pl.exceptions.PolarsError):
        return False
    return True


def _is_parquet(content: bytes) -> bool:
    try:
        return bool(pl.read_parquet_schema(BytesIO(content)))
    except pl.exceptions.PolarsError:
        return False
