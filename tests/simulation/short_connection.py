"""A SQLAlchemy connection that keeps what it compiled of a statement and hands it to the driver itself; faults are database.py's.

A context for every call is most of what a transaction on a database in memory costs. Statements, their text and the order of
their values are SQLAlchemy's; one met for the first time, or with a list that is written out, goes its ordinary way.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy.engine import Connection, Dialect, IteratorResult
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.exc import DBAPIError


@dataclass(slots=True)
class Kept:
    """A statement as the driver takes it. `given`: values that came with it; `names`: the columns of its result, once known."""

    text: str
    order: tuple[str, ...]
    given: dict[str, Any]
    names: SimpleResultMetaData | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """The result of a statement without rows."""

    rowcount: int

    def close(self) -> None:
        """Nothing is open."""


_Variants = dict[tuple[Any, ...], Kept | None]
_KEPT: WeakKeyDictionary[Any, _Variants] = WeakKeyDictionary()


class ShortConnection(Connection):
    """See the file."""

    def execute(self, statement: Any, parameters: Any = None, *, execution_options: Any = None) -> Any:
        rows = [parameters] if isinstance(parameters, Mapping) else parameters or [{}]
        kept = _kept(self.dialect, statement, rows)
        if kept is None:
            return super().execute(statement, parameters, execution_options=execution_options)
        values = [tuple(row[name] if name in row else kept.given[name] for name in kept.order) for row in rows]
        return self._handed_over(kept, values)

    def exec_driver_sql(self, statement: str, parameters: Any = None, execution_options: Any = None) -> Any:
        if parameters is not None:
            return super().exec_driver_sql(statement, parameters, execution_options)
        return self._handed_over(Kept(statement, (), {}), [()])

    def _handed_over(self, kept: Kept, values: Sequence[tuple[Any, ...]]) -> Any:
        if self._transaction is None:
            self._autobegin()
        cursor: Any = self.connection.cursor()
        try:
            if len(values) > 1:
                self.dialect.do_executemany(cursor, kept.text, values)
            else:
                self.dialect.do_execute(cursor, kept.text, values[0])
        except sqlite3.Error as error:
            raise DBAPIError.instance(kept.text, values, error, sqlite3.Error, dialect=self.dialect) from error
        if cursor.description is None:
            return Changed(cursor.rowcount)
        kept.names = kept.names or SimpleResultMetaData([name for name, *_ in cursor.description])
        return IteratorResult(kept.names, iter(cursor.fetchall()))


def _kept(dialect: Dialect, statement: Any, rows: Sequence[Mapping[str, Any]]) -> Kept | None:
    """None where it goes the ordinary way."""
    variants = _KEPT.get(statement)
    if variants is None:
        _KEPT[statement] = {}
        return None
    variant = dialect.name, len(rows) > 1, *rows[0]
    if variant not in variants:
        compiled: Any = statement.compile(dialect=dialect, column_keys=sorted(rows[0]), for_executemany=len(rows) > 1)
        is_plain = not compiled.post_compile_params and not compiled.literal_execute_params and not compiled.insert_prefetch
        variants[variant] = Kept(compiled.string, tuple(compiled.positiontup or ()), dict(compiled.params)) if is_plain else None
    return variants[variant]
