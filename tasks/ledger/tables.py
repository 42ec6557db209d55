"""The ledger's tables, and the only SQL that knows which database it runs on. What is done with them is ledger.py.

Digests and words are text, what judges and providers wrote is UTF-8 bytes (verbatim: PostgreSQL's text cannot hold every
character), moments are microseconds since 1970 UTC.
"""

import sqlite3
import time
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    bindparam,
    event,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.sql.expression import Executable

from tasks.ledger.pipelining import later, wait_for_results
from tasks.ledger.process_identity import EXPIRES_AFTER_S

VERSION = "3"
"""Raised with every change of a table, and with it a script in migrations/versions/."""
EARLIER_VERSIONS = ("1", "2")
BUSY_TIMEOUT_MS = 30_000

LEAST_IDLE_MS = 10_000
ONE_WRITER = 0x53616C6F6E
"""The number of PostgreSQL's advisory lock that makes a transaction the only one of its kind in the database."""
_PASSING = ("08", "40", "57P", "53300")
"""SQLSTATEs of a connection that was lost, a transaction undone for another's sake, a server that restarts or is full."""

METADATA = MetaData()

LEDGER_META = Table(
    "ledger_meta", METADATA, Column("name", String(64), primary_key=True), Column("value", String(255), nullable=False)
)

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("attempt_id", String(32), primary_key=True),
    Column("request_key", String(64), nullable=False),
    Column("ask_index", Integer, nullable=False),
    Column("judge_model", String, nullable=False),
    Column("started_at_us", BigInteger, nullable=False),
    Column("ended_at_us", BigInteger),
    Column("status", String(32)),
    Column("detail", LargeBinary),
    Index("attempts_by_request", "request_key", "ask_index"),
    sqlite_with_rowid=False,
)

REPLIES = Table(
    "replies",
    METADATA,
    Column("request_key", String(64), primary_key=True),
    Column("ask_index", Integer, primary_key=True, autoincrement=False),
    Column("status", String(32), nullable=False),
    Column("reply_text", LargeBinary),
    Column("finish_reason", LargeBinary),
    Column("refusal_text", LargeBinary),
    Column("error_detail", LargeBinary),
    Column("judge_model", String, nullable=False),
    Column("answered_model", LargeBinary),
    Column("n_input_tokens", BigInteger),
    Column("n_cached_tokens", BigInteger),
    Column("n_output_tokens", BigInteger),
    Column("cost_usd", Float),
    Column("latency_s", Float),
    Column("n_attempts", BigInteger, nullable=False),
    Column("received_at_us", BigInteger),
    Column("origin", String(16)),
    Column("logprobs_json", LargeBinary),
)

VERBATIM = ("reply_text", "finish_reason", "refusal_text", "error_detail", "answered_model", "logprobs_json")
"""Columns of `replies` that hold what others wrote, as UTF-8 bytes."""


def insert_where_absent(engine: Engine, table: Table) -> Executable:
    """INSERT … ON CONFLICT DO NOTHING: the first row stored under a key stays."""
    insert: Any = postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert
    statement: Executable = insert(table).on_conflict_do_nothing()
    return statement


def upsert(engine: Engine, table: Table) -> Executable:
    """INSERT … ON CONFLICT DO UPDATE of every column that is not of the key: the last row stored stays."""
    insert: Any = postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert
    made = insert(table)
    changed = {column.name: made.excluded[column.name] for column in table.columns if not column.primary_key}
    statement: Executable = made.on_conflict_do_update(index_elements=list(table.primary_key), set_=changed)
    return statement


def upsert_where_written(engine: Engine, table: Table) -> Executable:
    """The same, by a transaction that changed a row before: PostgreSQL gives it a number then (and also when it locks a row).

    It decides by itself, without being waited for. SQLite's callers know how many rows were changed.
    """
    if engine.dialect.name != "postgresql":
        return upsert(engine, table)
    has_number = literal_column("pg_current_xact_id_if_assigned()").is_not(None)
    row = select(*(bindparam(column.name, type_=column.type) for column in table.columns)).where(has_number)
    made = postgresql.insert(table).from_select([column.name for column in table.columns], row)
    changed = {column.name: made.excluded[column.name] for column in table.columns if not column.primary_key}
    return made.on_conflict_do_update(index_elements=list(table.primary_key), set_=changed)


def state_row(word: str) -> dict[str, str]:
    """The row of LEDGER_META each writing transaction puts anew, with a word nobody has seen: equal states, equal contents."""
    return {"name": "state", "value": word}


def make_durable(engine: Engine, busy_timeout_ms: int) -> None:
    """Every commit is on the disk before it returns, and nobody waits for another longer than the timeout."""
    set_up = _set_up_sqlite if engine.dialect.name == "sqlite" else _set_up_postgresql
    event.listen(engine, "connect", lambda connection, _: set_up(connection, busy_timeout_ms))
    wait_for_results(engine)


def _set_up_sqlite(connection: Any, busy_timeout_ms: int) -> None:
    """Readers do not wait for the writer."""
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}")
    _switch_to_wal(cursor, time.monotonic() + busy_timeout_ms / 1000)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _set_up_postgresql(connection: Any, busy_timeout_ms: int) -> None:
    """A machine that vanishes in mid-transaction holds its locks half the timeout: who waits for them outlives it."""
    unsynced = "current_setting('synchronous_commit') IN ('off', 'local')"
    settings = (
        f"SET lock_timeout = {busy_timeout_ms}",
        f"SET idle_in_transaction_session_timeout = {max(busy_timeout_ms // 2, LEAST_IDLE_MS)}",
        f"SELECT set_config('synchronous_commit', 'on', false) WHERE {unsynced}",
    )
    cursor = connection.cursor()
    cursor.execute("; ".join(settings))  # sent together
    cursor.close()


def _switch_to_wal(cursor: Any, give_up_at: float) -> None:
    """SQLite does not wait for other processes that open the same new file: its busy timeout leaves out this one statement."""
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.02)
        else:
            return


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
    """End a transaction that `begin` began; within `together` it is durable when that block ends."""
    if connection.dialect.name == "sqlite":
        connection.commit()
    else:
        later(connection, "COMMIT")  # the driver's own commit would wait, and the end of the block a second time


def is_passing(error: BaseException) -> bool:
    """Whether a server went away, restarts, or undid the transaction for another's sake: the same may be tried again."""
    if not isinstance(error, DBAPIError) or isinstance(error.orig, sqlite3.Error):
        return False
    state = getattr(error.orig, "sqlstate", None)
    is_of_connection = isinstance(error, OperationalError) and state is None
    return error.connection_invalidated or is_of_connection or str(state).startswith(_PASSING)


def n_changes(connection: Connection) -> int:
    """Rows this connection has ever changed, where the driver counts them: on SQLite."""
    return int(getattr(connection.connection.dbapi_connection, "total_changes", 0))


def now_us(connection: Connection) -> int:
    """The moment by the clock all processes of the ledger share: the server's, or for a file the machine's."""
    if connection.dialect.name == "postgresql":
        return int(connection.exec_driver_sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").scalar_one())
    return time.time_ns() // 1000


def raw_rows(connection: Connection, statement: Executable) -> list[tuple[Any, ...]]:
    """All rows as the driver gives them: a million rows need no Row objects and no type conversions."""
    cursor = connection.execute(statement).cursor
    return [] if cursor is None else list(cursor.fetchall())


OWNERS = Table(
    "owners",
    METADATA,
    Column("owner_id", String(32), primary_key=True),
    Column("host", String(128)),
    Column("pid", Integer),
    Column("process_started", String(32)),
    Column("expires_at_us", BigInteger, nullable=False),
)

CLAIMS = Table(
    "claims",
    METADATA,
    Column("request_key", String(64), primary_key=True),
    Column("owner_id", String(32), nullable=False, index=True),
    sqlite_with_rowid=False,
)

ANSWERING = Table(
    "answering",
    METADATA,
    Column("plan_id", String(64), primary_key=True),
    Column("judge_model", String, primary_key=True),
    Column("answered_model", LargeBinary, nullable=False),
)

WRITERS = Table(
    "writers",
    METADATA,
    Column("writer_id", String(32), primary_key=True),
    Column("commit_id", String(32), nullable=False),
    Column("committed_at_us", BigInteger, nullable=False),
)
"""The last transaction of each process that ran a function on a server: one whose commit got no answer is looked up here."""


def spare_owners(connection: Connection, away_s: float) -> None:
    """Give a new span of life to every owner that had not expired when the server went away: none could say that it lives."""
    moment_us = now_us(connection)
    lived_us = moment_us - int(away_s * 1e6)
    renewed_us = moment_us + int(EXPIRES_AFTER_S * 1e6)
    is_it = OWNERS.c.expires_at_us.between(lived_us, renewed_us)
    connection.execute(update(OWNERS).where(is_it).values(expires_at_us=renewed_us))


BUDGETS = Table(
    "budgets",
    METADATA,
    Column("budget_id", String(64), primary_key=True),
    Column("most", BigInteger, nullable=False),
    Column("leased", BigInteger, nullable=False),
)
"""One row a purse of a run: billionths of a dollar, or attempts. `leased` is what workers hold or have used, at most `most`."""

OBSERVED = Table(
    "observed_tokens",
    METADATA,
    Column("rubric_id", String, primary_key=True),
    Column("rubric_version", String, primary_key=True),
    Column("judge_model", String, primary_key=True),
    Column("n_replies", BigInteger, nullable=False),
    Column("n_input_estimated", BigInteger, nullable=False),
    Column("n_input_reported", BigInteger, nullable=False),
    Column("n_cached_reported", BigInteger, nullable=False),
    Column("n_output_reported", BigInteger, nullable=False),
    Column("most_of_bound", Float, nullable=False),
)
"""Sums over the replies that reported their tokens; `most_of_bound` is the largest reported input as a share of its bound."""
