"""Who works alone, and whose flow still lives: a night runs once, and shards elsewhere end with their run.

Whoever does says so by a row among the ledger's owners that lives as long as the process renews it. It is the same for SQLite
and PostgreSQL and for several machines. That a night is asked before a backfill is the allowance's business (limits/).
"""

import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256

from sqlalchemy import delete, func, select, update
from sqlalchemy.engine import Connection

from schemas.errors import StoreError
from tasks.ledger.ledger import Ledger
from tasks.ledger.process_identity import EXPIRES_AFTER_S, RENEW_EVERY_S, Process, is_dead, this_process
from tasks.ledger.tables import OWNERS, insert_where_absent, now_us
from tasks.stopping import STOP, check_not_stopped

TURN_POLL_S = 0.5


@contextmanager
def standing(ledger_url: str, names: Sequence[str]) -> Iterator[None]:
    """Stand under these names while the block runs; it ends with the process, seen at once here, within a minute elsewhere."""
    token = secrets.token_hex(6)
    ids = [f"{_prefix('stands', name)}{token}" for name in names]
    with Ledger(ledger_url) as ledger:
        ledger.alone_now(lambda connection: _begin(connection, ids))
        with _renewed(ledger, ids):
            yield


@contextmanager
def one_at_a_time(ledger_url: str, name: str) -> Iterator[None]:
    """One process at a time in the block of this name, on all machines that share the ledger; another one waits for its turn.

    A process that is gone is noticed at once here, within a minute elsewhere. Raises StoppedError where it is told to stop while
    it waits.
    """
    prefix = _prefix("alone", name)
    own = f"{prefix}{secrets.token_hex(6)}"
    with Ledger(ledger_url) as ledger:
        while not ledger.alone_now(lambda connection: _take_turn(connection, prefix, own)):
            STOP.wait(TURN_POLL_S)
            check_not_stopped()
        with _renewed(ledger, [own]):
            yield


def is_standing(ledger: Ledger, name: str) -> bool:
    """Whether a living process stands under this name."""
    return bool(ledger.read(lambda connection: _living(connection, _prefix("stands", name))))


def _living(connection: Connection, prefix: str, own: str = "") -> list[Process]:
    """The living processes that stand under this prefix, other than `own`."""
    columns = (OWNERS.c.host, OWNERS.c.pid, OWNERS.c.process_started)
    lives = OWNERS.c.expires_at_us >= now_us(connection)
    rows = select(*columns).where(OWNERS.c.owner_id.startswith(prefix), OWNERS.c.owner_id != own, lives)
    found = [Process(host, pid, started) for host, pid, started in connection.execute(rows).all()]
    return [process for process in found if not is_dead(process)]


def _prefix(what: str, name: str) -> str:
    return f"{what}-{sha256(name.encode()).hexdigest()[:12]}-"  # at most 20 characters, and 12 of the token: an owner id has 32


def _take_turn(connection: Connection, prefix: str, own: str) -> bool:
    """Stand there unless another does. On SQLite there is one writer at a time; elsewhere two might look at once."""
    if connection.dialect.name == "postgresql":
        number = int.from_bytes(sha256(prefix.encode()).digest()[:7])
        connection.execute(select(func.pg_advisory_xact_lock(number)))
    if _living(connection, prefix, own):
        return False
    _begin(connection, [own])
    return True


def _begin(connection: Connection, ids: Sequence[str]) -> None:
    process, expiry_us = this_process(), _expiry_us(connection)
    row = {"host": process.host, "pid": process.pid, "process_started": process.started, "expires_at_us": expiry_us}
    if ids:  # where they stand there already, the answer to an earlier try was lost
        connection.execute(insert_where_absent(connection.engine, OWNERS), [row | {"owner_id": one} for one in ids])


@contextmanager
def _renewed(ledger: Ledger, ids: Sequence[str]) -> Iterator[None]:
    """Keep these rows alive while the block runs, and remove them at its end."""
    done = threading.Event()
    renewing = threading.Thread(target=_renew, args=(ledger, ids, done), name="salon-precedence", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        done.set()
        renewing.join()
        with suppress(StoreError):  # what stopped the block is what is to be said; the row expires by itself
            ledger.alone_now(lambda connection: _end(connection, ids))


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
