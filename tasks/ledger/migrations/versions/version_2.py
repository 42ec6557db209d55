"""Version 2: replies keep cached tokens and log-probabilities."""

from alembic import op
from sqlalchemy import BigInteger, Column, LargeBinary

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Two columns, empty in the replies that are there."""
    op.add_column("replies", Column("n_cached_tokens", BigInteger))
    op.add_column("replies", Column("logprobs_json", LargeBinary))
