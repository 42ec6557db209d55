"""Prices as data: each with its source and date, found by name or dated name, overridden by the benchmark file."""

from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from pydantic import ValidationError

from demo.mock_provider import billing as double
from schemas.benchmark.judges import Judge, Price
from tasks.judge.budget import prices
from tasks.judge.budget.prices import _prices, _toml, images_of, known_price, price_of, why_no_price
from tests.support.price_data import price_data


@pytest.mark.parametrize("name", sorted(set(_prices()) - {"salon-demo-judge"}))
def test_each_price_says_who_said_so_and_when(name: str) -> None:
    price = _prices()[name]
    assert price.source.startswith("https://")
    assert price.as_of is not None
    assert date(2026, 1, 1) < price.as_of
    assert str(price.as_of) in price.said_by
    assert 0 < price.cached_usd <= price.input_usd < price.output_usd
    assert price.batch_share in {0.5, 1.0}
    assert images_of(name) is not None
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
        pytest.param("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", id="a date without dashes"),
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
    assert mine.max_output_tokens == known.max_output_tokens
    assert mine.said_by == "the benchmark file"
    other = price_of(Judge(model="qwen-vl", price=given.model_copy(update={"cached_usd_per_million": 0.1})))
    assert other is not None
    assert (other.cached_usd, other.max_output_tokens) == (0.1, None)


@pytest.mark.parametrize(
    ("model", "name", "tier", "is_known"),
    [
        pytest.param("gpt-4.1", "service_tier", "auto", True, id="openai, as the project says"),
        pytest.param("gpt-4.1", "service_tier", "flex", True, id="openai, cheaper"),
        pytest.param("gpt-4.1", "service_tier", "priority", False, id="openai, dearer"),
        pytest.param("gpt-4.1", "service_tier", "fast", False, id="openai, a name nobody knows"),
        pytest.param("claude-haiku-4-5", "service_tier", "auto", True, id="anthropic, what is committed or the standard"),
        pytest.param("claude-haiku-4-5", "service_tier", "standard_only", True, id="anthropic, the standard"),
        pytest.param("claude-opus-4-7", "inference_geo", "global", True, id="anthropic, anywhere"),
        pytest.param("claude-opus-4-7", "inference_geo", "us", False, id="anthropic, in one country alone"),
    ],
)
def test_what_is_dearer_than_usual_has_no_price(model: str, name: str, tier: str, is_known: bool) -> None:
    judge = Judge(model=model, parameters={name: tier})
    assert (price_of(judge) is not None) == is_known
    if not is_known:
        assert f'at {name} = "{tier}" is not' in why_no_price(judge)
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


def test_the_price_data_are_what_the_library_says() -> None:
    """A new version of the library, or a model added to the list, shows here until `make prices` was run and reviewed."""
    written = (Path(prices.__file__).parent / "prices.toml").read_text(encoding="utf-8")
    assert written == price_data(_toml("prices")["gpt-4.1"]["as_of"])


def test_judges_of_four_providers_and_more_are_priced() -> None:
    listed = Counter(fields["listed"] for fields in _toml("models")["models"].values() if "listed" in fields)
    assert len(listed) >= 4
    assert listed.total() >= 12
    assert set(_toml("models")["models"]) == set(_toml("prices"))


def test_a_judge_of_ones_own_is_priced_by_the_hour_or_not_at_all() -> None:
    by_hour = price_of(Judge(model="Qwen/Qwen3-VL-8B-Instruct", price=Price(gpu_hour=2.0, judgements_per_hour=4000)))
    assert by_hour is not None
    assert by_hour.usd(1e6, 0, 1e6) == pytest.approx(0.0005)
    assert by_hour.usd(1e6, 0, 1e6, n_requests=1000) == pytest.approx(0.5)
    assert by_hour.usd(0, 0, 0, is_batch=True) == pytest.approx(0.0005), "a batch takes the machine as long"
    free = price_of(Judge(model="mine", price=Price(input_usd_per_million=0, output_usd_per_million=0)))
    assert free is not None
    assert free.usd(1e6, 0, 1e6) == 0


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"input_usd_per_million": 1},
        {"gpu_hour": 1},
        {"judgements_per_hour": 10},
        {"gpu_hour": 1, "judgements_per_hour": 0},
        {"gpu_hour": 1, "judgements_per_hour": 10, "input_usd_per_million": 1, "output_usd_per_million": 1},
        {"gpu_hour": 1, "judgements_per_hour": 10, "cached_usd_per_million": 1},
        {"gpu_hour": 1, "input_usd_per_million": 1, "output_usd_per_million": 1},
    ],
    ids=str,
)
def test_half_a_price_is_none(given: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=r"gpu_hour, judgements_per_hour|greater than 0"):
        Price(**given)  # type: ignore[arg-type]
