"""Tokens of pictures: published examples, measured bills, and the difficult provider's own count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.mock_provider import billing as double
from tasks.judge.budget.prices import _prices, known_price
from tasks.judge.provider.openai.picture_tokens import NO_RULE_BOUND, NO_RULE_KNOWN, Patches, Tiles, picture_rule, stated_rule

TILES = Tiles(85, 170)
MINI = Patches(162)


@pytest.mark.parametrize(
    ("size_px", "detail", "n_tokens"),
    [
        pytest.param((1024, 1024), "high", 765, id="published: a square"),
        pytest.param((2048, 4096), "high", 1105, id="published: into 2048 first"),
        pytest.param((4096, 8192), "low", 85, id="published: low is the base"),
        pytest.param((128, 64), "high", 255, id="billed: nothing is scaled up"),
        pytest.param((2049, 513), "high", 85 + 8 * 170, id="billed: 512.75 px is 513"),
        pytest.param((2050, 513), "high", 765, id="billed: 512.49 px is 512"),
        pytest.param((1800, 2400), "auto", 765, id="billed: auto is high"),
        pytest.param((1024, 1366), "auto", 765, id="1024.5 px is 1024: halves to even"),
        pytest.param((512, 512), "auto", 255, id="one tile"),
        pytest.param((513, 512), "auto", 425, id="one pixel more"),
        pytest.param((1, 1), "auto", 255, id="one pixel"),
        pytest.param((1, 25_000_000), "auto", 85 + 4 * 170, id="a thread"),
    ],
)
def test_tiles(size_px: tuple[int, int], detail: str, n_tokens: int) -> None:
    assert TILES.n_tokens(*size_px, detail) == n_tokens


@pytest.mark.parametrize(
    ("rule", "size_px", "n_tokens"),
    [
        pytest.param(Patches(100), (1024, 1024), 1024, id="published: below the budget"),
        pytest.param(Patches(100), (1800, 2400), 1452, id="published: scaled to whole patches"),
        pytest.param(Patches(100), (4000, 1474), 1536, id="billed: into 2048 px first, then it fits"),
        pytest.param(MINI, (4000, 1474), 2489, id="billed as 1536 x 1.62"),
        pytest.param(MINI, (2400, 1800), 2353, id="billed at 2362 with the text"),
        pytest.param(MINI, (128, 64), 13, id="billed at 26 with the text"),
        pytest.param(Patches(246), (128, 64), 20, id="billed at 33 with the text"),
        pytest.param(Patches(100), (32, 33), 2, id="a patch may stand out"),
        pytest.param(Patches(100), (1800, 1200), 1536, id="a whole number of patches both ways"),
        pytest.param(Patches(100), (1, 1), 1, id="one pixel"),
        pytest.param(Patches(100), (1, 25_000_000), 64, id="a thread"),
    ],
)
def test_patches(rule: Patches, size_px: tuple[int, int], n_tokens: int) -> None:
    assert rule.n_tokens(*size_px) == n_tokens


sides = st.integers(1, 2048)


@given(sides, sides, st.sampled_from(sorted(double._PUBLISHED)), st.sampled_from(["auto", "high", "low"]))
def test_up_to_2048_px_the_difficult_provider_counts_the_same(width: int, height: int, model: str, detail: str) -> None:
    ours, theirs = known_price(model), double.published(model)
    assert ours is not None
    assert ours.image is not None
    assert theirs is not None
    expected = theirs.image.n_tokens(width, height, detail)
    rule = stated_rule(ours.image)
    slack = 0 if isinstance(rule, Tiles) else 0.05  # its floats miss a patch where a ratio is exact
    assert abs(rule.n_tokens(width, height, detail) - expected) <= slack * expected


rules = st.sampled_from(
    [stated_rule(price.image) for price in _prices().values() if price.image] + [NO_RULE_KNOWN, NO_RULE_BOUND]
)
any_side = st.integers(1, 30_000)


@given(rules, any_side, any_side, st.sampled_from(["auto", "high", "low"]))
def test_the_most_is_never_less_and_turning_a_picture_changes_nothing(
    rule: Tiles | Patches, width: int, height: int, detail: str
) -> None:
    n_tokens = rule.n_tokens(width, height, detail)
    assert 0 < n_tokens <= rule.n_tokens_most(width, height, detail)
    assert n_tokens == rule.n_tokens(height, width, detail)
    if isinstance(rule, Patches):
        assert n_tokens <= -(-rule.n_most * rule.tokens_per_100_patches // 100)


def test_the_most_is_what_the_published_text_says_of_small_pictures() -> None:
    assert TILES.n_tokens_most(512, 512) == 765  # scaled up to 768 px: four tiles; bills show one
    assert TILES.n_tokens_most(512, 512, "low") == 85


def test_without_a_rule_there_is_a_figure_and_a_higher_bound() -> None:
    n_tokens, most = picture_rule(None).tokens(1024, 1024)
    assert n_tokens == 37 * 37
    assert most == 74 * 74
