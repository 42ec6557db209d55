"""An EWMA of nights and its standard error, the baseline's own error included; and how false alarms are shared out.

Formulae, assumptions and sources stand in docs/nights.md. What an alarm is blamed on is charts.py.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import stdtr, stdtrit

Floats = npt.NDArray[np.float64]

LAMBDA = 0.3  # weight of the newest night: the best of those tried for a change found within five nights
N_BASELINE = 30
SPREAD_FLOOR = 0.0005  # of the scale's width: what moves less from night to night is taken to move so much
FAMILY_ALPHA = 0.009  # expected false alarms a night, over all series of a benchmark together: a tenth less than the 1 % allowed
HEADLINE_SHARE = 5 / 6  # of FAMILY_ALPHA, for the series of headline dimensions, where such are named
_DIGITS = 12  # of quantiles: mathematics libraries differ between processors in the last ones


@dataclass(frozen=True, slots=True)
class Chart:
    """`deviation` is the EWMA less the baseline's mean, `se` its standard error; both NaN during the baseline, shape (T,)."""

    mean: float
    sd: float
    deviation: Floats
    se: Floats


def chart(values: Floats, bridge_se: Floats, n_baseline: int, floor: float) -> Chart | None:
    """The EWMA of the nights behind the first `n_baseline`; None where there are not so many.

    `bridge_se` is the standard error of each night's bridge, taken as one common error of all bridged nights; `floor` the
    least standard deviation. deviation / se follows Student's t with n_baseline - 1 degrees of freedom where nothing changed.
    """
    n_nights = len(values)
    if n_nights < n_baseline:
        return None
    baseline = values[:n_baseline]
    mean = math.fsum(baseline) / n_baseline
    sd = max(math.sqrt(math.fsum((baseline - mean) ** 2) / (n_baseline - 1)), floor)
    common = math.fsum(bridge_se[:n_baseline]) / n_baseline
    deviation, se = np.full(n_nights, np.nan), np.full(n_nights, np.nan)
    level = error = 0.0
    for night in range(n_baseline, n_nights):
        level += LAMBDA * (float(values[night]) - mean - level)
        error += LAMBDA * (float(bridge_se[night]) - common - error)
        deviation[night] = level
        se[night] = math.sqrt(sd**2 * variance_factor(night - n_baseline + 1, n_baseline) + error**2)
    return Chart(mean, sd, deviation, se)


def variance_factor(n_since: int, n_baseline: int) -> float:
    """Variance of the EWMA of `n_since` nights about the mean of `n_baseline` nights, for nights of variance 1."""
    kept = (1 - LAMBDA) ** n_since
    return LAMBDA / (2 - LAMBDA) * (1 - kept**2) + (1 - kept) ** 2 / n_baseline


def night_alpha(n_baseline: int) -> float:
    """The false alarms a night that keep 95 % of quiet 30-night windows without one: see the table in docs/nights.md."""
    return 0.0025 if n_baseline <= N_BASELINE else 0.002


def shared_alpha(n_headline: int, n_other: int, *, is_headline: bool, n_baseline: int) -> float:
    """A series' probability of a false alarm on a night (Bonferroni, weighted); never above night_alpha().

    Headline series share HEADLINE_SHARE of FAMILY_ALPHA and the others the rest; where there is one kind, it has all.
    """
    if not n_headline or not n_other:
        share = FAMILY_ALPHA / max(n_headline, n_other)
    elif is_headline:
        share = FAMILY_ALPHA * HEADLINE_SHARE / n_headline
    else:
        share = FAMILY_ALPHA * (1 - HEADLINE_SHARE) / n_other
    return min(night_alpha(n_baseline), share)


def quantile(alpha: float, df: int) -> float:
    """Two-sided Student quantile."""
    return float(np.round(stdtrit(df, 1 - alpha / 2), _DIGITS))


def p_value(deviation: pl.Series, se: pl.Series, df: int) -> pl.Series:
    """Two-sided p of no change; null where there is no deviation."""
    ratio = (deviation / se).abs()
    found = np.round(2 * stdtr(df, -ratio.to_numpy()), _DIGITS)
    return pl.Series(found).fill_nan(None)
