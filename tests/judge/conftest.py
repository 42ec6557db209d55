"""A shard of twenty requests, asked of a provider that plays a script, with short waits between the attempts."""

import asyncio
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from tasks.judge.admission import open_admission
from tasks.judge.engine import judge_requests
from tasks.judge.outcome import Outcome
from tasks.judge.provider.exchange import RequestPicture
from tasks.judge.provider.openai.client import OpenAIProvider
from tasks.judge.retries import RETRIES, Retry
from tasks.judge.session import Session
from tasks.judge.shard_requests import Shard
from tasks.ledger.ledger import Ledger
from tests.support.contexts import plan_part

QUICK = {status: Retry(retry.n_attempts, 0.01, 0.02) for status, retry in RETRIES.items()}


@pytest.fixture
def requests(make_samples: Callable[..., pl.DataFrame], rubric: Rubric, judge: Judge) -> pl.DataFrame:
    return plan_part(make_samples(20), rubric, judge)[1]


@pytest.fixture
def run(ledger: Ledger, judge: Judge, rubric: Rubric) -> Callable[..., Outcome]:
    def run(requests: pl.DataFrame, judge: Judge = judge, **options: Any) -> Outcome:
        limits = options.pop("limits", Limits(concurrency=8, deadline_s=2))

        async def ask() -> Outcome:
            client = OpenAIProvider(judge, limits.concurrency, limits.deadline_s)
            stop = asyncio.Event()
            try:
                if callable(make := options.pop("stop", None)):
                    stop = make(stop)
                shard = Shard(requests, picture, ledger, client, rubric, limits, **({"retries": QUICK} | options))
                session = await Session.begin(ledger, client, limits)
                async with open_admission(ledger, session, rubric, limits, "run") as admission:
                    return await judge_requests(shard, admission, stop)
            finally:
                await client.close()

        return asyncio.run(ask())

    return run


def picture(_: str) -> RequestPicture:
    """Any picture."""
    return RequestPicture(lambda: b"png", "PNG")
