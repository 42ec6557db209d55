"""Prediction-powered means (PPI++) over prompts: a judge's scores of all prompts, corrected by people's ratings of some.

Angelopoulos, Duchi & Zrnic, PPI++: Efficient Prediction-Powered Inference, 2023 (arXiv 2311.01453). Which numbers go in is
corrected.py; docs/agreement.md has the formulas, what is assumed and the simulation.
"""

import math
from dataclasses import dataclass

import numpy as np

from tasks.aggregate.agreement.metrics import Floats
from tasks.aggregate.intervals import ClusteredMean, Counts

MIN_LABELLED = 10
"""Under this many labelled prompts the tuning follows noise: no corrected mean is given."""


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A corrected mean; `tuning` is lambda, how much of the judge's scores is used."""

    mean: float
    se: float
    df: float
    tuning: float
    n_labelled: int
    n_prompts: int

    def clustered(self) -> ClusteredMean:
        """The same as a mean whose unit is the prompt: what intervals.interval() takes."""
        return ClusteredMean(self.mean, self.se, self.df, self.n_labelled, None)


def mean_of_prompts(values: Floats) -> ClusteredMean:
    """The plain mean of K prompt aggregates with its standard error s/√K; shape (K,), K at least 1."""
    n = len(values)
    se = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    return ClusteredMean(float(values.mean()), se, float(n - 1) if n > 1 else None, n, None)


def powered_mean(labels: Floats, judged: Floats, judged_rest: Floats, categories: Counts) -> PoweredMean | None:
    """The power-tuned mean: mean(Y) + λ (mean of F over the rest − mean of F over the labelled).

    `labels` Y and `judged` F are aggregates of the same n prompts and `categories` their categories, shape (n,);
    `judged_rest` of the N unlabelled, (N,). λ = cov(Y, F) / ((1 + n/N) var F), not under 0. With M = n + N and
    R = Y − λ (M/N) F, se² = (1 − n/M) var R / n + var Y / M: which prompts were labelled, and which M prompts there are.
    var R has n − 2 degrees of freedom, one for λ; var Y is within categories, whose sizes are the benchmark's own.
    None under MIN_LABELLED labelled or two unlabelled prompts, or where the judge never varies.
    """
    n, rest = len(labels), len(judged_rest)
    if n < MIN_LABELLED or rest < 2:
        return None
    variance = float(np.concatenate([judged, judged_rest]).var(ddof=1))
    if variance <= 0:
        return None
    tuning = max(0.0, float(np.cov(labels, judged, ddof=1)[0, 1]) / ((1 + n / rest) * variance))
    mean = float(labels.mean()) + tuning * float(judged_rest.mean() - judged.mean())
    residuals = labels - tuning * (n + rest) / rest * judged
    among_all = float(np.square(residuals - residuals.mean()).sum()) / (n - 2) / n * rest / (n + rest)
    se = math.sqrt(among_all + _variance_within(labels, categories) / (n + rest))
    return PoweredMean(mean, se, float(n - 2), tuning, n, n + rest)


def _variance_within(values: Floats, categories: Counts) -> float:
    """Variance pooled within categories; over all where every category has one value."""
    names, places = np.unique(categories, return_inverse=True)
    n = np.bincount(places)
    freedom = len(values) - len(names)
    if not freedom:
        return float(values.var(ddof=1))
    means = np.bincount(places, weights=values) / n
    return float(np.square(values - means[places]).sum()) / freedom
