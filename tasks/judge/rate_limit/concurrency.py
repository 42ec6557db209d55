"""How many requests are in flight at once: up by a little while all goes well, down by a share when the provider is overrun.

Requests a minute are limiter.py's; this is for what no header tells: a provider that slows down, or counts connections.
"""

import asyncio
import math
import threading
from bisect import bisect_right
from collections import deque
from heapq import heapify, heappop, heappush
from statistics import median
from time import monotonic
from weakref import WeakSet

from schemas.statuses.rows import ReplyStatus

START = 16
LEAST_ROUND = 8
RAMP_STEPS = 4
"""While it ramps up, so many doublings in the time a reply takes: a doubling a round is a minute lost at hundreds in flight."""
MOST_RAMP_STEP_S = 1.0
"""Such a step takes no longer, and so long while nobody knows how long a reply takes: who objects does so at once."""
SWEEP_S = 0.1
STEP = 8
"""A good round adds one, or an eighth: at hundreds in flight, one a round would take an hour to make up for a single 429."""
DOWN_ON_429 = 0.7
DOWN_ON_LATENCY = 0.7
SLOWER = 2.0
"""A round whose median latency is so many times the usual one says that more in flight only wait for one another."""
HELPED = 0.8
"""With half as many in flight the median must fall to this share; else the provider is slow for reasons of its own."""
LEAST_USUAL_S = 0.5
"""Under this a latency is mostly our own machine's, and doubling it is nothing to react to."""
HANGS = 4.0
"""A request that is out for so many times the latency of the last replies hangs, while others come as ever: it takes no place.
A few would else hold up, for a whole deadline, a judge of whom few are asked at once."""
HANGS_UNKNOWN_S = 60.0
"""The same where too few replies have come to say."""
LEAST_SEEN = 3
TELLING = frozenset({ReplyStatus.ANSWERED, ReplyStatus.FILTERED, ReplyStatus.TIMED_OUT})
"""Outcomes whose latency says how busy the provider is; errors come back at once."""
CAME = TELLING - {ReplyStatus.TIMED_OUT}
"""Those that a request which hangs is told by: a deadline's length says nothing of how long a reply takes."""
GOOD = frozenset({ReplyStatus.ANSWERED, ReplyStatus.FILTERED, ReplyStatus.REJECTED})
"""Outcomes that say that the provider works; after any other it does not double before a whole round was good."""

_all: "WeakSet[AdaptiveConcurrency]" = WeakSet()
_all_lock = threading.Lock()


def n_in_flight() -> int:
    """Requests of this process that are in flight, or ready to be, over all judges and keys. From any thread."""
    with _all_lock:
        return sum(one.n_in_flight for one in _all)


class AdaptiveConcurrency:
    """At most `maximum` in flight, and as many as the provider bears. For the callers of one event loop.

    A round is as many replies as were allowed in flight when it began. Until the provider first objects, a good round in which
    all places were taken doubles what is allowed, and so does, where callers wait, each quarter of the time a reply takes that
    brings no bad news, or each second where that is less, or no round has said yet how long it is. From then on a good round
    adds a little; a 429 and a slow round multiply it by 0.7. Those that hang count as none in flight. (Additive increase,
    multiplicative decrease: Chiu and Jain 1989. Latency as the signal: Brakmo and Peterson 1995.)
    `start`: what an earlier session ended with, where there was one: it begins there, and adds a little from there on.
    """

    def __init__(self, maximum: int, start: int | None = None) -> None:
        self.maximum = maximum
        self.allowed = min(max(start or 0, START), maximum)
        self.n_in_flight = 0
        with _all_lock:
            _all.add(self)
        self._waiting: list[tuple[int, int, asyncio.Future[bool], asyncio.Event]] = []  # a heap: turn, number
        self._n_waited = 0
        self._sweep: asyncio.TimerHandle | None = None
        self._is_ramping = start is None
        self._is_good = True  # what came since the last doubling
        self._doubled_s = math.inf  # on the loop's clock, from the first look at those who wait
        self._latencies_s: list[float] = []
        self.latency_s: float | None = None  # the last round's median
        self._usual_s = math.inf  # the lowest median of a round
        self._slow_s, self._n_slow = math.inf, 0  # the median of the first of so many slow rounds in a row
        self._n_round, self._peak = LEAST_ROUND, 0
        self._last_s = deque[float](maxlen=LEAST_ROUND)  # latencies of the last replies, of whatever round
        self._entered_s: list[float] = []  # when each place that is taken now was, in order
        # Replies to come of requests that were in flight at the last decrease, which say nothing new, or, after the ramp, at the
        # last growth: their latency belongs to neither round.
        self._n_old = self._n_mixed = 0

    @property
    def learned(self) -> int | None:
        """How many the provider is known to bear: all that were allowed, or what it objected to; None before either."""
        return None if self._is_ramping and self.allowed < self.maximum else self.allowed

    async def acquire(self, stopping: asyncio.Event, turn: int = 0) -> bool:
        """Wait for a place, behind callers of an earlier turn. False, and no place, where `stopping` was set first."""
        if stopping.is_set():
            return False
        if self._has_place and not self._waiting:
            self._enter()
            return True
        may_go: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._n_waited += 1
        heappush(self._waiting, (turn, self._n_waited, may_go, stopping))
        self._sweep_later()
        try:
            return await may_go
        except asyncio.CancelledError:
            if may_go.done() and not may_go.cancelled() and may_go.result():
                self._leave()
            raise

    def release(self, latency_s: float | None, status: ReplyStatus) -> None:
        """Give the place back and say how it went. `latency_s` None: nothing was sent, nothing is learned."""
        self._is_good &= latency_s is None or status in GOOD
        if latency_s is not None and status in CAME:
            self._last_s.append(latency_s)
        if self._n_old > 0:
            self._n_old -= 1
        elif status == ReplyStatus.RATE_LIMITED:
            self._decrease(DOWN_ON_429)
        elif self._n_mixed > 0:
            self._n_mixed -= 1
        elif latency_s is not None and status in TELLING:
            self._count(latency_s)
        self._leave(latency_s or 0.0)

    def _count(self, latency_s: float) -> None:
        self._latencies_s.append(latency_s)
        if len(self._latencies_s) < self._n_round:
            return
        median_s = sorted(self._latencies_s)[len(self._latencies_s) // 2]
        self.latency_s = median_s
        if self._is_slow(median_s):
            # A ramp that went too far comes back at once, not by a share a round.
            too_far = SLOWER * self._usual_s / median_s if self._is_ramping else 1.0
            self._decrease(min(DOWN_ON_LATENCY, too_far))
            return
        if self._peak >= self.allowed and self._is_ramping:
            self._grow(self.allowed)
        elif self._peak >= self.allowed:
            self._grow(max(1, self.allowed // STEP))
            self._n_mixed = self.n_in_flight - 1
        self._begin_round()

    def _grow(self, more: int) -> None:
        self.allowed = min(self.maximum, self.allowed + more)
        self._is_good = True

    def _ramp(self, now_s: float) -> None:
        """Double without waiting for a round's end, where callers wait and nothing speaks against it."""
        self._doubled_s = min(self._doubled_s, now_s)
        if not self._is_ramping or now_s - self._doubled_s < min(self._usual_s / RAMP_STEPS, MOST_RAMP_STEP_S):
            return
        usual_s = SLOWER * max(self._usual_s, LEAST_USUAL_S)
        n_slow = sum(latency_s > usual_s for latency_s in self._latencies_s)
        if self._is_good and 2 * n_slow <= len(self._latencies_s):
            self._grow(self.allowed)
            self._admit()
        self._doubled_s, self._is_good = now_s, True

    def _n_hanging(self) -> int:
        """How many of those in flight hang, half of `maximum` at most. Where all replies are slow, none is yet."""
        is_known = len(self._last_s) >= LEAST_SEEN
        hangs_s = HANGS * max(median(self._last_s), LEAST_USUAL_S) if is_known else HANGS_UNKNOWN_S
        return min(bisect_right(self._entered_s, monotonic() - hangs_s), self.maximum // 2)

    @property
    def _has_place(self) -> bool:
        is_allowed = self.n_in_flight < self.allowed or self.n_in_flight - self._n_hanging() < self.allowed
        return is_allowed and self.n_in_flight < self.maximum

    def _is_slow(self, median_s: float) -> bool:
        """Whether a round was slow because of what we have in flight. Learns what is usual."""
        if self._n_slow == 2:
            self._usual_s = median_s if median_s > self._slow_s * HELPED else self._usual_s
            self._n_slow = 0
        self._usual_s = min(self._usual_s, median_s)
        if median_s <= SLOWER * max(self._usual_s, LEAST_USUAL_S):
            self._n_slow = 0
            return False
        self._slow_s = median_s if self._n_slow == 0 else self._slow_s
        self._n_slow += 1
        return True

    def _decrease(self, factor: float) -> None:
        self.allowed = max(1, int(self.allowed * factor))
        self._is_ramping = False
        self._n_old = self.n_in_flight - 1
        self._begin_round()

    def _begin_round(self) -> None:
        self._latencies_s.clear()
        self._n_round, self._peak = max(LEAST_ROUND, self.allowed), self.n_in_flight

    def _enter(self) -> None:
        self._entered_s.append(monotonic())
        self.n_in_flight += 1
        self._peak = max(self._peak, self.n_in_flight)

    def _leave(self, latency_s: float = 0.0) -> None:
        """Free the place that was taken about so long ago, of those that are the latest before."""
        del self._entered_s[max(0, bisect_right(self._entered_s, monotonic() - latency_s) - 1)]
        self.n_in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._has_place:
            _, _, may_go, stopping = heappop(self._waiting)
            if not may_go.done():
                if not stopping.is_set():
                    self._enter()
                may_go.set_result(not stopping.is_set())

    def _sweep_later(self) -> None:
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(SWEEP_S, self._look_after_waiting)

    def _look_after_waiting(self) -> None:
        """Let go of callers that were stopped, and ramp up for those that are left."""
        self._sweep = None
        for _, _, may_go, stopping in self._waiting:
            if stopping.is_set() and not may_go.done():
                may_go.set_result(False)
        self._waiting = [waiter for waiter in self._waiting if not waiter[2].done()]
        heapify(self._waiting)
        if self._waiting:
            self._ramp(asyncio.get_running_loop().time())
            self._admit()
            self._sweep_later()
