"""The ledger's tables of batches: those handed to a provider, and their lines not settled yet. Work on them is store.py.

A batch is an owner of claims (claims.py) that does not die: its requests stay claimed, for online runs too, until their lines
are settled.
"""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, String, Table

from tasks.judge.ledger_tables import METADATA


class BatchState(StrEnum):
    """How far a batch has come; each is durable before the step behind it begins."""

    INTENDED = "intended"  # its file may be on its way to the provider
    UPLOADED = "uploaded"  # the provider has the file
    CREATING = "creating"  # the provider may have the batch
    LIVE = "live"  # the provider has the batch
    ENDED = "ended"  # every line is settled


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
)

BATCH_LINES = Table(
    "batch_lines",
    METADATA,
    Column("token", String(32), primary_key=True),
    Column("request_key", String(64), primary_key=True),
    Column("ask_index", Integer, nullable=False),
    Column("attempt_id", String(32), nullable=False),
    Index("batch_lines_by_request", "request_key"),
    sqlite_with_rowid=False,
)


@dataclass(frozen=True, slots=True)
class Batch:
    """A row of `batches`, less when it ended and why. Moments are microseconds since 1970 UTC."""

    token: str
    endpoint: str
    api_key_env: str
    judge_model: str
    state: BatchState
    n_lines: int
    n_bytes: int
    file_id: str | None = None
    provider_id: str | None = None
    holder_id: str | None = None
    intended_at_us: int = 0
    create_sent_at_us: int | None = None

    @property
    def file_name(self) -> str:
        """The name of its file at the provider."""
        return f"salon-{self.token}.jsonl"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a batch that is not settled. `n_attempts`: of this ask that were sent, this one included."""

    request_key: str
    ask_index: int
    attempt_id: str
    n_attempts: int
    is_stored: bool  # its reply is in the ledger

    @property
    def custom_id(self) -> str:
        """The line's name in the files."""
        return custom_id(self.request_key, self.ask_index)


def custom_id(request_key: str, ask_index: int) -> str:
    """The name of an ask in the files of a batch."""
    return f"{request_key}-{ask_index}"
