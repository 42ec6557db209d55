"""What is known of a comparison that is asked until it is decided: p and interval that hold however often one looks."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from schemas.statuses.cells import Total
from tasks.aggregate.intervals import ClusteredMean, Floats
from tasks.aggregate.preferences.betting import anytime_interval, anytime_p
from tasks.aggregate.preferences.cells import ends, score_test
from tasks.aggregate.preferences.prompts import MIDDLE, Checkpoint, Pairs

WATCHED = 0.1
"""The share of the error rate that is spent on looking; the rest is for the test once all prompts were asked."""


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
    """The prompts of one comparison as values of [0, 1] whose mean is one half where the macro win rate is; (prompts,)."""

    values: Floats
    largest_weight: float
    is_complete: bool

    def p(self, mean: ClusteredMean) -> float:
        """A tenth of the error rate on looking, nine tenths on the score test of all prompts."""
        looked = anytime_p(self.values, MIDDLE) / WATCHED
        tested = score_test(mean) if self.is_complete else None
        return min(1.0, looked, math.inf if tested is None else tested / (1 - WATCHED))

    def ends(self, mean: ClusteredMean, level: float) -> tuple[float, float]:
        """The interval that leaves one half out exactly where p is under 1 - level."""
        low, high = anytime_interval(self.values, WATCHED * (1 - level))
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
        judged = of_pair.filter(pl.col("n") > 0)
        means = judged["value"].to_numpy() / judged["n"].to_numpy()
        values = MIDDLE + each[judged["category"].to_numpy()] * (means - MIDDLE)
        met = pairs.meetings[int(str(meeting))]
        is_complete = frozenset({met.a, met.b}) in exhausted
        found[int(str(meeting))] = Evidence(np.round(values, 12), largest, is_complete)
    return found
