"""What bounds judging by batches, and the backoff of calls that may be made twice. Which those are: state_machine.py."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from schemas.statuses import ReplyStatus
from tasks.judge.provider.base import CallFailedError
from tasks.judge.retries import MAX_RETRY_AFTER_S, RETRIES

MAX_FILE_BYTES = 200 * 10**6
MAX_LINES = 50_000
"""The largest input file of a batch. Source of both: the `openai` package 3.52, types/batch_create_params.py, input_file_id."""

AUTO_AT_LEAST = 500
"""Requests from which on `mode = "auto"` goes through the Batch API: fewer are answered online before a batch has begun."""


@dataclass(frozen=True, slots=True)
class BatchRules:
    """Bounds of a run. Tests and other providers have their own."""

    max_file_bytes: int = MAX_FILE_BYTES
    max_lines: int = MAX_LINES
    n_fruitless: int = 2  # rounds of batches in a row without one final reply, after which a run gives up
    poll_s: float = 10.0  # between two looks; grows while nothing changes
    poll_at_most_s: float = 120.0
    # A creation whose reply never came is asked for again only after so long: until then the provider may still be at it.
    settle_s: float = 90.0
    patience_s: float = 900.0  # a provider that has answered before may be away for so long
    first_patience_s: float = 30.0  # and one that never has


_Found = TypeVar("_Found")
_WAITS = RETRIES[ReplyStatus.SERVER_ERROR]


@dataclass(slots=True)
class CallBackoff:
    """A batch takes hours: a provider that answered before may be gone for minutes. One that never did is soon given up."""

    rules: BatchRules
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
                wait_s = asked_for + _WAITS.wait_s(n_tried)
                patience_s = self.rules.patience_s if self.has_answered else self.rules.first_patience_s
                is_late = time.monotonic() - started + wait_s > patience_s or asked_for > MAX_RETRY_AFTER_S
                if is_late or error.answer.status not in RETRIES:
                    raise
                await asyncio.sleep(wait_s)
            else:
                self.has_answered = True
                return found
