"""What counts as sent, and what of it may have been billed without a reply: by the outcome of a shard, and by the ledger."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge, Price
from schemas.errors import ProviderError
from schemas.statuses.rows import ReplyStatus
from tasks.judge.outcome import Outcome
from tasks.lake.reading import Lake
from tasks.ledger.ledger import Ledger
from tasks.ledger.spent import sent_since
from tests.support.asking import ask_shard
from tests.support.contexts import plan_part
from tests.support.servers.provider import Play, Provider

PRICE = Price(input_usd_per_million=10, output_usd_per_million=40)
FREE = Price(input_usd_per_million=0, output_usd_per_million=0)
PLAYS: dict[str, tuple[Play, int, Price | None]] = {
    "a page in place of a reply": (Play(body=b"<html>login</html>"), 1, PRICE),
    "reset behind the request": (Play(reset=True), 1, PRICE),
    "too late": (Play(delay_s=1.5), 1, PRICE),
    "busy": (Play(429, b"{}"), 0, PRICE),
    "broken": (Play(503, b"{}"), 0, PRICE),
    "a judge for nothing": (Play(reset=True), 0, FREE),
    "a judge without a price": (Play(reset=True), 0, None),
}


@pytest.mark.parametrize(("play", "n_in_doubt", "price"), PLAYS.values(), ids=PLAYS.keys())
def test_an_attempt_without_a_reply_may_have_been_billed_where_the_judge_may_have_worked(
    provider: Provider,
    make_samples: Callable[..., pl.DataFrame],
    store_samples: Callable[..., tuple[Lake, str]],
    rubric: Rubric,
    judge: Judge,
    tmp_path: Path,
    play: Play,
    n_in_doubt: int,
    price: Price | None,
) -> None:
    judge = judge.model_copy(update={"price": price, "parameters": {"max_tokens": 300}})
    lake, _ = store_samples(make_samples(4))
    requests, url = plan_part(make_samples(4), rubric, judge)[1], f"sqlite:///{tmp_path}/ledger.db"
    provider.script.append(play)
    outcome = ask_shard(lake, requests, rubric, judge, url, Limits(concurrency=1, deadline_s=1))
    assert (outcome.n_left, outcome.n_asked, outcome.n_in_doubt) == (0, provider.n, n_in_doubt)
    assert outcome.is_at_least == (n_in_doubt > 0 or price is None)
    assert (outcome.in_doubt_usd > 300 * 40 / 1e6) == (n_in_doubt > 0)
    with Ledger(url) as ledger:
        n_sent, n_doubted = ledger.read(partial(sent_since, keys=requests["request_key"].to_list(), since_us=0))
    assert (n_sent, n_doubted > 0) == (provider.n, play.status == 200)


def test_what_found_nobody_was_not_sent(
    make_samples: Callable[..., pl.DataFrame],
    store_samples: Callable[..., tuple[Lake, str]],
    rubric: Rubric,
    judge: Judge,
    tmp_path: Path,
) -> None:
    judge = judge.model_copy(update={"base_url": "http://127.0.0.1:9/v1", "price": PRICE})
    lake, _ = store_samples(make_samples(4))
    requests, url = plan_part(make_samples(4), rubric, judge)[1], f"sqlite:///{tmp_path}/ledger.db"
    with pytest.raises(ProviderError):
        ask_shard(lake, requests, rubric, judge, url, Limits())
    with Ledger(url) as ledger:
        assert ledger.read(partial(sent_since, keys=requests["request_key"].to_list(), since_us=0)) == (0, 0)


def test_an_attempt_that_never_ended_is_in_doubt_and_one_that_was_stopped_before_is_none(ledger: Ledger) -> None:
    async def ask() -> None:
        await ledger.begin("a" * 64, 0, "j")
        stopped = await ledger.begin("b" * 64, 0, "j")
        await ledger.fail(stopped, ReplyStatus.NOT_ASKED, "stopped before it was sent")

    asyncio.run(ask())
    assert ledger.read(partial(sent_since, keys=["a" * 64, "b" * 64], since_us=0)) == (1, 1)


def test_outcomes_add_up_what_is_in_doubt() -> None:
    both = Outcome(n_in_doubt=2, in_doubt_usd=0.5) + Outcome(n_in_doubt=1, in_doubt_usd=0.25)
    assert (both.n_in_doubt, both.in_doubt_usd, both.is_at_least) == (3, 0.75, True)
    assert Outcome(cost_usd=1.0, n_without_cost=1).is_at_least
    assert Outcome(n_without_cost=1).is_at_least  # beside others it is a part of their sum
