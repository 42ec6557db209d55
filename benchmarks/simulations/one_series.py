"""One series' chart alone: quiet windows with an alarm, and what noise between nights makes a find possible."""

import math

import numpy as np
import polars as pl
from rich.table import Table

from tasks.aggregate.drift.charts import NIGHT_ALPHA, SPREAD_FLOOR, shared_alpha
from tasks.aggregate.drift.ewma import charts, degrees_of_freedom, quantiles

N_BASELINE, N_QUIET, WINDOW = 30, 15, 30


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
