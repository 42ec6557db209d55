"""What is waited for: failures of a judge, where nothing comes for some seconds; at a stop, the replies in flight."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from flows.observability.progress import current
from flows.observability.redaction import redacted
from schemas.statuses.rows import ReplyStatus

SILENT_S = 5.0
"""So long without a reply is worth a word; also the time between two words."""
N_LETTERS = 90
"""Of the provider's own words: they stand beside a bar. The address to which there is no connection has room."""


@dataclass(slots=True)
class Waiting:
    """Hears how attempts end, and says through `say` what is waited out; "" once replies come again.

    A timer speaks, since a provider may ask for a minute in which nothing is sent; one at most, and none while all goes well.
    """

    say: Callable[[str], None]
    silent_s: float = SILENT_S
    _n: int = 0  # failures since the last reply
    _last: tuple[ReplyStatus, str] | None = None
    _heard_s: float = field(default_factory=time.monotonic)
    _is_told: bool = False
    _timer: threading.Timer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def failed(self, status: ReplyStatus, detail: str | None) -> None:
        """An attempt ended in what is tried again after a wait."""
        with self._lock:
            self._n, self._last = self._n + 1, (status, detail or "")
            if self._timer is None:
                self._look_in(self.silent_s)

    def replied(self) -> None:
        """A reply came."""
        with self._lock:
            self._heard_s, self._n = time.monotonic(), 0
            if self._is_told:
                self._fall_silent()

    def end(self) -> None:
        """Nothing is waited for any more."""
        with self._lock:
            self._n = 0  # a timer that is about to speak finds nothing to say
            self._fall_silent()

    def _look_in(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._tell)
        self._timer.daemon = True
        self._timer.start()

    def _fall_silent(self) -> None:
        self._cancel()
        if self._is_told:
            self._is_told = False
            self.say("")

    def _cancel(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _tell(self) -> None:
        with self._lock:  # also while it is said: what is taken back meanwhile would stand there for good
            self._cancel()  # where another was set since this one began
            if self._last is None or not self._n:
                return
            left_s = self._heard_s + self.silent_s - time.monotonic()
            if left_s > 0:  # a reply came since the first failure; the provider may have asked for a minute after it
                self._look_in(left_s)
                return
            self._is_told = True
            status, detail = self._last
            words = " ".join(redacted(detail).split())
            said = f' ("{words if len(words) <= N_LETTERS else words[: N_LETTERS - 1] + "…"}")' if words else ""
            what = "nothing answers" if status == ReplyStatus.UNREACHABLE else f"the provider answers {status.value}"
            self.say(f"waiting: {what}{said} ×{self._n:,}")


def say_stopping() -> None:
    """Say, at the signal, what the command that was told to stop still waits for: a reply may take minutes."""
    from tasks.judge.rate_limit.concurrency import n_in_flight

    n = n_in_flight()  # of this process: what other processes wait for is not known here
    at_most = f", {n} at most," if n else ""
    current().say(
        f"stopping: replies in flight{at_most} are still awaited and stored; nothing more is sent. Press Ctrl-C again to "
        "drop them: they are billed, and the next run asks them again"
    )
