"""The ledger's tables of what goes on: who asks, what is claimed, which model answers. Kept replies are ledger_tables.py."""

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, String, Table

from tasks.judge.ledger_tables import METADATA

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
