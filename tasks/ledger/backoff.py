"""While a ledger's server is away: which errors pass, and how long it is waited for. What else they mean is connection.py's."""

import logging
import re
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from schemas.errors import StoreError
from tasks.ledger.full_disk import ROOM, root_of
from tasks.ledger.process_identity import HERE, Machine

log = logging.getLogger("salon.ledger")
logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of each pipeline that a lost connection ended: told here, once
_PASSING = ("08", "25006", "40", "57P", "53000", "53200", "53300")
"""SQLSTATEs of a connection that was lost, a standby that takes no writes until it takes over, a transaction undone for another's
sake, a server that restarts or is short of what is not room on its disk (full_disk.py)."""
_REFUSED = re.compile(
    r"authentication failed for user|no password supplied|(role|database) \".*\" (does not exist|is not permitted to log in)"
    r"|no pg_hba\.conf entry|permission denied for database"
)
"""Words of a server that will not have who asks: at connect psycopg has no SQLSTATE. In another language it is waited for."""
_N_LETTERS = 300  # of a server's words
_UNRESOLVED = ("resolve host", "translate host name")
_Found = TypeVar("_Found")

MAX_AWAY_S = 60.0
"""A server that restarts is back by then; a machine that is set up anew is not."""
UNRESOLVED_S = 5.0
"""A server whose name is not known, and that this process has not met, is mistyped more often than started anew."""
_MET: set[str | None] = set()  # the hosts of servers that answered
LEAST_WAIT_S = 0.05
MOST_WAIT_S = 2.0


def is_unresolved(error: BaseException) -> bool:
    """Whether the name of a server's host was not found."""
    said = str(getattr(error, "orig", None) or error)
    return any(words in said for words in _UNRESOLVED)


def is_refused(error: BaseException) -> bool:
    """Whether a server is there and does not let this user into this database: no waiting mends that."""
    return isinstance(error, OperationalError) and _REFUSED.search(str(error.orig)) is not None


def is_forbidden(error: BaseException) -> bool:
    """Whether the server let this user in, and not at what is there."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == "42501"


def is_passing(error: BaseException) -> bool:
    """Whether a server went away, restarts, or undid the transaction for another's sake: the same may be tried again."""
    error = root_of(error)
    if not isinstance(error, DBAPIError) or isinstance(error.orig, sqlite3.Error):
        return False
    state = getattr(error.orig, "sqlstate", None)
    is_of_connection = isinstance(error, OperationalError) and state is None and not is_refused(error)
    return error.connection_invalidated or is_of_connection or str(state).startswith(_PASSING)


@dataclass(slots=True)
class Backoff:
    """The waits between tries of one thing: twice as long each time, and another for each process, until `seconds` are over."""

    seconds: float
    machine: Machine = HERE
    n_waits: int = 0
    _since_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._since_s = self.machine.monotonic_s()

    @property
    def waited_s(self) -> float:
        """Seconds since the first try."""
        return self.machine.monotonic_s() - self._since_s

    @property
    def is_over(self) -> bool:
        """Whether no further try is to be made."""
        return self.waited_s >= self.seconds

    def wait(self, error: BaseException, *, is_for_room: bool = False) -> None:
        """Sleep until the next try; the first comes at once, for a connection that was cut while the server is there."""
        if self.n_waits == 3:  # not where a transaction was undone for another's sake
            if is_for_room:
                ROOM.begin(self.seconds)
            else:
                _ABSENCE.begin(self.seconds, error)
        if self.n_waits:
            most_s = min(
                MOST_WAIT_S, LEAST_WAIT_S * 2.0 ** min(self.n_waits, 30), max(self.seconds - self.waited_s, LEAST_WAIT_S)
            )
            self.machine.sleep(most_s * self.machine.uniform(0.5, 1))
        self.n_waits += 1

    def ended(self) -> None:
        """The server answered; also after waiting for it was given up."""
        if _ABSENCE.since_s is not None:
            _ABSENCE.end()


class _Absence:
    """Told once for all threads that wait, when it begins and when the first of them is answered again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.since_s: float | None = None

    def begin(self, seconds: float, error: BaseException) -> None:
        with self._lock:
            is_told, self.since_s = self.since_s is not None, self.since_s or time.monotonic()
        if not is_told:
            said = " ".join(str(getattr(root_of(error), "orig", error)).split())[:_N_LETTERS]
            log.warning("the ledger's server takes nothing (%s); waiting for it, at most %.0f s", said, seconds)

    def end(self) -> None:
        with self._lock:
            since_s, self.since_s = self.since_s, None
        if since_s is not None:
            log.warning("the ledger's server is back after %.0f s; the run continues", time.monotonic() - since_s)


_ABSENCE = _Absence()


def retried(function: Callable[[], _Found], seconds: float, host: str | None = None, machine: Machine = HERE) -> _Found:
    """What a function returns that may be called again, tried until the server is back. Raises its last error.

    `host`: of a server that is opened; a name that nobody knows is tried for UNRESOLVED_S alone, unless it was known before.
    """
    backoff = Backoff(seconds, machine)
    while True:
        try:
            found = function()
        except (SQLAlchemyError, StoreError) as error:
            cause = error.__cause__ if isinstance(error, StoreError) else error
            if cause is not None and host not in (None, *_MET) and is_unresolved(cause):
                backoff.seconds = min(seconds, UNRESOLVED_S)
            if cause is None or not is_passing(cause) or backoff.is_over:
                raise
            failed = cause
        else:
            _MET.add(host)
            backoff.ended()
            return found
        backoff.wait(failed)
