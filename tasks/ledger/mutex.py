"""A mutex across machines, heartbeats, a lake in use: one night at a time, shards end with their run, no run is cleared away.

All are rows among the ledger's owners that live as long as their process renews them, the same on SQLite and PostgreSQL. A
process that is gone is noticed at once on its machine, within a minute elsewhere.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from typing import TypeVar

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.engine import Connection

from schemas.errors import StoreError
from tasks.ledger.ledger import Ledger
from tasks.ledger.process_identity import RENEW_EVERY_S, Doubts, Machine, Process, expiry_us
from tasks.ledger.statements import insert_where_absent, machine_of, now_us
from tasks.ledger.tables import OWNERS
from tasks.stopping import STOP, check_not_stopped

_Found = TypeVar("_Found")
TURN_POLL_S = 0.5

_IS_OWN = OWNERS.c.owner_id == bindparam("own")
_UNDER = select(OWNERS.c.owner_id, OWNERS.c.expires_at_us, OWNERS.c.host, OWNERS.c.pid, OWNERS.c.process_started).where(
    OWNERS.c.owner_id.like(bindparam("pattern"))
)
_OF_PROCESS = select(func.max(OWNERS.c.expires_at_us)).where(
    OWNERS.c.host == bindparam("host"), OWNERS.c.pid == bindparam("pid"), OWNERS.c.process_started == bindparam("started")
)
_EXTEND = update(OWNERS).where(_IS_OWN).values(expires_at_us=bindparam("until_us"))
_END = delete(OWNERS).where(_IS_OWN)


@contextmanager
def heartbeat(ledger: Ledger, name: str) -> Iterator[None]:
    """Say under this name, while the block runs, that the process lives."""
    own = f"{_prefix('stands', name)}{ledger.machine.token_hex(6)}"
    _written(ledger, lambda connection: _begin(connection, own))
    with _renewed(ledger, own):
        yield


def has_heartbeat(ledger: Ledger, name: str) -> bool:
    """Whether a living process says so under this name."""
    return ledger.read(lambda connection: _living(connection, _prefix("stands", name))) is not None


def silent_s(ledger: Ledger, process: Process) -> float | None:
    """For how long a process that had a row here counts as gone, by the ledger's clock; below 0 it lives. None without a row."""

    def look(connection: Connection) -> float | None:
        until_us = connection.scalar(_OF_PROCESS, asdict(process))
        return None if until_us is None else (now_us(connection) - int(until_us)) / 1e6

    return ledger.read(look)


@contextmanager
def mutex(ledger: Ledger, name: str, on_wait: Callable[[Process], None] | None = None) -> Iterator[None]:
    """One process at a time in the block of this name; another one waits for its turn, and `on_wait` is told once for whom.

    Raises StoppedError where it is told to stop while it waits.
    """
    own = _Row(ledger.machine, "alone", name)
    with _turn(ledger, own, (own.prefix,), on_wait):
        yield


def is_held(ledger: Ledger, name: str) -> bool:
    """Whether a living process is in the block of this name now."""
    return ledger.read(lambda connection: _living(connection, _prefix("alone", name))) is not None


@contextmanager
def in_use(ledger: Ledger, lake: str, on_wait: Callable[[Process], None] | None = None) -> Iterator[None]:
    """While the block runs nothing is cleared out of the lake; who does so now is waited for. Raises StoppedError."""
    with _turn(ledger, _Row(ledger.machine, "uses", lake), (_prefix("clears", lake),), on_wait):
        yield


@contextmanager
def clearing(ledger: Ledger, lake: str) -> Iterator[Process | None]:
    """While the block runs no run begins to use the lake. Gives a living process that uses or clears it already: hands off."""
    own = _Row(ledger.machine, "clears", lake)
    other = _written(ledger, lambda connection: _take_turn(connection, own, (own.prefix, _prefix("uses", lake))))
    if other is not None:
        yield other
        return
    with _renewed(ledger, own.id):
        yield None


class _Row:
    """A row to be among the owners: what it says of which name, under an id of its own."""

    def __init__(self, machine: Machine, what: str, name: str) -> None:
        self.prefix, self.lock = _prefix(what, name), sha256(name.encode()).digest()
        self.id = f"{self.prefix}{machine.token_hex(6)}"
        self.doubts = Doubts(machine)


@contextmanager
def _turn(ledger: Ledger, own: _Row, in_the_way: tuple[str, ...], on_wait: Callable[[Process], None] | None) -> Iterator[None]:
    while other := _written(ledger, lambda connection: _take_turn(connection, own, in_the_way)):
        if on_wait is not None:
            on_wait(other)
            on_wait = None
        ledger.machine.wait(STOP, TURN_POLL_S)
        check_not_stopped()
    with _renewed(ledger, own.id):
        yield


def _written(ledger: Ledger, function: Callable[[Connection], _Found]) -> _Found:
    """Only of who is there: replies stay what they are, and so does the snapshot that was taken of them."""
    return ledger.alone_now(function, changes_state=False)


def _living(connection: Connection, prefix: str, own: _Row | None = None) -> Process | None:
    """A living process that has a row under this prefix, `own` left out."""
    now = now_us(connection)
    for name, expires_us, *process in connection.execute(_UNDER, {"pattern": f"{prefix}%"}).all():
        found = Process(*process)
        if own is not None and name == own.id:
            continue
        is_over = own is None and expires_us < now  # who looks once has nothing to hold a doubt against
        if not is_over and not (own.doubts if own else Doubts(machine_of(connection))).is_gone(name, found, expires_us, now):
            return found
    return None


def _prefix(what: str, name: str) -> str:
    return f"{what}-{sha256(name.encode()).hexdigest()[:12]}-"  # at most 20 characters, and 12 of the token: an owner id has 32


def _take_turn(connection: Connection, own: _Row, in_the_way: tuple[str, ...]) -> Process | None:
    """Take the row, or say who is in the way. On SQLite there is one writer at a time; elsewhere two might look at once."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(int.from_bytes(own.lock[:7]))))
    for prefix in in_the_way:
        other = _living(connection, prefix, own)
        if other is not None:
            return other
    _begin(connection, own.id)
    return None


def _begin(connection: Connection, own: str) -> None:
    """Where it stands there already, the answer to an earlier try was lost."""
    process = machine_of(connection).this_process()
    row = {"owner_id": own, "host": process.host, "pid": process.pid, "process_started": process.started}
    expires = {"expires_at_us": expiry_us(now_us(connection))}
    connection.execute(insert_where_absent(connection.engine, OWNERS), [row | expires])


@contextmanager
def _renewed(ledger: Ledger, own: str) -> Iterator[None]:
    """Keep this row alive while the block runs, and remove it at its end."""
    done = threading.Event()
    renewing = ledger.machine.start(partial(_renew, ledger, own, done), "salon-heartbeat")
    try:
        yield
    finally:
        done.set()
        renewing.join()
        with suppress(StoreError):  # what stopped the block is what is to be said; the row expires by itself
            _written(ledger, lambda connection: _end(connection, own))


def _renew(ledger: Ledger, own: str, done: threading.Event) -> None:
    while not ledger.machine.wait(done, RENEW_EVERY_S):
        with suppress(StoreError):  # the next renewal is well before the row expires
            _written(ledger, lambda connection: _extend(connection, own))


def _extend(connection: Connection, own: str) -> None:
    connection.execute(_EXTEND, {"own": own, "until_us": expiry_us(now_us(connection))})


def _end(connection: Connection, own: str) -> None:
    connection.execute(_END, {"own": own})
