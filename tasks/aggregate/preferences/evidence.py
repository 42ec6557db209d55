"""Evidence of a comparison that is asked until it is decided: p and interval that hold however often one looks.

A gambler who bets on values of [0, 1] whose mean is m gets no richer on average, whatever his stakes: capital of 1/α or more at
any time at all has a chance of at most α (Ville 1939). A mean is left out where somebody got that rich betting against it
(Waudby-Smith & Ramdas, JRSS B 86, 2024). Here capital is spread over fixed stakes, so that no order of the prompts matters.

What has no verdict is lost by whoever bets on it: the capital is then at most what it would be with every verdict, so the same
bound holds whatever failed and why. Left out, unequal failures would tilt the categories' weights, and equals would look apart.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from schemas.lineage import Checkpoint
from schemas.statuses.cells import Total
from tasks.aggregate.intervals import ClusteredMean, Floats, rounded
from tasks.aggregate.preferences.cells import ends, score_test
from tasks.aggregate.preferences.prompts import MIDDLE, Pairs

WATCHED = 0.1
"""The share of the error rate that is spent on looking; the rest is for the test once all prompts were asked."""


_STAKES = np.geomspace(1 / 64, 0.95, 16)
"""Shares of the largest stake that cannot lose more than everything; capital is spread evenly over them."""
_N_HALVINGS = 45


def log_capital(low: Floats, high: Floats, mean: float) -> float:
    """Logarithm of the capital made of 1 by betting against this mean: half on a higher one, half on a lower; of the better half.

    `low` and `high` in [0, 1], in any order: the ends of what each value can be, both the value itself where it is known; `mean`
    inside (0, 1). 0 without values.
    """
    return max(_on_higher(low, mean), _on_higher(1 - high, 1 - mean)) if len(low) else 0.0


def _on_higher(values: Floats, mean: float) -> float:
    """The same of the half that bets on a higher mean; it falls as the mean rises."""
    known, counts = np.unique(values, return_counts=True)
    grown = (np.log1p(_STAKES[:, None] * (known / mean - 1)) * counts).sum(axis=1)
    top = grown.max()
    return float(top + np.log(np.exp(grown - top).mean()) - np.log(2))


def anytime_p(low: Floats, high: Floats, mean: float) -> float:
    """P of this mean that holds however often one looked before: 1 over the capital; to 12 digits, as all published p."""
    return rounded(min(1.0, np.exp(-log_capital(low, high, mean))))


def anytime_interval(low: Floats, high: Floats, alpha: float) -> tuple[float, float]:
    """The means with anytime_p() of alpha or more: a confidence sequence, which holds at all times at once."""
    needed = float(np.log(1 / alpha))
    start = _edge(lambda mean: _on_higher(low, mean) > needed)
    return start, 1 - _edge(lambda mean: _on_higher(1 - high, mean) > needed)


def _edge(is_out: Callable[[float], bool]) -> float:
    """The largest mean that is left out from below; 0 where none is."""
    low, high = 0.0, 1.0
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_out(middle) else (low, middle)
    return round(low, 9)


@dataclass(frozen=True, slots=True)
class Plan:
    """How many prompts each category has (null: those without one), and the pairs that have no prompt left to be asked about."""

    n_prompts: Mapping[str | None, int]
    exhausted: Collection[tuple[Checkpoint, Checkpoint]] = ()

    @property
    def weights(self) -> dict[str, float]:
        """What a prompt of each category weighs so that categories weigh the same; on average over the prompts 1."""
        known = {name or Total.UNNAMED.value: n for name, n in self.n_prompts.items() if n}
        return {name: sum(known.values()) / len(known) / n for name, n in known.items()}


@dataclass(frozen=True, slots=True)
class Evidence:
    """The prompts of one comparison as values of [0, 1] whose mean is one half where the macro win rate is; (prompts,) each.

    `low` and `high` differ where verdicts are missing: the ends of what the value can have been.
    """

    low: Floats
    high: Floats
    largest_weight: float
    is_complete: bool

    def p(self, mean: ClusteredMean) -> float:
        """A tenth of the error rate on looking, nine tenths on the score test of all prompts."""
        looked = anytime_p(self.low, self.high, MIDDLE) / WATCHED
        tested = score_test(mean) if self.is_complete else None
        return min(1.0, looked, math.inf if tested is None else tested / (1 - WATCHED))

    def ends(self, mean: ClusteredMean, level: float) -> tuple[float, float]:
        """The interval that leaves one half out exactly where p is under 1 - level."""
        low, high = anytime_interval(self.low, self.high, WATCHED * (1 - level))
        low, high = (MIDDLE + self.largest_weight * (end - MIDDLE) for end in (low, high))
        tested = ends(mean, 1 - (1 - WATCHED) * (1 - level)) if self.is_complete else None
        if tested is not None:
            low, high = max(low, tested[0]), min(high, tested[1])
        return max(0.0, min(low, mean.mean)), min(1.0, max(high, mean.mean))


def evidence_of(parts: pl.DataFrame, pairs: Pairs, plan: Plan) -> dict[int, Evidence]:
    """By meeting, from the sums of one judge by meeting, category and prompt. Prompts must have been taken in a drawn order."""
    weights = plan.weights
    largest = max(weights.values(), default=1.0)
    each = np.array([weights.get(name, 0.0) / largest for name in pairs.categories])
    exhausted = {frozenset(pair) for pair in plan.exhausted}
    found = {}
    for (meeting,), of_pair in parts.group_by("meeting", maintain_order=True):
        weight, n_pairs = each[of_pair["category"].to_numpy()], of_pair["n_pairs"].to_numpy()
        low, high = (np.round(MIDDLE + weight * (of_pair[end].to_numpy() / n_pairs - MIDDLE), 12) for end in ("low", "high"))
        met = pairs.meetings[int(str(meeting))]
        is_complete = frozenset({met.a, met.b}) in exhausted
        found[int(str(meeting))] = Evidence(low, high, largest, is_complete)
    return found
