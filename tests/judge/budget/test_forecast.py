"""Forecasts: sums over parts, corrected by replies, minutes by the slower limit."""

import json
from dataclasses import replace

import polars as pl
import pytest

from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge, Price
from tasks.judge.budget.cost import Costs
from tasks.judge.budget.forecast import Forecast, Tally, forecast, total_usd
from tasks.judge.budget.levers import Lever
from tasks.judge.budget.observed_usage import Observed
from tasks.judge.budget.tokens import n_text_tokens
from tasks.judge.provider.openai.client import OpenAIProvider

JUDGE = Judge(model="gpt-4.1", parameters={"max_tokens": 600})


N_REPEATS = 5
FEWER = ["repeats_1", "share_0.5"]


def _digest(index: int) -> str:
    return f"{index:064x}"


def _part(first: int, n: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Requests and samples of one part: the same question about pictures of two sizes."""
    listed = range(first, first + n)
    asked = [
        {"role": "system", "content": "Judge this."},
        {"role": "user", "content": [{"type": "text", "text": "a red circle"}, {"type": "image", "sha256": "?"}]},
    ]
    requests = pl.DataFrame(
        {
            "request_key": [f"k{index}" for index in listed],
            "messages_json": [json.dumps(asked, separators=(",", ":")).replace("?", _digest(index)) for index in listed],
            "parameters_json": ["{}" for _ in listed],
            "image_sha256": [_digest(index) for index in listed],
            "variant": ["colour" for _ in listed],
            "repeat": [index % N_REPEATS for index in listed],
        }
    )
    sizes = [1024 if index % 2 else 512 for index in listed]
    samples = pl.DataFrame({"image_sha256": [_digest(index) for index in listed], "width_px": sizes, "height_px": sizes})
    return requests, samples


def _replies(keys: list[str], n_input: int, n_output: int) -> pl.DataFrame:
    n = len(keys)
    reported = {"n_input_tokens": [n_input] * n, "n_cached_tokens": [0] * n, "n_output_tokens": [n_output] * n}
    return pl.DataFrame({"request_key": keys} | reported)


def _made(judge: Judge = JUDGE, n_known: int = 0, stored: Observed | None = None) -> Forecast:
    tally = Tally(judge, 45)
    for first in (0, 50):
        known = {f"k{index}" for index in range(n_known) if first <= index < first + 50}
        tally.add(*_part(first, 50), known)
    return forecast(tally, stored)


def test_what_a_provider_keeps_is_priced_in_the_plan_as_in_the_budget() -> None:
    keeping = {"max_tokens": 600, "cache_control": {"type": "ephemeral"}}
    plain = _made(Judge(model="claude-haiku-4-5", provider="anthropic", parameters={"max_tokens": 600}))
    kept = _made(Judge(model="claude-haiku-4-5", provider="anthropic", parameters=keeping))
    assert (kept.online_usd or 0) - (plain.online_usd or 0) == pytest.approx(kept.n_input_tokens * 0.25 / 1e6, rel=0.01)
    requests, samples = _part(0, 100)
    costs = Costs(Judge(model="claude-haiku-4-5", provider="anthropic", parameters=keeping), 45)
    sizes = [(px, px) for px in samples["width_px"]]
    reserved = [
        costs.estimate(said, "{}", [size]).worst_usd or 0 for said, size in zip(requests["messages_json"], sizes, strict=True)
    ]
    assert (kept.worst_usd, kept.worst_batch_usd) == (pytest.approx(sum(reserved)), pytest.approx(sum(reserved) / 2))


def test_what_all_requests_of_a_variant_begin_with_is_counted_up_to_the_first_picture() -> None:
    text = "Judge what you see, line by line.\n" * 40
    asked = [[{"content": f"{text}{own}", "role": "user"}] for own in ("a cat", "a car")]
    pictured = [[{"content": [{"text": text, "type": "text"}, {"sha256": "0", "type": "image"}], "role": "user"}]]
    requests = pl.DataFrame(
        {
            "request_key": list("abcd"),
            "messages_json": [json.dumps(one, separators=(",", ":")) for one in [*asked, *pictured, asked[0]]],
            "parameters_json": ["{}"] * 4,
            "image_sha256": [None, None, "0", None],
            "variant": ["long", "long", "long", "one alone"],
            "repeat": [0] * 4,
        }
    )
    tally = Tally(JUDGE, 45)
    tally.add(requests, pl.DataFrame({"image_sha256": ["0"], "width_px": [9], "height_px": [9]}), set())
    fewest, most = forecast(tally, None).n_equal_tokens
    assert fewest == pytest.approx(n_text_tokens(text), abs=8)  # "a ca" is behind it in two alone; JSON's own signs count too
    assert most == pytest.approx(n_text_tokens(f"{text}a cat"), abs=16)
    assert fewest < most
    assert OpenAIProvider.prompt_cache_tokens(JUDGE) == 1024
    assert OpenAIProvider.prompt_cache_tokens(Judge(model="m", base_url="http://127.0.0.1:1/v1")) is None


def test_parts_add_up_to_what_the_requests_cost_one_by_one() -> None:
    made, costs = _made(), Costs(JUDGE, 45)
    requests, samples = _part(0, 2)
    each = [
        costs.estimate(messages, "{}", [(size, size)])
        for messages, digest, size in zip(requests["messages_json"], requests["image_sha256"], samples["width_px"], strict=True)
    ]
    assert made.n_input_tokens == 50 * sum(one.n_input_tokens for one in each)
    assert made.online_usd == pytest.approx(50 * sum(one.expected_usd or 0 for one in each))
    assert made.worst_usd == pytest.approx(50 * sum(one.worst_usd or 0 for one in each))
    assert made.batch_usd == pytest.approx((made.online_usd or 0) / 2)
    assert (made.n_requests, made.n_cached, made.n_to_ask, made.saved_usd) == (100, 0, 100, 0)


def test_each_lever_is_priced_as_the_judge_that_has_it() -> None:
    """A plan with the lever pulled costs what the plan without it says; pictures are of 512 and of 1024 px."""
    made = _made()
    pulled = {
        Lever.DETAIL_LOW: JUDGE.model_copy(update={"detail": "low"}),
        Lever.MAX_SIDE_512: JUDGE.model_copy(update={"max_side_px": 512}),
        Lever.MAX_SIDE_1024: JUDGE.model_copy(update={"max_side_px": 1024}),
    }
    for lever, judge in pulled.items():
        assert made.lever_usd[lever] == pytest.approx(_made(judge).online_usd), lever
    assert made.lever_usd[Lever.BATCH] == made.batch_usd
    assert made.lever_usd[Lever.REPEATS_1] == pytest.approx((made.online_usd or 0) / N_REPEATS)
    assert made.lever_usd[Lever.SHARE_HALF] == pytest.approx((made.online_usd or 0) / 2)
    assert made.lever_usd[Lever.PROMPT_CACHE] == made.online_usd  # "Judge this." is no 1,024 tokens
    assert made.lever_usd[Lever.DETAIL_LOW] < made.lever_usd[Lever.MAX_SIDE_512] < made.lever_usd[Lever.MAX_SIDE_1024]
    assert made.lever_usd[Lever.MAX_SIDE_1024] == pytest.approx(made.online_usd)


@pytest.mark.parametrize(
    ("judge", "levers"),
    [
        pytest.param(
            JUDGE.model_copy(update={"detail": "low"}), ["batch", *FEWER, "prompt_cache"], id="it is at low detail already"
        ),
        pytest.param(
            JUDGE.model_copy(update={"max_side_px": 512}), ["batch", "detail_low", *FEWER, "prompt_cache"], id="it is small"
        ),
        pytest.param(
            JUDGE.model_copy(update={"mode": "batch"}),
            ["max_side_px_1024", "max_side_px_512", "detail_low", *FEWER],
            id="by batch",
        ),
        pytest.param(Judge(model="unheard-of"), [], id="no price"),
        pytest.param(
            Judge(model="mine", price=Price(input_usd_per_million=1, output_usd_per_million=1)),
            ["batch", *FEWER],
            id="no picture rule",
        ),
        pytest.param(JUDGE.model_copy(update={"recorded": True}), [], id="recorded"),
        pytest.param(
            JUDGE.model_copy(update={"share": 0.3, "detail": "low"}), ["batch", "repeats_1", "prompt_cache"], id="it has a share"
        ),
    ],
)
def test_a_lever_that_has_no_price_or_is_pulled_is_not_there(judge: Judge, levers: list[str]) -> None:
    assert [lever.value for lever in _made(judge).lever_usd] == levers


def test_the_prompt_cache_saves_whole_steps_of_what_all_begin_with() -> None:
    text = "Judge what you see, line by line.\n" * 200
    asked = [[{"content": f"{text}{own}", "role": "user"}] for own in ("a cat", "a dog", "a cow")]
    requests = pl.DataFrame(
        {
            "request_key": list("abc"),
            "messages_json": [json.dumps(one, separators=(",", ":")) for one in asked],
            "parameters_json": "{}",
            "image_sha256": pl.Series([None] * 3, dtype=pl.String),
            "variant": "long",
            "repeat": 0,
        }
    )
    tally = Tally(JUDGE, 45)
    tally.add(requests, pl.DataFrame({"image_sha256": ["0"], "width_px": [9], "height_px": [9]}), set())
    made = forecast(tally, None)
    saved = (made.online_usd or 0) - made.lever_usd[Lever.PROMPT_CACHE]
    n_equal = made.n_equal_tokens[0]
    assert n_equal > 1024
    assert saved == pytest.approx(2 * (n_equal // 128 * 128) * (2.00 - 0.50) / 1e6)  # the first request meets nothing


def test_what_is_stored_is_saved_and_not_asked() -> None:
    whole, half = _made(), _made(n_known=50)
    assert (half.n_cached, half.n_to_ask) == (50, 50)
    assert half.online_usd == pytest.approx(half.saved_usd)
    assert (half.online_usd or 0) + (half.saved_usd or 0) == pytest.approx(whole.online_usd)


def test_the_ledgers_sums_correct_a_forecast_and_else_the_plans_own_stored_replies() -> None:
    requests, samples = _part(0, 50)
    keys = requests["request_key"].to_list()[:25]
    tally = Tally(JUDGE, 45)
    tally.add(requests, samples, set(keys), _replies(keys, 1000, 90))
    by_plan = forecast(tally, None)
    assert by_plan.observed.n_replies == 25
    assert by_plan.n_output_tokens == pytest.approx(25 * (25 * 90 + 2 * 45) / 27, abs=1)
    assert by_plan.n_input_tokens > 1.3 * forecast(Tally(JUDGE, 45, 50, 25, tally.n_input), None).n_input_tokens
    by_ledger = forecast(tally, Observed(1000, 1000, 1000, 500, 10_000, 0.5))
    assert by_ledger.n_output_tokens == pytest.approx(25 * 10, rel=0.01)
    half_repeated = (by_ledger.n_input_tokens * (2 + 0.5) / 2 + by_ledger.n_output_tokens * 8) / 1e6
    assert by_ledger.online_usd == pytest.approx(half_repeated, rel=0.01)


def test_nobody_pays_for_a_judge_whose_replies_are_recorded() -> None:
    made = _made(Judge(model="gpt-4.1", recorded=True), n_known=10)
    assert (made.n_to_ask, made.online_usd, made.worst_usd) == (0, 0, 0)


def test_without_a_price_tokens_and_minutes_are_known_and_usd_are_not() -> None:
    made = _made(Judge(model="qwen-vl"))
    assert made.n_input_tokens > 0
    assert (made.online_usd, made.batch_usd, made.worst_usd, made.saved_usd) == (None, None, None, None)
    assert made.minutes(Limits(requests_per_minute=50)) == 2
    assert total_usd([1.0, made.online_usd]) is None
    assert total_usd([1.0, 2.0]) == 3


@pytest.mark.parametrize(
    ("rpm", "tpm", "minutes"),
    [
        pytest.param(None, None, None, id="none is known"),
        pytest.param(50, None, 2, id="requests"),
        pytest.param(None, 10_000, 8, id="tokens"),
        pytest.param(50, 10_000, 8, id="the slower: tokens"),
        pytest.param(5, 10_000, 20, id="the slower: requests"),
    ],
)
def test_minutes_at_the_limits(rpm: int | None, tpm: int | None, minutes: float | None) -> None:
    made, limits = (
        replace(_made(), n_limited_tokens=80_000),
        Limits(requests_per_minute=rpm, tokens_per_minute=tpm, concurrency=5),
    )
    assert made.minutes(limits) == minutes
    by_latency = replace(made, latency_s=9.0).minutes(limits)  # 100 requests, 5 at a time
    assert by_latency == max(3, minutes or 0)


def test_a_limit_of_tokens_counts_the_longest_reply_that_is_asked_for() -> None:
    stated, silent = _made(), _made(Judge(model="gpt-4.1"))
    assert stated.n_limited_tokens == stated.n_input_tokens + 100 * 600
    assert silent.n_limited_tokens == silent.n_input_tokens + 100 * 45
