"""Which failures are tried again, how often and after what wait, and when to stop trying. No sending, no pacing here."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

import orjson

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import Unreadable
from schemas.statuses import ParseReason, ReplyStatus
from tasks.judge.provider.base import Answer, CallFailedError

_Found = TypeVar("_Found")

MAX_RETRY_AFTER_S = 300.0
"""A provider that asks for a longer pause is asked again by the next run, not by this one."""


@dataclass(frozen=True, slots=True)
class Retry:
    """At most `n_attempts`; before attempt n+1 a random wait of up to base_s · 2^(n-1), at most cap_s (full jitter)."""

    n_attempts: int
    base_s: float
    cap_s: float

    def wait_s(self, n_tried: int) -> float:
        """The wait after `n_tried` attempts. Random over the whole span: callers that failed together do not return together."""
        return random.uniform(0, min(self.cap_s, self.base_s * 2.0 ** min(n_tried - 1, 30)))  # noqa: S311 - no secret


RETRIES: Mapping[ReplyStatus, Retry] = MappingProxyType({
    ReplyStatus.RATE_LIMITED: Retry(n_attempts=10, base_s=1.0, cap_s=60.0),
    ReplyStatus.SERVER_ERROR: Retry(n_attempts=6, base_s=1.0, cap_s=30.0),
    ReplyStatus.UNREACHABLE: Retry(n_attempts=4, base_s=0.5, cap_s=10.0),
    ReplyStatus.TIMED_OUT: Retry(n_attempts=2, base_s=1.0, cap_s=10.0),  # each may have been billed
    ReplyStatus.BAD_RESPONSE: Retry(n_attempts=3, base_s=0.5, cap_s=10.0),
})  # fmt: skip
"""What is tried again within a run. Whatever is not named here is asked once."""

ENDPOINT_FAILURES = frozenset({ReplyStatus.UNREACHABLE, ReplyStatus.UNAUTHORIZED, ReplyStatus.NO_CREDIT})
"""Outcomes that say something about the endpoint or the account, not about the request."""


@dataclass(slots=True)
class CallBackoff:
    """Calls that may be made twice: a provider that answered before may be gone for `patience_s`, one that never did for less."""

    patience_s: float
    first_patience_s: float
    has_answered: bool = False

    async def until_done(self, call: Callable[[], Awaitable[_Found]]) -> _Found:
        """What the call returns, made again while the provider is away. Raises the last CallFailedError."""
        started, n_tried = time.monotonic(), 0
        while True:
            try:
                found = await call()
            except CallFailedError as error:
                n_tried += 1
                asked_for = error.answer.retry_after_s or 0.0
                wait_s = asked_for + RETRIES[ReplyStatus.SERVER_ERROR].wait_s(n_tried)
                patience_s = self.patience_s if self.has_answered else self.first_patience_s
                is_late = time.monotonic() - started + wait_s > patience_s or asked_for > MAX_RETRY_AFTER_S
                if is_late or error.answer.status not in RETRIES:
                    raise
                await asyncio.sleep(wait_s)
            else:
                self.has_answered = True
                return found


@dataclass(slots=True)
class Breaker:
    """Stops asking after `n_to_stop` asks in a row ended in an endpoint failure; one reply of any other kind resets it."""

    n_to_stop: int = 8
    n_in_a_row: int = 0
    last: ReplyStatus | None = None
    detail: str | None = None
    is_down: bool = False  # an ask ended without ever having been sent: that says nothing about the request

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

    @property
    def is_open(self) -> bool:
        """Whether nothing more should be sent."""
        return self.n_in_a_row >= self.n_to_stop


NOT_REASKED = frozenset({ParseReason.REFUSAL, ParseReason.MISSING_INPUT, ParseReason.RULE_VIOLATION})
"""What asking again would not mend: the judge has understood and said its word, or we sent nothing to judge."""


def is_reask_due(rubric: Rubric, variant: str | None, facts_json: str, answer: Answer) -> bool:
    """Whether an answer to a request of this rubric, category and facts is to be asked for once more."""
    if answer.status != ReplyStatus.ANSWERED:
        return False
    context = orjson.loads(facts_json)
    context |= {"category": variant, "finish_reason": answer.finish_reason, "refusal": answer.refusal_text}
    read = parse_reply(rubric, answer.text, context)
    return isinstance(read, Unreadable) and read.reason not in NOT_REASKED
