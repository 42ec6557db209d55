"""What an attempt passes before it is sent: a place in flight, the key's limits, the run's attempts and money. Kept elsewhere."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from rubrics.model import Rubric
from schemas.benchmark import Limits
from schemas.statuses import ReplyStatus
from tasks.judge.budget.attempts import Attempts
from tasks.judge.budget.budget import Budget
from tasks.judge.budget.cost import Costs, Estimate, stated_output_bound
from tasks.judge.budget.observed_usage import load_observed, store_observed
from tasks.judge.provider.client import JudgeClient
from tasks.judge.provider.payload import Picture
from tasks.judge.provider.responses import Answer
from tasks.judge.rate_limit.concurrency import AdaptiveConcurrency
from tasks.judge.rate_limit.limiter import Allowance, allowance_id
from tasks.judge.retries import MAX_RETRY_AFTER_S, RETRIES
from tasks.judge.work_queue import Ask
from tasks.ledger.ledger import Ledger

NOT_SENT = Answer(ReplyStatus.NOT_ASKED, is_sent=False)
_COMPLETIONS = frozenset({ReplyStatus.ANSWERED, ReplyStatus.FILTERED})


@dataclass(slots=True)
class Gates:
    """The gates of one shard. Without a budget no money is refused, `is_spent` says that some was; with attempts it is alike.

    `n_output_tokens_most` is what the provider counts beside the input when a request is sent.
    """

    places: AdaptiveConcurrency
    allowance: Allowance
    costs: Costs
    n_output_tokens_most: int
    budget: Budget | None = None
    attempts: Attempts | None = None
    is_spent: bool = False

    def estimate(self, ask: Ask, picture: Picture | None) -> Estimate:
        """Tokens and USD one attempt of this request may take."""
        width_px, height_px = (picture.width_px, picture.height_px) if picture else (None, None)
        return self.costs.estimate(ask.messages_json, ask.image_sha256, width_px, height_px)

    async def enter(self, estimate: Estimate, stopping: asyncio.Event) -> bool:
        """Wait until one attempt may be sent. False where it may not: the run is stopped, its money or attempts are used up."""
        if not await self.places.acquire(stopping):
            return False
        is_in = False
        try:
            await self.allowance.wait(self._n_tokens(estimate), stopping)
            is_in = not stopping.is_set() and await self._count_attempt() and await self._reserve(estimate, stopping)
        finally:
            if not is_in:
                self.places.release(None, ReplyStatus.NOT_ASKED)
        return is_in

    async def sit_out(self, stopping: asyncio.Event) -> bool:
        """Wait out a pause that began while the attempt's row was written. False where the run was stopped meanwhile."""
        while self.allowance.paused_s > 0 and not stopping.is_set():
            await self.allowance.wait(0, stopping)
        return not stopping.is_set()

    async def leave(self, estimate: Estimate, answer: Answer | None) -> None:
        """Give the place back and settle what the attempt took; None: it was cut off, so that the worst is assumed."""
        if self.budget is not None:
            worst_usd = estimate.worst_usd or 0.0
            self.budget.settle(worst_usd, worst_usd if answer is None else self.costs.charged_usd(estimate, answer))
        if answer is None:
            self.places.release(None, ReplyStatus.NOT_ASKED)
            return
        self.places.release(answer.latency_s, answer.status)
        self.costs.observe(estimate, answer)
        if answer.limits or answer.status in _COMPLETIONS:
            self.allowance.hear(answer.limits)
        if answer.status == ReplyStatus.RATE_LIMITED:
            self.allowance.settle(self._n_tokens(estimate), 0)
            pause_s = answer.retry_after_s or RETRIES[ReplyStatus.RATE_LIMITED].wait_s(1)
            await self.allowance.pause(min(pause_s, MAX_RETRY_AFTER_S))
        elif not answer.is_sent:
            self.allowance.settle(self._n_tokens(estimate), 0)
        elif answer.n_input_tokens is not None:
            self.allowance.settle(self._n_tokens(estimate), answer.n_input_tokens + self.n_output_tokens_most)

    def _n_tokens(self, estimate: Estimate) -> int:
        return estimate.n_input_tokens + self.n_output_tokens_most

    async def _count_attempt(self) -> bool:
        return self.attempts is None or await self.attempts.take()

    async def _reserve(self, estimate: Estimate, stopping: asyncio.Event) -> bool:
        if self.budget is None or await self.budget.reserve(estimate.worst_usd or 0.0, stopping):
            return True
        self.is_spent |= not stopping.is_set()
        return False


@asynccontextmanager
async def open_gates(ledger: Ledger, client: JudgeClient, rubric: Rubric, limits: Limits, run_id: str) -> AsyncIterator[Gates]:
    """The gates of one shard while it runs; afterwards unspent money is given back and what replies showed is remembered."""
    judge = client.judge
    about = (rubric.id, rubric.version, judge.model)
    costs = Costs(judge, rubric.n_output_tokens_expected, load_observed(ledger).get(about))
    name = allowance_id(client.endpoint, client.key_digest, judge.model)
    budget = Budget(ledger, run_id, limits.max_usd) if limits.max_usd is not None else None
    attempts = Attempts(ledger, run_id, limits.attempts_per_run) if limits.attempts_per_run is not None else None
    gates = Gates(
        places=AdaptiveConcurrency(limits.concurrency),
        allowance=Allowance(ledger, name, limits.requests_per_minute, limits.tokens_per_minute),
        costs=costs,
        n_output_tokens_most=stated_output_bound(judge) or costs.n_output_tokens,
        budget=budget,
        attempts=attempts,
    )
    try:
        yield gates
    finally:
        for counter in (budget, attempts):
            if counter is not None:
                await counter.close()
        await store_observed(ledger, about, costs.seen)
