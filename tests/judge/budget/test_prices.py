"""Prices as data: each with its source and date, found by name or dated name, overridden by the benchmark file."""

from datetime import date

import pytest

from demo.mock_provider import billing as double
from schemas.benchmark import Judge, Price
from tasks.judge.budget.prices import _prices, known_price, price_of, why_no_price


@pytest.mark.parametrize("name", sorted(set(_prices()) - {"salon-demo-judge"}))
def test_each_price_says_who_said_so_and_when(name: str) -> None:
    price = _prices()[name]
    assert price.source.startswith("https://")
    assert price.as_of is not None
    assert date(2026, 1, 1) < price.as_of
    assert str(price.as_of) in price.said_by
    assert 0 < price.cached_usd <= price.input_usd < price.output_usd
    assert price.batch_share == 0.5
    assert price.image is not None
    assert price.max_output_tokens is not None
    assert price.max_output_tokens >= 4096


@pytest.mark.parametrize("model", sorted(double._PUBLISHED))
def test_the_price_data_agree_with_the_table_the_difficult_provider_keeps_for_itself(model: str) -> None:
    ours, theirs = known_price(model), double.published(model)
    assert ours is not None
    assert theirs is not None
    assert (ours.input_usd, ours.output_usd) == (theirs.input_usd, theirs.output_usd)


@pytest.mark.parametrize(
    ("name", "same_as"),
    [
        pytest.param("gpt-4.1-2025-04-14", "gpt-4.1", id="a dated name has its family's"),
        pytest.param("gpt-4.1-mini-2025-04-14", "gpt-4.1-mini", id="of its own size"),
        pytest.param("gpt-4o-2024-05-13", "gpt-4o-2024-05-13", id="unless it stands there itself"),
        pytest.param("gpt-4.1-turbo", None, id="a suffix that is no date"),
        pytest.param("my-gpt-4.1", None, id="a prefix"),
        pytest.param("gpt-4.1-2025", None, id="half a date"),
        pytest.param("GPT-4.1", None, id="names are as the provider spells them"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_names(name: str, same_as: str | None) -> None:
    assert known_price(name) is (_prices()[same_as] if same_as else None)


def test_an_old_snapshot_that_is_dearer_keeps_its_price() -> None:
    old, new = known_price("gpt-4o-2024-05-13"), known_price("gpt-4o")
    assert old is not None
    assert new is not None
    assert (old.input_usd, old.cached_usd, new.input_usd) == (5.0, 5.0, 2.5)


def test_usd_by_hand() -> None:
    price = known_price("gpt-4.1")
    assert price is not None
    online = price.usd(1_000_000, 400_000, 100_000)
    assert online == pytest.approx(0.6 * 2.00 + 0.4 * 0.50 + 0.1 * 8.00)
    assert price.usd(1_000_000, 400_000, 100_000, is_batch=True) == pytest.approx(online / 2)


def test_the_benchmark_file_overrides_figures_and_keeps_the_picture_rule() -> None:
    given = Price(input_usd_per_million=1, output_usd_per_million=3, batch_share=0.25)
    known, mine = price_of(Judge(model="gpt-4.1-mini")), price_of(Judge(model="gpt-4.1-mini", price=given))
    assert known is not None
    assert mine is not None
    assert (mine.input_usd, mine.cached_usd, mine.output_usd, mine.batch_share) == (1, 1, 3, 0.25)
    assert (mine.image, mine.max_output_tokens) == (known.image, known.max_output_tokens)
    assert mine.said_by == "the benchmark file"
    other = price_of(Judge(model="qwen-vl", price=given.model_copy(update={"cached_usd_per_million": 0.1})))
    assert other is not None
    assert (other.cached_usd, other.image, other.max_output_tokens) == (0.1, None, None)


@pytest.mark.parametrize(("tier", "is_known"), [("auto", True), ("flex", True), ("priority", False), ("fast", False)])
def test_a_dearer_service_tier_has_no_price(tier: str, is_known: bool) -> None:
    judge = Judge(model="gpt-4.1", parameters={"service_tier": tier})
    assert (price_of(judge) is not None) == is_known
    if not is_known:
        assert tier in why_no_price(judge)
        assert "[judges.price]" in why_no_price(judge)


def test_an_unknown_model_has_no_price_and_it_is_said_how_to_give_one() -> None:
    judge = Judge(model="qwen-vl")
    assert price_of(judge) is None
    assert why_no_price(judge).startswith("no price of qwen-vl is known")
    assert "[judges.price]" in why_no_price(judge)


def test_the_demos_judge_is_free() -> None:
    price = price_of(Judge(model="salon-demo-judge"))
    assert price is not None
    assert price.usd(1e6, 0, 1e6) == 0
