"""The interval's laws: it stays on the scale, holds the estimate, and covers what it says (simulation)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from schemas.statuses.cells import CellReason
from tasks.aggregate.intervals import ClusteredMean, Interval, clustered_mean, interval, mean_of_means, t_quantile, where_still

LOW, HIGH = 1.0, 5.0
CATEGORY_SIZES = (80, 99, 80, 94, 100, 100)  # GenEval's: 553 prompts


@given(st.lists(st.lists(st.floats(LOW, HIGH), min_size=1, max_size=5), min_size=1, max_size=30))
def test_an_interval_stays_on_the_scale_and_holds_its_estimate(prompts):
    estimate = of_values(prompts)
    found = interval(estimate, LOW, HIGH)
    wider = interval(estimate, LOW, HIGH, allows_for_skew=True)
    if isinstance(found, Interval):
        assert LOW <= wider.low <= found.low
        assert found.high <= wider.high <= HIGH
        assert LOW <= found.low <= estimate.mean + 1e-12
        assert estimate.mean - 1e-12 <= found.high <= HIGH
        assert found.low < found.high
    else:
        assert found == wider == (CellReason.TOO_FEW_PROMPTS if len(prompts) == 1 else CellReason.NO_VARIATION)


@given(st.lists(st.floats(LOW, HIGH), min_size=2, max_size=40))
def test_one_image_a_prompt_gives_the_textbook_standard_error(values):
    estimate = of_values([[value] for value in values])
    assert estimate.mean == pytest.approx(np.mean(values), abs=1e-12)
    assert estimate.se == pytest.approx(stats.sem(values), abs=1e-9)
    if estimate.se > 1e-6:
        assert estimate.design_effect == pytest.approx(1.0, abs=1e-6)


def test_copies_of_an_image_narrow_nothing():
    values = [1.0, 3.0, 4.0, 5.0]
    one, four = of_values([[v] for v in values]), of_values([[v] * 4 for v in values])
    assert four.se == pytest.approx(one.se, abs=1e-12)
    assert four.design_effect == pytest.approx(4 * 15 / 16 * 4 / 3, abs=1e-9)  # 4 images, one opinion (n - 1 apart)


@pytest.mark.parametrize("mean", [LOW, HIGH])
def test_at_an_end_of_the_scale_prompts_are_the_sample_size(mean):
    found = interval(ClusteredMean(mean, 0.0, 5.0, 6, None), LOW, HIGH)
    length = (HIGH - LOW) * (1 - 1 / (1 + t_quantile(0.95, 5) ** 2 / 6))
    expected = (LOW, LOW + length) if mean == LOW else (HIGH - length, HIGH)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


def test_far_from_the_ends_it_is_the_t_interval():
    found = interval(ClusteredMean(3.0, 0.01, 500.0, 501, None), LOW, HIGH)
    half = stats.t.ppf(0.975, 500) * 0.01
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), abs=1e-5)


def test_a_proportion_gets_wilsons_own_interval():
    """On 0/1 values, one a prompt, with the normal quantile: the published formula, here from scipy."""
    estimate = of_values([[1.0]] * 7 + [[0.0]] * 3)
    simple = ClusteredMean(0.7, math.sqrt(0.7 * 0.3 / 10), 1e9, 10, None)
    wilson = stats.binomtest(7, 10).proportion_ci(method="wilson")
    found = interval(simple, 0.0, 1.0)
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high), abs=1e-6)
    assert interval(estimate, 0.0, 1.0).low < found.low  # nine degrees of freedom know less


@pytest.mark.parametrize(
    ("prompts", "moves"),
    [
        pytest.param([[1.0]] * 18 + [[0.0]] * 2, (False, False), id="yes/no, a picture a prompt: Wilson's own"),
        pytest.param([[1.0]] * 12, (False, False), id="all at the end of the scale"),
        pytest.param([[1, 1, 1, 1]] * 6 + [[1, 1, 0.75, 0.5]] * 4, (True, False), id="near the top: the lower end"),
        pytest.param([[0, 0, 0, 0]] * 6 + [[0, 0, 0.25, 0.5]] * 4, (False, True), id="near the bottom: the upper end"),
        pytest.param([[0.5, 0.4], [0.6, 0.5], [0.4, 0.6]] * 8, (False, False), id="in the middle"),
    ],
)
def test_the_end_towards_the_middle_allows_for_skew(prompts, moves):
    plain, skewed = (interval(of_values(prompts), 0.0, 1.0, allows_for_skew=allows) for allows in (False, True))
    assert (skewed.low < plain.low - 1e-4, skewed.high > plain.high + 1e-4) == moves


@pytest.mark.parametrize(("n_prompts", "before"), [(5, "92 %"), (10, "92 %"), (20, "93 %")])
def test_means_of_few_prompts_with_top_marks_hold_the_truth(n_prompts, before):
    """Scores 1-5 of mean 4.52, four pictures a prompt, half of what lies under them the prompt's. `before`: Wilson's alone."""
    draw, shares, n_draws = np.random.default_rng(7), (0.03, 0.02, 0.05, 0.2, 0.7), 2000
    under = draw.normal(0, math.sqrt(0.5), (n_draws, n_prompts, 1)) + draw.normal(0, math.sqrt(0.5), (n_draws, n_prompts, 4))
    sums = 4 + np.searchsorted(stats.norm.ppf(np.cumsum(shares)[:-1]), under).sum(axis=2)
    counts, hits = np.full(n_prompts, 4), 0
    for one in sums:
        found = interval(clustered_mean(one, counts, np.zeros(n_prompts)), LOW, HIGH, allows_for_skew=True)
        hits += isinstance(found, Interval) and found.low <= np.dot(shares, range(1, 6)) <= found.high
    assert hits >= 0.94 * n_draws, (before, hits)


def test_satterthwaite_lies_between_the_smallest_and_the_sum():
    strata = [ClusteredMean(3, 0.3, 9, 10, None), ClusteredMean(4, 0.1, 99, 100, None)]
    joint = mean_of_means(strata)
    assert joint.se == pytest.approx(math.sqrt(0.09 + 0.01) / 2)
    assert joint.df == pytest.approx(0.1**2 / (0.09**2 / 9 + 0.01**2 / 99))
    one_missing = mean_of_means([strata[0], ClusteredMean(4, None, None, 1, None)])
    assert (one_missing.mean, one_missing.se, one_missing.df) == (3.5, None, None)


def test_the_standard_error_is_the_jackknifes_over_prompts():
    draw = np.random.default_rng(1)
    counts = draw.integers(1, 12, 9)
    sums = draw.normal(5, 2, 9) * counts
    left_out = [(sums.sum() - sums[p]) / (counts.sum() - counts[p]) for p in range(9)]
    found = clustered_mean(sums, counts, np.zeros(9))
    assert found.se == pytest.approx(np.sqrt(np.sum(np.subtract(left_out, found.mean) ** 2) * 8 / 9), abs=1e-12)
    assert found.df + 1 == found.n_effective == pytest.approx(counts.sum() ** 2 / (counts**2).sum())


def test_a_still_category_varies_as_the_others_do_as_far_as_its_prompts_allow():
    """Of 5 prompts all of the pooled variance, of 40 a quarter of it; nothing where none varies, nothing new where all do."""
    variances, df, sizes = np.array([0.0, 0.3, 0.2, 0.0]), np.array([4.0, 29, 9, 39]), np.array([5.0, 30, 10, 40])
    pooled = (29 * 0.3 + 9 * 0.2) / 38
    assert where_still(variances, df, sizes) == pytest.approx([pooled, 0.3, 0.2, pooled / 4])
    assert where_still(np.zeros(4), df, sizes).tolist() == [0, 0, 0, 0]
    assert where_still(variances[1:3], df[1:3], sizes[1:3]).tolist() == [0.3, 0.2]
    strata = [of_values([[v] for v in values]) for values in ([3, 3, 3], [1, 2, 5, 4])]
    assert mean_of_means(strata).se == pytest.approx(math.sqrt(10 / 3 / 3 + 10 / 3 / 4) / 2)


def test_a_perfect_category_of_eighty_prompts_hardly_widens_a_total():
    draw = np.random.default_rng(0)
    strata = [single(draw.random(size) < 0.6) for size in CATEGORY_SIZES[1:]]
    still = single(np.ones(80))
    joint = mean_of_means([still, *strata])
    assert 1 < joint.se / (math.sqrt(sum(one.se**2 for one in strata)) / 6) < 1.02


def test_where_all_is_at_an_end_small_categories_count_for_what_they_are():
    """As many as 100 prompts would, cut into 5 and 95, with both halves of the mean resting on so many: 4 / (1/5 + 1/95)."""
    found = interval(mean_of_means([single(np.ones(5)), single(np.ones(95))]), 0.0, 1.0)
    n, t = 4 / (1 / 5 + 1 / 95), t_quantile(0.95, 98)
    assert (found.low, found.high) == (pytest.approx(n / (n + t**2)), 1.0)


@pytest.mark.parametrize(
    ("sizes", "shares", "before"),
    [
        ((2, 100), (0.5, 0.5), "50 %"), ((5, 100), (0.9, 0.9), "58 %"), ((10, 100), (0.9, 0.9), "74 %"),
        ((10, 100), (0.9, 0.999), "64 %"), ((5, 5, 5, 100, 100, 100), (0.98,) * 6, "66 %"),
        ((80, 100, 80, 94, 100, 99), (0.999, 0.9, 0.7, 0.8, 0.3, 0.4), "95 %"),
    ],
)  # fmt: skip
def test_totals_of_unequal_categories_hold_the_truth(sizes, shares, before):
    """Yes or no, a picture a prompt. `before`: where a category that did not vary was taken for certain."""
    draw, hits, n_found = np.random.default_rng(7), 0, 0
    for _ in range(500):
        strata = [single(draw.random(size) < share) for size, share in zip(sizes, shares, strict=True)]
        found = interval(mean_of_means(strata), 0.0, 1.0)
        if isinstance(found, Interval):
            n_found += 1
            hits += found.low <= np.mean(shares) <= found.high
    assert hits >= (0.95 - 2.5 * 0.0097) * n_found, (before, hits, n_found)


@pytest.mark.parametrize(("n_prompts", "share", "before"), [(10, 0.5, "76 %"), (10, 0.8, "83 %"), (30, 0.5, "88 %")])
def test_means_of_very_unequal_prompts_hold_the_truth(n_prompts, share, before):
    """A fifth of the prompts have 20 pictures, the others one; `before`: the linearised error with K - 1."""
    draw, hits, n_draws = np.random.default_rng(7), 0, 500
    for _ in range(n_draws):
        counts = np.where(draw.random(n_prompts) < 0.2, 20, 1)
        sums = draw.binomial(counts, draw.beta(share * 2 / 3, (1 - share) * 2 / 3, n_prompts)).astype(float)
        found = interval(clustered_mean(sums, counts, np.zeros(n_prompts)), 0.0, 1.0)
        hits += isinstance(found, Interval) and found.low <= share <= found.high
    assert hits >= (0.95 - 2.5 * 0.0097) * n_draws, (before, hits)


def single(values):
    """One picture a prompt."""
    return clustered_mean(values.astype(float), np.ones(len(values), np.int64), np.zeros(len(values)))


def test_ninety_five_percent_means_ninety_five_percent():
    """Six categories, 553 prompts × 4 images, 0–10 in whole numbers: clustered covers, images taken as independent do not."""
    n_draws, hits, hits_naive = 4000, 0, 0
    draw = np.random.default_rng(20261103)
    truth = float(np.mean([true_mean(centre) for centre in CENTRES]))
    for _ in range(n_draws):
        strata = [clustered(draw, centre, size) for centre, size in zip(CENTRES, CATEGORY_SIZES, strict=True)]
        joint = mean_of_means(strata)
        found = interval(joint, 0.0, 10.0)
        hits += found.low <= truth <= found.high
        hits_naive += abs(joint.mean - truth) <= 1.96 * math.sqrt(joint.variance_if_independent)
    tolerance = 3 * math.sqrt(0.95 * 0.05 / n_draws)
    assert abs(hits / n_draws - 0.95) < tolerance, hits
    assert hits_naive / n_draws < 0.80, hits_naive


CENTRES = (9.2, 8.0, 5.5, 8.5, 4.0, 3.0)
PROMPT_SD, IMAGE_SD = 2.0, 1.5


def clustered(draw, centre, n_prompts):
    latent = centre + draw.normal(0, PROMPT_SD, (n_prompts, 1)) + draw.normal(0, IMAGE_SD, (n_prompts, 4))
    scores = np.clip(np.rint(latent), 0, 10)
    sums = scores.sum(axis=1)
    return clustered_mean(sums, np.full(n_prompts, 4), ((scores - sums[:, None] / 4) ** 2).sum(axis=1))


def true_mean(centre):
    """The exact expected score: the sum over k of P(score ≥ k)."""
    sd = math.hypot(PROMPT_SD, IMAGE_SD)
    return sum(stats.norm.sf(k - 0.5, centre, sd) for k in range(1, 11))


def of_values(prompts):
    sums, counts = np.array([sum(p) for p in prompts]), np.array([len(p) for p in prompts])
    within = np.array([sum((v - sum(p) / len(p)) ** 2 for v in p) for p in prompts])
    return clustered_mean(sums, counts, within)
