"""Whether the failures of two cells differ: how many there are, and whether they fall where scores are low."""

import math

import numpy as np
import scipy  # its parts are imported where they are first used

from tasks.aggregate.comparisons.sign_flip import SAME
from tasks.aggregate.intervals import rounded
from tasks.aggregate.judged import Array
from tasks.aggregate.tallies import Tally


def failures_tested(a: Tally | None, b: Tally | None) -> dict[str, object]:
    """P of both questions about failures; `fails_low` is the end that `p_failures_low` is of. Of a total over all categories."""
    found = failures_p(a, b) if a and b else None
    if a is None or b is None or found is None:
        return {"p_failures": None}
    low = {"a": failures_low_p(a, b), "b": failures_low_p(b, a)}
    known = {end: p for end, p in low.items() if p is not None}
    end = min(known, key=lambda end: known[end], default=None)
    return {
        "p_failures": found[0], "p_failures_least": found[1], "fails_low": end,
        "p_failures_low": None if end is None else min(1.0, 2 * known[end]),
    }  # fmt: skip


def failures_p(a: Tally, b: Tally) -> tuple[float, float] | None:
    """Exact two-sided sign test over prompts: on as many of them a fails more often as b does. None without a shared prompt.

    The p, and the least that so many prompts could have had: 1 where fewer than two differ.
    """
    share_a, prompts_a = a.failed_shares
    share_b, prompts_b = b.failed_shares
    if not np.array_equal(prompts_a, prompts_b):
        shared, in_a, in_b = np.intersect1d(prompts_a, prompts_b, assume_unique=True, return_indices=True)
        if not len(shared):
            return None
        share_a, share_b = share_a[in_a], share_b[in_b]
    n_more, n_less = int((share_a > share_b + SAME).sum()), int((share_b > share_a + SAME).sum())
    least = min(1.0, 2.0 ** (1 - n_more - n_less))
    if n_more == n_less:
        return 1.0, least
    return rounded(min(1.0, 2.0 * float(scipy.special.bdtr(min(n_more, n_less), n_more + n_less, 0.5)))), least


def failures_low_p(a: Tally, b: Tally) -> float | None:
    """One-sided p that a's failures fall no more on prompts that b scores low than on others; None where a has no failure.

    Van Elteren's (1960) stratified rank test: in each category a's share of failures against the rank of b's mean, prompts
    permuted. The normal law is conservative here, since a sum of few ranks has no tails.
    """
    off, variance = 0.0, 0.0
    for category, mine in a.by_category.items():
        other = b.by_category.get(category)
        if other is None or other.scored is None:
            continue
        share, prompts = mine.failed_shares
        sums, counts, _, scored = other.scored
        _, here, there = np.intersect1d(prompts, scored, assume_unique=True, return_indices=True)
        if len(here) < 2:
            continue
        failing, rank = share[here] - share[here].mean(), _ranks((sums / counts)[there])
        rank = (rank - rank.mean()) / (len(here) + 1)
        off += float((failing * rank).sum())
        variance += float((failing**2).sum()) * float((rank**2).sum()) / (len(here) - 1)
    return rounded(float(scipy.special.ndtr(off / math.sqrt(variance)))) if variance > SAME**2 else None


def _ranks(values: Array) -> Array:
    """Ranks from 1, those of equal values their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])
