"""Means whose unit is the prompt, and intervals that stay on the scale. Which scores make up a cell is tables.py.

Every formula, its assumption and its source stand in docs/statistics.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy  # its parts are imported where they are first used

from schemas.statuses.cells import CellReason

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

LEVEL = 0.95
STILL = 10.0
"""Up to so many prompts that all say the same are taken to vary as those of other categories do; K more, by STILL / K of it."""
_ZERO = 1e-12  # of the scale's width: below this a standard error is rounding, not variation
_ZERO_VARIANCE = 1e-18  # of the largest of several: the same of variances


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean over images whose independent unit is the prompt.

    `se` and `df` are None where one prompt (in some category) leaves no variance to see. `variance_if_independent`
    is what the variance would be if as many images had each a prompt of its own; None where it cannot be had.
    `n_effective`: prompts of the same weight each that would say as much; None where all of n_prompts weigh the same.
    """

    mean: float
    se: float | None
    df: float | None
    n_prompts: int
    variance_if_independent: float | None
    n_effective: float | None = None

    @property
    def n_equal(self) -> float:
        """Prompts of the same weight each that would say as much."""
        return self.n_prompts if self.n_effective is None else self.n_effective

    @property
    def design_effect(self) -> float | None:
        """Clustered variance over the variance of as many independent images (Kish 1965); None where either is unknown."""
        if self.se is None or not self.variance_if_independent:
            return None
        return self.se**2 / self.variance_if_independent


@dataclass(frozen=True, slots=True)
class Interval:
    """Lower and upper end, on the scale."""

    low: float
    high: float


def clustered_mean(sums: Floats, counts: Counts, squares_within: Floats) -> ClusteredMean:
    """Image-weighted mean of K prompts and its jackknife standard error over prompts (Cochran 1977, ch. 6, 9A; Tukey 1958).

    `sums` and `counts` hold each prompt's sum of image values and its number of images (at least 1), shape (K,);
    `squares_within` the sum of its images' squared deviations from the prompt's mean. Degrees of freedom: effective_number() - 1.
    """
    n_prompts, n_images = len(sums), int(counts.sum())
    mean = float(sums.sum()) / n_images
    deviations = sums - mean * counts
    spread = float((squares_within + deviations**2 / counts).sum())
    independent = spread / (n_images - 1) / n_images if n_images > 1 else None
    if n_prompts == 1:
        return ClusteredMean(mean, None, None, 1, independent)
    n_effective = effective_number(counts / n_images)
    se = jackknife_error(deviations / (n_images - counts))
    return ClusteredMean(mean, se, max(1.0, n_effective - 1), n_prompts, independent, n_effective)


def jackknife_error(changes: Floats) -> float:
    """The standard error from what leaving out each of K prompts in turn changes: √((K - 1)/K Σ change²) (Tukey 1958).

    The changes of a ratio are -e_p / (N - n_p): where prompts have equally many images this is the linearised error, and where
    one holds many of them it does not hide its own weight, as that does (HC3 of MacKinnon & White 1985).
    """
    return math.sqrt(float((changes**2).sum()) * (len(changes) - 1) / len(changes))


def effective_number(shares: Floats) -> float:
    """How many equal shares of a mean weigh as these, whose sum is 1: 1 / Σ share² (Kish 1965)."""
    return rounded(1 / float((shares**2).sum()))


def mean_within(
    sums: Floats, counts: Counts, squares_within: Floats, distinct: tuple[Counts, Floats] | None = None
) -> ClusteredMean:
    """The same mean where these prompts are all there are: each is a stratum and only its images vary (Cochran 1977, ch. 5).

    A prompt with one image has the variance pooled over the others; without any other, se and df are None. `distinct`: where
    images stand there again, each prompt's number of distinct ones, and the sum over these of (times it stands there x deviation
    from the prompt's mean) squared: they are the clusters, and an image that stands there twice has twice the weight.
    """
    n_distinct, squares = distinct or (counts, squares_within)
    n_images, n_prompts = int(counts.sum()), len(sums)
    mean = float(sums.sum()) / n_images
    spread = float((squares_within + (sums - mean * counts) ** 2 / counts).sum())
    independent = spread / (n_images - 1) / n_images if n_images > 1 else None
    several = n_distinct > 1
    if not several.any():
        return ClusteredMean(mean, None, None, n_prompts, independent)
    n, each = n_distinct[several], squares[several]
    freedom, weights = int((n - 1).sum()), (counts / n_distinct) ** 2
    parts = n * each / (n - 1) / n_images**2
    alone = float(weights[~several].sum()) * float(each.sum()) / float((weights[several] * (n - 1)).sum()) / n_images**2
    known, below = float(parts.sum()), float((parts**2 / (n - 1)).sum())
    df = known**2 / below if below > 0 else float(freedom)
    return ClusteredMean(mean, math.sqrt(known + alone), df, n_prompts, independent)


def mean_of_means(strata: Sequence[ClusteredMean]) -> ClusteredMean:
    """The unweighted mean of category means; its error is that of error_over_strata()."""
    n_strata, n_prompts = len(strata), sum(stratum.n_prompts for stratum in strata)
    mean = math.fsum(stratum.mean for stratum in strata) / n_strata
    known = [s.variance_if_independent for s in strata if s.variance_if_independent is not None]
    independent = math.fsum(known) / n_strata**2 if len(known) == n_strata else None
    sizes = np.array([stratum.n_equal for stratum in strata])
    n_effective = n_strata**2 / float((1 / sizes).sum())
    errors = [(stratum.se, stratum.df) for stratum in strata if stratum.se is not None and stratum.df is not None]
    if len(errors) < n_strata:
        return ClusteredMean(mean, None, None, n_prompts, independent, n_effective)
    se, df = np.array(errors).T
    return ClusteredMean(mean, *error_over_strata(se**2 * sizes, df, sizes), n_prompts, independent, n_effective)


def error_over_strata(variances: Floats, df: Floats, sizes: Floats) -> tuple[float, float]:
    """Standard error and degrees of freedom (Satterthwaite 1946) of the unweighted mean of C strata's means.

    `variances` of a prompt in each stratum, their `df`, and the strata's numbers of prompts, shape (C,): Σ variance / size / C²,
    a still stratum with the variance of where_still().
    """
    parts = where_still(variances, df, sizes) / sizes / len(sizes) ** 2
    variance, below = math.fsum(parts), math.fsum(parts**2 / df)
    return math.sqrt(variance), variance**2 / below if below > 0 else math.fsum(df)


def where_still(variances: Floats, df: Floats, sizes: Floats) -> Floats:
    """The variances of a prompt in each stratum; where a stratum has none, min(1, STILL / size) of that pooled over the others.

    That K prompts said the same does not say that all would: if a share q would not, it happens with the chance (1 - q)^K, which
    is over e^-STILL up to q = STILL / K. So large a share is taken to vary as prompts do elsewhere. All 0 where none varies.
    """
    is_still = variances <= _ZERO_VARIANCE * variances.max(initial=0.0)
    if is_still.all() or not is_still.any():
        return variances
    pooled = float((df * variances)[~is_still].sum() / df[~is_still].sum())
    return np.where(is_still, pooled * np.minimum(1.0, STILL / sizes), variances)


def interval(
    estimate: ClusteredMean, low: float, high: float, level: float = LEVEL, *, allows_for_skew: bool = False
) -> Interval | CellReason:
    """Wilson's (1927) score interval with a t quantile and the effective sample size m(1 - m)/se² of the mean m on [0, 1].

    For complex surveys: Dean & Pagano (2015), Franco et al. (2019). It cannot leave [low, high]. Where se is 0 at an end
    of the scale the effective sample size is that of prompts (n_equal); elsewhere on it no interval exists: the reason.
    `allows_for_skew`: each end with the variance that means of prompts would have there, if larger (_growth()).
    """
    if estimate.se is None or estimate.df is None:
        return CellReason.TOO_FEW_PROMPTS
    width = high - low
    share = min(1.0, max(0.0, (estimate.mean - low) / width))
    relative = estimate.se / width
    is_at_end = min(share, 1 - share) <= _ZERO
    if relative <= _ZERO and not is_at_end:
        return CellReason.NO_VARIATION
    most = share * (1 - share)
    n_effective = estimate.n_equal if relative <= _ZERO or is_at_end else most / relative**2
    squared = t_quantile(level, estimate.df) ** 2
    bottom, top = _wilson(share, n_effective, squared)
    if allows_for_skew and not is_at_end:
        binomial = min(1.0, estimate.n_equal / n_effective)
        bottom = _wilson(share, n_effective / _growth(bottom, most, binomial), squared)[0]
        top = _wilson(share, n_effective / _growth(top, most, binomial), squared)[1]
    return Interval(low + width * max(0.0, min(bottom, share)), low + width * min(1.0, max(top, share)))


def _wilson(share: float, n: float, squared: float) -> tuple[float, float]:
    """Both ends for a share of n, `squared` being the quantile's square."""
    middle = share + squared / (2 * n)
    half = math.sqrt(squared * share * (1 - share) / n + (squared / (2 * n)) ** 2)
    return (middle - half) / (1 + squared / n), (middle + half) / (1 + squared / n)


def _growth(end: float, most: float, binomial: float) -> float:
    """How much more a prompt's mean would vary, if at all, than Wilson's interval allows for, were the truth at its `end`.

    Wilson's variance goes with u(1 - u) = `most`, which is right for prompts that say all or nothing. Where they vary less, by
    the share `binomial` of that, it falls faster towards the scale's ends (of beta distributions with its square): a mean that
    came out near an end has too small a standard error. (u(1 - u))^1.5 is between, and was chosen by measurement.
    """
    ratio = max(0.0, end * (1 - end)) / most
    return max(1.0, binomial + (1 - binomial) * math.sqrt(ratio))


def t_quantile(level: float, df: float) -> float:
    """The two-sided Student t quantile, to 12 digits: the last ones differ between processors, published bytes may not."""
    return rounded(float(scipy.special.stdtrit(df, (1 + level) / 2)))


def rounded(value: float) -> float:
    """To 12 digits: the last ones differ between processors, published bytes may not."""
    return float(f"{value:.12g}")


def on_grid(values: Floats, size: float | None = None, digits: int = 12) -> Floats:
    """To 12 digits of `size` (None: of the largest value): equal means of decimals are then equal. In floats 0.1 + 0.2 > 0.3."""
    size = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0)) if size is None else size
    return np.round(values, digits - 1 - int(f"{size:e}".partition("e")[2]))


def without_rounding(deviations: Floats, size: Floats | float) -> Floats:
    """0 where a deviation of numbers of this size is but their rounding: the mean of many 0.7 is not 0.7 in floats."""
    return np.where(np.abs(deviations) > _ZERO * size, deviations, 0.0)
