"""A judge's session: what all shards of a process share that ask one judge by one key. It lasts as long as the loop it is in.

Connections, the ramp and the rate limiter of a shard's own would begin anew every few hundred requests: at a real judge's latency
most of what is allowed in flight would never be used.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Self

from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.errors import StoreError
from tasks.api_keys import key_named
from tasks.judge.provider.base import Provider, provider_of
from tasks.judge.rate_limit.concurrency import AdaptiveConcurrency
from tasks.judge.rate_limit.limiter import RateLimiter
from tasks.judge.rate_limit.store import keep_seen, limiter_id, reached
from tasks.judge.rate_limit.waiters import gives_way
from tasks.judge.readings import FirstReplies
from tasks.judge.retries import Presence
from tasks.judge.runtime import LOOP
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened

N_PAYLOADS = 128
"""Payloads made and not yet being sent; those being sent hold little more than what the socket has not taken. Fewer would send
what one commit let go on bit by bit, so that the replies come apart and their commits are many: 32 cost 0.1 ms a judgement."""
SPARE = 8
"""An eighth more than may be in flight is prepared (granted, its attempt durable): a place that gets free is taken at once."""


@dataclass(slots=True)
class Session:
    """The client of a judge, what it bears, its key's limits. `places`: requests in flight, over all judges of the process."""

    provider: Provider
    concurrency: AdaptiveConcurrency
    rate_limiter: RateLimiter
    places: asyncio.Semaphore
    presence: Presence = field(default_factory=Presence)
    payloads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(N_PAYLOADS))
    _n_shards: int = 0

    @classmethod
    async def begin(cls, ledger: Ledger, provider: Provider, limits: Limits, places: asyncio.Semaphore | None = None) -> Self:
        """A session of its own, which begins with as many in flight as the key's last one ended with."""
        name = limiter_id(provider.endpoint, provider.key_digest, provider.judge.model)
        most = limits.concurrency + limits.concurrency // SPARE
        return cls(
            provider,
            AdaptiveConcurrency(most, await ledger.look(lambda connection: reached(connection, name))),
            RateLimiter(ledger, name, limits.requests_per_minute, limits.tokens_per_minute),
            places or asyncio.Semaphore(limits.concurrency),
        )

    def next_shard(self) -> int:
        """The shard's place in the order of those that began: an earlier one's requests go first, so that it ends first."""
        self._n_shards += 1
        return self._n_shards

    async def end(self, ledger: Ledger) -> None:
        """Close the connections, and keep for the next run how many were in flight, and how long replies took."""
        n, latency_s = self.concurrency.learned, self.concurrency.latency_s
        if n is not None or latency_s is not None:
            keep = partial(keep_seen, allowance_id=self.rate_limiter.id, judge_model=self.provider.judge.id)
            with suppress(StoreError):  # the next one begins small then
                await ledger.alone(partial(keep, n_in_flight=n, latency_s=latency_s), is_lasting=False)
        await self.provider.close()


async def session_of(ledger_url: str, judge: Judge, limits: Limits) -> Session:
    """The session of all shards in the process's loop that ask this judge within these limits. Raises MissingKeyError."""
    of_key = (limits.concurrency, limits.deadline_s, limits.requests_per_minute, limits.tokens_per_minute, gives_way())
    api_key = sha256(key_named(judge.api_key_env).encode()).digest()  # another one may be fetched for the next run
    key = (ledger_url, judge.model_dump_json(), api_key, *of_key)
    return await LOOP.kept(key, lambda: _open(ledger_url, judge, limits))


@asynccontextmanager
async def _open(ledger_url: str, judge: Judge, limits: Limits) -> AsyncIterator[Session]:
    places = await LOOP.kept(("places", limits.concurrency), lambda: _places(limits.concurrency))
    with opened(ledger_url) as ledger:
        async with AsyncExitStack() as closing:
            provider = provider_of(judge)(judge, limits.concurrency, limits.deadline_s)
            closing.push_async_callback(provider.close)
            session = await Session.begin(ledger, provider, limits, places)
            closing.pop_all()
        try:
            yield session
        finally:
            await session.end(ledger)


@asynccontextmanager
async def _places(n: int) -> AsyncIterator[asyncio.Semaphore]:
    yield asyncio.Semaphore(n)


async def first_replies(run_id: str, judge: Judge, rubric_id: str) -> FirstReplies:
    """What a run's first replies of this judge under this rubric say, to all of its shards in this process.

    A run has many shards under way: each of them would buy as many replies before it knew.
    """
    return await LOOP.kept(("first replies", run_id, judge.id, rubric_id), _first_replies) if run_id else FirstReplies()


@asynccontextmanager
async def _first_replies() -> AsyncIterator[FirstReplies]:
    yield FirstReplies()
