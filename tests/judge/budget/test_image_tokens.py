"""Tokens of pictures: published examples, measured bills, and the difficult provider's own count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.mock_provider import billing as double
from tasks.judge.budget.picture_rules import NO_RULE_BOUND, NO_RULE_KNOWN, Patches, Rule, Tiles, picture_rule, stated_rule
from tasks.judge.budget.prices import _toml, images_of

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


@pytest.mark.parametrize(
    ("model", "size_px", "n_tokens"),
    [
        pytest.param("claude-sonnet-4-5", (200, 200), 64, id="claude, 8 x 8 blocks of 28 px"),
        pytest.param("claude-sonnet-4-5-20250929", (1000, 1000), 1296, id="claude, 36 x 36, a dated name"),
        pytest.param("claude-sonnet-4-5", (1920, 1080), 1560, id="claude, billed 1558 to 1561 for any large picture"),
        pytest.param("claude-opus-4-7", (1920, 1080), 2691, id="claude with more pixels, 69 x 39"),
        pytest.param("claude-opus-4-7", (8000, 8000), 4761, id="claude with more pixels, the most: 69 x 69"),
        pytest.param("gemini-2.5-pro", (384, 384), 258, id="gemini 2, published: a small one is one crop"),
        pytest.param("gemini-2.5-pro", (960, 540), 6 * 258, id="gemini 2, published: crops of 360 px"),
        pytest.param("gemini-2.5-pro", (1024, 1024), 4 * 258, id="gemini 2, a square"),
        pytest.param("gemini-2.5-pro", (3072, 3072), 16 * 258, id="gemini 2, crops of 768 px at most"),
        pytest.param("gemini-3.5-flash", (64, 64), 1120, id="gemini 3, whatever the size"),
        pytest.param("Qwen/Qwen2.5-VL-7B-Instruct", (1024, 1024), 1369 + 2, id="qwen 2.5, published: 37 x 37"),
        pytest.param("Qwen/Qwen2.5-VL-7B-Instruct", (1008, 1008), 1296 + 2, id="qwen 2.5, published: 36 x 36"),
        pytest.param("Qwen/Qwen3-VL-8B-Instruct", (1024, 1024), 1024 + 2, id="qwen 3: 32 x 32"),
        pytest.param("qwen/qwen3-vl-8b-instruct", (10, 10), 4 + 2, id="qwen 3, the least"),
        pytest.param("qwen3-vl-plus", (8192, 8192), 16384 + 2, id="qwen 3, the most"),
    ],
)
def test_other_families_by_their_published_examples(model: str, size_px: tuple[int, int], n_tokens: int) -> None:
    n_found, most = picture_rule(images_of(model)).tokens(*size_px)
    assert n_found == pytest.approx(n_tokens, rel=0.01)
    assert n_found <= most


LARGE = (
    "claude-opus-4-7", "claude-opus-4-7-20260416", "anthropic/claude-opus-4.7", "claude-opus-4-8",
    "us.anthropic.claude-opus-4-8-v1:0", "claude-opus-5", "claude-opus-5-4-20270101", "claude-sonnet-4-7",
    "claude-sonnet-5", "anthropic/claude-sonnet-5.5", "claude-haiku-5", "claude-of-tomorrow",
)  # fmt: skip
SMALL = (
    "claude-3-5-haiku-latest", "anthropic/claude-3.7-sonnet", "claude-opus-4", "claude-opus-4-20250514", "claude-opus-4@20250514",
    "claude-opus-4-0", "claude-opus-4-1-20250805", "claude-opus-4-5", "anthropic/claude-opus-4.6", "anthropic/claude-sonnet-4",
    "claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929", "anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-6",
    "anthropic/claude-haiku-4.5", "claude-haiku-4-5-20251001",
)  # fmt: skip


@pytest.mark.parametrize(("model", "n_most"), [*((model, 4784) for model in LARGE), *((model, 1568) for model in SMALL)])
def test_a_claude_that_is_not_known_to_see_less_is_bounded_by_the_larger_rule(model: str, n_most: int) -> None:
    rule = images_of(model)
    assert rule is not None
    assert rule["n_most"] == n_most


@pytest.mark.parametrize("model", ["llava-next", "gpt-5.5", "internvl3-78b", "Qwen/Qwen3-8B", "qwen2.5-72b-instruct", ""])
def test_of_other_names_no_rule_is_known(model: str) -> None:
    assert images_of(model) is None


sides = st.integers(1, 2048)


@given(sides, sides, st.sampled_from(sorted(double._PUBLISHED)), st.sampled_from(["auto", "high", "low"]))
def test_up_to_2048_px_the_difficult_provider_counts_the_same(width: int, height: int, model: str, detail: str) -> None:
    ours, theirs = images_of(model), double.published(model)
    assert ours is not None
    assert theirs is not None
    expected = theirs.image.n_tokens(width, height, detail)
    rule = stated_rule(ours)
    slack = 0 if isinstance(rule, Tiles) else 0.05  # its floats miss a patch where a ratio is exact
    assert abs(rule.n_tokens(width, height, detail) - expected) <= slack * expected


rules = st.sampled_from([stated_rule(fields) for fields in _toml("models")["images"].values()] + [NO_RULE_KNOWN, NO_RULE_BOUND])
any_side = st.integers(1, 30_000)


@given(rules, any_side, any_side, st.sampled_from(["auto", "high", "low"]))
def test_the_most_is_never_less_and_turning_a_picture_changes_nothing(rule: Rule, width: int, height: int, detail: str) -> None:
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
