"""A shard's requests and what they are asked with: ledger, provider, limits, retries. How they are asked is engine.py."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import orjson
import polars as pl

from rubrics.model import Rubric
from schemas.benchmark.file import Gate, Limits
from schemas.errors import CorruptLakeError, StoreError
from schemas.records import JudgeReply, ParsedScore
from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.base import Provider
from tasks.judge.provider.exchange import Answer, Payload, RequestPicture
from tasks.judge.readings import FirstReplies, reading_of
from tasks.judge.retries import (
    MAX_RETRY_AFTER_S,
    RETRIES,
    SILENCE_S,
    Breaker,
    Retry,
)
from tasks.judge.work_queue import POLL_S, QueuedRequest
from tasks.ledger.ledger import Ledger
from tasks.ledger.unstored import Unstored

OnReply = Callable[[JudgeReply], None]
OnAttempt = Callable[[Answer], None]


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard's requests, all of one rubric and judge, and what they are asked with. Every reply told of is durable."""

    requests: pl.DataFrame
    pictures: Callable[[str], RequestPicture]
    ledger: Ledger
    provider: Provider
    rubric: Rubric
    limits: Limits
    plan_id: str = ""
    on_reply: OnReply | None = None
    on_attempt: OnAttempt | None = None
    retries: Mapping[ReplyStatus, Retry] = field(default_factory=lambda: RETRIES)
    n_failures_to_stop: int = Breaker().n_to_stop
    silence_s: float = SILENCE_S
    poll_s: float = POLL_S
    max_missing_input: float = Gate().max_missing_input
    first_replies: FirstReplies = field(default_factory=FirstReplies)
    unstored: Unstored | None = None

    async def payload(self, request: QueuedRequest, pictures: list[RequestPicture], attempt_id: str) -> Payload:
        """The payload, made anew for each attempt: nothing of it is kept through waits. Raises CorruptLakeError."""
        parameters, messages = _parameters(request.parameters_json), orjson.loads(request.messages_json)
        try:
            if any(picture.is_shrunk for picture in pictures):
                return await asyncio.to_thread(self.provider.payload, parameters, messages, pictures)
            return self.provider.payload(parameters, messages, pictures)
        except CorruptLakeError:
            await self.ledger.fail(attempt_id, ReplyStatus.NOT_ASKED, "its picture could not be read")
            raise

    async def reading(self, request: QueuedRequest, answer: Answer, attempt_id: str, reply: JudgeReply) -> ParsedScore | None:
        """What a final answer says. Its reply is stored also where reading it raises, or each run would buy it anew."""
        try:
            return reading_of(self.rubric, request.variant, request.facts_json, answer)
        except Exception:
            await self.finish(attempt_id, reply, is_reasked=False)
            raise

    async def finish(self, attempt_id: str, reply: JudgeReply, *, is_reasked: bool) -> str | None:
        """Store a final reply and tell of it; the id of the re-ask's first attempt. Raises StoreError where the ledger lacks it.

        The lake keeps it then: it was paid for, and whoever asks next stores it first.
        """
        try:
            opened = await self.ledger.finish(attempt_id, reply, is_reasked=is_reasked)
        except StoreError:
            machine = self.ledger.machine
            kept = partial(self.unstored.keep, is_reasked=is_reasked, machine=machine) if self.unstored else None
            if kept and await machine.in_thread(kept, attempt_id, reply) and self.on_reply is not None:
                self.on_reply(reply)
            raise
        if self.on_reply is not None:
            self.on_reply(reply)
        return opened

    def wait_s(self, answer: Answer, n_tried: Counter[ReplyStatus]) -> float | None:
        """Seconds until the next attempt, None where there is none. What the provider asks for is the least that is waited."""
        retry = self.retries.get(answer.status)
        if retry is None or n_tried.total() >= self.limits.attempts_per_request:
            return None
        asked_for = answer.retry_after_s or 0.0
        is_over = n_tried[answer.status] >= retry.n_attempts or asked_for > MAX_RETRY_AFTER_S
        return None if is_over else asked_for + retry.wait_s(n_tried[answer.status], self.ledger.machine.uniform)


@lru_cache(maxsize=64)
def _parameters(parameters_json: str) -> dict[str, Any]:
    parameters: dict[str, Any] = orjson.loads(parameters_json)
    return parameters
