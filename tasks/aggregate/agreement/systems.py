"""Whether a judge puts the checkpoints in the order people do: figures of the `agreement` table over checkpoints, not samples."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement.metrics import MIN_PROMPTS
from tasks.aggregate.comparisons.families import ALPHA
from tasks.aggregate.intervals import Floats, t_quantile, without_rounding

MIN_SYSTEMS = 3
Ends = tuple[float, float]


class Ordered(NamedTuple):
    """Two checkpoints: 1 where both sides order them alike, -1 where the other way round, 0 in a tie; whether it is sure."""

    sign: float
    is_sure: bool
    is_compared: bool = True


def system_figures(judged: Floats, labels: Floats) -> dict[AgreementMetric, tuple[float, Ends]]:
    """Each figure with its interval, from means of prompts over the same samples on both sides; shape (systems, prompts).

    NaN where there is none; empty under MIN_SYSTEMS, and where no two share two prompts. Two checkpoints are compared over the
    prompts that both have; those that share too few are in the interval alone: nobody knows their order. The interval of figures
    of order holds every order the data leave open: of the P pairs those are sure whose differences, the judge's and people's,
    both leave 0 out at level 1 - ALPHA/P (where all are equal, by the sign test); the others may be either. So it covers in at
    least 95 % of cases; replicates of an order, which noise can only break, would not.
    """
    kept = has_enough(judged, labels)
    judged, labels = judged[kept], labels[kept]
    is_there = ~np.isnan(judged) & ~np.isnan(labels)
    if len(judged) < MIN_SYSTEMS:
        return {}
    n_pairs = len(judged) * (len(judged) - 1) // 2
    sizes = np.array([float(np.nanmax(np.abs(side))) for side in (judged, labels)])
    pairs = [
        _ordered(judged[a, both] - judged[b, both], labels[a, both] - labels[b, both], sizes, 1 - ALPHA / n_pairs)
        for a, b in combinations(range(len(judged)), 2)
        for both in [is_there[a] & is_there[b]]
    ]
    n_compared = sum(pair.is_compared for pair in pairs)
    if not n_compared:
        return {}
    sure = sum(pair.sign for pair in pairs if pair.is_sure)
    n_open = sum(not pair.is_sure for pair in pairs)
    tau, ends = sum(pair.sign for pair in pairs) / n_compared, ((sure - n_open) / n_pairs, (sure + n_open) / n_pairs)
    n_alike = sum(pair.sign > 0 for pair in pairs)
    n_sure_alike = sum(pair.is_sure and pair.sign > 0 for pair in pairs)
    return {
        AgreementMetric.SYSTEM_KENDALL_TAU: (tau, ends),
        AgreementMetric.SYSTEM_PAIRWISE_ACCURACY: (
            n_alike / n_compared,
            (n_sure_alike / n_pairs, (n_sure_alike + n_open) / n_pairs),
        ),
    }


def has_enough(judged: Floats, labels: Floats) -> npt.NDArray[np.bool_]:
    """Which systems have a number of both for MIN_PROMPTS prompts; shape (systems,)."""
    enough: npt.NDArray[np.bool_] = (~np.isnan(judged) & ~np.isnan(labels)).sum(axis=1) >= MIN_PROMPTS
    return enough


def _ordered(judged: Floats, labels: Floats, sizes: Floats, level: float) -> Ordered:
    """The differences of two checkpoints by prompt, on either side; `sizes`, shape (2,), of the numbers they are made of."""
    n = len(judged)
    if n < 2:
        return Ordered(0.0, is_sure=False, is_compared=False)
    means = without_rounding(np.array([side.mean() for side in (judged, labels)]), sizes)
    errors = without_rounding(np.array([side.std(ddof=1) for side in (judged, labels)]), sizes) / n**0.5
    # two or three that happen to be equal do not show that none differs: of equal ones the sign test decides
    are_enough = 2.0 ** (1 - n) < 1 - level
    ends = t_quantile(level, float(n - 1)) * errors
    is_sure = bool(np.all((np.abs(means) > ends) & (are_enough | (errors > 0))))
    return Ordered(float(np.sign(means[0]) * np.sign(means[1])), is_sure)
