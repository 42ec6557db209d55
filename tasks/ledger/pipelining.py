"""Transactions that write; pipelining: statements sent together, waited for once, not for ever. What is sent is not said here.

A round trip is what a distant server costs. PostgreSQL's driver can send statements without waiting for those before (libpq's
documentation, "Pipeline Mode"). SQLite is called, and other drivers wait for each statement.
"""

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.expression import Executable

ONE_WRITER = 0x53616C6F6E
"""The number of PostgreSQL's advisory lock that makes a transaction the only one of its kind in the database."""
_IS_LATER = "is_later"
_PIPELINE = "salon_pipeline"
MAX_SILENT_S = 120.0
"""Longer than any statement of ours works before its first row, and a lock is waited for. What arrives slowly is no silence."""


def give_up_when_silent(engine: Engine, silent_s: float = MAX_SILENT_S) -> None:
    """A connection over which nothing has come for so long is lost, and closed: what is asked on it ends in OperationalError.

    The system notices a machine that vanished. It does not notice one that acknowledges what it is sent and says nothing: a
    proxy whose server is gone, a server that is stopped. Psycopg would wait for ever.
    """
    if engine.dialect.driver == "psycopg":
        event.listen(engine, "do_connect", lambda _, __, given, named: _impatient(silent_s).connect(*given, **named))


def _impatient(silent_s: float) -> Any:
    import psycopg

    class Impatient(psycopg.Connection[Any]):
        def wait(self, gen: Any, *given: Any, **named: Any) -> Any:
            return super().wait(_watched(gen, self, silent_s), *given, **named)

    return Impatient


def _watched(waiting: Generator[Any, Any, Any], driver: Any, silent_s: float) -> Generator[Any, Any, Any]:
    """What psycopg does on a connection until it is done. Ten times a second it is told that nothing has come."""
    heard_s = time.monotonic()
    try:
        wanted = next(waiting)
        while True:
            has_come = yield wanted
            if has_come:
                heard_s = time.monotonic()
            elif time.monotonic() - heard_s > silent_s:
                driver.close()
                base = driver.OperationalError
                raise base(f"connection is silent: the server has said nothing for {silent_s:g} s")
            wanted = waiting.send(has_come)
    except StopIteration as end:
        return end.value


def wait_for_results(engine: Engine) -> None:
    """Within `pipelined` a statement is waited for as soon as it is sent, where something of its result may be needed."""
    event.listen(engine, "after_cursor_execute", _wait_for_result)


def begin(connection: Connection, *, is_alone: bool, is_lasting: bool = True) -> None:
    """Begin a transaction that writes; with `is_alone` as the only one of its kind. SQLite has one writer at a time anyway.

    What is not lasting is as visible as all else, and a crash of the server may undo it: its commit waits for no disk.

    Python's SQLite driver would otherwise commit each CREATE by itself. PostgreSQL reads what is committed, statement by
    statement: without the lock, what a function read could be untrue by the time it writes, and two functions that touch
    rows in different orders could wait for each other for ever.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    later(connection, "BEGIN")  # the driver's own would be waited for
    if is_alone:
        unsynced = "" if is_lasting else ", set_config('synchronous_commit', 'off', true)"
        later(connection, f"SELECT pg_advisory_xact_lock({ONE_WRITER}){unsynced}")


def commit(connection: Connection) -> None:
    """End a transaction that `begin` began; within `pipelined` it is durable when that block ends."""
    if connection.dialect.name == "sqlite":
        connection.commit()
    else:
        later(connection, "COMMIT")  # the driver's own commit would wait, and the end of the block a second time


@contextmanager
def pipelined(connection: Connection) -> Iterator[None]:
    """Statements whose results nobody needs are sent without waiting; all of them are done when the block ends.

    An error may so come with a later statement than its own; what was sent in between was then not done. Raises DBAPIError.
    """
    driver: Any = connection.connection.driver_connection
    if not _has_pipeline(connection):
        yield
        return
    info = connection.info
    try:
        with driver.pipeline() as info[_PIPELINE]:
            yield
    except connection.dialect.loaded_dbapi.Error as error:  # those of statements that were waited for are SQLAlchemy's already
        is_lost = bool(driver.closed)
        if is_lost:
            connection.invalidate(error)
        base = connection.dialect.loaded_dbapi.Error
        raise DBAPIError.instance(None, None, error, base, connection_invalidated=is_lost, dialect=connection.dialect) from error
    finally:
        info.pop(_PIPELINE, None)


def later(connection: Connection, statement: str | Executable, rows: Any = None) -> None:
    """Execute a statement whose result nobody needs: within `pipelined` it is not waited for."""
    if isinstance(statement, str):
        connection.exec_driver_sql(statement, execution_options={_IS_LATER: True})
    else:
        connection.execute(statement, rows, execution_options={_IS_LATER: True})


def sync(connection: Connection) -> None:
    """Wait for what was sent so far. Raises its errors."""
    pipeline = connection.info.get(_PIPELINE)
    if pipeline is not None:
        pipeline.sync()


def _wait_for_result(connection: Connection, _: Any, statement: str, _parameters: Any, context: Any, is_many: bool) -> None:
    """Of rows inserted nothing is needed, nor of a savepoint; whatever else is executed may be asked what it found or changed."""
    pipeline = connection.info.get(_PIPELINE)
    is_insert = context.isinsert and not context.compiled.effective_returning
    is_later = is_many or is_insert or statement.startswith("SAVEPOINT ") or context.execution_options.get(_IS_LATER)
    if pipeline is not None and not is_later:
        pipeline.sync()


def _has_pipeline(connection: Connection) -> bool:
    """Psycopg 3 with the library of PostgreSQL 14 or a newer one."""
    pipeline = getattr(connection.dialect.loaded_dbapi, "Pipeline", None)
    return pipeline is not None and bool(pipeline.is_supported())


def n_changes(connection: Connection) -> int:
    """Rows this connection has ever changed, where the driver counts them: on SQLite."""
    return int(getattr(connection.connection.dbapi_connection, "total_changes", 0))
