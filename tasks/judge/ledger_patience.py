"""How long a ledger's server that went away is waited for, and how often it is tried. What is tried is not said here."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from schemas.errors import StoreError
from tasks.judge.ledger_tables import is_passing

_Found = TypeVar("_Found")

AWAY_PATIENCE_S = 60.0
"""A server that restarts is back by then; a machine that is set up anew is not."""
LEAST_WAIT_S = 0.05
MOST_WAIT_S = 2.0


@dataclass(slots=True)
class Patience:
    """The waits between tries of one thing: twice as long each time, and another for each process, until `seconds` are over."""

    seconds: float
    n_waits: int = 0
    _since_s: float = field(default_factory=time.monotonic)

    @property
    def waited_s(self) -> float:
        """Seconds since the first try."""
        return time.monotonic() - self._since_s

    @property
    def is_over(self) -> bool:
        """Whether no further try is to be made."""
        return self.waited_s >= self.seconds

    def wait(self) -> None:
        """Sleep until the next try; the first comes at once, for a connection that was cut while the server is there."""
        if self.n_waits:
            most_s = min(MOST_WAIT_S, LEAST_WAIT_S * 2.0**self.n_waits, max(self.seconds - self.waited_s, LEAST_WAIT_S))
            time.sleep(most_s * random.uniform(0.5, 1))  # noqa: S311 - no secret
        self.n_waits += 1


def patiently(function: Callable[[], _Found], seconds: float) -> _Found:
    """What a function returns that may be called again, tried until the server is back. Raises its last error."""
    patience = Patience(seconds)
    while True:
        try:
            return function()
        except (SQLAlchemyError, StoreError) as error:
            cause = error.__cause__ if isinstance(error, StoreError) else error
            if cause is None or not is_passing(cause) or patience.is_over:
                raise
        patience.wait()
