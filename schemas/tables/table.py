"""A table as a list of fields and a key, and conform(). The tables: stored.py and its neighbours. Where they lie: tasks/lake."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl
import pyarrow as pa

from schemas.tables.field import IMAGE_TYPE, Field

SCHEMA_VERSION = "2"

Row = dict[str, Any]
"""A row by its columns' names."""

# The Hugging Face feature description that makes `datasets` show the column as pictures.
_HUGGINGFACE_IMAGE = b'{"info": {"features": {"image": {"_type": "Image"}}}}'


@dataclass(frozen=True)
class Table:
    """A table: its name, its fields in order, the fields that identify a row, and those that older partitions of it lack.

    `later` is the one place that says so: what release 0.1.0 or a later one wrote without them is read with null there.
    `about` says what a row is, and which rows there are.
    """

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    later: tuple[str, ...] = ()
    about: str = ""

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema with field metadata; the `huggingface` entry where the table holds images."""
        metadata: dict[bytes | str, bytes | str] = {
            b"salon_table": self.name.encode(),
            b"salon_schema_version": SCHEMA_VERSION.encode(),
        }
        if any(field.arrow_type == IMAGE_TYPE for field in self.fields):
            metadata[b"huggingface"] = _HUGGINGFACE_IMAGE
        return pa.schema([field.arrow() for field in self.fields], metadata=metadata)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(field.name for field in self.fields)

    def empty(self) -> pl.DataFrame:
        """A frame without rows, of the table's columns and types."""
        return pl.DataFrame(schema=pl.Schema(self.schema))  # pyarrow imports pandas for an empty_table()

    def frame(self, rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
        """Rows as a frame, in their order; a column that a row lacks is null. Raises ValueError where that is forbidden."""
        listed = [{name: row.get(name) for name in self.columns} for row in rows]
        return pl.DataFrame(conform(pl.DataFrame(listed, schema=self.empty().schema), self))


def conform(frame: pl.DataFrame | pa.Table, table: Table) -> pa.Table:
    """The frame with exactly the table's columns, order, types and metadata.

    Raises ValueError where a column is missing, cannot be cast, or is null where the table forbids it.
    """
    arrow = frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame
    missing = [name for name in table.columns if name not in arrow.column_names]
    if missing:
        raise ValueError(f"table {table.name} needs the columns {missing}; the frame has {arrow.column_names}")
    try:
        return arrow.select(table.columns).cast(table.schema)
    except ValueError as error:  # pyarrow's own errors are ValueErrors
        raise ValueError(f"table {table.name}: {error}") from error
