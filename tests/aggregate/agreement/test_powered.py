"""Figures corrected by people, raters, the label check, the order of checkpoints: closed forms and short simulations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.simulations.corrected import World, delta_outcome, found_by_label_check, order_covered
from schemas.statuses.people import AgreementMetric, Assessor
from tasks.aggregate.agreement.grid import Grid
from tasks.aggregate.agreement.label_check import label_check, van_elteren
from tasks.aggregate.agreement.pairs import Assessment, Rated
from tasks.aggregate.agreement.powered import (
    RaterSpread,
    powered_mean,
    prompt_weights,
    rater_spread,
    stratified_mean,
    stratified_powered,
    with_raters,
)
from tasks.aggregate.agreement.systems import system_figures
from tasks.aggregate.intervals import ClusteredMean, clustered_mean, mean_of_means, t_quantile

NAN = np.nan


def drawn(seed: int, n: int = 240, share: float = 0.25) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels (NaN where none), the judge's scores, and one of three categories."""
    rng = np.random.default_rng(seed)
    strata = rng.integers(0, 3, n)
    judged = rng.normal(5, 1.5, n) + strata
    labels = judged + rng.normal(-0.7, 0.8, n)
    return np.where(rng.random(n) < share, labels, NAN), judged, strata


def test_in_one_stratum_it_is_the_power_tuned_mean() -> None:
    labels, judged, strata = drawn(1)
    one = stratified_powered(labels, judged, np.zeros_like(strata))
    is_labelled = ~np.isnan(labels)
    other = powered_mean(labels[is_labelled], judged[is_labelled], judged[~is_labelled], np.zeros(is_labelled.sum(), dtype=int))
    assert (one.mean, one.se, one.df, one.tuning) == pytest.approx((other.mean, other.se, other.df, other.tuning), rel=1e-12)


def test_over_strata_it_is_cochrans_combined_regression_estimator() -> None:
    """Written out by stratum (Cochran 1977, 7.10): mean(Y) + b (mean F of all - mean F of labelled), b shrunk."""
    labels, judged, strata = drawn(2)
    found = stratified_powered(labels, judged, strata)
    above = below = 0.0
    cut = []
    for number in range(3):
        every, is_labelled = judged[strata == number], ~np.isnan(labels[strata == number])
        y, f = labels[strata == number][is_labelled], every[is_labelled]
        a = 1 / len(y) - 1 / len(every)
        above, below = above + a * np.cov(y, f)[0, 1], below + a * every.var(ddof=1)
        cut.append((y, f, every))
    n = np.sum(~np.isnan(labels))
    slope = above / below * n / (n + 20)
    assert found.mean == pytest.approx(np.mean([y.mean() + slope * (every.mean() - f.mean()) for y, f, every in cut]), rel=1e-12)
    assert found.se < stratified_mean(labels, strata).se


def test_the_mean_over_strata_is_that_of_the_leaderboard() -> None:
    labels, _, strata = drawn(3)
    parts = [labels[(strata == number) & ~np.isnan(labels)] for number in range(3)]
    theirs = mean_of_means([clustered_mean(part, np.ones(len(part), dtype=int), np.zeros(len(part))) for part in parts])
    found = stratified_mean(labels, strata)
    assert (found.mean, found.se, found.df) == pytest.approx((theirs.mean, theirs.se, theirs.df), rel=1e-12)


@given(st.floats(-50, 50), st.floats(0.1, 20), st.lists(st.floats(-9, 9), min_size=3, max_size=3))
def test_how_kind_the_judge_is_to_a_category_does_not_matter(shift: float, stretch: float, kind: list[float]) -> None:
    """A shift in each category moves nothing; a scale of its own is taken up by the slope."""
    labels, judged, strata = drawn(4)
    one = stratified_powered(labels, judged, strata)
    other = stratified_powered(labels, judged * stretch + shift + np.array(kind)[strata], strata)
    assert (other.mean, other.se) == pytest.approx((one.mean, one.se), rel=1e-6)


@pytest.mark.parametrize(
    ("labels", "judged", "strata"),
    [
        pytest.param(np.r_[np.arange(9.0), np.full(20, NAN)], np.arange(29.0), np.zeros(29, dtype=int), id="nine labelled"),
        pytest.param(
            np.r_[np.arange(19.0), 9, NAN], np.arange(21.0), np.r_[np.zeros(18, dtype=int), 1, 1, 1], id="two in a category"
        ),
        pytest.param(np.r_[np.arange(20.0), np.full(9, NAN)], np.full(29, 7.0), np.zeros(29, dtype=int), id="no variation"),
        pytest.param(np.full(30, NAN), np.arange(30.0), np.zeros(30, dtype=int), id="no labels"),
    ],
)
def test_too_little_to_correct_with(labels: np.ndarray, judged: np.ndarray, strata: np.ndarray) -> None:
    assert stratified_powered(labels, judged, strata) is None


def test_three_labels_that_agree_make_no_certain_category() -> None:
    """Differences of equals, 3 and 60 of them: before, where three were the same p was under 1e-5 in one case of a thousand."""
    rng, strata, found = np.random.default_rng(2), np.repeat([0, 1], [3, 60]), []
    for _ in range(1500):
        mean = stratified_mean(np.rint(rng.normal(0, 0.8, 63)), strata)
        found.append(2 * stats.t.sf(abs(mean.mean) / mean.se, mean.df))
    assert min(found) > 1e-4
    assert sum(p < 0.05 for p in found) < 0.06 * 1500


def test_a_category_whose_labels_the_judge_explains_is_not_certain() -> None:
    labels, judged, strata = drawn(8, 160, 1.0)
    strata = np.repeat([0, 1], 80)
    labels[80:] = judged[80:] = 5.0
    labels[40:80] = labels[120:] = NAN
    joint, first = stratified_powered(labels, judged, strata), stratified_powered(labels[:80], judged[:80], strata[:80])
    assert first is not None
    assert joint is not None
    assert joint.se > first.se / 2 * 1.01


def test_the_raters_variance_is_that_of_a_two_way_analysis() -> None:
    """Without gaps: (mean square of raters - mean square left) / prompts, over the number of raters."""
    rng = np.random.default_rng(5)
    ratings = rng.normal(size=(40, 1)) + np.array([0.0, 0.6, 1.1, -0.4]) + rng.normal(0, 0.5, (40, 4))
    by_rater = 40 * np.sum((ratings.mean(axis=0) - ratings.mean()) ** 2) / 3
    left = ratings - ratings.mean(axis=1, keepdims=True) - ratings.mean(axis=0) + ratings.mean()
    expected = (by_rater - np.sum(left**2) / (39 * 3)) / 40 / 4
    found = rater_spread(ratings, prompt_weights(np.ones(40, dtype=bool), np.zeros(40, dtype=int)))
    assert found == pytest.approx(RaterSpread(expected, 3.0), rel=1e-9)


def test_raters_levels_are_told_from_prompts_that_only_some_rated() -> None:
    """Prompts that one rater saw alone say nothing of levels: moving them changes nothing."""
    rng = np.random.default_rng(6)
    ratings = rng.normal(size=(60, 1)) + np.array([0.0, 1.0, -0.5]) + rng.normal(0, 0.3, (60, 3))
    ratings[:20, 1:] = NAN
    ratings[20:30, 0] = NAN
    weights = prompt_weights(np.ones(60, dtype=bool), np.zeros(60, dtype=int))
    moved = ratings + np.r_[np.full(20, 7.0), np.zeros(40)][:, None]
    assert rater_spread(moved, weights) == pytest.approx(rater_spread(ratings, weights))


def test_unnamed_ratings_weigh_as_one_persons_and_say_nothing_of_levels() -> None:
    rng = np.random.default_rng(6)
    ratings = rng.normal(size=(60, 1)) + np.array([0.0, 1.0, -0.5, 0.4]) + rng.normal(0, 0.3, (60, 4))
    weights, are_named = prompt_weights(np.ones(60, dtype=bool), np.zeros(60, dtype=int)), np.array([True, True, True, False])
    alone, every = rater_spread(ratings[:, :3], weights), rater_spread(ratings, weights, are_named)
    assert alone is not None
    assert every == pytest.approx(RaterSpread(alone.variance * 3 / 4, 2.0)), "a quarter each in place of a third"
    assert rater_spread(ratings + np.array([0, 0, 0, 9.0]), weights, are_named) == pytest.approx(every)
    assert rater_spread(ratings, weights, np.array([False, True, False, False])) is None


def test_who_rated_none_of_these_prompts_takes_nothing_away() -> None:
    ratings = np.random.default_rng(7).normal(size=(20, 3))
    weights = np.full(20, 1 / 20)
    ratings[:, 1] = NAN
    two = rater_spread(ratings[:, ::2], weights)
    assert two is not None
    assert rater_spread(ratings, weights) == two


@pytest.mark.parametrize(
    "ratings",
    [np.ones((9, 1)), np.array([[1.0, NAN], [NAN, 2.0]]), np.array([[1.0, 2, NAN, NAN], [NAN, NAN, 3, 4]])],
    ids=["one rater", "no prompt in common", "two pairs that share none"],
)
def test_what_says_nothing_of_other_raters(ratings: np.ndarray) -> None:
    assert rater_spread(ratings, np.full(len(ratings), 1 / len(ratings))) is None


def test_two_raters_who_differ_widen_the_interval_and_two_who_do_not_leave_it() -> None:
    mean = ClusteredMean(5.0, 0.1, 80.0, 81, None)
    assert with_raters(mean, RaterSpread(0.0, 1.0)) == mean
    wide = with_raters(mean, RaterSpread(0.04, 1.0))
    assert wide.se == pytest.approx(np.hypot(0.1, 0.2))
    half = np.hypot(t_quantile(0.95, 80) * 0.1, t_quantile(0.95, 1) * 0.2)
    assert t_quantile(0.95, wide.df) * wide.se == pytest.approx(half, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_in_one_stratum_the_label_check_is_scipys_rank_sum_test(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, is_labelled = rng.integers(0, 8, 70).astype(float), rng.random(70) < 0.3
    theirs = stats.mannwhitneyu(values[is_labelled], values[~is_labelled], use_continuity=False, method="asymptotic").pvalue
    assert van_elteren(values, is_labelled, np.zeros(70, dtype=int)) == pytest.approx(theirs, rel=1e-9)


def test_the_label_check_is_within_strata_whatever_their_order() -> None:
    """As many labels of the good category as one likes are no choice by score; a constant in a stratum changes nothing."""
    rng = np.random.default_rng(8)
    strata = rng.permutation(np.repeat([0, 1], 50))
    values = rng.normal(size=100)
    is_labelled = rng.random(100) < np.where(strata == 0, 0.1, 0.6)
    p = van_elteren(values, is_labelled, strata)
    assert van_elteren(values + 40 * strata, is_labelled, strata) == pytest.approx(p, rel=1e-9)
    assert van_elteren(values + 40 * strata, is_labelled, np.zeros(100, dtype=int)) < 0.01 < p
    order = rng.permutation(100)
    assert van_elteren(values[order], is_labelled[order], strata[order]) == pytest.approx(p, rel=1e-9)


@pytest.fixture
def rated(make_rubric: Callable[..., Any]) -> Callable[..., Rated]:
    """Sixty prompts of four samples, all prompts with one label: of the sample that `pick` says, given its prompt's scores."""

    def build(pick: Callable[[np.ndarray], int]) -> Rated:
        scores = np.random.default_rng(12).normal(5, 1, (60, 4))
        labels = np.full((60, 4), NAN)
        for prompt, mine in enumerate(scores):
            labels[prompt, pick(mine)] = 5.0
        items = pl.DataFrame({
            "sample_id": [f"{p:02d}{s}" for p in range(60) for s in range(4)],
            "prompt_id": [f"{p:02d}" for p in range(60) for _ in range(4)],
        }).with_columns(category=pl.lit(None, pl.String), model=pl.lit("m"), checkpoint=pl.lit("1"))  # fmt: skip
        judge = Assessment(Assessor.JUDGE, "eye", scores.ravel(), 1.0, has_scale=True)
        ann = Assessment(Assessor.RATER, "ann", labels.ravel(), 1.0, has_scale=True)
        return Rated(make_rubric({None: ("overall",)}), "overall", 0, 10, items, (judge,), (), (ann,))

    return build


@pytest.mark.parametrize(
    ("pick", "verdict"),
    [
        pytest.param(lambda scores: int(scores.argmax()), "chosen_by_score", id="the best picture of each prompt"),
        pytest.param(lambda scores: int(scores.argmin()), "chosen_by_score", id="the worst"),
        pytest.param(lambda _scores: 0, "random", id="the first"),
    ],
)
def test_pictures_chosen_within_prompts_are_found(rated: Callable[..., Rated], pick: Callable[..., int], verdict: str) -> None:
    """Every prompt is labelled, so prompts tell nothing: the samples within them do."""
    one = rated(pick)
    assert label_check(Grid(one), one.judges[0], is_within=True).verdict == verdict


@pytest.mark.parametrize(("choice", "low", "high"), [("random", 0.0, 0.085), ("judge", 0.9, 1.0), ("people per sd", 0.99, 1.0)])
def test_labels_chosen_by_quality_are_found(choice: str, low: float, high: float) -> None:
    assert low <= found_by_label_check(choice, 300, 60, seed=4) <= high


def test_a_judge_kind_to_one_family_is_corrected_between_its_checkpoints_and_others() -> None:
    """500 draws: 0.95 within 3.5 standard errors of 0.0097."""
    found = delta_outcome(World(taste_sd=0.3), 500, 60, seed=20261123)
    assert abs(found.covered[0] - 0.95) < 0.034
    assert found.covered[2] == 0
    assert found.width_ratio < 0.8


def test_three_raters_leanings_are_in_the_interval() -> None:
    found = delta_outcome(World(taste_sd=0.3, n_raters=3, lean_sd=0.5), 300, 60, seed=2)
    assert abs(found.covered[0] - 0.95) < 0.045


def test_the_order_of_checkpoints_holds_the_true_one() -> None:
    covered, width = order_covered(5, 60, 100, seed=3)
    assert covered >= 0.95
    assert width < 2


def test_order_figures_by_hand() -> None:
    """Three checkpoints: 0 < 1 < 2 for people; the judge turns the last two round. One pair of three disagrees, all are sure."""
    prompts = np.random.default_rng(9).normal(size=(1, 30))
    noise = np.random.default_rng(10).normal(0, 0.01, (3, 30))
    labels, judged = np.array([[0.0], [1], [2]]) + prompts + noise, np.array([[0.0], [2], [1]]) + prompts - noise
    found = system_figures(judged, labels)
    assert found[AgreementMetric.SYSTEM_KENDALL_TAU] == (pytest.approx(1 / 3), pytest.approx((1 / 3, 1 / 3)))
    assert found[AgreementMetric.SYSTEM_PAIRWISE_ACCURACY] == (pytest.approx(2 / 3), pytest.approx((2 / 3, 2 / 3)))
    judged[2] = judged[1] + np.random.default_rng(11).normal(0, 1, 30)
    tau, (low, high) = system_figures(judged, labels)[AgreementMetric.SYSTEM_KENDALL_TAU]
    assert (low, high) == pytest.approx((1 / 3, 1.0))
    assert low <= tau <= high
    assert system_figures(judged[:2], labels[:2]) == {}


@pytest.mark.parametrize("parts", [2, 3, 10], ids=["halves", "thirds", "tenths"])
@pytest.mark.parametrize("seed", range(5))
def test_checkpoints_of_equal_means_are_tied(parts: int, seed: int) -> None:
    """Two have the same numbers on other prompts, for people and judge; a third is lower: two pairs of three are alike."""
    rng = np.random.default_rng(seed)
    sides = [np.array([one, rng.permutation(one), one - 2]) for one in rng.integers(0, 31, (2, 12)) / parts]
    assert system_figures(*sides)[AgreementMetric.SYSTEM_KENDALL_TAU][0] == pytest.approx(2 / 3)


@pytest.mark.parametrize(("n_shared", "low"), [(2, -1.0), (6, -1.0), (7, 1.0)], ids=["two", "six", "seven"])
def test_equal_differences_are_sure_only_of_as_many_prompts_as_a_sign_test_needs(n_shared: int, low: float) -> None:
    """Each two checkpoints share some prompts, on which they differ by the same amount: 1/2^6 < 0.05/3 from seven on.

    They differ by tenths: in floats not by quite the same amount each time.
    """
    values = np.full((3, 3 * n_shared + 36), np.nan)
    drawn = np.random.default_rng(4).integers(0, 30, values.shape[1]) / 10
    for system, height in enumerate((0.0, 0.3, 0.6)):
        for number, pair in enumerate(((0, 1), (0, 2), (1, 2))):
            part = slice(number * n_shared, (number + 1) * n_shared)
            values[system, part] = drawn[part] + height if system in pair else np.nan
        own = slice(3 * n_shared + 12 * system, 3 * n_shared + 12 * system + 12)
        values[system, own] = drawn[own]
    found = system_figures(values, values)
    assert found[AgreementMetric.SYSTEM_KENDALL_TAU] == (1.0, pytest.approx((low, 1.0)))
    assert found[AgreementMetric.SYSTEM_PAIRWISE_ACCURACY] == (1.0, pytest.approx(((1 + low) / 2, 1.0)))


def test_checkpoints_that_share_no_prompts_are_not_said_to_be_ordered_otherwise() -> None:
    """1 against 2 and 2 against 3 are alike; nobody knows of 1 against 3, which the interval holds both ways."""
    values = np.full((3, 40), np.nan)
    for system, prompts in enumerate((slice(0, 20), slice(0, 40), slice(20, 40))):
        values[system, prompts] = system + np.random.default_rng(system).normal(0, 0.01, len(values[system, prompts]))
    found = system_figures(values, values)
    assert found[AgreementMetric.SYSTEM_KENDALL_TAU] == (1.0, pytest.approx((1 / 3, 1.0)))
    assert found[AgreementMetric.SYSTEM_PAIRWISE_ACCURACY] == (1.0, pytest.approx((2 / 3, 1.0)))
    apart = np.full((3, 30), np.nan)
    for system in range(3):
        apart[system, 10 * system : 10 * system + 10] = system + np.arange(10) % 4
    assert system_figures(apart, apart) == {}
