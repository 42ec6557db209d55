"""A ledger's disk that is full: which errors say so, and what is told while replies wait for room. The waiting is backoff.py's.

What was paid for and found no room in time goes to a file of the lake: unstored.py.
"""

import errno
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

log = logging.getLogger("salon.ledger")
_STATE = "53100"
_QUOTA = os.strerror(errno.EDQUOT)
"""PostgreSQL has no SQLSTATE of its own for a quota that is used up; in another language than this process's it is not seen."""
_OF_SQLITE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})
"""ENOSPC is SQLITE_FULL; a quota that is used up, or a file's largest size, is a write that failed."""


def root_of(error: BaseException) -> BaseException:
    """Why a transaction was undone, where what is raised is that a later statement found it gone: a rollback to a savepoint."""
    found, before = error, error.__context__
    while before is not None and isinstance(found, DBAPIError) and _is_of_undone(found):
        found = before if isinstance(before, DBAPIError) else found  # between two of them stands the driver's own
        before = before.__context__
    return found


def _is_of_undone(error: DBAPIError) -> bool:
    return type(error.orig).__name__ == "PipelineAborted" or "no such savepoint" in str(error)


def is_full(error: BaseException) -> bool:
    """Whether there was no room to write: the same may be tried again once somebody made some."""
    cause = root_of(error)
    if not isinstance(cause, DBAPIError):
        return False
    if isinstance(cause.orig, sqlite3.Error):
        return getattr(cause.orig, "sqlite_errorcode", None) in _OF_SQLITE
    return getattr(cause.orig, "sqlstate", None) == _STATE or _QUOTA in str(cause.orig)


class _Room:
    """Told once for all threads that wait, and for all their tries: when it begins, and when rows are written again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_paid = 0
        self._since_s: float | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While the block runs a reply that was paid for is not on the disk."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, n: int) -> None:
        with self._lock:
            self._n_paid += n

    def begin(self, seconds: float) -> None:
        """There is none, and it is waited for."""
        with self._lock:
            is_told, self._since_s = self._since_s is not None, self._since_s or time.monotonic()
            n_paid = self._n_paid
        if not is_told:
            who = f"{n_paid:,} paid {'reply waits' if n_paid == 1 else 'replies wait'} for space so far" if n_paid else "waiting"
            log.warning(
                "the ledger's disk is full: %s, at most %.0f s, and no more requests are sent; free space where the ledger "
                "is stored, or if there is space, check that its files can be written (a quota, lsattr)",
                who, seconds,
            )  # fmt: skip

    def end(self) -> None:
        """Something was written that takes room."""
        if self._since_s is None:
            return
        with self._lock:
            since_s, self._since_s = self._since_s, None
        if since_s is not None:
            log.warning("the ledger's disk has space again after %.0f s; what was waiting is stored", time.monotonic() - since_s)


ROOM = _Room()
