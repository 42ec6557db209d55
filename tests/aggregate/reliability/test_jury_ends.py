"""Intervals of a jury's figures: replicates against figures taken anew without each prompt, ends, and the short simulation."""

from functools import partial

import numpy as np
import pytest

from benchmarks.simulations.jury import draw, figures
from schemas.statuses.nights import JuryMetric
from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement.jackknife import alpha_replicates, pair_replicates
from tasks.aggregate.reliability.jury import intraclass
from tasks.aggregate.reliability.jury_ends import (
    MAX_LEVELS,
    alpha_without,
    intraclass_ends,
    intraclass_without,
    rank_ends,
    spearman_without,
)

ALPHA, SPEARMAN = AgreementMetric.KRIPPENDORFF_ALPHA, AgreementMetric.SPEARMAN


def drawn(seed, n_prompts=40, n_judges=3, gaps=0.0):
    """Scores 0-10 of (samples, judges), prompts of one to four samples, NaN where there is a gap."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(n_prompts), rng.integers(1, 5, n_prompts))
    values = np.clip(np.round(6 + 2 * rng.normal(size=(len(clusters), 1)) + rng.normal(size=(len(clusters), n_judges))), 0, 10)
    values[rng.random(values.shape) < gaps] = np.nan
    return values, clusters


def placed(values):
    levels = np.unique(values[~np.isnan(values)])
    return np.where(np.isnan(values), -1, np.searchsorted(levels, np.nan_to_num(values, nan=levels[0]))), len(levels)


@pytest.mark.parametrize(("n_judges", "gaps"), [(2, 0.0), (3, 0.2), (5, 0.5)], ids=["two judges", "gaps", "five with many gaps"])
def test_alpha_without_each_prompt_is_that_of_what_is_left(n_judges, gaps):
    values, clusters = drawn(1, n_judges=n_judges, gaps=gaps)
    places, n_levels = placed(values)
    theirs = alpha_replicates(values, clusters)
    assert alpha_without(places, clusters, n_levels) == pytest.approx(theirs, rel=1e-12)


def test_spearman_without_each_prompt_is_that_of_what_is_left():
    values, clusters = drawn(2, n_judges=2)
    theirs = pair_replicates(SPEARMAN, *values.T, clusters)
    assert spearman_without(placed(values)[0], clusters, placed(values)[1]) == pytest.approx(theirs, rel=1e-12)


def test_intraclass_correlations_without_each_prompt_are_those_of_what_is_left():
    values, clusters = drawn(3)
    agreement, consistency = intraclass_without(values, clusters)
    theirs = [intraclass(values[clusters != prompt]) for prompt in range(40)]
    assert agreement == pytest.approx([one[JuryMetric.ICC_AGREEMENT] for one in theirs], rel=1e-12)
    assert consistency == pytest.approx([one[JuryMetric.ICC_CONSISTENCY] for one in theirs], rel=1e-12)


def test_the_jurys_mean_has_the_ends_of_one_judge_carried_over():
    values, clusters = drawn(4)
    found = intraclass_ends(intraclass(values), values, clusters)
    for one, of_mean in (("ICC_AGREEMENT", "ICC_AGREEMENT_MEAN"), ("ICC_CONSISTENCY", "ICC_CONSISTENCY_MEAN")):
        carried = [3 * end / (1 + 2 * end) for end in found[JuryMetric[one]]]
        assert found[JuryMetric[of_mean]] == pytest.approx(carried, rel=1e-12)


def test_of_judges_who_have_nothing_in_common_ends_stay_where_correlations_can_be():
    rng = np.random.default_rng(5)
    values = rng.integers(0, 11, (12, 3)).astype(float)
    for low, high in intraclass_ends(intraclass(values), values, np.arange(12)).values():
        assert np.isfinite(low)
        assert low <= high < 1
    assert intraclass_ends(intraclass(values), values, np.arange(12))[JuryMetric.ICC_CONSISTENCY][0] > -0.5


def few_hold_another():
    values = np.full((60, 3), 5.0)
    values[:4, 0] = [1, 2, 3, 4]
    values[:4, 1] = [1, 2, 3, 3]
    return values


NONE = {
    "nine prompts": partial(lambda: drawn(6, 9)[0][:9]),
    "one label is nearly all": few_hold_another,
    "all the same": partial(np.full, (60, 3), 5.0),
    "judges who say the same": lambda: np.repeat(np.arange(60.0)[:, None] % 7, 3, axis=1),
    "nothing": partial(np.empty, (0, 3)),
}


@pytest.mark.parametrize("values", NONE.values(), ids=NONE)
def test_where_there_is_no_interval(values):
    values = values()
    clusters = np.arange(len(values))
    made = intraclass(values) if len(values) > 1 else dict.fromkeys(JuryMetric)
    assert set(intraclass_ends(made, values, clusters).values()) == {None}
    assert rank_ends(ALPHA, 0.5, values, clusters) is None
    assert rank_ends(SPEARMAN, 0.5, values[:, :2], clusters) is None


def test_scores_of_many_levels_have_no_interval_of_ranks():
    values = np.random.default_rng(7).normal(size=(MAX_LEVELS, 2))
    clusters = np.arange(MAX_LEVELS)
    assert rank_ends(ALPHA, 0.0, values, clusters) is None
    assert rank_ends(ALPHA, 0.0, np.round(values, 1), clusters) is not None


@pytest.mark.parametrize("shared", [0.3, 0.7, 0.9])
def test_simulated_coverage_of_sixty_samples(shared):
    """400 draws: 0.95 is met within 3.5 standard errors of 0.011; benchmarks/simulations/jury.py is the long form."""
    rng = np.random.default_rng(8)
    truth, clusters, held = figures(draw(rng, "0-10", shared, 100_000, 1)), np.arange(60), dict.fromkeys(JuryMetric, 0)
    for _ in range(400):
        values = draw(rng, "0-10", shared, 60, 1)
        for kind, (low, high) in intraclass_ends(intraclass(values), values, clusters).items():
            held[kind] += low <= truth[kind.value] <= high
    assert 0.912 * 400 <= min(held.values()) <= max(held.values()) <= 0.988 * 400
