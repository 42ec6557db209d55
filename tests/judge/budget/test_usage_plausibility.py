"""A usage that no request can have is none: the reply counts as of unknown cost, and no ledger is spoilt by one for good."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge, Price
from schemas.statuses.rows import ReplyStatus
from tasks.judge.budget.cost import Costs, Estimate, is_not_believed
from tasks.judge.budget.forecast import Tally, forecast
from tasks.judge.budget.observed_usage import Observed, load_observed, store_observed
from tasks.judge.provider.exchange import Answer
from tasks.lake.pictures import SIZE_COLUMNS
from tasks.lake.reading import Lake
from tasks.ledger.ledger import Ledger
from tests.support.asking import ask_shard
from tests.support.contexts import plan_part
from tests.support.servers.provider import Play, Provider, completion

ESTIMATE = Estimate(900, 3000, 900, 3000, 20, 300, 0.002, 0.0108)
BYTES = 1_400_000
JUDGE = Judge(model="j", parameters={"max_tokens": 300}, price=Price(input_usd_per_million=10, output_usd_per_million=40))
UNBOUND = JUDGE.model_copy(update={"parameters": {}})

USAGES: dict[str, tuple[Judge, int, tuple[int | None, int | None], bool]] = {
    "as estimated": (JUDGE, BYTES, (900, 20), True),
    "none": (JUDGE, BYTES, (None, None), True),
    "a small picture of gpt-4o-mini under another name": (JUDGE, 5_000, (14_200 + 900, 20), True),
    "base64 read as text": (JUDGE, BYTES, (1_050_000, 20), True),
    "a system prompt of a gateway": (JUDGE, 5_000, (3_000 + 9_000, 20), True),
    "thoughts beside max_tokens": (JUDGE, BYTES, (900, 64_000), True),
    "thoughts without a limit": (UNBOUND, BYTES, (900, 500_000), True),
    "more than its bytes": (JUDGE, BYTES, (1_500_000, 20), False),
    "of a short text": (JUDGE, 5_000, (100_000, 20), False),
    "written beyond its end": (JUDGE, BYTES, (900, 200_000), False),
    "written without end": (UNBOUND, BYTES, (900, 10**9), False),
    "both": (JUDGE, BYTES, (10**12, 10**9), False),
}


@pytest.mark.parametrize(("judge", "n_bytes", "reported", "is_kept"), USAGES.values(), ids=USAGES.keys())
def test_what_can_be_is_believed_and_the_rest_is_of_unknown_cost(
    judge: Judge, n_bytes: int, reported: tuple[int | None, int | None], is_kept: bool
) -> None:
    costs = Costs(judge, 20)
    heard = Answer(ReplyStatus.ANSWERED, n_input_tokens=reported[0], n_output_tokens=reported[1], n_cached_tokens=reported[0])
    answer = costs.believed(heard, ESTIMATE, n_bytes)
    if is_kept:
        assert answer == heard
        return
    assert (answer.n_input_tokens, answer.n_cached_tokens, answer.n_output_tokens) == (None, None, None)
    assert is_not_believed(answer.detail)
    assert f"{reported[0]:,} input" in str(answer.detail)
    assert costs.charged_usd(ESTIMATE, answer) == ESTIMATE.worst_usd
    costs.observe(ESTIMATE, answer)
    assert costs.seen == Observed()


@pytest.mark.parametrize("finish_reason", ["stop", "content_filter"])
def test_one_absurd_reply_costs_a_run_nothing_and_is_said(
    provider: Provider,
    make_samples: Callable[..., pl.DataFrame],
    store_samples: Callable[..., tuple[Lake, str]],
    rubric: Rubric,
    judge: Judge,
    tmp_path: Path,
    finish_reason: str,
) -> None:
    judge = judge.model_copy(update={"price": JUDGE.price, "parameters": JUDGE.parameters})
    lake, _ = store_samples(make_samples(10))
    requests, url = plan_part(make_samples(10), rubric, judge)[1], f"sqlite:///{tmp_path}/ledger.db"
    usage: dict[str, Any] = {"usage": {"prompt_tokens": 10**12, "completion_tokens": 10**9}}
    provider.script.append(Play(body=completion('{"score": 3}', finish_reason=finish_reason, **usage)))
    outcome = ask_shard(lake, requests, rubric, judge, url, Limits(max_usd=5, concurrency=1))
    assert (outcome.n_left, outcome.is_spent, outcome.n_not_believed, outcome.n_without_cost) == (0, False, 1, 1)
    assert outcome.cost_usd == pytest.approx(9 * (900 * 10 + 12 * 40) / 1e6)
    with Ledger(url) as ledger:
        (seen,) = load_observed(ledger).values()
        told = ledger.replies(requests["request_key"]).filter(pl.col("n_input_tokens").is_null())["error_detail"].to_list()
    assert (seen.n_replies, seen.n_input_reported) == (9, 9 * 900)
    assert [is_not_believed(one) for one in told] == [True]


ABSURD = {
    "read": Observed(10, 9_000, 10**12, 0, 200, 3e8),
    "written": Observed(10, 9_000, 9_000, 0, 10**9, 0.3),
}


@pytest.mark.parametrize("absurd", ABSURD.values(), ids=ABSURD.keys())
def test_a_ledger_that_holds_an_absurd_sum_learns_anew(ledger: Ledger, absurd: Observed) -> None:
    about, good = ("alignment", "1", "j"), Observed(2, 1_800, 1_900, 0, 40, 0.3)
    asyncio.run(store_observed(ledger, about, absurd))
    assert load_observed(ledger) == {}
    for expected in (good, good + good):
        asyncio.run(store_observed(ledger, about, good))
        assert load_observed(ledger) == {about: expected}


def test_a_plan_learns_nothing_of_a_stored_reply_with_an_absurd_usage(
    make_samples: Callable[..., pl.DataFrame], rubric: Rubric
) -> None:
    requests = plan_part(make_samples(3), rubric, JUDGE)[1]
    keys = requests["request_key"].to_list()
    replies = pl.DataFrame({
        "request_key": keys[:2], "n_input_tokens": [10**12, 900], "n_cached_tokens": [None, 0], "n_output_tokens": [10**9, 12],
    })  # fmt: skip
    tally = Tally(JUDGE, 20)
    tally.add(requests, pl.DataFrame(schema=dict.fromkeys(SIZE_COLUMNS, pl.String)), set(keys[:2]), replies)
    assert (tally.replied.n_replies, tally.replied.n_input_reported) == (1, 900)
    assert (forecast(tally, None).online_usd or 0) < 0.1
