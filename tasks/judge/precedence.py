"""Who goes first where a limit is shared: while a nightly run asks a judge, a backfill asks that judge nothing.

Whoever goes first says so by a row among the ledger's owners, one for each judge, that lives as long as the process renews it.
It is the same for SQLite and PostgreSQL and for several machines, and limits/ knows nothing of it.
"""

import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256

from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import Connection

from schemas.errors import StoreError
from tasks.judge.ledger import Ledger
from tasks.judge.ledger_tables import now_us
from tasks.judge.owners import EXPIRES_AFTER_S, RENEW_EVERY_S, Process, is_dead, this_process
from tasks.judge.sharing_tables import OWNERS
from tasks.stopping import STOP

POLL_S = 0.25
"""How often one that gives way looks whether it must: so late it stops, and so late it goes on."""


@contextmanager
def going_first(ledger_url: str, judge_models: Sequence[str]) -> Iterator[None]:
    """Go first with these judges while the block runs; it ends with the process, seen at once here, within a minute elsewhere."""
    token = secrets.token_hex(6)
    ids = [f"{_prefix(model)}{token}" for model in judge_models]
    done = threading.Event()
    with Ledger(ledger_url) as ledger:
        ledger.alone_now(lambda connection: _begin(connection, ids))
        renewing = threading.Thread(target=_renew, args=(ledger, ids, done), name="salon-precedence", daemon=True)
        renewing.start()
        try:
            yield
        finally:
            done.set()
            renewing.join()
            with suppress(StoreError):  # what stopped the block is what is to be said; the row expires by itself
                ledger.alone_now(lambda connection: _end(connection, ids))


def is_another_first(ledger: Ledger, judge_model: str) -> bool:
    """Whether a living process goes first with this judge."""

    def found(connection: Connection) -> bool:
        columns = (OWNERS.c.host, OWNERS.c.pid, OWNERS.c.process_started)
        lives = OWNERS.c.expires_at_us >= now_us(connection)
        rows = connection.execute(select(*columns).where(OWNERS.c.owner_id.startswith(_prefix(judge_model)), lives)).all()
        return any(not is_dead(Process(host, pid, started)) for host, pid, started in rows)

    return ledger.read(found)


def wait_for_turn(ledger: Ledger, judge_model: str) -> None:
    """Return once nobody goes first with this judge, or the process was told to stop."""
    while not STOP.is_set() and is_another_first(ledger, judge_model):
        STOP.wait(POLL_S)


@contextmanager
def giving_way(ledger: Ledger, judge_model: str) -> Iterator[threading.Event]:
    """An event that is set when another goes first, when the process is told to stop, and at the end of the block."""
    is_over = threading.Event()

    def watch() -> None:
        with suppress(StoreError):  # who asks meets it too, and says so
            while not (STOP.is_set() or is_over.is_set() or is_another_first(ledger, judge_model)):
                is_over.wait(POLL_S)
        is_over.set()

    watching = threading.Thread(target=watch, name="salon-giving-way", daemon=True)
    watching.start()
    try:
        yield is_over
    finally:
        is_over.set()
        watching.join()


def _prefix(judge_model: str) -> str:
    return f"first-{sha256(judge_model.encode()).hexdigest()[:12]}-"  # 19 characters, and 12 of the token: an owner id has 32


def _begin(connection: Connection, ids: Sequence[str]) -> None:
    process, expiry_us = this_process(), _expiry_us(connection)
    row = {"host": process.host, "pid": process.pid, "process_started": process.started, "expires_at_us": expiry_us}
    if ids:
        connection.execute(insert(OWNERS), [row | {"owner_id": one} for one in ids])


def _renew(ledger: Ledger, ids: Sequence[str], done: threading.Event) -> None:
    while not done.wait(RENEW_EVERY_S):
        with suppress(StoreError):  # the next renewal is well before the row expires
            ledger.alone_now(lambda connection: _extend(connection, ids))


def _extend(connection: Connection, ids: Sequence[str]) -> None:
    connection.execute(update(OWNERS).where(OWNERS.c.owner_id.in_(ids)).values(expires_at_us=_expiry_us(connection)))


def _end(connection: Connection, ids: Sequence[str]) -> None:
    connection.execute(delete(OWNERS).where(OWNERS.c.owner_id.in_(ids)))


def _expiry_us(connection: Connection) -> int:
    return now_us(connection) + int(EXPIRES_AFTER_S * 1e6)
