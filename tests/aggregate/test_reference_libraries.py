"""Our own figures held to 1e-9 against libraries the field trusts, on random data with ties, gaps and clusters of every size."""

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.multitest import multipletests

from schemas.statuses.cells import Correction
from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement.metrics import krippendorff_alpha, pair_metric, quadratic_kappa
from tasks.aggregate.comparisons.families import adjust
from tasks.aggregate.intervals import clustered_mean

SEEDS = range(12)
TOLERANCE = 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_quadratic_kappa_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 11, 80)
    y = np.clip(x + rng.integers(-2, 3, 80), 0, 10)
    theirs = cohen_kappa_score(x, y, labels=list(range(11)), weights="quadratic")
    assert quadratic_kappa(x.astype(float), y.astype(float)) == pytest.approx(theirs, abs=TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["ordinal", "interval", "nominal"])
def test_alpha_is_that_of_the_krippendorff_package(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, (60, 1))
    values = np.clip(truth + rng.integers(-1, 2, (60, 4)), 1, 5).astype(float)
    values[rng.random(values.shape) < 0.3] = np.nan  # raters who saw only some, and samples that one rater saw
    theirs = krippendorff.alpha(reliability_data=values.T, level_of_measurement=kind)
    assert krippendorff_alpha(values, kind) == pytest.approx(theirs, abs=TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("ours", "theirs"), [(Correction.BONFERRONI, "bonferroni"), (Correction.BENJAMINI_HOCHBERG, "fdr_bh")])
def test_corrected_p_are_those_of_statsmodels(seed: int, ours: Correction, theirs: str) -> None:
    p = np.random.default_rng(seed).random(18) ** 3
    p[:3] = p[3]  # ties
    assert adjust(list(p), ours) == pytest.approx(multipletests(p, method=theirs)[1], abs=TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_clustered_standard_error_is_that_of_statsmodels(seed: int) -> None:
    """A mean is a regression on the constant; its cluster-robust covariance with K/(K-1) is the jackknife's of equal clusters."""
    rng = np.random.default_rng(seed)
    counts = np.full(40, rng.integers(1, 6))
    prompt = np.repeat(np.arange(40), counts)
    values = rng.integers(0, 11, 40)[prompt] * 0.5 + rng.random(len(prompt))
    sums = np.bincount(prompt, values)
    within = np.bincount(prompt, (values - (sums / counts)[prompt]) ** 2)
    found = clustered_mean(sums, counts, within)
    theirs = OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": prompt})
    assert found.mean == pytest.approx(theirs.params[0], abs=TOLERANCE)
    assert found.se == pytest.approx(theirs.bse[0], abs=TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("metric", "weights"), [(AgreementMetric.LINEAR_KAPPA, "linear"), (AgreementMetric.COHEN_KAPPA, None)])
def test_kappas_of_labels_are_those_of_scikit_learn(seed: int, metric: AgreementMetric, weights: str | None) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 7, 60)
    y = np.clip(x + rng.integers(-2, 3, 60), 0, 6)
    theirs = cohen_kappa_score(x, y, labels=list(range(7)), weights=weights)
    assert pair_metric(metric, x.astype(float), y.astype(float)) == pytest.approx(theirs, abs=TOLERANCE)
