"""Admission control: what an attempt waits for before it is recorded, and before it is sent. All that is kept elsewhere."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache

from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.statuses.rows import ReplyStatus
from tasks.judge.budget.budget import Attempts, Budget
from tasks.judge.budget.cost import Costs, Estimate, stated_output_bound
from tasks.judge.budget.observed_usage import load_observed, store_observed
from tasks.judge.provider.exchange import NOTHING_SAID, Answer, Ended, InDoubt, NotSent, RequestPicture
from tasks.judge.retries import MAX_RETRY_AFTER_S, RETRIES
from tasks.judge.session import Session
from tasks.judge.work_queue import QueuedRequest
from tasks.ledger.ledger import Ledger

_COMPLETIONS = frozenset({ReplyStatus.ANSWERED, ReplyStatus.FILTERED})


@dataclass(slots=True)
class AdmissionControl:
    """What one shard's attempts pass. Without a budget no money is refused, `is_spent` says that some was; so with attempts.

    `n_output_tokens_most` is what the provider counts beside the input when a request is sent.
    """

    session: Session
    costs: Costs
    n_output_tokens_most: int
    budget: Budget | None = None
    attempts: Attempts | None = None
    is_spent: bool = False
    refused_usd: float = 0.0
    turn: int = field(init=False)

    def __post_init__(self) -> None:
        self.turn = self.session.next_shard()

    def estimate(self, request: QueuedRequest, pictures: Sequence[RequestPicture]) -> Estimate:
        """Tokens and USD one attempt of this request may take."""
        sizes_px = [(picture.width_px, picture.height_px) for picture in pictures]
        return self.costs.estimate(request.messages_json, request.parameters_json, sizes_px)

    async def enter(self, estimate: Estimate, stopping: asyncio.Event) -> bool:
        """Wait until one attempt may be recorded. False: the run is stopped, or its money or attempts are used up."""
        if not await self.session.concurrency.acquire(stopping, self.turn):
            return False
        is_in = False
        try:
            await self.session.rate_limiter.wait(self._n_tokens(estimate), stopping)
            if not stopping.is_set() and (self.attempts is None or await self.attempts.take(stopping)):
                is_in = await self._reserve(estimate, stopping)
                if not is_in:
                    self._uncount_attempt()
        finally:
            if not is_in:
                self.session.concurrency.release(None, ReplyStatus.NOT_ASKED)
        return is_in

    @asynccontextmanager
    async def sending(self, stopping: asyncio.Event) -> AsyncIterator[Callable[[], None] | None]:
        """A place in flight for a recorded attempt, after any pause that began meanwhile; None where the run was stopped.

        What it gives is to be called when the payload is being sent: a commit lets hundreds go on in one moment, and only so
        many payloads are made and not yet being sent.
        """
        while True:
            while self.session.rate_limiter.paused_s > 0 and not stopping.is_set():
                await self.session.rate_limiter.wait(0, stopping)
            await self.session.places.acquire()
            if self.session.rate_limiter.paused_s <= 0 or stopping.is_set():
                break
            self.session.places.release()  # a pause lasts minutes, and the places are other judges' too
        try:
            await self.session.payloads.acquire()
            end = cache(self.session.payloads.release)  # called again, it does nothing
            try:
                yield None if stopping.is_set() else end
            finally:
                end()
        finally:
            self.session.places.release()

    async def leave(self, estimate: Estimate, ended: Ended) -> None:
        """Give the place back and charge what the attempt took; of one in doubt, the worst is assumed."""
        if self.budget is not None:
            self.budget.charge(estimate.worst_usd or 0.0, self._charged_usd(estimate, ended))
        if isinstance(ended, InDoubt):
            self.session.concurrency.release(None, ReplyStatus.NOT_ASKED)
        elif isinstance(ended, NotSent):
            self.session.concurrency.release(None, ReplyStatus.NOT_ASKED)
            self.session.rate_limiter.correct(self._n_tokens(estimate), 0)
            self._uncount_attempt()
        else:
            await self._learn(estimate, ended)

    def _charged_usd(self, estimate: Estimate, ended: Ended) -> float:
        match ended:
            case NotSent():
                return 0.0
            case InDoubt():
                return estimate.worst_usd or 0.0
            case Answer():
                return self.costs.charged_usd(estimate, ended)

    async def _learn(self, estimate: Estimate, answer: Answer) -> None:
        """What an answer says of the provider, the key's limits and the tokens of a request."""
        self.session.concurrency.release(answer.latency_s, answer.status)
        self.costs.observe(estimate, answer)
        if answer.limits != NOTHING_SAID or answer.status in _COMPLETIONS:
            self.session.rate_limiter.hear(answer.limits)
        if answer.status == ReplyStatus.RATE_LIMITED:
            self.session.rate_limiter.correct(self._n_tokens(estimate), 0)
            pause_s = answer.retry_after_s or RETRIES[ReplyStatus.RATE_LIMITED].wait_s(1, self.session.rate_limiter.uniform)
            await self.session.rate_limiter.pause(min(pause_s, MAX_RETRY_AFTER_S))
        elif not answer.is_sent:
            self.session.rate_limiter.correct(self._n_tokens(estimate), 0)
            self._uncount_attempt()
        elif answer.n_input_tokens is not None:
            self.session.rate_limiter.correct(self._n_tokens(estimate), answer.n_input_tokens + self.n_output_tokens_most)

    def _n_tokens(self, estimate: Estimate) -> int:
        return estimate.n_input_tokens + self.n_output_tokens_most

    def _uncount_attempt(self) -> None:
        """It never reached the provider."""
        if self.attempts is not None:
            self.attempts.give_back()

    async def _reserve(self, estimate: Estimate, stopping: asyncio.Event) -> bool:
        if self.budget is None or await self.budget.reserve(estimate.worst_usd or 0.0, stopping):
            return True
        if not stopping.is_set():
            self.is_spent, self.refused_usd = True, max(self.refused_usd, estimate.worst_usd or 0.0)
        return False


@asynccontextmanager
async def open_admission(
    ledger: Ledger, session: Session, rubric: Rubric, limits: Limits, run_id: str, budget_id: str | None = None
) -> AsyncIterator[AdmissionControl]:
    """The admission control of one shard; afterwards unspent money is given back and what replies showed is remembered.

    `budget_id`: under which `max_usd` is counted, where others spend from it too; default: the run's own.
    """
    judge = session.provider.judge
    about = (rubric.id, rubric.version, judge.id)
    costs = Costs(judge, rubric.n_output_tokens_expected, load_observed(ledger).get(about))
    budget = Budget(ledger, budget_id or run_id, limits.max_usd) if limits.max_usd is not None else None
    attempts = Attempts(ledger, run_id, limits.attempts_per_run) if limits.attempts_per_run is not None else None
    try:
        yield AdmissionControl(
            session=session,
            costs=costs,
            n_output_tokens_most=stated_output_bound(judge) or costs.n_output_tokens,
            budget=budget,
            attempts=attempts,
        )
    finally:
        async with AsyncExitStack() as ends:  # each of them, also where one before it fails
            ends.push_async_callback(store_observed, ledger, about, costs.seen)
            for counter in (attempts, budget):
                if counter is not None:
                    ends.push_async_callback(counter.close)
