"""The engine: a shard's requests asked with bounded concurrency, named retries, one counted re-ask and a breaker.

One request goes: wait for a slot, attempt row durable, send, outcome durable, then the next. Sending is client.py, the
policy tables are limits.py, a shard with its pictures and its event loop is shard.py.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import polars as pl

from rubrics.model import Rubric
from rubrics.replies import parse_reply
from schemas.benchmark import Limits
from schemas.records import JudgeReply, Unreadable
from schemas.statuses import FINAL_REPLY_STATUSES, ParseReason, ReplyOrigin, ReplyStatus
from tasks.judge.answers import Answer
from tasks.judge.bodies import Picture, request_body
from tasks.judge.client import JudgeClient
from tasks.judge.ledger import Ledger
from tasks.judge.limits import ENDPOINT_FAILURES, MAX_RETRY_AFTER_S, RETRIES, Breaker, Pacer, Retry, pacer_for
from tasks.judge.outage import outage

NOT_REASKED = frozenset({ParseReason.REFUSAL, ParseReason.MISSING_INPUT, ParseReason.RULE_VIOLATION})
"""What asking again would not mend: the judge has understood and said its word, or we sent nothing to judge."""


@dataclass(slots=True)
class Outcome:
    """What became of a shard. `n_by_status` counts, by ReplyStatus, the requests that were asked in this run, once each."""

    n_requests: int = 0
    n_cached: int = 0
    n_asked: int = 0  # attempts sent, retries and re-asks included
    n_answered: int = 0
    n_reasked: int = 0
    n_by_status: Counter[str] = field(default_factory=Counter)
    is_stopped: bool = False  # it ended early because the caller said so


@dataclass(frozen=True, slots=True)
class _Ask:
    """A request still to be asked, from `ask_index` on."""

    request_key: str
    ask_index: int
    variant: str | None
    facts_json: str
    messages_json: str
    image_sha256: str | None


async def judge_requests(
    requests: pl.DataFrame,
    images: Callable[[str], Picture],
    ledger: Ledger,
    client: JudgeClient,
    *,
    limits: Limits,
    rubric: Rubric,
    on_reply: Callable[[JudgeReply], None] | None = None,
    stop: asyncio.Event | None = None,
    retries: Mapping[ReplyStatus, Retry] = RETRIES,
    n_failures_to_stop: int = Breaker().n_to_stop,
) -> Outcome:
    """Ask what the ledger lacks of these REQUESTS rows, all of one rubric and judge. Every reply told of is durable.

    `stop`, or a cancellation, ends it after the replies under way are stored. Raises ProviderError where the endpoint or the
    account is what fails, StoreError where the ledger cannot be written; both after what is under way is stored.
    """
    pacer = pacer_for(client.endpoint, client.judge.api_key_env, limits.requests_per_minute)
    run = _Run(images, ledger, client, rubric, on_reply, retries, pacer, Breaker(n_failures_to_stop))
    asks = run.select(requests)
    follower = asyncio.create_task(run.follow(stop)) if stop is not None else None
    workers = [asyncio.create_task(run.work(asks)) for _ in range(min(limits.concurrency, run.n_to_ask))]
    try:
        await _drain(workers, run.stopping)
    finally:
        if follower is not None:
            follower.cancel()
    for worker in workers:
        worker.result()
    run.outcome.is_stopped = stop is not None and stop.is_set()
    run.raise_outage()
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
    images: Callable[[str], Picture]
    ledger: Ledger
    client: JudgeClient
    rubric: Rubric
    on_reply: Callable[[JudgeReply], None] | None
    retries: Mapping[ReplyStatus, Retry]
    pacer: Pacer
    breaker: Breaker
    outcome: Outcome = field(default_factory=Outcome)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    n_to_ask: int = 0
    n_earlier: Mapping[tuple[str, int], int] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def select(self, requests: pl.DataFrame) -> Iterator[_Ask]:
        """The asks the ledger lacks, in the order of the frame, read one by one."""
        requests = requests.unique("request_key", keep="first", maintain_order=True)
        keys = requests["request_key"]
        known = self.ledger.known(keys)
        due = self.ledger.reasks_due(known)
        missing = requests.filter(pl.Series([key not in known or key in due for key in keys], dtype=pl.Boolean))
        self.n_earlier = self.ledger.n_attempts(missing["request_key"])
        self.n_to_ask = missing.height
        self.outcome.n_requests, self.outcome.n_cached = requests.height, requests.height - missing.height
        if missing.height:
            self.parameters = orjson.loads(missing["parameters_json"][0])
        columns = ["request_key", "variant", "facts_json", "messages_json", "image_sha256"]
        return (
            _Ask(key, int(key in due), variant, facts_json, messages_json, image_sha256)
            for key, variant, facts_json, messages_json, image_sha256 in missing.select(columns).iter_rows()
        )

    async def follow(self, stop: asyncio.Event) -> None:
        """Stop when the caller says so."""
        await stop.wait()
        self.stopping.set()

    async def work(self, asks: Iterator[_Ask]) -> None:
        """One of `concurrency` workers: takes the next ask until there is none."""
        try:
            for ask in asks:
                if self.stopping.is_set():
                    return
                await self.judge(ask)
        except BaseException:
            self.stopping.set()  # the other workers store what is under way and take nothing new
            raise

    async def judge(self, ask: _Ask) -> None:
        """One request to its end: the first ask, and the second where the reply to the first cannot be read."""
        picture = self.images(ask.image_sha256) if ask.image_sha256 is not None else None
        body = request_body(self.client.judge.model, self.parameters, orjson.loads(ask.messages_json), picture)
        opened: str | None = None
        for ask_index in range(ask.ask_index, 2):
            answer, attempt_id, n_attempts = await self.attempt(ask.request_key, ask_index, body, opened)
            self.breaker.record(answer.status, answer.detail)
            if self.breaker.is_open:
                self.stopping.set()
            if answer.status not in FINAL_REPLY_STATUSES:
                break
            reply = self.reply(ask, ask_index, answer, n_attempts)
            opened = await self.ledger.finish(attempt_id, reply, is_reasked=ask_index == 0 and self.is_unreadable(ask, answer))
            if self.on_reply is not None:
                self.on_reply(reply)
            if opened is None:
                break
            self.outcome.n_reasked += 1
        self.outcome.n_by_status[answer.status.value] += 1
        self.outcome.n_answered += answer.status == ReplyStatus.ANSWERED

    async def attempt(self, request_key: str, ask_index: int, body: bytes, opened: str | None) -> tuple[Answer, str, int]:
        """(answer, id of the attempt it came from, attempts recorded so far): tries until it is final or no retry is left."""
        n_tried: Counter[ReplyStatus] = Counter()
        n_attempts = self.n_earlier.get((request_key, ask_index), 0)
        while True:
            await self.wait_for_slot()
            if self.stopping.is_set():
                if opened is not None:
                    await self.ledger.fail(opened, ReplyStatus.NOT_ASKED, "stopped before it was sent")
                return Answer(ReplyStatus.NOT_ASKED), "", n_attempts
            attempt_id = opened or await self.ledger.begin(request_key, ask_index, self.client.judge.model)
            opened = None
            answer = await self.client.ask(body)
            n_attempts += 1
            self.outcome.n_asked += 1
            if answer.status in FINAL_REPLY_STATUSES:
                return answer, attempt_id, n_attempts
            await self.ledger.fail(attempt_id, answer.status, answer.detail)
            n_tried[answer.status] += 1
            wait_s = self.wait_s(answer, n_tried[answer.status])
            if wait_s is None:
                return answer, attempt_id, n_attempts
            await self.sleep(wait_s)

    def wait_s(self, answer: Answer, n_tried: int) -> float | None:
        """Seconds until the next attempt, None where there is none. What the provider asks for is the least that is waited."""
        retry = self.retries.get(answer.status)
        asked_for = answer.retry_after_s or 0.0
        wait_s = asked_for + retry.wait_s(n_tried) if retry else 0.0
        if answer.status == ReplyStatus.RATE_LIMITED:
            self.pacer.pause(min(asked_for or wait_s, MAX_RETRY_AFTER_S))
        is_over = retry is None or n_tried >= retry.n_attempts or asked_for > MAX_RETRY_AFTER_S
        return None if is_over else wait_s

    async def wait_for_slot(self) -> None:
        """Wait for the pacer's slot, and out every pause that comes in between."""
        wait_s = self.pacer.reserve_s()
        while wait_s > 0 and not self.stopping.is_set():
            await self.sleep(wait_s)
            wait_s = self.pacer.is_paused_s()
            if wait_s > 0:
                wait_s += random.uniform(0, 0.25)  # noqa: S311 - so that a pause does not end in a rush

    async def sleep(self, seconds: float) -> None:
        """Sleep, or less where the run is stopped."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    def is_unreadable(self, ask: _Ask, answer: Answer) -> bool:
        """Whether asking once more is called for."""
        if answer.status != ReplyStatus.ANSWERED:
            return False
        context = orjson.loads(ask.facts_json)
        context |= {"category": ask.variant, "finish_reason": answer.finish_reason, "refusal": answer.refusal_text}
        read = parse_reply(self.rubric, answer.text, context)
        return isinstance(read, Unreadable) and read.reason not in NOT_REASKED

    def reply(self, ask: _Ask, ask_index: int, answer: Answer, n_attempts: int) -> JudgeReply:
        """The row for the ledger."""
        return JudgeReply(
            request_key=ask.request_key,
            ask_index=ask_index,
            status=answer.status,
            judge_model=self.client.judge.model,
            origin=ReplyOrigin.ASKED,
            text=answer.text,
            finish_reason=answer.finish_reason,
            refusal_text=answer.refusal_text,
            error_detail=answer.detail,
            answered_model=answer.answered_model,
            n_input_tokens=answer.n_input_tokens,
            n_cached_tokens=answer.n_cached_tokens,
            n_output_tokens=answer.n_output_tokens,
            latency_s=answer.latency_s,
            n_attempts=n_attempts,
            logprobs_json=answer.logprobs_json,
        )

    def raise_outage(self) -> None:
        """Raise ProviderError where the breaker opened, or where no ask of the shard got past the endpoint."""
        n_ended = self.outcome.n_by_status
        is_all = bool(n_ended) and set(n_ended) <= {status.value for status in ENDPOINT_FAILURES}
        if self.breaker.last is not None and (self.breaker.is_open or (is_all and not self.outcome.is_stopped)):
            raise outage(self.client.judge, self.client.endpoint, self.breaker.last, self.breaker.detail)
