"""What the shards of a process share while they ask: places in flight, connections, the ramp. Against a real server."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl
import pytest
from sqlalchemy import select

from flows.run.tasks import JudgeShards, ask_judge_together
from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.identities import RunIds
from schemas.records import PlannedPart
from schemas.tables.stored import REQUESTS
from tasks.judge.admission import open_admission
from tasks.judge.provider.openai.client import OpenAIProvider
from tasks.judge.rate_limit.concurrency import START
from tasks.judge.rate_limit.store import latency_seen
from tasks.judge.runtime import LOOP
from tasks.judge.session import Session
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import LEDGER_META
from tests.support.asking import ask_shard, context_of
from tests.support.contexts import plan_part

Ask = Callable[..., int]


@pytest.fixture
def ask(
    make_samples: Callable[..., pl.DataFrame],
    store_samples: Callable[..., tuple[Lake, str]],
    rubric: Rubric,
    judge: Judge,
    tmp_path: Any,
) -> Ask:
    """Asks a slice of 120 samples as a shard of its own; how many were answered."""
    samples = make_samples(120)
    lake, _ = store_samples(samples)

    def ask(rows: slice, limits: Limits, model: str = judge.model) -> int:
        asked = judge.model_copy(update={"model": model})
        requests = plan_part(samples, rubric, asked)[1][rows]
        return ask_shard(lake, requests, rubric, asked, f"sqlite:///{tmp_path}/ledger.db", limits).n_answered

    return ask


@pytest.mark.parametrize("models", [["judge"], ["judge", "another"]], ids=["one judge", "two judges"])
def test_shards_at_the_same_time_have_no_more_in_flight_than_one_may(provider: Any, ask: Ask, models: list[str]) -> None:
    provider.then = provider.play(body=provider.complete('{"score": 1}', model="m"), delay_s=0.2)
    limits = Limits(concurrency=12)
    with LOOP.held(), ThreadPoolExecutor(4) as pool:
        shards = [pool.submit(ask, slice(at, at + 20), limits, models[at // 20 % len(models)]) for at in range(0, 80, 20)]
        assert [shard.result() for shard in shards] == [20] * 4
    assert provider.peak <= 12
    assert len(provider.connections) <= 12 * len(models)


def test_what_a_paused_key_has_prepared_takes_no_place_of_another_judge(ledger: Ledger, judge: Judge, rubric: Rubric) -> None:
    """The pause begins before some have a place, and while others wait for one."""
    limits, sent = Limits(concurrency=2), list[str]()

    async def prepare(model: str, places: asyncio.Semaphore, first: float, then: float) -> None:
        client = OpenAIProvider(judge.model_copy(update={"model": model}), limits.concurrency, limits.deadline_s)
        session = await Session.begin(ledger, client, limits, places)
        async with open_admission(ledger, session, rubric, limits, "run") as admission:

            async def send() -> None:
                async with admission.sending(asyncio.Event()):
                    sent.append(model)

            await session.rate_limiter.pause(first)
            waiting = [asyncio.create_task(send()) for _ in range(4)]
            await asyncio.sleep(0.05)
            await session.rate_limiter.pause(then)
            await asyncio.gather(*waiting)
        await client.close()

    async def ask() -> None:
        places = asyncio.Semaphore(limits.concurrency)
        async with places, places:
            both = [asyncio.create_task(prepare(*one)) for one in (("a", places, 0.2, 0), ("b", places, 0, 1.5))]
            await asyncio.sleep(0.5)
        free = asyncio.create_task(prepare("c", places, 0, 0))
        await asyncio.gather(*both, free)

    asyncio.run(ask())
    assert (sorted(sent[:8]), sent[8:]) == (["a"] * 4 + ["c"] * 4, ["b"] * 4)


def test_shards_given_to_a_worker_together_overlap(
    provider: Any, make_samples: Any, store_samples: Any, rubric: Rubric, judge: Judge, tmp_path: Any
) -> None:
    """Twenty requests a shard, and forty may be in flight: one after the other they would never be."""
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.5)
    samples = make_samples(80)
    lake, _ = store_samples(samples)
    requests, staging, ids = plan_part(samples, rubric, judge)[1], stage(lake, REQUESTS), RunIds("1" * 64, "2" * 64)
    for index in range(4):
        staging.write_part(index, requests[20 * index : 20 * index + 20])
    staging.commit(ids.plan_id)
    context = context_of(lake, {rubric.id: rubric}, judge, f"sqlite:///{tmp_path}/ledger.db", ids)
    parts = [PlannedPart(index, 0, rubric.id, judge.model, 20) for index in range(4)]
    assert ask_judge_together.work(context, JudgeShards(parts, Limits(concurrency=40, shard_size=20))).n_answered == 80
    assert provider.peak > 20


def test_shards_one_after_the_other_use_the_connections_of_the_first(provider: Any, ask: Ask) -> None:
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.05)
    with LOOP.held():
        for at in range(0, 120, 40):
            ask(slice(at, at + 40), Limits(concurrency=8))
    assert len(provider.connections) <= 8


def test_the_next_run_begins_with_as_many_in_flight_as_the_last_one_ended_with(provider: Any, ask: Ask, tmp_path: Any) -> None:
    """The first run finds out what the provider bears: all that is allowed. The second has that in flight before any reply."""
    limits = Limits(concurrency=40)
    ask(slice(0, 70), limits)
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        kept = select(LEDGER_META.c.value).where(LEDGER_META.c.name.startswith("in flight "))
        assert ledger.read(lambda connection: connection.execute(kept).scalars().all()) == ["45"]
        latency_s = ledger.read(lambda connection: latency_seen(connection, "judge"))
        assert latency_s is not None
        assert latency_s > 0
    provider.peak = 0
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=1.5)
    ask(slice(70, 110), limits)
    assert START < provider.peak <= 40
