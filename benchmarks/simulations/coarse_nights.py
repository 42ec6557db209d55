"""Series near the end of their scale, whose nights are means of few whole steps: worlds of alarms.py, and falls from them."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from benchmarks.simulations.one_series import N_QUIET, against_limits

Floats = np.ndarray
World = Callable[[np.random.Generator, tuple[int, int]], Floats]


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
