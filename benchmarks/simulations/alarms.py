"""Several control charts in worlds that are dependent, skewed or coarse (`python -m benchmarks.simulations.alarms`).

For each chart: the share of quiet 30-night windows with an alarm, right behind the baseline and the window after, at the most one
series may spend; and the share of drops found in time. The last chart is the one Salon publishes. The standard deviation
between nights is nights.NIGHT_SD in every world but the coarse ones, whose nights are means of few whole steps: for these the
published chart alone. Exit code 1 where a number that docs/nights.md gives does not hold.
"""

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import special

from benchmarks.simulations.nights import NIGHT_SD
from benchmarks.simulations.one_series import COARSE, COARSE_CHART, FALLS, N_QUIET, WINDOW, against_limits, falls
from tasks.aggregate.drift import ewma
from tasks.aggregate.drift.charts import NIGHT_ALPHA

Floats = np.ndarray
Chart = Callable[[Floats, int], Floats]
"""Nights and the length of the first baseline -> the nights behind it as multiples of their limit."""
ALLOWED = 0.06  # of quiet windows


def dependent(autocorrelation: float) -> Callable[[np.random.Generator, tuple[int, int]], Floats]:
    """Normal nights of variance 1, each as far on the side of the one before."""

    def drawn(draw: np.random.Generator, shape: tuple[int, int]) -> Floats:
        nights = draw.standard_normal(shape)
        fresh = math.sqrt(1 - autocorrelation**2)
        for night in range(1, shape[1]):
            nights[:, night] = autocorrelation * nights[:, night - 1] + fresh * nights[:, night]
        return nights

    return drawn


WORLDS: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "independent": dependent(0.0),
    "AR 0.2": dependent(0.2),
    "AR 0.4": dependent(0.4),
    "t3": lambda draw, shape: draw.standard_t(3, shape) / math.sqrt(3),
    "skewed": lambda draw, shape: (draw.chisquare(3, shape) - 3) / math.sqrt(6),
    "exponential": lambda draw, shape: draw.exponential(1, shape) - 1,
}
ASKED = ("independent", "AR 0.2", "AR 0.4", "t3", "skewed")


@dataclass(frozen=True)
class Drop:
    """A change of the mean and how soon it is to be found; `each_night` where it goes on growing."""

    size: float
    within: int
    at_least: float | None = None
    each_night: bool = False

    def nights(self, draw: np.random.Generator, n_draws: int, n_baseline: int) -> Floats:
        quiet = WORLDS["independent"](draw, (n_draws, n_baseline + N_QUIET + self.within))
        since = np.maximum(np.arange(quiet.shape[1]) - (n_baseline + N_QUIET) + 1, 0)
        return quiet - self.size / NIGHT_SD * (since if self.each_night else since > 0)

    @property
    def name(self) -> str:
        """Such as "0.05 in 10"."""
        return f"{self.size:g}{' a night' if self.each_night else ''} in {self.within}"


DROPS = (
    Drop(0.05, 10, 0.85), Drop(0.07, 5, 0.90), Drop(0.1, 3), Drop(0.2, 1), Drop(0.2, 2), Drop(0.03, 20),
    Drop(0.004, 20, each_night=True),
)  # fmt: skip


def textbook(nights: Floats, n: int, *, is_bounded: bool = False, is_dependent: bool = False) -> Floats:
    """The EWMA about a baseline of n nights for good: with Student's limits, and with one or both of what the new chart adds."""
    known = _fitted(nights, n, is_bounded=is_bounded, is_dependent=is_dependent)
    since = known.nights[:, n:] - known.mean[:, None]
    level, found = np.zeros(len(nights)), np.empty(since.shape)
    limit = ewma.quantiles(np.array(NIGHT_ALPHA), np.array(n - 1.0)) * known.sd
    for night in range(since.shape[1]):
        level = level + ewma.LAMBDA * (since[:, night] - level)
        found[:, night] = level / limit / np.sqrt(ewma.variance_factor(night + 1, np.full(len(nights), n), known.phi))
    return found


def means(nights: Floats, n: int, limit: float = 3.7) -> Floats:
    """The furthest off of the means of the last 1, 2, … 10 nights, bounded, their dependence estimated."""
    known = _fitted(nights, n, is_bounded=True, is_dependent=True)
    sums = np.cumsum(np.column_stack([np.zeros(len(nights)), known.nights[:, n:] - known.mean[:, None]]), axis=1)
    found = np.zeros((len(nights), nights.shape[1] - n))
    for k in range(1, 11):
        variance = ewma.spell(known.phi, k) / k + ewma.spell(known.phi, n) / n
        z = (sums[:, k:] - sums[:, :-k]) / k / (known.sd * np.sqrt(variance) * limit)[:, None]
        found[:, k - 1 :] = np.where(np.abs(z) > np.abs(found[:, k - 1 :]), z, found[:, k - 1 :])
    return found


def ranks(nights: Floats, n: int, limit: float = 2.85) -> Floats:
    """The EWMA of normal scores of each night's rank among the baseline's: free of any distribution of independent nights."""
    base = np.sort(nights[:, :n], axis=1)
    place = (nights[:, n:, None] > base[:, None, :]).sum(axis=2)
    score = special.ndtri((place + 0.5) / (n + 1))
    level, found = np.zeros(len(nights)), np.empty(score.shape)
    for night in range(score.shape[1]):
        level = level + ewma.LAMBDA * (score[:, night] - level)
        none = np.zeros(len(nights))
        found[:, night] = level / limit / np.sqrt(ewma.variance_factor(night + 1, np.full(len(nights), n), none))
    return found


def e_detector(nights: Floats, n: int, step: float, limit: float, *, grows: bool) -> Floats:
    """Shiryaev-Roberts sums of e-values for a step of so many sd up or down (Shin, Ramdas & Rinaldo 2022), nights bounded.

    Were the baseline's mean and sd the truth and nights independent, 30 / limit of windows of 30 nights would have an alarm. With
    `grows` the dependence is estimated too (a night counts for so many as it is worth), and the baseline grows.
    """
    up, down = np.zeros(len(nights)), np.zeros(len(nights))
    found = np.empty((len(nights), nights.shape[1] - n))
    known, n_known = _fitted(nights, n, is_bounded=True, is_dependent=grows), n
    for night in range(n, nights.shape[1]):
        n_now = min(max(n, night - ewma.GROWS_AFTER), ewma.N_GROWN) if grows else n
        if n_now != n_known:
            known, n_known = _fitted(nights, n_now, is_bounded=True, is_dependent=True), n_now
        z = step * (known.nights[:, night] - known.mean) / known.sd
        worth = (1 - known.phi) / (1 + known.phi)
        up = (up + 1) * np.exp(worth * (z - step**2 / 2))
        down = (down + 1) * np.exp(worth * (-z - step**2 / 2))
        found[:, night - n] = np.where(up > down, up, -down) / 2 / limit
    return found


@dataclass(frozen=True)
class _Fitted:
    nights: Floats
    mean: Floats
    sd: Floats
    phi: Floats


def _fitted(nights: Floats, n: int, *, is_bounded: bool, is_dependent: bool) -> _Fitted:
    nothing = np.zeros(len(nights))
    if is_bounded:
        before = np.column_stack([np.full(len(nights), np.nan), nights[:, :-1]])
        nights = ewma.bounded(nights, before, *ewma.location_and_scale(nights[:, :n], nothing))
    mean = nights[:, :n].mean(axis=1)
    off = nights[:, :n] - mean[:, None]
    raw = (off[:, 1:] * off[:, :-1]).sum(axis=1) / (off**2).sum(axis=1)
    phi = np.clip(raw + (1 + 3 * np.maximum(raw, 0)) / n, 0, 0.9) if is_dependent else nothing
    shown = np.sqrt((1 - ewma.spell(phi, n) / n) / (1 - 1 / n))
    return _Fitted(nights, mean, off.std(axis=1, ddof=1) / shown, phi)


CHARTS: Mapping[str, Chart] = {
    "EWMA, independent normal nights": textbook,
    "the same, dependence estimated": lambda nights, n: textbook(nights, n, is_dependent=True),
    "the same, nights bounded": lambda nights, n: textbook(nights, n, is_bounded=True),
    "both": lambda nights, n: textbook(nights, n, is_bounded=True, is_dependent=True),
    "both, means of the last 1 to 10 nights": means,
    "ranks among the baseline": ranks,
    "e-detector, nights bounded": lambda nights, n: e_detector(nights, n, 1.5, 600, grows=False),
    "e-detector, both, the baseline grows": lambda nights, n: e_detector(nights, n, 2.0, 2000, grows=True),
    "both, the baseline grows (published)": against_limits,
}


def quiet(chart: Chart, world: str, n_draws: int, seed: int, n_baseline: int = 30) -> tuple[float, float]:
    """Share of quiet windows with an alarm: right behind the baseline, and of those after."""
    draw = np.random.default_rng(seed)
    is_out = np.abs(chart((WORLDS | COARSE)[world](draw, (n_draws, n_baseline + 2 * WINDOW)), n_baseline)) > 1
    return float(is_out[:, :WINDOW].any(axis=1).mean()), float(is_out[:, WINDOW:].any(axis=1).mean())


def found(chart: Chart, drop: Drop, n_draws: int, seed: int, n_baseline: int = 30) -> float:
    """Share of drops found in time, among independent nights."""
    nights = drop.nights(np.random.default_rng(seed), n_draws, n_baseline)
    return float((chart(nights, n_baseline)[:, N_QUIET:] < -1).any(axis=1).mean())


def coarse(n_draws: int, seed: int, baselines: Sequence[int]) -> tuple[Table, int]:
    """The published chart in the coarse worlds, by the first baseline's length; and how many hold not what is asked."""
    table = Table(title="coarse nights, the published chart", box=None, title_justify="left")
    for column in ("world", *(f"baseline of {n}" for n in baselines)):
        table.add_column(column)
    n_missed = 0
    for world in COARSE:
        found_here = [quiet(COARSE_CHART, world, n_draws, seed, n) for n in baselines]
        n_missed += any(max(windows) > ALLOWED for n, windows in zip(baselines, found_here, strict=True) if n >= 30)
        table.add_row(world, *(f"{first:.1%} {after:.1%}" for first, after in found_here))
    for world, then in FALLS:
        table.add_row(f"a fall of {world}", " ".join(f"{share:.1%}" for share in falls(world, then, n_draws, seed + 1)))
    return table, n_missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--coarse", action="store_true", help="the coarse worlds alone")
    parser.add_argument("--baselines", type=int, nargs="+", default=[30], help="nights of the published one's first baseline")
    arguments = parser.parse_args()
    n, seed = arguments.draws, arguments.seed
    coarse_table, n_missed = coarse(n, seed, arguments.baselines)
    if arguments.coarse:
        Console(width=240).print(coarse_table)
        return int(n_missed > 0)
    table = Table(title=f"{n} series; quiet windows with an alarm; drops found", box=None, title_justify="left")
    for column in ("chart", *WORLDS, *(drop.name for drop in DROPS)):
        table.add_column(column)
    for name, chart in CHARTS.items():
        for n_baseline in arguments.baselines if chart is against_limits else [30]:
            windows = {world: quiet(chart, world, n, seed, n_baseline) for world in WORLDS}
            shares = [found(chart, drop, n, seed + 1, n_baseline) for drop in DROPS]
            if chart is against_limits and n_baseline == 30:
                n_missed += sum(max(windows[world]) > ALLOWED for world in ASKED)
                n_missed += sum(share < (drop.at_least or 0) for share, drop in zip(shares, DROPS, strict=True))
            cells = [f"{first:.1%} {after:.1%}" for first, after in windows.values()]
            table.add_row(f"{name}, {n_baseline}", *cells, *(f"{share:.1%}" for share in shares))
    Console(width=240).print(table)
    Console(width=240).print(coarse_table)
    return int(n_missed > 0)


if __name__ == "__main__":
    sys.exit(main())
