"""The ledger's tables of what goes on: who asks, who writes, what is claimed, who answers. Replies: ledger_tables.py."""

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, String, Table, update
from sqlalchemy.engine import Connection

from tasks.judge.ledger_tables import METADATA, now_us
from tasks.judge.owners import EXPIRES_AFTER_S

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
