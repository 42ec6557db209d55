"""How long a provider that is away is waited for, by calls that may be made twice. Which calls those are: steps.py."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from schemas.statuses import ReplyStatus
from tasks.judge.batch.failures import CallFailedError
from tasks.judge.batch.rules import BatchRules
from tasks.judge.retries import MAX_RETRY_AFTER_S, RETRIES

_Found = TypeVar("_Found")
_WAITS = RETRIES[ReplyStatus.SERVER_ERROR]


@dataclass(slots=True)
class Patience:
    """A batch takes hours: a provider that answered before may be gone for minutes. One that never did is soon given up."""

    rules: BatchRules
    has_answered: bool = False

    async def of(self, call: Callable[[], Awaitable[_Found]]) -> _Found:
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
