"""Backoff in an outage: of all checkpoints of a process one asks each judge now and then, the others go on with it."""

import copy
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from flows.nights.finishing import FIRST_WAIT_S, LONGEST_PAUSE_S, LONGEST_WAIT_S
from schemas.errors import ProviderDownError, ProviderError
from schemas.statuses.rows import PROVIDER_FAILURES, ReplyStatus
from tasks.judge.outcome import Outcome
from tasks.stopping import STOP, check_not_stopped

PATIENCE_MINUTES: Final = 60.0
FEW_S: Final = 300.0
"""So long a few requests are asked again that fail where nothing else is asked: it may be they that the provider cannot bear."""
POLL_S: Final = 0.2
_IS_OUTS_OWN: Final = {each.value for each in {*PROVIDER_FAILURES, ReplyStatus.UNREACHABLE} - {ReplyStatus.TIMED_OUT}}
"""How attempts end in an outage; not a time-out, each of which may be billed."""
_TURNS: Final = defaultdict[str, threading.Lock](threading.Lock)  # by judge
_HEARD_S: Final[dict[str, float]] = {}  # when a judge's last word came to this process
_OUTAGES: Final[dict[str, "_Outage"]] = {}  # by judge, the last that a checkpoint of this process met


def heard_from(judge: str) -> None:
    """This judge answered: there is no outage, or none any more."""
    _HEARD_S[judge] = time.monotonic()


def patiently(ask: Callable[[int], Outcome], patience_s: float, judges: Collection[str], say: Callable[[str], None]) -> Outcome:
    """What `ask` returns, asked again with growing waits while one of these judges is out, `patience_s` without a word from it.

    `ask` is told how many tries of an outage were made before. Of all checkpoints of a process that meet an outage one waits and
    asks; the others go on once it has a reply. A pause that the provider asks for is waited out. One that ends with something
    left asks for it once more; where that finds nobody, for FEW_S. Raises the outage when its time is over, StoppedError, and
    what is no outage.
    """
    began_s, n_tries, few_since_s, is_again = time.monotonic(), 0, math.inf, False
    out = _Outage(patience_s, began_s)
    with out.turn:
        while True:
            asked_s = time.monotonic()
            try:
                outcome = ask(n_tries)
            except ProviderError as error:
                if patience_s <= 0 or not _is_outage(error):
                    raise
                out.meet(error)
                _OUTAGES[error.judge_id] = out
            else:
                is_over = not outcome.n_left or outcome.n_in_flight or outcome.is_spent or outcome.is_stopped
                if is_over or patience_s <= 0:
                    return outcome
                met = _met(judges, began_s)
                if met is None:
                    is_in_vain = _is_in_vain(outcome) and all(_HEARD_S.get(judge, -math.inf) < asked_s for judge in judges)
                    few_since_s = min(few_since_s, asked_s) if is_in_vain else math.inf
                    left_s = few_since_s + min(FEW_S, patience_s) - time.monotonic() if is_in_vain else 0.0
                    if is_again and left_s <= 0:
                        return outcome
                    out.leave()
                    out.wait_s = min(2 * out.wait_s, LONGEST_WAIT_S) if is_again and is_in_vain else FIRST_WAIT_S
                    _wait(min(out.wait_s, left_s) if is_in_vain else out.wait_s)  # those behind it may meet an outage meanwhile
                    is_again, n_tries = True, n_tries + is_in_vain
                    continue
                out.meet(met.failed)
            n_tries += 1
            if out.is_mine():
                left_s = out.left_s()
                pause_s = min(max(out.wait_s, min(out.failed.pause_s or 0.0, LONGEST_PAUSE_S)), left_s)
                until = datetime.now(UTC) + timedelta(seconds=left_s)
                say(f"{out.failed} Waiting for it until {until:%Y-%m-%d %H:%M} UTC; next try in {pause_s:.0f} s")
                _wait(pause_s)


@dataclass(slots=True)
class _Outage:
    """An outage as one checkpoint meets it: patience counts from its first failure, or the judge's last word since."""

    patience_s: float
    began_s: float
    failed: ProviderError = field(default_factory=ProviderError)
    failed_s: float = -math.inf
    since_s: float = -math.inf
    wait_s: float = FIRST_WAIT_S
    turn: ExitStack = field(default_factory=ExitStack)
    turn_of: str | None = None

    def meet(self, error: ProviderError) -> None:
        """One more failure: of this outage, or of another judge, or the first since a reply."""
        now_s = time.monotonic()
        is_same = error.judge_id == self.failed.judge_id and self._heard_s(error.judge_id) <= self.failed_s
        self.wait_s = min(2 * self.wait_s, LONGEST_WAIT_S) if is_same else FIRST_WAIT_S
        if not is_same:
            met = _met([error.judge_id], self.began_s)
            self.since_s = now_s if met is None else met.since_s
        self.failed, self.failed_s = error, now_s

    def is_mine(self) -> bool:
        """Wait until this one is to ask whether the outage is over (true), or another heard that it is (false)."""
        judge = self.failed.judge_id
        if self.turn_of == judge:
            return True
        self.leave()
        while self._heard_s(judge) <= self.failed_s:
            self.left_s()
            if _TURNS[judge].acquire(timeout=POLL_S):
                self.turn.callback(_TURNS[judge].release)
                self.turn_of = judge
                return True
            check_not_stopped()
        return False

    def leave(self) -> None:
        """Give the turn back, if it is this one's."""
        self.turn.close()
        self.turn_of = None

    def left_s(self) -> float:
        """Seconds of patience that are left. Raises the outage where there are none: its own, for others share the error."""
        left_s = max(self.since_s, self._heard_s(self.failed.judge_id)) + self.patience_s - time.monotonic()
        if left_s > 0:
            return left_s
        ended = copy.copy(self.failed)
        s = self.patience_s
        ended.args = (f"{self.failed} Waited {f'{s:.0f} s' if s < 600 else f'{s / 60:.0f} minutes'} without a reply.",)
        raise ended from self.failed

    @staticmethod
    def _heard_s(judge: str) -> float:
        return _HEARD_S.get(judge, -math.inf)


def _is_outage(error: ProviderError) -> bool:
    """Whether waiting may mend it: not used-up attempts, a refused key, an address at which nobody was met in this run."""
    return bool(error.judge_id) and (error.may_pass or isinstance(error, ProviderDownError))


def _met(judges: Collection[str], since_s: float) -> _Outage | None:
    """The outage of one of these judges that another checkpoint met since then, and that is not over."""
    found = [(judge, met) for judge in judges if (met := _OUTAGES.get(judge)) is not None and met.failed.judge_id == judge]
    mine = [met for judge, met in found if met.failed_s >= max(since_s, _HEARD_S.get(judge, -math.inf))]
    return max(mine, key=lambda met: met.failed_s, default=None)


def _is_in_vain(outcome: Outcome) -> bool:
    return bool(outcome.attempts_by_status) and outcome.attempts_by_status.keys() <= _IS_OUTS_OWN


def _wait(wait_s: float) -> None:
    STOP.wait(wait_s)
    check_not_stopped()
