"""The control charts of many series at once: bounded nights, their dependence, the moving average and its standard error.

Which nights make a series, and what a series may spend on false alarms: charts.py. Formulae and sources: docs/nights.md.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported where they are first used

from tasks.aggregate.intervals import Counts, Floats

LAMBDA = 0.3  # weight of the newest night: the best of those tried for a change found within five nights
BOUND, BOUND_AGAIN = 3.0, 4.5  # of the scale: how far one night counts, and one after a night as far on the same side
GROWS_AFTER = 8  # nights between one that joins the baseline and the newest, so that a new level can be found before it does
N_GROWN = 60  # nights a baseline grows to
MOST_DF = 29  # of the limits, however long the baseline: the tails of nights are heavier than the normal law's
MARGIN, MARGIN_SHORT = 1.03, 0.005  # on the standard error, and more for each night a baseline is short of SHORT
SHORT = 30
_DIGITS = 12  # of quantiles: mathematics libraries differ between processors in the last ones
OFF_CHANCE = 1 / 20  # of a night, beyond what the baseline shows: where most nights are alike, it shows few that are not
STEPS_COUNTED = 10.0  # of the smallest step seen: how far a night counts in the sd that nights have by their coarseness alone
_CUT, _STEPS = 2.0, 6  # of the scale's estimate
_KEPT = math.erf(_CUT / math.sqrt(2)) * (1 - _CUT**2) + _CUT**2 - 2 * _CUT * math.exp(-(_CUT**2) / 2) / math.sqrt(2 * math.pi)
_SAME = 1e-9  # of the floor, and of a night: what is nearer is the same but for the last digits
_LARGEST = 0.9  # autocorrelation: beyond it a baseline says next to nothing


@dataclass(frozen=True, slots=True)
class Charts:
    """By series and night, shape (S, T): the baseline and where the average stands to it; NaN (and `n` 0) before there is one.

    `n` nights of baseline with `mean`, `sd` and lag-one `autocorrelation`, as far as known on that night; `deviation` is the EWMA
    less that mean, `se` its standard error. On the last night of the first baseline the first four stand already.
    """

    n: Counts
    mean: Floats
    sd: Floats
    autocorrelation: Floats
    deviation: Floats
    se: Floats


@dataclass(slots=True)
class _Baselines:
    """What is known of each series, shape (S,): rewritten in place where a baseline has grown."""

    n: Counts
    centre: Floats
    scale: Floats
    mean: Floats
    sd: Floats
    autocorrelation: Floats
    bridge: Floats

    @classmethod
    def none(cls, n_series: int) -> "_Baselines":
        return cls(np.zeros(n_series, np.int64), *(np.full(n_series, np.nan) for _ in range(6)))

    def fit(self, rows: Counts, values: Floats, bridge_se: Floats, floor: Floats) -> None:
        """Fit these rows to all nights given, shapes (rows, n); `floor` is the least sd of each, shape (rows,)."""
        n = values.shape[1]
        centre, scale = location_and_scale(values, floor)
        kept = bounded(values, np.concatenate([np.full((len(rows), 1), np.nan), values[:, :-1]], axis=1), centre, scale)
        mean = kept.mean(axis=1)
        off = kept - mean[:, None]
        squares = (off**2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            raw = np.where(squares > 0, (off[:, 1:] * off[:, :-1]).sum(axis=1) / squares, 0.0)
        self.autocorrelation[rows] = known = np.clip(raw + (1 + 3 * np.maximum(raw, 0)) / n, 0, _LARGEST)
        shown = np.sqrt((1 - spell(known, n) / n) / (1 - 1 / n))  # of the true sd: nights that depend look alike
        self.sd[rows] = np.maximum(np.sqrt(squares / (n - 1)) / shown, floor)
        self.n[rows], self.centre[rows], self.scale[rows], self.mean[rows] = n, centre, scale, mean
        self.bridge[rows] = bridge_se.mean(axis=1)


def charts(values: Floats, bridge_se: Floats, n_baseline: int, floor: Floats, alpha: float) -> Charts:
    """Charts of series of nights in order, shape (S, T), NaN behind the last night of each; `floor` is the least sd, shape (S,).

    `bridge_se` is the standard error of each night's bridge, taken as one common error of all bridged nights. A baseline
    begins with `n_baseline` nights and grows until the first night that is out at `alpha`. No night looks at a later one.
    """
    n_series, n_nights = values.shape
    shape = (n_series, n_nights)
    found = Charts(np.zeros(shape, np.int64), *(np.full(shape, np.nan) for _ in range(5)))
    known, is_grown = _Baselines.none(n_series), np.zeros(n_series, bool)
    level, error = np.full(n_series, np.nan), np.full(n_series, np.nan)
    steps, n_last = steps_seen(values, n_baseline, floor) if n_nights >= n_baseline else values, 0
    for night in range(n_baseline - 1, n_nights):
        n = min(max(n_baseline, night - GROWS_AFTER), max(N_GROWN, n_baseline))
        rows = np.flatnonzero(~np.isnan(values[:, night]) & ~is_grown)
        refit = rows if n != n_last else rows[steps[rows, night] != steps[rows, night - 1]]
        if len(refit):
            least = np.maximum(floor[refit], sd_of_steps(values[refit, :n], steps[refit, night]))
            known.fit(refit, values[refit, :n], bridge_se[refit, :n], least)
        n_last = n
        if night < n_baseline:
            level, error = known.mean.copy(), known.bridge.copy()
        else:
            here = bounded(values[:, night, None], values[:, night - 1, None], known.centre, known.scale)[:, 0]
            level += LAMBDA * (here - level)
            error += LAMBDA * (bridge_se[:, night] - error)
            found.deviation[:, night] = level - known.mean
            variance = (margin(known.n) * known.sd) ** 2 * variance_factor(night - n_baseline + 1, known.n, known.autocorrelation)
            found.se[:, night] = np.sqrt(variance + (error - known.bridge) ** 2)
            with np.errstate(invalid="ignore"):
                limit = quantiles(np.full(n_series, alpha), degrees_of_freedom(known.n)) * found.se[:, night]
                is_grown |= np.abs(found.deviation[:, night]) > limit
        for name in ("n", "mean", "sd", "autocorrelation"):
            getattr(found, name)[:, night] = getattr(known, name)
    return found


def steps_seen(values: Floats, n_baseline: int, floor: Floats) -> Floats:
    """By night, the smallest step from the first baseline's median that any night took so far, shape (S, T); 0 before one did."""
    off = np.abs(values - np.median(values[:, :n_baseline], axis=1)[:, None])
    with np.errstate(invalid="ignore"):
        known = np.where(off > _SAME * floor[:, None] + _SAME * np.abs(values), off, np.inf)
    smallest = np.minimum.accumulate(known, axis=1)
    return np.where(np.isinf(smallest), 0.0, smallest)


def sd_of_steps(values: Floats, step: Floats) -> Floats:
    """The sd that nights have by their coarseness alone, shape (S,): a mean of few yes or no stands still, or moves a whole step.

    Of the nights counted up to STEPS_COUNTED smallest steps from their median, and the furthest of them with OFF_CHANCE again:
    how often rare nights are off, a baseline that shows none or one hardly says. Of nights of many small steps it is less
    than their sd.
    """
    centre, most = np.median(values, axis=1)[:, None], (STEPS_COUNTED * step)[:, None]
    counted = np.clip(values - centre, -most, most)
    furthest = np.maximum(step, np.abs(counted).max(axis=1))
    return np.asarray(np.sqrt(counted.var(axis=1) + OFF_CHANCE * furthest**2))


def location_and_scale(values: Floats, floor: Floats) -> tuple[Floats, Floats]:
    """Centre and scale of each row, shape (S, n), that no few nights carry away: Huber's (1981) proposal 2, cut at 2, six steps.

    From median and median absolute deviation on; the scale of normal nights is their standard deviation, and at least `floor`.
    """
    centre = np.median(values, axis=1)
    scale = np.maximum(1.4826 * np.median(np.abs(values - centre[:, None]), axis=1), floor)
    for _ in range(_STEPS):
        cut = (_CUT * scale)[:, None]
        kept = np.clip(values, centre[:, None] - cut, centre[:, None] + cut)
        centre = kept.mean(axis=1)
        scale = np.maximum(kept.std(axis=1, ddof=1) / math.sqrt(_KEPT), floor)
    return centre, scale


def bounded(values: Floats, before: Floats, centre: Floats, scale: Floats) -> Floats:
    """The nights, shape (S, n), at most BOUND scales off the centre: one outlier moves no average far.

    A night counts up to BOUND_AGAIN scales as far as the night before it was off on the same side: that is no outlier any more.
    """
    off, earlier = values - centre[:, None], before - centre[:, None]
    one, two = (BOUND * scale)[:, None], (BOUND_AGAIN * scale)[:, None]
    again = np.where(np.sign(off) == np.sign(earlier), np.clip(np.abs(earlier), one, two), one)
    return np.asarray(centre[:, None] + np.sign(off) * np.minimum(np.abs(off), again))


def spell(autocorrelation: Floats, n: int | Counts) -> Floats:
    """N times the variance of the mean of n nights of variance 1 whose autocorrelation falls off geometrically (AR(1))."""
    phi = autocorrelation
    return np.asarray((1 + phi) / (1 - phi) - 2 * phi * (1 - phi**n) / (n * (1 - phi) ** 2))


def variance_factor(n_since: int, n_baseline: Counts, autocorrelation: Floats) -> Floats:
    """Variance of the EWMA of `n_since` nights about the baseline's mean, for nights of variance 1; shape (S,).

    The covariance of the two is left out: it is positive, so the variance is a little too large.
    """
    kept = 1 - LAMBDA
    lags = np.arange(1, min(n_since, 100))
    inner = (autocorrelation[:, None] * kept) ** lags * (1 - kept ** (2 * (n_since - lags)))
    average = LAMBDA / (2 - LAMBDA) * (1 - kept ** (2 * n_since) + 2 * inner.sum(axis=1))
    n = np.maximum(n_baseline, 1)
    return np.asarray(average + (1 - kept**n_since) ** 2 * spell(autocorrelation, n) / n)


def margin(n_baseline: Counts) -> Floats:
    """What a standard error is multiplied with for what so few nights say of their dependence: set by simulation."""
    return MARGIN + MARGIN_SHORT * np.maximum(0, SHORT - n_baseline)


def degrees_of_freedom(n_baseline: Counts | Floats) -> Floats:
    """Of the limits, by the nights of the baseline."""
    return np.asarray(np.clip(n_baseline - 1.0, 1, MOST_DF))


def quantiles(alpha: Floats, df: Floats) -> Floats:
    """Two-sided Student quantiles, element by element."""
    return np.asarray(np.round(scipy.special.stdtrit(df, 1 - alpha / 2), _DIGITS))


def p_values(ratio: Floats, df: Floats) -> Floats:
    """Two-sided p of a deviation of so many standard errors; NaN where there is none."""
    return np.asarray(np.round(2 * scipy.special.stdtr(df, -np.abs(ratio)), _DIGITS))
