"""Restoring a ledger that lost replies from the lake's snapshots. Replies recorded elsewhere are import_replies/importing.py."""

from functools import partial

import polars as pl
from sqlalchemy import select
from sqlalchemy.engine import Connection

from schemas.statuses import FINAL_REPLY_STATUSES
from schemas.tables import REPLIES
from tasks.lake.reading import Lake
from tasks.ledger.ledger import Ledger
from tasks.ledger.queries import stored_row
from tasks.ledger.tables import LEDGER_META, insert_where_absent
from tasks.stopping import check_not_stopped

_HELD = "held"
"""The value in `ledger_meta`, under a snapshot's id, that says this ledger holds its replies."""
_KEY = ["request_key", "ask_index"]
_ROWS_PER_COMMIT = 2_000


def restore(lake: Lake, ledger: Ledger) -> int:
    """Store every final reply of the lake's snapshots that the ledger lacks. Returns how many there were.

    A snapshot is compared once with a ledger, so that a run pays for those taken since the last one alone; a ledger that was
    lost or put back from a copy does not know of any, or of the later ones, and gets them all. Raises StoreError,
    CorruptLakeError.
    """
    n_stored = 0
    for snapshot_id in sorted(lake.keys(REPLIES) - ledger.read(_compared)):
        n_stored += _take_back(lake, snapshot_id, ledger)
        ledger.alone_now(partial(_note, snapshot_id=snapshot_id))
    return n_stored


def _compared(connection: Connection) -> set[str]:
    return set(connection.execute(select(LEDGER_META.c.name).where(LEDGER_META.c.value == _HELD)).scalars())


def _note(connection: Connection, snapshot_id: str) -> None:
    connection.execute(insert_where_absent(connection.engine, LEDGER_META), [{"name": snapshot_id, "value": _HELD}])


def _take_back(lake: Lake, snapshot_id: str, ledger: Ledger) -> int:
    is_final = pl.col("status").is_in([status.value for status in FINAL_REPLY_STATUSES])
    lacking = _lacking(ledger, lake.scan(REPLIES, snapshot_id).filter(is_final).select(_KEY).collect())
    if lacking.is_empty():
        return 0
    n_stored = 0
    for path in lake.parts(REPLIES, snapshot_id):
        mine = pl.read_parquet(path).join(lacking, on=_KEY, how="semi")
        for some in mine.iter_slices(_ROWS_PER_COMMIT):
            check_not_stopped()
            n_stored += ledger.store_rows([stored_row(row) for row in some.iter_rows(named=True)])
    return n_stored


def _lacking(ledger: Ledger, final: pl.DataFrame) -> pl.DataFrame:
    """Those (request_key, ask_index) the ledger has no reply to. Where it has the first one, the re-ask may still be missing."""
    is_known = pl.col("request_key").is_in(list(ledger.known(final["request_key"])))
    reasked = final.filter(is_known, pl.col("ask_index") > 0)
    stored = ledger.replies(reasked["request_key"]).select(_KEY)
    return pl.concat([final.filter(~is_known), reasked.join(stored, on=_KEY, how="anti")])
