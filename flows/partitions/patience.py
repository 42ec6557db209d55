"""An outage is waited for: one checkpoint of a process asks now and then, the others go on with it. What it is: tasks/judge."""

import math
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Final

from flows.nights.finishing import FIRST_WAIT_S, LONGEST_PAUSE_S, LONGEST_WAIT_S
from schemas.errors import (
    AccountError,
    JudgeChangedError,
    MissingInputError,
    NotThereError,
    ProviderError,
    RejectedError,
    UnreadableError,
)
from tasks.judge.outcome import Outcome
from tasks.stopping import STOP, check_not_stopped

PATIENCE_MINUTES: Final = 60.0
POLL_S: Final = 0.2
_IS_NO_OUTAGE: Final = (
    AccountError, JudgeChangedError, MissingInputError, NotThereError, RejectedError, UnreadableError,
)  # fmt: skip
"""What waiting does not mend; also an address at which nobody was met in this run: it may be wrong."""
_HEARD_S: Final[dict[str, float]] = {}  # when a judge's last reply came to this process
_OUTAGES: Final[dict[str, tuple[float, ProviderError]]] = {}  # by judge, the last that a checkpoint of this process met, and when
_TURN: Final = threading.Lock()


def heard_from(judge: str) -> None:
    """A reply of this judge came: there is no outage, or none any more."""
    _HEARD_S[judge] = time.monotonic()


def patiently(ask: Callable[[], Outcome], patience_s: float, say: Callable[[str], None]) -> Outcome:
    """What `ask` returns, asked again with growing waits while the endpoint is out, until `patience_s` after its last reply.

    Of all checkpoints of a process that meet an outage one waits and asks; the others go on once it has a reply. A pause that
    the provider asks for is waited out. One that ends with something left asks for it once more,
    or when the outage that others met is over. Raises the outage when its time is over, StoppedError, and what is no outage.
    """
    began_s = before_s = time.monotonic()
    has_turn, is_again, wait_s = False, False, FIRST_WAIT_S / 2
    with ExitStack() as turn:
        while True:
            asked_s = time.monotonic()
            try:
                outcome = ask()
            except ProviderError as error:
                if isinstance(error, _IS_NO_OUTAGE) or patience_s <= 0:
                    raise
                failed, failed_s = error, time.monotonic()
                _OUTAGES[error.judge_id] = failed_s, error
            else:
                is_over = not outcome.n_left or outcome.n_in_flight or outcome.is_spent or outcome.is_stopped
                met = max(_OUTAGES.values(), key=lambda one: one[0], default=None)
                is_amid = met is not None and met[0] >= asked_s
                if is_over or patience_s <= 0 or (is_again and not is_amid):
                    return outcome
                is_again = True
                if met is None or not is_amid:  # those behind it may be about to meet one
                    STOP.wait(FIRST_WAIT_S)
                    check_not_stopped()
                    continue
                failed_s, failed = met
            if not has_turn:
                has_turn = _turn_comes(failed, failed_s, began_s, patience_s)
                if not has_turn:
                    continue
                turn.callback(_TURN.release)
            wait_s = FIRST_WAIT_S if _heard_s(failed, began_s) > before_s else min(2 * wait_s, LONGEST_WAIT_S)
            before_s = failed_s
            left_s = _left_s(failed, began_s, patience_s)
            now_s = min(max(wait_s, min(failed.pause_s or 0.0, LONGEST_PAUSE_S)), left_s)
            until = datetime.now(UTC) + timedelta(seconds=left_s)
            say(f"{failed} It is waited for, until {until:%Y-%m-%d %H:%M} UTC; asked again in {now_s:.0f} s")
            STOP.wait(now_s)
            check_not_stopped()


def _turn_comes(failed: ProviderError, failed_s: float, began_s: float, patience_s: float) -> bool:
    """Wait until this one is to ask whether the outage is over (true), or another heard that it is (false)."""
    while _heard_s(failed, -math.inf) <= failed_s:
        _left_s(failed, began_s, patience_s)
        if _TURN.acquire(timeout=POLL_S):
            return True
        check_not_stopped()
    return False


def _heard_s(failed: ProviderError, began_s: float) -> float:
    return max(began_s, _HEARD_S.get(failed.judge_id, began_s))


def _left_s(failed: ProviderError, began_s: float, patience_s: float) -> float:
    """Seconds of patience that are left. Raises the outage where there are none."""
    left_s = _heard_s(failed, began_s) + patience_s - time.monotonic()
    if left_s <= 0:
        failed.args = (f"{failed} It was waited for, {patience_s / 60:g} minutes from its last reply on.",)
        raise failed
    return left_s
