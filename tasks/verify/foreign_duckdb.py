"""A DuckDB file that somebody else wrote, of which the rows of its own tables are read and nothing else is run.

A view, a macro or a computed column is a program of whoever wrote it: it reads any file, or never ends. What is held against
what: recomputed_duckdb.py.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tasks.stopping import heeding_stop

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false", "autoload_known_extensions": "false", "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false", "lock_configuration": "true",
}  # fmt: skip
_TABLES = """SELECT table_name FROM system.main.duckdb_tables()
WHERE schema_name = 'main' AND NOT temporary AND NOT contains(sql, 'GENERATED ALWAYS')"""
"""By the full name of the function: the file may hold a macro of the short one."""


@dataclass(frozen=True, slots=True)
class ForeignDuckDB:
    """One file, open. `names` are the tables of its main schema; a view of such a name is none, nor what computes its columns."""

    names: frozenset[str]
    _database: "DuckDBPyConnection"

    def rows(self, name: str, limit: int, publication: str | None = None) -> pl.DataFrame:
        """The rows of one of `names`, of a publication or all; no more than `limit`, since a small file can claim any number.

        Ends at once where the process is told to stop.
        """
        query, said = f'FROM main."{name}"', [publication] * (publication is not None)
        query += " WHERE publication_id = ?" * len(said)

        def read() -> "pa.Table":
            return self._database.sql(f"{query} LIMIT {limit}", params=said).to_arrow_table()

        return pl.DataFrame(heeding_stop(f"read {name}", read, self._database.interrupt))


@contextmanager
def opened(file: Path) -> Iterator[ForeignDuckDB]:
    """The file, open to be read. Raises duckdb.Error where it is none."""
    import duckdb

    with duckdb.connect(str(file), read_only=True, config=_CLOSED) as database:
        yield ForeignDuckDB(frozenset(name for (name,) in database.execute(_TABLES).fetchall()), database)
