"""The snapshot a run reads from the ledger: every planned request with its replies, or with why it has none."""

from collections.abc import Iterable
from hashlib import sha256

import polars as pl

from schemas.statuses import ReplyStatus
from schemas.tables import REPLIES
from tasks.judge.keys import canonical_json
from tasks.judge.ledger import Ledger


def snapshot_part(ledger: Ledger, requests: pl.DataFrame) -> pl.DataFrame:
    """REPLIES rows of these requests, sorted by (request_key, ask_index).

    A request without a final reply has one row: how its last attempt ended, or `not_asked`.
    """
    asked = requests.select("request_key", "judge_model").unique("request_key", keep="first", maintain_order=True)
    stored = ledger.replies(asked["request_key"])
    missing = asked.join(stored, on="request_key", how="anti")
    failures = ledger.last_failures(missing["request_key"]).filter(pl.col("ask_index") == 0)
    unanswered = missing.join(failures, on="request_key", how="left").with_columns(
        ask_index=pl.lit(0, dtype=pl.Int64),
        status=pl.col("status").fill_null(ReplyStatus.NOT_ASKED.value),
        n_attempts=pl.col("n_attempts").fill_null(0),
    )
    return pl.concat([stored, unanswered], how="diagonal").select(REPLIES.columns).sort("request_key", "ask_index")


def part_digest(replies: pl.DataFrame) -> str:
    """sha256 over the rows of one snapshot part as canonical JSON lines, in their order: the same on every machine."""
    hasher = sha256()
    frame = replies.select(REPLIES.columns).with_columns(pl.col("received_at").dt.epoch("us"))
    for row in frame.iter_rows():
        hasher.update(canonical_json(row) + b"\n")
    return hasher.hexdigest()


def snapshot_id(digests: Iterable[str]) -> str:
    """The snapshot's id from the digests of its parts, in the order of the parts."""
    return sha256("\n".join(digests).encode()).hexdigest()
