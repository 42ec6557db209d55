"""Intervals of agreement: closed forms, laws, what has none, and a short form of benchmarks/simulations/agreement.py."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.simulations.agreement import World, YesNo, coverage, yes_no
from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement import jackknife
from tasks.aggregate.agreement.agreement import OF_ITEMS
from tasks.aggregate.agreement.metrics import has_enough_labels, n_prompts_alike, pair_metric


def interval(metric: AgreementMetric, x: np.ndarray, y: np.ndarray, clusters: np.ndarray) -> tuple[float, float] | None:
    replicates = jackknife.pair_replicates(metric, x, y, clusters)
    return jackknife.ends(metric, pair_metric(metric, x, y), replicates, 0.95)


def test_of_a_mean_it_is_students_interval() -> None:
    """Bias with one sample a prompt is a mean of differences: the jackknife's standard error is s/√n exactly."""
    x, y = np.random.default_rng(1).normal(size=(2, 25))
    low, high = interval(AgreementMetric.BIAS, x, y, np.arange(25))
    theirs = stats.ttest_1samp(x - y, 0).confidence_interval(0.95)
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_on_fishers_z_it_is_tukeys_formula_written_out() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=30)
    y = x + rng.normal(size=30)
    each = np.arctanh([stats.spearmanr(np.delete(x, n), np.delete(y, n)).statistic for n in range(30)])
    half = stats.t.ppf(0.975, 29) * np.sqrt(29 / 30 * np.sum((each - each.mean()) ** 2))
    z = np.arctanh(stats.spearmanr(x, y).statistic)
    assert interval(AgreementMetric.SPEARMAN, x, y, np.arange(30)) == pytest.approx(
        tuple(np.tanh([z - half, z + half])), abs=1e-9
    )


def test_a_thousand_groups_stand_for_more_prompts() -> None:
    """Each prompt is left out once, and the standard error of a mean is that of single prompts to a few per cent."""
    sizes = np.bincount(jackknife.groups_of(np.arange(2500)))
    assert (len(sizes), set(sizes.tolist())) == (jackknife.MAX_GROUPS, {2, 3})
    x, y = np.random.default_rng(3).normal(size=(2, 2500))
    low, high = interval(AgreementMetric.BIAS, x, y, np.arange(2500))
    theirs = stats.ttest_1samp(x - y, 0).confidence_interval(0.95)
    assert high - low == pytest.approx(theirs.high - theirs.low, rel=0.08)


@pytest.mark.parametrize("metric", [AgreementMetric.BIAS, AgreementMetric.QUADRATIC_KAPPA, AgreementMetric.COHEN_KAPPA])
def test_memory_does_not_grow_as_prompts_times_groups(metric: AgreementMetric) -> None:
    """A cell for each prompt and group was 16 kB a prompt."""
    x, y = np.random.default_rng(8).integers(0, 11, (2, 20_000)).astype(float)
    tracemalloc.start()
    jackknife.pair_replicates(metric, x, y, np.arange(20_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_an_interval_of_correlated_samples_is_wider_than_one_of_independent_ones() -> None:
    """Ten samples of each prompt say the same: taken as 300 independent samples the interval would be far too narrow."""
    rng = np.random.default_rng(5)
    x = np.repeat(rng.normal(size=30), 10)
    y = np.repeat(rng.normal(size=30), 10) + x
    by_prompt, by_sample = (
        interval(AgreementMetric.SPEARMAN, x, y, clusters) for clusters in (np.repeat(np.arange(30), 10), np.arange(300))
    )
    assert by_prompt[1] - by_prompt[0] > 2 * (by_sample[1] - by_sample[0])


scored = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=10, max_size=30)


@given(scored, st.sampled_from(OF_ITEMS))
def test_an_interval_holds_its_figure_and_stays_where_the_figure_can_be(
    pairs: list[tuple[int, int]], metric: AgreementMetric
) -> None:
    x, y = np.array(pairs, dtype=float).T
    estimate = pair_metric(metric, x, y)
    found = None if estimate is None else interval(metric, x, y, np.arange(len(x)))
    if found is not None:
        assert found[0] - 1e-9 <= estimate <= found[1] + 1e-9
        assert found[0] < found[1]
        limits = {AgreementMetric.BIAS: (-np.inf, np.inf), AgreementMetric.PAIRWISE_ACCURACY: (0, 1)}.get(metric, (-1, 1))
        assert limits[0] <= found[0]
        assert found[1] <= limits[1]


@pytest.mark.parametrize(
    "replicates",
    [None, np.full(12, 0.5), np.array([0.5, np.nan, *np.full(10, 0.4)])],
    ids=["too many pairs", "all the same", "undefined without one prompt"],
)
def test_where_there_is_no_interval(replicates: np.ndarray | None) -> None:
    assert jackknife.ends(AgreementMetric.SPEARMAN, 0.5, replicates, 0.95) is None


def test_a_replicate_at_the_end_of_the_scale_leaves_an_interval() -> None:
    """One prompt holds all disagreement: Fisher's z is infinite without it, the figure's own scale is not."""
    replicates = np.array([1.0, *np.full(11, 0.8)])
    low, high = jackknife.ends(AgreementMetric.PEARSON, 0.82, replicates, 0.95)
    assert low < 0.82 < high <= 1


def test_ten_prompts_are_enough() -> None:
    """400 draws at 10 prompts; 0.95 within 4 standard errors of 0.011. A percentile bootstrap covers 88 to 90 % of kappa here."""
    found = coverage(World(), 400, 10, seed=5)
    assert {metric: share for metric, share in found.items() if abs(share - 0.95) > 0.044} == {}


@pytest.mark.parametrize(("world", "n_prompts"), [(YesNo(0.9, 0.02), 160), (YesNo(0.9, 0.02, 4), 40)], ids=str)
def test_shares_near_one_are_held_and_have_an_interval_where_all_agree(world: YesNo, n_prompts: int) -> None:
    """Share ± t · se holds 84 % of shares of pairs at 160 single pictures, and is none where all agree."""
    found = yes_no(world, 200, n_prompts, 6, [AgreementMetric.VOTE_ACCURACY])
    held, of = found[AgreementMetric.VOTE_ACCURACY]
    assert of == 1
    assert held > 0.95 - 3.5 * (0.95 * 0.05 / 200) ** 0.5


def test_a_share_of_all_has_wilsons_interval_of_so_many_prompts() -> None:
    low, high = jackknife.ends(AgreementMetric.VOTE_ACCURACY, 1.0, np.ones(40), 0.95)
    squared = stats.t.ppf(0.975, 39) ** 2
    assert (low, high) == pytest.approx((1 / (1 + squared / 40), 1), abs=1e-9)
    half = jackknife.ends(AgreementMetric.PAIRWISE_ACCURACY, 1.0, np.ones(40), 0.95)
    assert half == pytest.approx((1 / (1 + squared / 20), 1), abs=1e-9)


def test_rare_labels_need_ten_prompts_and_five_of_each_rater() -> None:
    """At 97 % yes, 49 to 81 % of the intervals of alpha over 20 to 40 prompts held the truth."""
    alpha, prompts = AgreementMetric.KRIPPENDORFF_ALPHA, np.repeat(np.arange(40), 2)

    def labels(n_first: int, n_second: int) -> np.ndarray:
        first, second = np.zeros(40), np.zeros(40)
        first[:n_first], second[40 - n_second :] = 1, 1
        return np.repeat(np.column_stack([first, second]), 2, axis=0)

    assert has_enough_labels(alpha, labels(5, 5), prompts)
    assert not has_enough_labels(alpha, labels(4, 8), prompts)
    assert not has_enough_labels(alpha, labels(5, 4), prompts)
    assert has_enough_labels(AgreementMetric.VOTE_ACCURACY, labels(1, 0), prompts)
    assert has_enough_labels(alpha, np.tile(np.arange(8.0), (10, 1)).T.repeat(2, axis=1)[:, :2], np.arange(8))


def test_prompts_of_unequal_size_are_worth_fewer() -> None:
    assert n_prompts_alike(np.repeat(np.arange(12), 3)) == 12
    assert n_prompts_alike(np.repeat([0, 1, 2], [8, 1, 1])) == pytest.approx(100 / 66)
