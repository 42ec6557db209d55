"""The ledger's tables, and the only SQL that knows which database it runs on. What is done with them is ledger.py.

Digests and words are text, what judges and providers wrote is UTF-8 bytes (verbatim: PostgreSQL's text cannot hold every
character), moments are microseconds since 1970 UTC.
"""

import sqlite3
import time
from typing import Any

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.sql.expression import Executable

VERSION = "2"
BUSY_TIMEOUT_MS = 30_000

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


def new_state(engine: Engine) -> Executable:
    """Give the ledger a state nobody has seen. Part of every transaction that writes: equal states are equal contents."""
    insert: Any = postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert
    made = insert(LEDGER_META).values(name="state")
    statement: Executable = made.on_conflict_do_update(index_elements=["name"], set_={"value": made.excluded.value})
    return statement


def make_durable(engine: Engine, busy_timeout_ms: int) -> None:
    """On SQLite: every commit is on the disk before it returns, readers do not wait for the writer. PostgreSQL does so itself."""
    if engine.dialect.name != "sqlite":
        return

    def _set_pragmas(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}")
        _switch_to_wal(cursor, time.monotonic() + busy_timeout_ms / 1000)
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.close()

    event.listen(engine, "connect", _set_pragmas)


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


def begin_alone(connection: Connection) -> None:
    """Begin the transaction as the only writer. Python's SQLite driver would otherwise commit each CREATE by itself."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def now_us(connection: Connection) -> int:
    """The moment by the clock all processes of the ledger share: the server's, or for a file the machine's."""
    if connection.dialect.name == "postgresql":
        return int(connection.exec_driver_sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").scalar_one())
    return time.time_ns() // 1000


def raw_rows(connection: Connection, statement: Executable) -> list[tuple[Any, ...]]:
    """All rows as the driver gives them: a million rows need no Row objects and no type conversions."""
    cursor = connection.execute(statement).cursor
    return [] if cursor is None else list(cursor.fetchall())
