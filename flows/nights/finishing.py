"""A night that failed is started again until it is done or its time is up: one loop, for the command and the deployment alike.

What ends its process (a kill, the machine) is outside of it: systemd, cron or an automation start the command again (infra/).
"""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from schemas.errors import PaidAgainError, ProviderError, SalonError, StoreError
from tasks.stopping import STOP, check_not_stopped

FIRST_WAIT_S: Final = 5.0
LONGEST_WAIT_S: Final = 600.0
LONGEST_PAUSE_S: Final = 3600.0
"""A provider that asks for a longer pause is asked again after this one: some say a day, and are back in an hour."""

Out = TypeVar("Out")
_log = logging.getLogger("salon.nightly")


def until_finished(
    attempt: Callable[[], Out],
    what_is_left: Callable[[Out], str | None],
    gives_up_at: datetime | None,
    say: Callable[[str], None],
    who_is_away: Callable[[Exception], str | None],
) -> Out:
    """What `attempt` returns, made again with growing waits while it fails in a way that may pass, or leaves something.

    A pause that a provider asks for is waited out first. The last try is made at `gives_up_at`, and what it returns or raises
    counts. Without one, or after it, there is one try. `what_is_left` says in a clause what a try that ended well could not get,
    `who_is_away` of an error that is no class of Salon's and no fault, such as a server's absence, what it is. Raises
    StoppedError.
    """
    grown_s, n_tries = FIRST_WAIT_S, 0
    while True:
        n_tries, pause_s = n_tries + 1, 0.0
        try:
            found = attempt()
            why = what_is_left(found)
            left_s = _left_s(gives_up_at)
            if why is None or left_s <= 0:
                return found
        except Exception as error:
            left_s = _left_s(gives_up_at)
            if left_s <= 0 or not _may_pass(error):
                raise
            pause_s = (error.pause_s or 0.0) if isinstance(error, ProviderError) else 0.0
            away = who_is_away(error)
            why = away or str(error)
            if not isinstance(error, SalonError) and not away:
                _log.warning("try %d ended with an internal error of Salon", n_tries, exc_info=error)
        wait_s = min(max(grown_s, min(pause_s, LONGEST_PAUSE_S)), left_s)
        say(f"try {n_tries} failed: {why}; next try in {wait_s:.0f} s, until {gives_up_at:%H:%M %Z}")
        STOP.wait(wait_s)
        check_not_stopped()
        grown_s = min(2 * grown_s, LONGEST_WAIT_S)


def wait_until_due(moment: datetime, early: timedelta, say: Callable[[str], None]) -> None:
    """Wait where a night was begun so long before it is due, since clocks go forward. Raises StoppedError."""
    if early:
        say(f"this night is due at {moment:%H:%M %Z}, after the clocks go forward; waiting until then")
    end_s = time.monotonic() + early.total_seconds()
    while (left_s := end_s - time.monotonic()) > 0:
        STOP.wait(min(left_s, 1.0))
        check_not_stopped()


def check_in_time(gives_up_at: datetime | None) -> None:
    """Raise StoreError where a night that crashed or was stopped is started again too late: it might go on so for ever."""
    if gives_up_at is None or datetime.now(UTC) > gives_up_at:
        until = "it has no [nightly] finish_by" if gives_up_at is None else f"finish_by, {gives_up_at:%H:%M %Z}, is over"
        raise StoreError(
            f"the night's process died or was stopped, and does not restart by itself: {until}. Find out what "
            "ended it (memory, the machine), then start it by hand; replies already paid for are stored"
        )


def _left_s(gives_up_at: datetime | None) -> float:
    return (gives_up_at - datetime.now(UTC)).total_seconds() if gives_up_at else 0.0


def _may_pass(error: Exception) -> bool:
    """Exit code 3, and a fault of Salon's own; not what each try would pay for, nor what a user has to mend."""
    if isinstance(error, PaidAgainError):
        return False
    return not isinstance(error, SalonError) or error.exit_code == StoreError.exit_code
