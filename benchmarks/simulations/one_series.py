"""One series' chart alone: quiet windows with an alarm, what noise makes a find possible, and series of few whole steps."""

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import polars as pl
from rich.table import Table

from tasks.aggregate.drift.charts import NIGHT_ALPHA, SPREAD_FLOOR, shared_alpha
from tasks.aggregate.drift.ewma import charts, degrees_of_freedom, quantiles

N_BASELINE, N_QUIET, WINDOW = 30, 15, 30
Floats = np.ndarray
World = Callable[[np.random.Generator, tuple[int, int]], Floats]


def largest_sd(drop: float, within: int, share: float, alpha: float, n_baseline: int, n_draws: int = 4000) -> float:
    """The largest standard deviation between nights with which so large a share of drops is found within so many nights."""
    draws = np.random.default_rng(9).standard_normal((n_draws, n_baseline + N_QUIET + within))
    low, high = 0.0, 20.0  # of the drop in standard deviations
    for _ in range(12):
        middle = (low + high) / 2
        moved = draws - middle * (np.arange(draws.shape[1]) >= n_baseline + N_QUIET)
        is_enough = (against_limits(moved, n_baseline, alpha)[:, N_QUIET:] < -1).any(axis=1).mean() >= share
        low, high = (low, middle) if is_enough else (middle, high)
    return drop / high


def against_limits(nights: np.ndarray, n_baseline: int, alpha: float = NIGHT_ALPHA, *, width: float = 0.0) -> np.ndarray:
    """Each night's average behind the first baseline as a multiple of its limit, of series of shape (S, T).

    `width` of the scale, where the least standard deviation that nights are given matters.
    """
    found = charts(nights, np.zeros(nights.shape), n_baseline, np.full(len(nights), SPREAD_FLOOR * width), alpha)
    limits = quantiles(np.full(nights.shape, alpha), degrees_of_freedom(found.n)) * found.se
    return (found.deviation / limits)[:, n_baseline:]


def quiet_windows(n_baseline: int, n_draws: int = 30_000) -> tuple[float, float]:
    """Share of 30 quiet nights right behind the baseline with an alarm, at the most one series may spend."""
    draws = np.random.default_rng(8).standard_normal((n_draws, n_baseline + WINDOW))
    return share_of(pl.Series((np.abs(against_limits(draws, n_baseline)) > 1).any(axis=1)))


def feasible() -> Table:
    """What night noise the two finds need, by what a series may spend on false alarms and by the baseline's length."""
    table = Table(
        title="largest sd between nights for 0.05 in 10 nights (85 %) and 0.07 in 5 (90 %)", box=None, title_justify="left"
    )
    for column in ("series that share alike", "alpha", "baseline of 30", "of 60", "of 120"):
        table.add_column(column)
    for n_series in (1, 4, 8, 18, 24, 60):
        cells = []
        for n_baseline in (30, 60, 120):
            alpha = shared_alpha(0, n_series, is_headline=False)
            cells.append(min(largest_sd(0.05, 10, 0.85, alpha, n_baseline), largest_sd(0.07, 5, 0.90, alpha, n_baseline)))
        alpha = shared_alpha(0, n_series, is_headline=False)
        table.add_row(str(n_series), f"{alpha:.5f}", *(f"{sd:.4f}" for sd in cells))
    return table


def share_of(values: pl.Series) -> tuple[float, float]:
    numbers = values.cast(pl.Float64)
    return float(numbers.mean()), float(numbers.std() / math.sqrt(len(numbers)))


def yes_or_no(n: int, share: float) -> World:
    """Nights of n answers, each yes with this chance."""
    return lambda draw, shape: draw.binomial(n, share, shape) / n


def flipped(n: int, chance: float) -> World:
    """Nights of n anchors that answer as ever, but for a flip by a tenth of the scale, up or down, with this chance."""

    def drawn(draw: np.random.Generator, shape: tuple[int, int]) -> Floats:
        flips = draw.binomial(n, chance, shape)
        return 0.7 + (2 * draw.binomial(flips, 0.5) - flips) * 0.1 / n

    return drawn


COARSE: Mapping[str, World] = {
    "400 yes/no, 0.9998": yes_or_no(400, 0.9998),
    "20 yes/no, 0.995": yes_or_no(20, 0.995),
    "100 yes/no, 0.998": yes_or_no(100, 0.998),
    "20 yes/no, 0.99": yes_or_no(20, 0.99),
    "20 yes/no, 0.97": yes_or_no(20, 0.97),
    "100 yes/no, 0.99": yes_or_no(100, 0.99),
    "20 yes/no, 0.9": yes_or_no(20, 0.9),
    "30 scores of 1-5, 0.99 fives": lambda draw, shape: 1 - draw.binomial(30, 0.01, shape) / 120,
    "50 anchors, 0.002 flip": flipped(50, 0.002),
    "50 anchors, 0.005 flip": flipped(50, 0.005),
    "means of 20, 50 and 200 yes/no, 0.997": lambda draw, shape: sum(yes_or_no(n, 0.997)(draw, shape) for n in (20, 50, 200)) / 3,
}
COARSE_CHART = partial(against_limits, width=1.0)
FALLS = (("100 yes/no, 0.998", yes_or_no(100, 0.95)), ("100 yes/no, 0.998", yes_or_no(100, 0.98)))


def falls(world: str, then: World, n_draws: int, seed: int) -> list[float]:
    """Share of falls of a coarse series found by the published chart within 1, 2, 3, 5 and 10 nights; baseline of 30."""
    draw, n_before, shape = np.random.default_rng(seed), 30 + N_QUIET, (n_draws, 30 + N_QUIET + 10)
    nights = np.where(np.arange(shape[1]) < n_before, COARSE[world](draw, shape), then(draw, shape))
    is_out = COARSE_CHART(nights, 30)[:, N_QUIET:] < -1
    return [float(is_out[:, :within].any(axis=1).mean()) for within in (1, 2, 3, 5, 10)]
