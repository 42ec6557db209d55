"""Evidence that may be looked at after every prompt: bets against a mean. What is decided by it: adaptive.py, win_rates.py.

A gambler who bets on values of [0, 1] whose mean is m gets no richer on average, whatever his stakes: capital of 1/α or more at
any time at all has a chance of at most α (Ville 1939). A mean is left out where somebody got that rich betting against it
(Waudby-Smith & Ramdas, JRSS B 86, 2024). Here capital is spread over fixed stakes, so that no order of the prompts matters.
"""

from collections.abc import Callable

import numpy as np

from tasks.aggregate.intervals import Floats, rounded

_STAKES = np.geomspace(1 / 64, 0.95, 16)
"""Shares of the largest stake that cannot lose more than everything; capital is spread evenly over them."""
_N_HALVINGS = 45


def log_capital(values: Floats, mean: float) -> float:
    """Logarithm of the capital made of 1 by betting against this mean: half on a higher one, half on a lower; of the better half.

    `values` in [0, 1], in any order; `mean` inside (0, 1). 0 without values.
    """
    return max(_on_higher(values, mean), _on_higher(1 - values, 1 - mean)) if len(values) else 0.0


def _on_higher(values: Floats, mean: float) -> float:
    """The same of the half that bets on a higher mean; it falls as the mean rises."""
    known, counts = np.unique(values, return_counts=True)
    grown = (np.log1p(_STAKES[:, None] * (known / mean - 1)) * counts).sum(axis=1)
    top = grown.max()
    return float(top + np.log(np.exp(grown - top).mean()) - np.log(2))


def anytime_p(values: Floats, mean: float) -> float:
    """P of this mean that holds however often one looked before: 1 over the capital; to 12 digits, as all published p."""
    return rounded(min(1.0, np.exp(-log_capital(values, mean))))


def anytime_interval(values: Floats, alpha: float) -> tuple[float, float]:
    """The means with anytime_p() of alpha or more: a confidence sequence, which holds at all times at once."""
    needed = float(np.log(1 / alpha))
    low = _edge(lambda mean: _on_higher(values, mean) > needed)
    return low, 1 - _edge(lambda mean: _on_higher(1 - values, mean) > needed)


def _edge(is_out: Callable[[float], bool]) -> float:
    """The largest mean that is left out from below; 0 where none is."""
    low, high = 0.0, 1.0
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_out(middle) else (low, middle)
    return round(low, 9)
