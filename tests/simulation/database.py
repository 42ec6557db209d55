"""The simulated ledger's database: SQLite in memory, as a file or in the role of a server. Faults come from outside.

Every transaction is made in one go; before it, and between its commit and the answer, time may pass and anything may happen.
"""

import sqlite3
from typing import Any, Protocol

from sqlalchemy import create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import StaticPool

from tasks.ledger import queries
from tasks.ledger.ledger import Ledger
from tasks.ledger.process_identity import Machine
from tasks.ledger.tables import METADATA, SCHEMA
from tests.simulation.short_connection import Shared, ShortConnection


class AwayError(Exception):
    """What the driver of a server that is away would say."""


class Hooks(Protocol):
    """Who is told of the transactions, and may wait or raise."""

    def before(self) -> None: ...
    def read(self) -> None: ...
    def loses(self) -> bool: ...
    def after(self) -> None: ...


class FileDialect(SQLiteDialect_pysqlite):
    """A file that all processes of one machine open."""

    supports_statement_cache = True
    hooks: Hooks

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:  # noqa: ARG002 - a dialect's
        if statement.startswith("BEGIN"):
            self.hooks.before()
        elif statement == "COMMIT":
            self._commit(cursor.connection)
            return
        elif not cursor.connection.in_transaction:
            self.hooks.read()
        cursor.execute(statement, parameters)

    def do_commit(self, dbapi_connection: Any) -> None:
        self._commit(dbapi_connection)

    def do_savepoint(self, connection: Any, name: str) -> None:
        connection.exec_driver_sql(f"SAVEPOINT {name}")

    def do_rollback_to_savepoint(self, connection: Any, name: str) -> None:
        connection.exec_driver_sql(f"ROLLBACK TO SAVEPOINT {name}")

    def do_release_savepoint(self, connection: Any, name: str) -> None:
        connection.exec_driver_sql(f"RELEASE SAVEPOINT {name}")

    def _commit(self, connection: sqlite3.Connection) -> None:
        if self.hooks.loses():
            connection.rollback()
            raise away()
        connection.commit()
        self.hooks.after()


class ServerDialect(FileDialect):
    """In the role of a server: Salon sends it what it sends PostgreSQL, statements apart that only that one knows."""

    name = "simulated"
    supports_statement_cache = True


registry.register("sqlite.simulated_file", __name__, FileDialect.__name__)
registry.register("sqlite.simulated_server", __name__, ServerDialect.__name__)
compiles(queries._Listed, ServerDialect.name)(queries._listed_by_sqlite)


def away() -> OperationalError:
    """What SQLAlchemy raises of a connection that is lost."""
    return OperationalError("a statement", None, AwayError("connection is lost"))


class Database:
    """One database for all runs of a process, emptied before each."""

    def __init__(self, kind: str) -> None:
        self.raw = sqlite3.connect(":memory:", check_same_thread=False)
        self.engine: Engine = create_engine(f"sqlite+simulated_{kind}://", poolclass=StaticPool, creator=lambda: self.raw)
        dialect: Any = self.engine.dialect
        dialect.hooks, dialect.shared = _Quiet(), Shared(self.raw)
        METADATA.create_all(self.engine)
        for name, n in (("pg_advisory_xact_lock", 1), ("set_config", 3)):
            self.raw.create_function(name, n, lambda *_: None)

    def empty(self, hooks: Hooks) -> None:
        """As a new ledger."""
        self.raw.rollback()
        for table in METADATA.sorted_tables:
            self.raw.execute(f"DELETE FROM {table.name}")
        self.raw.execute("INSERT INTO ledger_meta VALUES ('version', ?)", (SCHEMA.version,))
        self.raw.commit()
        self.engine.dialect.hooks = hooks  # type: ignore[attr-defined] # our own dialect

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """What is durable now. Not to be asked within a transaction."""
        return self.raw.execute(statement, values).fetchall()


class _Quiet:
    def before(self) -> None: ...
    def read(self) -> None: ...
    def loses(self) -> bool:
        return False

    def after(self) -> None: ...


class SimulatedLedger(Ledger):
    """A process's ledger: all of it is Salon's own but what is opened. `clock`: the machine by whose clock the database goes."""

    def __init__(self, database: Database, machine: Machine, at_database: Machine, max_away_s: float) -> None:
        super().__init__("sqlite://", machine=machine, max_away_s=max_away_s)
        self._database, self._at_database = database, at_database

    def _opened(self) -> Engine:
        engine = self._database.engine.execution_options(machine=self._at_database)
        engine._connection_cls = ShortConnection
        return engine
