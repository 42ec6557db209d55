"""A SQLAlchemy connection that keeps what it compiled of a statement and hands it to the driver itself; faults are database.py's.

A context for every call, and a pool's check-out for every transaction, is most of what one on a database in memory costs.
Statements, their text and the order of their values are SQLAlchemy's; one met for the first time goes its ordinary way.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy.engine import Connection, Dialect, Engine, IteratorResult
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.exc import DBAPIError


@dataclass(slots=True)
class Kept:
    """A statement as the driver takes it. `given`: values that came with it; `lists`: the names of what a list is written out as.

    `names`: the columns of its result, once known.
    """

    text: str
    order: tuple[str, ...] = ()
    given: Mapping[str, Any] | None = None
    lists: tuple[tuple[str, list[str]], ...] = ()
    names: SimpleResultMetaData | None = None

    def values(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """A row's values in the order of the text."""
        named = {**self.given, **row} if self.given else row
        if self.lists:
            named = {**named, **{name: value for of, names in self.lists for name, value in zip(names, named[of], strict=True)}}
        return tuple([named[name] for name in self.order])


@dataclass(slots=True)
class Changed:
    """The result of a statement without rows."""

    rowcount: int

    def close(self) -> None:
        """Nothing is open."""


class Found(IteratorResult[Any]):
    """The result of a statement with rows."""

    @property
    def cursor(self) -> "Found":
        """Who asks for the driver's cursor reads the rows as they are."""
        return self

    def fetchall(self) -> Any:
        return list(self.iterator)


class Shared:
    """What SQLAlchemy has from a pool, without one: a connection that nobody closes, whoever is killed in the middle of his."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self.dbapi_connection = self.driver_connection = raw
        self.cursor, self.commit, self.rollback = raw.cursor, raw.commit, raw.rollback
        self.info: dict[str, Any] = {}
        self.is_valid = True

    def invalidate(self, *_: Any, **__: Any) -> None:
        """It stays as it is."""


_Variants = dict[tuple[Any, ...], Kept | None]
_KEPT: WeakKeyDictionary[Any, _Variants] = WeakKeyDictionary()
_plain = cache(Kept)


class ShortConnection(Connection):
    """See the file. All of an engine have its dialect's `shared` connection; a transaction is Salon's own BEGIN and COMMIT."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, engine.dialect.shared, _has_events=False)  # type: ignore[attr-defined] # our own dialect
        self._raw: sqlite3.Connection = engine.dialect.shared.dbapi_connection  # type: ignore[attr-defined]

    def execute(self, statement: Any, parameters: Any = None, *, execution_options: Any = None) -> Any:
        rows = parameters if parameters and isinstance(parameters, list) else [parameters or {}]
        kept = _kept(self.dialect, statement, rows)
        if kept is None:
            return super().execute(statement, parameters, execution_options=execution_options)
        return self._handed_over(kept, [kept.values(row) for row in rows])

    def exec_driver_sql(self, statement: str, parameters: Any = None, execution_options: Any = None) -> Any:
        if parameters is not None:
            return super().exec_driver_sql(statement, parameters, execution_options)
        return self._handed_over(_plain(statement), [()])

    def commit(self) -> None:
        if self._transaction is None:
            self.dialect.do_commit(self._raw)
        else:
            super().commit()

    def close(self) -> None:
        if self._transaction is not None:
            self._transaction.close()
        if self._raw.in_transaction:
            self._raw.rollback()
        self._dbapi_connection = None

    def _handed_over(self, kept: Kept, values: Sequence[tuple[Any, ...]]) -> Any:
        cursor = self._raw.cursor()
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
        return Found(kept.names, iter(cursor.fetchall()))


def _kept(dialect: Dialect, statement: Any, rows: Sequence[Mapping[str, Any]]) -> Kept | None:
    """None where it goes the ordinary way."""
    variants = _KEPT.get(statement)
    if variants is None:
        _KEPT[statement] = {}
        return None
    lengths = [len(value) for value in rows[0].values() if isinstance(value, list)]
    variant = dialect.name, len(rows) > 1, *rows[0], *lengths
    if variant not in variants:
        variants[variant] = _compiled(dialect, statement, rows)
    return variants[variant]


def _compiled(dialect: Dialect, statement: Any, rows: Sequence[Mapping[str, Any]]) -> Kept | None:
    compiled: Any = statement.compile(dialect=dialect, column_keys=sorted(rows[0]), for_executemany=len(rows) > 1)
    if compiled.literal_execute_params or compiled.insert_prefetch:
        return None
    given = {name: value for name, value in compiled.params.items() if name not in rows[0]}
    if not compiled.post_compile_params:
        return Kept(compiled.string, tuple(compiled.positiontup or ()), given)
    state = compiled.construct_expanded_state(rows[0])
    return Kept(state.statement, tuple(state.positiontup), given, tuple(state.parameter_expansion.items()))
