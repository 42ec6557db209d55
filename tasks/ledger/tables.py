"""The ledger's tables, all of them. Statements that databases spell differently: statements.py; rows in and out: queries.py.

Digests and words are text, what judges and providers wrote is UTF-8 bytes (verbatim: PostgreSQL's text cannot hold every
character), moments are microseconds since 1970 UTC.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
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
)
from sqlalchemy.engine import Connection
from sqlalchemy.schema import CreateColumn
from sqlalchemy.types import TypeEngine

from schemas.tables.field import Field
from schemas.tables.stored import REPLIES as LAKE_REPLIES

METADATA = MetaData()


@dataclass(frozen=True, slots=True)
class Schema:
    """One version of a ledger's tables. `migrations` lead to it: (the version one starts from, what it does), in order.

    A migration writes its columns out and uses no Table of ours: those change.
    """

    version: str
    metadata: MetaData
    migrations: tuple[tuple[str, Callable[[Connection], None]], ...] = ()

    def migrations_from(self, version: str) -> list[Callable[[Connection], None]]:
        """Those that carry a ledger of this version forward; none where nothing leads from it to here."""
        starts = [start for start, _ in self.migrations]
        return [migrate for _, migrate in self.migrations[starts.index(version) :]] if version in starts else []


def add_column(connection: Connection, table: str, column: Column[Any]) -> None:
    """Add a column that may be null, of the type that this database has for it: bytes are BLOB in SQLite, BYTEA in PostgreSQL."""
    connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {CreateColumn(column).compile(dialect=connection.dialect)}")


def _to_4(connection: Connection) -> None:
    """Each reply with the digest taken where it was received; those of before have none."""
    add_column(connection, "replies", Column("reply_sha256", String(64)))


def _to_5(connection: Connection) -> None:
    """What lines of a batch hold of a budget; those handed over before hold none."""
    add_column(connection, "batches", Column("budget_id", String(64)))
    add_column(connection, "batch_lines", Column("reserved", BigInteger))


SCHEMA = Schema("5", METADATA, (("3", _to_4), ("4", _to_5)))
"""Release 0.1.0 makes version 3. Raise the version with every change of a table, and add what leads to it."""

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


def stored_name(of: Field) -> str:
    """A moment is kept in microseconds, under its name and `_us`."""
    return f"{of.name}_us" if pa.types.is_timestamp(of.arrow_type) else of.name


def _type(of: Field) -> TypeEngine[Any]:
    """Free text that may be null is what others wrote."""
    if of.arrow_type == pa.string():
        if of.values:
            return String(16 if of.name == "origin" else 32)  # as release 0.1.0 made it
        return LargeBinary() if of.is_nullable and of.length is None else String(of.length)
    if of.arrow_type == pa.float64():
        return Float()
    return Integer() if of.name in LAKE_REPLIES.key else BigInteger()


REPLIES = Table(
    "replies",
    METADATA,
    *(
        Column(stored_name(of), _type(of), primary_key=of.name in LAKE_REPLIES.key, autoincrement=False, nullable=of.is_nullable)
        for of in LAKE_REPLIES.fields
    ),
)
"""The lake's `replies`, column by column."""

VERBATIM = tuple(column.name for column in REPLIES.columns if isinstance(column.type, LargeBinary))
"""Columns of `replies` that hold what others wrote, as UTF-8 bytes."""

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

BUDGETS = Table(
    "budgets",
    METADATA,
    Column("budget_id", String(64), primary_key=True),
    Column("most", BigInteger, nullable=False),
    Column("leased", BigInteger, nullable=False),
)
"""One row a shared counter: billionths of a dollar, or attempts. `leased` is what workers hold or have used, at most `most`."""

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

ALLOWANCES = Table(
    "allowances",
    METADATA,
    Column("allowance_id", String(64), primary_key=True),
    Column("paused_until_us", BigInteger, nullable=False),
    Column("requests_per_minute", BigInteger),
    Column("requests_burst", BigInteger),
    Column("requests_heard_us", BigInteger),
    Column("requests_used_until_us", BigInteger, nullable=False),
    Column("tokens_per_minute", BigInteger),
    Column("tokens_burst", BigInteger),
    Column("tokens_heard_us", BigInteger),
    Column("tokens_used_until_us", BigInteger, nullable=False),
)

BATCHES = Table(
    "batches",
    METADATA,
    Column("token", String(32), primary_key=True),  # names the file and the batch at the provider
    Column("endpoint", String, nullable=False),
    Column("api_key_env", String, nullable=False),
    Column("judge_model", String, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("n_lines", Integer, nullable=False),
    Column("n_bytes", BigInteger, nullable=False),
    Column("file_id", String),
    Column("provider_id", String),
    Column("holder_id", String(32)),  # of OWNERS: the process that does the next step
    Column("intended_at_us", BigInteger, nullable=False),
    Column("create_sent_at_us", BigInteger),
    Column("ended_at_us", BigInteger),
    Column("detail", LargeBinary),  # what the provider said last of the batch as a whole
    Column("budget_id", String(64)),  # of BUDGETS: what its lines hold is held of it
)

BATCH_LINES = Table(
    "batch_lines",
    METADATA,
    Column("token", String(32), primary_key=True),
    Column("request_key", String(64), primary_key=True),
    Column("ask_index", Integer, nullable=False),
    Column("attempt_id", String(32), nullable=False),
    Column("reserved", BigInteger),  # billionths of a dollar, given back but for what it cost when the line ends
    Index("batch_lines_by_request", "request_key"),
    sqlite_with_rowid=False,
)
