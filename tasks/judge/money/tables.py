"""The ledger's tables of money: what each run may still spend, and what replies reported beside what was estimated."""

from sqlalchemy import BigInteger, Column, Float, String, Table

from tasks.judge.ledger_tables import METADATA

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
