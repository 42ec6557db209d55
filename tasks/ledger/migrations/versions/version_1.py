"""Version 1: attempts and replies. The base: a ledger of this version is made by nobody any more, and found."""

revision = "1"
down_revision = None


def upgrade() -> None:
    """Nothing is before it."""
