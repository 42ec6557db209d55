"""Version 3: every table of what goes on, and of its writers.

Version 2 had more and more of these tables while its number stayed: what is there stays, what is not is made.
"""

from alembic import op
from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary, String, inspect

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Claims, limits, money, batches, writers; and budgets count attempts too, so that their columns name no money."""
    _share()
    _limit()
    _batch()
    op.create_table(
        "writers",
        Column("writer_id", String(32), primary_key=True),
        Column("commit_id", String(32), nullable=False),
        Column("committed_at_us", BigInteger, nullable=False),
        if_not_exists=True,
    )


def _share() -> None:
    op.create_table(
        "owners",
        Column("owner_id", String(32), primary_key=True),
        Column("host", String(128)),
        Column("pid", Integer),
        Column("process_started", String(32)),
        Column("expires_at_us", BigInteger, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "claims",
        Column("request_key", String(64), primary_key=True),
        Column("owner_id", String(32), nullable=False),
        sqlite_with_rowid=False,
        if_not_exists=True,
    )
    op.create_index("ix_claims_owner_id", "claims", ["owner_id"], if_not_exists=True)
    op.create_table(
        "answering",
        Column("plan_id", String(64), primary_key=True),
        Column("judge_model", String, primary_key=True),
        Column("answered_model", LargeBinary, nullable=False),
        if_not_exists=True,
    )


def _limit() -> None:
    op.create_table(
        "allowances",
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
        if_not_exists=True,
    )
    op.create_table(
        "budgets",
        Column("budget_id", String(64), primary_key=True),
        Column("most", BigInteger, nullable=False),
        Column("leased", BigInteger, nullable=False),
        if_not_exists=True,
    )
    if "max_nusd" in {column["name"] for column in inspect(op.get_bind()).get_columns("budgets")}:
        op.execute("ALTER TABLE budgets RENAME COLUMN max_nusd TO most")
        op.execute("ALTER TABLE budgets RENAME COLUMN leased_nusd TO leased")
    op.create_table(
        "observed_tokens",
        Column("rubric_id", String, primary_key=True),
        Column("rubric_version", String, primary_key=True),
        Column("judge_model", String, primary_key=True),
        Column("n_replies", BigInteger, nullable=False),
        Column("n_input_estimated", BigInteger, nullable=False),
        Column("n_input_reported", BigInteger, nullable=False),
        Column("n_cached_reported", BigInteger, nullable=False),
        Column("n_output_reported", BigInteger, nullable=False),
        Column("most_of_bound", Float, nullable=False),
        if_not_exists=True,
    )


def _batch() -> None:
    op.create_table(
        "batches",
        Column("token", String(32), primary_key=True),
        Column("endpoint", String, nullable=False),
        Column("api_key_env", String, nullable=False),
        Column("judge_model", String, nullable=False),
        Column("state", String(16), nullable=False),
        Column("n_lines", Integer, nullable=False),
        Column("n_bytes", BigInteger, nullable=False),
        Column("file_id", String),
        Column("provider_id", String),
        Column("holder_id", String(32)),
        Column("intended_at_us", BigInteger, nullable=False),
        Column("create_sent_at_us", BigInteger),
        Column("ended_at_us", BigInteger),
        Column("detail", LargeBinary),
        if_not_exists=True,
    )
    op.create_index("ix_batches_state", "batches", ["state"], if_not_exists=True)
    op.create_table(
        "batch_lines",
        Column("token", String(32), primary_key=True),
        Column("request_key", String(64), primary_key=True),
        Column("ask_index", Integer, nullable=False),
        Column("attempt_id", String(32), nullable=False),
        sqlite_with_rowid=False,
        if_not_exists=True,
    )
    op.create_index("batch_lines_by_request", "batch_lines", ["request_key"], if_not_exists=True)
