"""Which failures are tried again, how often and after what wait, and when to stop trying. No sending, no pacing here."""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from schemas.statuses.rows import PROVIDER_FAILURES, ReplyStatus
from tasks.judge.poison_requests import Failing, Tried
from tasks.judge.provider.batch_api import CallFailedError
from tasks.judge.provider.exchange import Answer
from tasks.judge.provider.failures import unnumbered
from tasks.judge.readings import Readings

_Found = TypeVar("_Found")
Uniform: TypeAlias = Callable[[float, float], float]

MAX_RETRY_AFTER_S = 300.0
"""A provider that asks for a longer pause is asked again by the next run, not by this one; after a 429, nothing more is asked."""


@dataclass(frozen=True, slots=True)
class Retry:
    """At most `n_attempts`; before attempt n+1 a random wait of up to base_s · 2^(n-1), at most cap_s (full jitter)."""

    n_attempts: int
    base_s: float
    cap_s: float

    def wait_s(self, n_tried: int, uniform: Uniform = random.uniform) -> float:
        """The wait after `n_tried` attempts. Random over the whole span: callers that failed together do not return together."""
        return uniform(0, min(self.cap_s, self.base_s * 2.0 ** min(n_tried - 1, 30)))


RETRIES: Mapping[ReplyStatus, Retry] = MappingProxyType({
    ReplyStatus.RATE_LIMITED: Retry(n_attempts=10, base_s=1.0, cap_s=60.0),
    ReplyStatus.SERVER_ERROR: Retry(n_attempts=6, base_s=1.0, cap_s=30.0),
    ReplyStatus.UNREACHABLE: Retry(n_attempts=4, base_s=0.5, cap_s=10.0),
    ReplyStatus.TIMED_OUT: Retry(n_attempts=2, base_s=1.0, cap_s=10.0),  # each may have been billed
    ReplyStatus.BAD_RESPONSE: Retry(n_attempts=3, base_s=0.5, cap_s=10.0),
})  # fmt: skip
"""What is tried again within a run. Whatever is not named here is asked once."""

SILENCE_S = 60.0
"""A provider that is started anew is back by then."""
FIRST_PATIENCE_S = 10.0
"""Where nobody was met yet the address is wrong, or nothing is started there; a provider that answered before comes back."""
N_SILENCES_LIMITED = 10
"""A provider that says 429 alone is there: a window of a minute, or of five, is waited for."""
N_REJECTED = 5
N_RUNS_TELLING = 3
"""Runs whose attempts for a request tell of the provider; what fails in a later one may be the request's (poison_requests.py)."""

ENDPOINT_FAILURES = frozenset({ReplyStatus.UNREACHABLE, ReplyStatus.UNAUTHORIZED, ReplyStatus.NO_CREDIT})
"""Outcomes that say something about the endpoint or the account, not about the request."""


@dataclass(slots=True)
class CallBackoff:
    """Calls that may be made twice: a provider that answered before may be gone for `patience_s`, one that never did for less.

    `on_wait`: told once, where a call failed twice in a row, of what, and how long is waited at most.
    """

    patience_s: float
    first_patience_s: float
    uniform: Uniform = random.uniform
    has_answered: bool = False
    on_wait: Callable[[str, float], object] = lambda _detail, _most_s: None

    async def until_done(self, call: Callable[[], Awaitable[_Found]]) -> _Found:
        """What the call returns, made again while the provider is away. Raises the last CallFailedError."""
        clock_s = asyncio.get_running_loop().time
        started, n_tried = clock_s(), 0
        while True:
            try:
                found = await call()
            except CallFailedError as error:
                n_tried += 1
                asked_for = error.answer.retry_after_s or 0.0
                wait_s = asked_for + RETRIES[ReplyStatus.SERVER_ERROR].wait_s(n_tried, self.uniform)
                patience_s = self.patience_s if self.has_answered else self.first_patience_s
                is_late = clock_s() - started + wait_s > patience_s or asked_for > MAX_RETRY_AFTER_S
                if is_late or error.answer.status not in RETRIES:
                    raise
                if n_tried == 2:
                    self.on_wait(error.answer.detail or error.answer.status.value, patience_s)
                await asyncio.sleep(wait_s)
            else:
                self.has_answered = True
                return found


@dataclass(slots=True)
class Presence:
    """Whether anybody was ever met at a judge's address, and attempts in a row that found nobody; of all shards of a process.

    `heard_s`: when a word about any request came last, of whatever shard.
    """

    is_met: bool = False
    n_unsent: int = 0
    heard_s: float = -math.inf
    _since_s: float = 0.0

    def record(self, answer: Answer, now_s: float) -> None:
        """Count one attempt."""
        self.is_met |= answer.is_sent
        self._since_s = now_s if self.n_unsent == 0 else self._since_s
        self.n_unsent = 0 if answer.is_sent else self.n_unsent + 1
        if answer.status not in PROVIDER_FAILURES | ENDPOINT_FAILURES:
            self.heard_s = now_s

    def is_absent(self, n_most: int, now_s: float) -> bool:
        """Whether so many attempts have found nobody, for so long, where nobody was ever met."""
        return not self.is_met and self.n_unsent >= n_most and now_s - self._since_s >= FIRST_PATIENCE_S


@dataclass(slots=True)
class Breaker:
    """Stops asking where asking on is of no use; one reply of any other kind closes what has not opened yet.

    Opens after `n_to_stop` asks in a row that ended in an endpoint failure, or, where nobody was met yet, after as many attempts
    as these have and FIRST_PATIENCE_S; after attempts for as many requests that failed on the provider's side, with no reply for
    `silence_s`; after a 429 that asks for a longer pause than is waited for; after N_REJECTED rejections in like words; where
    what replies say is of no use (readings.py).
    """

    n_to_stop: int = 8
    silence_s: float = SILENCE_S
    deadline_s: float = SILENCE_S
    n_in_a_row: int = 0
    last: ReplyStatus | None = None
    detail: str | None = None
    is_down: bool = False  # an ask ended without ever having been sent: that says nothing about the request
    has_heard: bool = False  # a word about a request came
    is_silent: bool = False  # the provider answers nothing, or with errors of its own alone
    pause_s: float | None = None  # what it asks for, where that is longer than is waited for
    failing: Failing = field(default_factory=Failing)
    readings: Readings = field(default_factory=Readings)
    presence: Presence = field(default_factory=Presence)
    is_absent: bool = False  # nobody was ever there
    rejected: list[str] = field(default_factory=list)  # requests rejected one after the other in the same words
    _rejected_with: str | None = None
    clock_s: Callable[[], float] = time.monotonic
    _heard_s: float = field(init=False)
    _has_begun: bool = False
    _has_answered: bool = False

    def __post_init__(self) -> None:
        self._heard_s = self.clock_s()

    def begin(self) -> None:
        """An attempt is sent: how long the first waited for its turn, behind other shards, says nothing about the provider."""
        if not self._has_begun:
            self._has_begun, self._heard_s = True, self.clock_s()

    def record(self, answer: Answer) -> None:
        """Count how an ask ended. Once open it stays so: replies that were under way say nothing new."""
        if self.is_open:
            return
        if answer.status in ENDPOINT_FAILURES:
            self.n_in_a_row += 1
            self.last, self.detail = answer.status, answer.detail
            self.is_down |= not answer.is_sent
        else:
            self.n_in_a_row = 0

    def record_attempt(self, request_key: str, answer: Answer, earlier: Tried) -> None:
        """Count one attempt for a request that earlier runs tried before."""
        self._record_presence(answer)
        if answer.status == ReplyStatus.REJECTED:
            self._record_rejection(request_key, answer)
        elif self.is_open:
            return
        elif answer.status in PROVIDER_FAILURES:
            if self.failing.add(request_key, answer.status, earlier, N_RUNS_TELLING * RETRIES[answer.status].n_attempts):
                self.last, self.detail = answer.status, answer.detail
            if answer.status == ReplyStatus.RATE_LIMITED and (answer.retry_after_s or 0.0) > MAX_RETRY_AFTER_S:
                self.pause_s, self.last, self.detail = answer.retry_after_s, answer.status, answer.detail
            self.is_silent = len(self.failing.telling) >= self.n_to_stop and self.silent_s >= self._patience_s()
            return
        elif answer.status not in ENDPOINT_FAILURES:
            self.rejected.clear()
            self._has_answered = True
        if not self.is_open and answer.status not in ENDPOINT_FAILURES:
            self.failing.clear()
            self.has_heard = True
            self._heard_s = self.clock_s()

    def _record_presence(self, answer: Answer) -> None:
        now_s, n_most = self.clock_s(), self.n_to_stop * RETRIES[ReplyStatus.UNREACHABLE].n_attempts
        self.presence.record(answer, now_s)
        if not self.is_open and self.presence.is_absent(n_most, now_s):
            self.is_absent, self.last, self.detail = True, answer.status, answer.detail

    def _record_rejection(self, request_key: str, answer: Answer) -> None:
        # Once others were answered, or where it is about pictures, words that differ by numbers are about single requests.
        is_of_one = self._has_answered or "image" in (answer.detail or "").lower()
        said = answer.detail if is_of_one else unnumbered(answer.detail)
        if self.is_open and (not self.is_rejecting or said != self._rejected_with):
            return
        if said != self._rejected_with:
            self.rejected.clear()
        self._rejected_with = said
        self.rejected.append(request_key)
        if self.is_rejecting:
            self.last, self.detail = answer.status, answer.detail

    @property
    def silent_s(self) -> float:
        """Seconds since the provider's last word about a request."""
        return self.clock_s() - self._heard_s

    @property
    def is_rejecting(self) -> bool:
        """Whether what is sent is rejected whatever is asked."""
        return len(self.rejected) >= N_REJECTED

    @property
    def is_left_alone(self) -> bool:
        """Whether the provider has failed all that is left of a shard, and more than a few, since its last word to any shard."""
        # Asked at a shard's end: a small one ends before `silence_s` is over. A provider that says 429 is there.
        n = sum(status != ReplyStatus.RATE_LIMITED for status in self.failing.telling)
        return n >= self.n_to_stop and not self.failing.is_few(n) and self.presence.heard_s <= self._heard_s

    @property
    def is_open(self) -> bool:
        """Whether nothing more should be sent."""
        return (
            self.n_in_a_row >= self.n_to_stop
            or self.is_absent
            or self.is_silent
            or self.is_rejecting
            or self.readings.is_open
            or self.pause_s is not None
        )

    def _patience_s(self) -> float:
        """A time-out may be billed: where all that is heard are time-outs, two deadlines are enough."""
        telling = self.failing.telling
        n_timed_out, n_limited = (telling.count(each) for each in (ReplyStatus.TIMED_OUT, ReplyStatus.RATE_LIMITED))
        if len(telling) - n_limited < self.n_to_stop:
            return N_SILENCES_LIMITED * self.silence_s
        return min(self.silence_s, 2 * self.deadline_s) if n_timed_out >= self.n_to_stop else self.silence_s
