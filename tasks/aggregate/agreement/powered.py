"""Means and differences corrected by people's ratings: the formulas. Which rows are made of them: corrected.py, deltas.py.

Prediction-powered inference (Angelopoulos, Duchi & Zrnic, PPI++, 2023), which over prompts is the regression estimator of survey
sampling (Cochran 1977, ch. 7); over categories with one slope for all of them (7.10; Fisch et al., Stratified PPI, 2024).
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy  # its parts are imported where they are first used

from schemas.statuses.people import MIN_IN_STRATUM, MIN_LABELLED
from tasks.aggregate.intervals import (
    LEVEL,
    ClusteredMean,
    Counts,
    Floats,
    error_over_strata,
    t_quantile,
    where_still,
    without_rounding,
)

SLOPE_COSTS = 20
"""A slope made of the n labels that it corrects is used by n / (n + SLOPE_COSTS) of it: docs/agreement.md has what that does."""
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A corrected mean or difference; `tuning` is lambda, how much of the judge's scores is used: shrunk()."""

    mean: float
    se: float
    df: float
    tuning: float
    n_labelled: int
    n_prompts: int
    n_effective: float | None = None

    def clustered(self) -> ClusteredMean:
        """The same as a mean whose unit is the prompt: what intervals.interval() takes."""
        return ClusteredMean(self.mean, self.se, self.df, self.n_labelled, None, self.n_effective)


class RaterSpread(NamedTuple):
    """The variance that a figure has because it is these raters who gave the ratings, and its degrees of freedom."""

    variance: float
    df: float


def mean_of_prompts(values: Floats) -> ClusteredMean:
    """The plain mean of K prompt aggregates with its standard error s/√K; shape (K,), K at least 1."""
    n = len(values)
    se = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    return ClusteredMean(float(values.mean()), se, float(n - 1) if n > 1 else None, n, None)


def powered_mean(labels: Floats, judged: Floats, judged_rest: Floats, categories: Counts) -> PoweredMean | None:
    """The power-tuned mean: mean(Y) + λ (mean of F over the rest − mean of F over the labelled).

    `labels` Y and `judged` F are aggregates of the same n prompts and `categories` their categories, shape (n,);
    `judged_rest` of the N unlabelled, (N,). λ is shrunk() of the paper's cov(Y, F) / ((1 + n/N) var F). With M = n + N and
    R = Y − λ (M/N) F, at any λ se² = (1 − n/M) var R / n + var Y / M: which prompts were labelled, and which M there are.
    var R has n − 2 degrees of freedom, one for λ; var Y is within categories, whose sizes are the benchmark's own.
    None under MIN_LABELLED labelled or two unlabelled prompts, or where the judge never varies.
    """
    n, rest = len(labels), len(judged_rest)
    if n < MIN_LABELLED or rest < 2:
        return None
    every = np.concatenate([judged, judged_rest])
    variance = float(every.var(ddof=1))
    if not without_rounding(every - every.mean(), float(np.abs(every).max())).any():
        return None
    tuning = shrunk(float(np.cov(labels, judged, ddof=1)[0, 1]) / ((1 + n / rest) * variance), n)
    mean = float(labels.mean()) + tuning * float(judged_rest.mean() - judged.mean())
    residuals = labels - tuning * (n + rest) / rest * judged
    among_all = float(np.square(residuals - residuals.mean()).sum()) / (n - 2) / n * rest / (n + rest)
    se = math.sqrt(among_all + _variance_within(labels, categories) / (n + rest))
    return PoweredMean(mean, se, float(n - 2), tuning, n, n + rest)


def shrunk(slope: float, n_labelled: int) -> float:
    """What is used of a slope fitted on the labels that it corrects: all of it biases a skewed mean of few. Not under 0."""
    return max(0.0, slope) * n_labelled / (n_labelled + SLOPE_COSTS)


def _variance_within(values: Floats, categories: Counts) -> float:
    """Variance pooled within categories; over all where every category has one value."""
    names, places = np.unique(categories, return_inverse=True)
    n = np.bincount(places)
    freedom = len(values) - len(names)
    if not freedom:
        return float(values.var(ddof=1))
    means = np.bincount(places, weights=values) / n
    return float(np.square(values - means[places]).sum()) / freedom


def stratified_mean(values: Floats, strata: Counts) -> ClusteredMean | None:
    """The unweighted mean of the strata's means of prompts; NaN where a prompt has no value. None where a stratum is empty.

    `strata` numbers each prompt's category from 0, shape (prompts,). Its error is that of intervals.error_over_strata(); se is
    None where a stratum has fewer than MIN_IN_STRATUM prompts.
    """
    parts = [values[(strata == number) & ~np.isnan(values)] for number in range(int(strata.max(initial=-1)) + 1)]
    n_prompts = sum(len(part) for part in parts)
    if not parts or not all(len(part) for part in parts):
        return None
    mean = math.fsum(float(part.mean()) for part in parts) / len(parts)
    if min(len(part) for part in parts) < MIN_IN_STRATUM:
        return ClusteredMean(mean, None, None, n_prompts, None)
    n = np.array([len(part) for part in parts], dtype=np.float64)
    error = error_over_strata(np.array([part.var(ddof=1) for part in parts]), n - 1, n)
    return ClusteredMean(mean, *error, n_prompts, None, len(parts) ** 2 / float((1 / n).sum()))


def stratified_powered(labels: Floats, judged: Floats, strata: Counts) -> PoweredMean | None:
    """The unweighted mean over strata of mean(Y) + β (mean of F over all − mean of F over the labelled), one β for all.

    `labels` Y and `judged` F hold each prompt's value, NaN where none, `strata` its category from 0; shape (prompts,). Prompts
    without F are not used. With n of a stratum's M prompts labelled, C strata and R = Y − β F,
    se² = Σ ((1 − n/M) var R / n + var Y / M) / C². Σ a cov(Y, F) / Σ a var F, a = (1 − n/M)/n, would make it smallest; β is
    shrunk() of it, n the labels of all strata. cov is over the labelled, var F over all. In one stratum β is λ M/N of
    powered_mean(). The slope costs one degree of freedom, by which var R is widened. A stratum whose R or Y is still has the
    variance of intervals.where_still().
    None under MIN_LABELLED labelled prompts, MIN_IN_STRATUM of them in a stratum, or where the judge never varies.
    """
    is_judged = ~np.isnan(judged)
    both = is_judged & ~np.isnan(labels)
    n_strata, n_labelled = int(strata.max(initial=-1)) + 1, int(both.sum())
    cut = [
        (labels[both & (strata == c)], judged[both & (strata == c)], judged[is_judged & (strata == c)]) for c in range(n_strata)
    ]
    if n_labelled < MIN_LABELLED or not cut or min(len(y) for y, _, _ in cut) < MIN_IN_STRATUM:
        return None
    weights = [(1 - len(y) / len(every)) / len(y) for y, _, every in cut]
    below = math.fsum(a * float(every.var(ddof=1)) for a, (_, _, every) in zip(weights, cut, strict=True))
    above = math.fsum(a * float(np.cov(y, f, ddof=1)[0, 1]) for a, (y, f, _) in zip(weights, cut, strict=True))
    if below <= _TINY:
        return None
    slope = shrunk(above / below, n_labelled)
    mean = math.fsum(float(y.mean()) + slope * float(every.mean() - f.mean()) for y, f, every in cut) / n_strata
    freedom = n_labelled - n_strata
    loss = freedom / (freedom - 1)
    n, n_all = np.array([(len(y), len(every)) for y, _, every in cut], dtype=np.float64).T
    left, within = (
        where_still(np.array([float(one.var(ddof=1)) for one in values]), n - 1, n)
        for values in ([y - slope * f for y, f, _ in cut], [y for y, _, _ in cut])
    )
    se, df = error_over_strata((1 - n / n_all) * loss * left + n / n_all * within, n - 1, n)
    n_prompts = int(is_judged.sum())
    tuning = slope * (n_prompts - n_labelled) / n_prompts
    return PoweredMean(mean, se, min(df, float(freedom - 1)), tuning, n_labelled, n_prompts, n_strata**2 / float((1 / n).sum()))


def rater_spread(ratings: Floats, weights: Floats, are_named: np.ndarray | None = None) -> RaterSpread | None:
    """How far a weighted mean of prompts can lie from that of other raters: σ² Σ w², w each rater's share of the mean.

    `ratings` holds each rater's value of each prompt, NaN where none, shape (prompts, raters); `weights` each prompt's in the
    mean, (prompts,). Only of the raters `are_named` (None: all) is known that a column is one person's: σ² is theirs. The other
    columns weigh as if it were, the most that ratings of unknown raters can. None where _levels_variance() is.
    """
    is_there = ~np.isnan(ratings)
    is_known = is_there.any(axis=0) if are_named is None else is_there.any(axis=0) & are_named
    variance = _levels_variance(ratings[:, is_known])
    if variance is None:
        return None
    n_each = is_there.sum(axis=1)
    shares = np.einsum("p,pr->r", weights * (n_each > 0) / np.maximum(n_each, 1), is_there.astype(np.float64))
    return RaterSpread(variance * float(shares @ shares), float(is_known.sum() - 1))


def _levels_variance(ratings: Floats) -> float | None:
    """σ², the variance of raters' levels: what their least-squares levels vary beyond their own error; shape (prompts, raters).

    It is told by prompts that several of them rated (two-way random effects; unbiased, as Henderson's method 3 is). None
    where there is one rater, or prompts in common do not connect them.
    """
    is_there = ~np.isnan(ratings)
    n_raters, n_each = ratings.shape[1], is_there.sum(axis=1)
    shared = n_each > 1
    if n_raters < 2 or not shared.any():
        return None
    there, n = is_there[shared].astype(np.float64), n_each[shared].astype(np.float64)
    filled = np.where(is_there, ratings, 0.0)[shared]
    centred = (filled - (filled.sum(axis=1) / n)[:, None]) * there
    normal = np.diag(there.sum(axis=0)) - np.einsum("pr,ps->rs", there / n[:, None], there)
    if np.linalg.matrix_rank(normal, tol=1e-9 * n_raters, hermitian=True) < n_raters - 1:
        return None
    inverse, sums = np.linalg.pinv(normal, rcond=1e-9, hermitian=True), centred.sum(axis=0)
    levels = inverse @ sums
    freedom = float((n - 1).sum()) - (n_raters - 1)
    noise = max(0.0, float(np.square(centred).sum()) - float(sums @ levels)) / freedom if freedom > 0 else 0.0
    return max(0.0, float(levels @ levels) - noise * float(np.trace(inverse))) / float(n_raters - 1)


def with_raters(mean: ClusteredMean, spread: RaterSpread | None) -> ClusteredMean:
    """The mean with the raters' spread in its standard error, and degrees of freedom for both.

    These are such that the 95 % interval's half width is √(t²_1 se²_1 + t²_2 se²_2), each part with the quantile of its own: with
    two or three raters Satterthwaite's sum covers 88–91 %, this 95 % (docs/statistics.md).
    """
    if spread is None or mean.se is None or mean.df is None or spread.variance <= _TINY:
        return mean
    se = math.hypot(mean.se, math.sqrt(spread.variance))
    half = math.hypot(t_quantile(LEVEL, mean.df) * mean.se, t_quantile(LEVEL, spread.df) * math.sqrt(spread.variance))
    df = float(scipy.special.stdtridf((1 + LEVEL) / 2, half / se))
    return replace(mean, se=se, df=df, variance_if_independent=None)


def prompt_weights(is_used: np.ndarray, strata: Counts) -> Floats:
    """What each prompt weighs in the unweighted mean of its strata's means, shape (prompts,); 0 where not used."""
    n_each = np.bincount(strata[is_used], minlength=int(strata.max(initial=-1)) + 1)
    found: Floats = np.where(is_used, 1 / np.maximum(n_each, 1)[strata] / max(len(n_each), 1), 0.0)
    return found
