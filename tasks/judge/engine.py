"""The engine: a shard's requests asked with bounded concurrency, named retries, one counted re-ask and a breaker.

One request goes: claimed (work_queue.py), admitted (admission.py), attempt row durable, sent (provider/), outcome durable, then
the next. The policy table is retries.py; a shard with its pictures and its event loop is shard.py.
"""

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field

from schemas.errors import JudgeChangedError, StoreError
from schemas.statuses.rows import FINAL_REPLY_STATUSES, ParseReason, ReplyOrigin, ReplyStatus
from tasks.judge.admission import AdmissionControl
from tasks.judge.budget.budget import Failures, used_up
from tasks.judge.budget.cost import Estimate
from tasks.judge.ending import raise_outage
from tasks.judge.model_pin import ModelPin
from tasks.judge.outcome import Outcome
from tasks.judge.pictures import digests_of
from tasks.judge.poison_requests import Failing, Tried
from tasks.judge.provider.exchange import Answer, Ended, InDoubt, NotSent, RequestPicture
from tasks.judge.readings import Readings, Sight, is_reaskable
from tasks.judge.retries import Breaker
from tasks.judge.shard_requests import Shard
from tasks.judge.work_queue import LEAST_BLOCK, QueuedRequest, WorkQueue
from tasks.ledger.claims import Claims

WORKERS = 4
"""A quarter more workers than may be in flight: so many prepare the next request, or wait until a reply is durable."""


@dataclass(frozen=True, slots=True)
class Unclaimed(NotSent):
    """A request that was not sent, since its claim may be another's by now."""


async def judge_requests(shard: Shard, admission: AdmissionControl, stop: asyncio.Event | None = None) -> Outcome:
    """Ask what the ledger lacks of a shard's requests.

    `stop`, or a cancellation, ends it after the replies under way are stored. Raises ProviderError where the endpoint, the
    account, the judge's identity, its sight or its replies' form is what fails, StoreError where the ledger cannot be
    written; both after what is under way is stored.
    """
    requests = shard.requests
    if requests["request_key"].n_unique() < requests.height:
        requests = requests.unique("request_key", keep="first", maintain_order=True)
    claims, stopping = Claims(shard.ledger), asyncio.Event()
    block, first = max(LEAST_BLOCK, shard.limits.concurrency), shard.first_replies
    queue = WorkQueue(requests, claims, stopping, block=block, poll_s=shard.poll_s, first=first)
    pin = ModelPin(shard.ledger, shard.plan_id, shard.provider.judge)
    breaker = Breaker(
        shard.n_failures_to_stop,
        shard.silence_s,
        shard.limits.deadline_s,
        readings=Readings(Sight(shard.max_missing_input), first),
        presence=admission.session.presence,
        failing=Failing(requests.height, shard.n_failures_to_stop),
        clock_s=shard.ledger.machine.monotonic_s,
    )
    run = _Run(shard, queue, admission, pin, breaker)
    beside = [asyncio.create_task(claims.renew()), asyncio.create_task(run.follow(first.opened))]
    if stop is not None:
        beside.append(asyncio.create_task(run.follow(stop)))
    n_workers = min(shard.limits.concurrency + shard.limits.concurrency // WORKERS, requests.height)
    workers = [asyncio.create_task(run.work()) for _ in range(n_workers)]
    try:
        await _drain(workers, stopping)
    finally:
        for task in beside:
            task.cancel()
        failed = [error for worker in workers if worker.done() and (error := worker.exception()) is not None]
        with contextlib.suppress(*[StoreError] * bool(failed)):  # what a worker failed of is told; claims end with their process
            await claims.release()
    if failed:
        raise failed[0]
    run.outcome.n_requests, run.outcome.n_cached = requests.height, queue.n_done
    run.outcome.is_stopped = stop is not None and stop.is_set()
    run.outcome.is_spent, run.outcome.refused_usd = admission.is_spent, admission.refused_usd
    await run.raise_failure()
    return run.outcome


async def _drain(workers: list[asyncio.Task[None]], stopping: asyncio.Event) -> None:
    """Wait for the workers. Cancelled once, let them store what is under way; cancelled twice, give up."""
    if not workers:
        return
    try:
        await asyncio.wait(workers)
    except asyncio.CancelledError:
        stopping.set()
        await asyncio.wait(workers)
        raise


@dataclass(slots=True)
class _Run:
    shard: Shard
    queue: WorkQueue
    admission: AdmissionControl
    pin: ModelPin
    breaker: Breaker
    outcome: Outcome = field(default_factory=Outcome)
    failures: Failures = field(default_factory=Failures)
    changed: JudgeChangedError | None = None

    @property
    def stopping(self) -> asyncio.Event:
        """Set when nothing more is to be sent."""
        return self.queue.stopping

    async def follow(self, stop: asyncio.Event) -> None:
        """Stop when the caller says so."""
        await stop.wait()
        self.stopping.set()

    async def work(self) -> None:
        """One of the workers: takes the next request until there is none."""
        try:
            while (request := await self.queue.next()) is not None:
                await self.judge(request)
        except BaseException:
            self.stopping.set()  # the other workers store what is under way and take nothing new
            raise

    async def judge(self, request: QueuedRequest) -> None:
        """One request to its end."""
        first, reason = self.breaker.readings.first, None
        try:
            reason = await self.ask(request)
        finally:
            first.end(request.request_key, reason)

    async def ask(self, request: QueuedRequest) -> ParseReason | None:
        """The first ask, and the second where the reply to the first cannot be read. Why the last reply gives no score, if so."""
        pictures = [self.shard.pictures(digest) for digest in digests_of(request.messages_json)]
        estimate = self.admission.estimate(request, pictures)
        opened: str | None = None
        for ask_index in range(request.ask_index, 2):
            reason = None
            answer, attempt_id, n_attempts = await self.attempt(request, ask_index, pictures, estimate, opened)
            if isinstance(answer, Unclaimed):
                self.queue.put_back(request.request_key)
                return None
            if isinstance(answer, Answer):
                self.breaker.record(answer)
            if self.breaker.is_open:
                self.stopping.set()
            if isinstance(answer, NotSent) or answer.status not in FINAL_REPLY_STATUSES:
                if not self.stopping.is_set():  # else all are given back at the end
                    await self.queue.claims.give_back(request.request_key)
                break
            reply = answer.as_reply(
                request_key=request.request_key,
                ask_index=ask_index,
                judge_model=self.shard.provider.judge.id,
                origin=ReplyOrigin.ASKED,
                n_attempts=n_attempts,
                cost_usd=self.admission.costs.cost_usd(answer),
            )
            read = await self.shard.reading(request, answer, attempt_id, reply)
            is_reasked = ask_index == 0 and is_reaskable(read)
            reason = self.breaker.readings.record(read, answer.finish_reason)
            if self.breaker.readings.is_open:
                self.stopping.set()
            opened = await self.shard.finish(attempt_id, reply, is_reasked=is_reasked)
            self.outcome.count(reply)
            await self.check_identity(answer)
            if opened is None:
                break
            self.outcome.n_reasked += 1
        self.outcome.n_by_status[answer.status.value] += 1
        return reason

    async def attempt(
        self, request: QueuedRequest, ask_index: int, pictures: list[RequestPicture], estimate: Estimate, opened: str | None
    ) -> tuple[Answer | NotSent, str, int]:
        """(answer, id of the attempt it came from, attempts sent so far): tries until it is final or no retry is left."""
        n_tried: Counter[ReplyStatus] = Counter()
        n_attempts = request.n_earlier[ask_index]
        while True:
            if not await self.admission.enter(estimate, self.stopping):
                return await self.not_sent(opened), "", n_attempts
            ended: Ended = NotSent()
            try:
                attempt_id = opened or await self.shard.ledger.begin(request.request_key, ask_index, self.shard.provider.judge.id)
                opened = None
                async with self.admission.sending(self.stopping) as is_sent:
                    if is_sent is None:
                        return await self.not_sent(attempt_id), "", n_attempts
                    if not self.queue.claims.is_sure(request.n_lost):  # this process slept, and another one may be asking
                        await self.shard.ledger.fail(attempt_id, ReplyStatus.NOT_ASKED, "its claim was no longer sure")
                        return Unclaimed(), "", n_attempts
                    payload = await self.shard.payload(request, pictures, attempt_id)
                    payload.on_start = is_sent
                    self.breaker.begin()
                    ended = InDoubt()  # from here on it may be billed, even where no answer comes
                    heard = await self.shard.provider.ask(payload)
                    ended = answer = self.admission.costs.settled(heard, estimate, payload.n_bytes)
            finally:
                await self.admission.leave(estimate, ended)
            n_attempts += answer.is_sent
            self.outcome.count_attempt(answer)
            if self.shard.on_attempt is not None:
                self.shard.on_attempt(answer)
            self.breaker.record_attempt(request.request_key, answer, Tried(request.n_earlier[ask_index], request.tried_for_s))
            if self.breaker.is_open:
                self.stopping.set()
            if answer.status in FINAL_REPLY_STATUSES:
                return answer, attempt_id, n_attempts
            await self.shard.ledger.fail(attempt_id, answer.status, answer.detail)
            self.failures.count(answer)
            n_tried[answer.status] += 1
            wait_s = self.shard.wait_s(answer, n_tried)
            if wait_s is None:
                return answer, attempt_id, n_attempts
            await self.sleep(wait_s)

    async def not_sent(self, opened: str | None) -> NotSent:
        """A request that may not be sent: the run is stopped, or its money or attempts are used up, so it stops."""
        self.stopping.set()
        if opened is not None:
            await self.shard.ledger.fail(opened, ReplyStatus.NOT_ASKED, "stopped before it was sent")
        return NotSent()

    async def sleep(self, seconds: float) -> None:
        """Sleep, or less where the run is stopped."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    async def check_identity(self, answer: Answer) -> None:
        """Stop where another model answered than before."""
        changed = await self.pin.check(answer.answered_model)
        if changed is not None:
            self.changed = changed
            self.stopping.set()

    async def raise_failure(self) -> None:
        """Raise where the judge changed, attempts ran out, or the endpoint, the account or the judge's sight fails."""
        provider, attempts = self.shard.provider, self.admission.attempts
        if self.changed is not None:
            raise self.changed
        if attempts is not None and attempts.is_used_up:
            raise used_up(provider.judge, provider.endpoint, attempts.most, self.failures)
        await raise_outage(provider, self.shard.ledger, self.breaker, self.outcome, self.shard.rubric.id)
