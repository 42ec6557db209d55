"""Whether the failures of two cells differ: how many there are, and whether they fall where scores are low."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its parts are imported where they are first used

from schemas.tables.table import Row
from tasks.aggregate.comparisons.comparison_tests import SAME
from tasks.aggregate.intervals import Counts, rounded
from tasks.aggregate.judged import Array
from tasks.aggregate.tallies import Tally

PLAIN = 0.1
"""So large a p is the normal law's: nothing is claimed of it. Of ranks tied at the top, smaller ones of it are much too small."""
N_PERMUTATIONS = 2000
"""Of the prompts of a comparison at most, itself among them."""
N_AS_FAR = 20
"""After so many permutations as far off as what was seen no more are made: p is none that anything is claimed of."""
_NUMBERS_AT_ONCE = 500_000


def failures_tested(a: Tally | None, b: Tally | None) -> Row:
    """P of both questions about failures, and the end that each is of, "a" or "b". Of a total over all categories."""
    found = failures_p(a, b) if a and b else None
    if a is None or b is None or found is None:
        return {"p_failures": None}
    low = {"a": failures_low_p(a, b), "b": failures_low_p(b, a)}
    known = {end: p for end, p in low.items() if p is not None}
    end = min(known, key=lambda end: known[end], default=None)
    return {
        "p_failures": found[0], "p_failures_least": found[1], "fails_more": found[2], "fails_low": end,
        "p_failures_low": None if end is None else min(1.0, 2 * known[end]),
    }  # fmt: skip


def failures_p(a: Tally, b: Tally) -> tuple[float, float, str | None] | None:
    """Exact two-sided sign test over prompts: on as many of them a fails more often as b does. None without a shared prompt.

    The p, the least that so many prompts could have had (1 where fewer than two differ), and who fails on more, "a" or "b".
    """
    share_a, prompts_a = a.failed_shares
    share_b, prompts_b = b.failed_shares
    if not np.array_equal(prompts_a, prompts_b):
        shared, in_a, in_b = np.intersect1d(prompts_a, prompts_b, assume_unique=True, return_indices=True)
        if not len(shared):
            return None
        share_a, share_b = share_a[in_a], share_b[in_b]
    if not len(share_a):  # neither has a judgement to which the dimension applies
        return None
    n_more, n_less = int((share_a > share_b + SAME).sum()), int((share_b > share_a + SAME).sum())
    least = min(1.0, 2.0 ** (1 - n_more - n_less))
    if n_more == n_less:
        return 1.0, least, None
    p = rounded(min(1.0, 2.0 * float(scipy.special.bdtr(min(n_more, n_less), n_more + n_less, 0.5))))
    return p, least, "a" if n_more > n_less else "b"


def failures_low_p(a: Tally, b: Tally) -> float | None:
    """One-sided p that a's failures fall no more on prompts that b scores low than on others; None where a has no failure.

    Van Elteren's (1960) stratified rank test: in each category a's share of failures against the rank of b's mean, prompts
    permuted. Where the normal law says less than PLAIN, p is what permutations say, and where these are too few Chernoff's bound.
    """
    strata = list(_strata(a, b))
    off = sum(float((one.share * one.rank).sum()) for one in strata)
    variance = sum(one.variance for one in strata)
    if variance <= SAME**2:
        return None
    p = float(scipy.special.ndtr(off / math.sqrt(variance)))
    if p >= PLAIN:
        return rounded(p)
    bound = _bound(strata, off, -off / variance) if p < 1 / N_PERMUTATIONS else 1.0  # it is above the normal law's p
    return rounded(bound if bound < 1 / N_PERMUTATIONS else _permuted(strata, off, math.sqrt(variance)))


class _Stratum(NamedTuple):
    """A category's prompts, shape (n,): a's share of failures, and b's rank less its mean, over n + 1."""

    share: Array
    rank: Array

    @property
    def variance(self) -> float:
        """Of the sum of share times rank where prompts are permuted."""
        about = self.share - self.share.mean()
        return float((about**2).sum()) * float((self.rank**2).sum()) / (len(self.rank) - 1)


def _strata(a: Tally, b: Tally) -> Iterator[_Stratum]:
    for category, mine in a.by_category.items():
        other = b.by_category.get(category)
        if other is None or other.scored is None:
            continue
        share, prompts = mine.failed_shares
        sums, counts, _, scored = other.scored
        _, here, there = np.intersect1d(prompts, scored, assume_unique=True, return_indices=True)
        if len(here) >= 2:
            rank = _ranks((sums / counts)[there])
            yield _Stratum(share[here], (rank - rank.mean()) / (len(here) + 1))


def _permuted(strata: Sequence[_Stratum], off: float, sd: float) -> float:
    """Share of permutations as far off, itself one of them (Phipson & Smyth 2010): p is at most its level, whatever is tied.

    They are made until N_AS_FAR are; p is then N_AS_FAR of how many these were (Besag & Clifford, Biometrika 78, 1991). The seed
    is fixed: the same tables publish the same p.
    """
    rng, n_as_far = np.random.default_rng(N_PERMUTATIONS), 0
    n_at_once = max(1, min(200, _NUMBERS_AT_ONCE // max(len(one.rank) for one in strata)))
    for n_made in range(0, N_PERMUTATIONS - 1, n_at_once):
        found = np.zeros(min(n_at_once, N_PERMUTATIONS - 1 - n_made))
        for one in strata:
            share = one.share[one.share > 0]
            if len(share):
                found += (one.rank[_drawn(rng, len(found), len(one.rank), len(share))] * share).sum(axis=1)
        as_far = np.flatnonzero(found <= off + SAME * sd)
        if n_as_far + len(as_far) >= N_AS_FAR:
            return N_AS_FAR / (n_made + 1 + int(as_far[N_AS_FAR - n_as_far - 1]))
        n_as_far += len(as_far)
    return (1 + n_as_far) / N_PERMUTATIONS


def _drawn(rng: np.random.Generator, n_times: int, n: int, n_drawn: int) -> Counts:
    """Of n prompts so many in a drawn order, none twice, shape (n_times, n_drawn)."""
    if n_drawn**2 > 4 * n:
        return np.asarray(np.argsort(rng.random((n_times, n)), axis=1)[:, :n_drawn])
    found = rng.integers(n, size=(n_times, n_drawn))  # few of many: those with a prompt twice are drawn again
    while len(again := np.flatnonzero((np.diff(np.sort(found, axis=1), axis=1) == 0).any(axis=1))):
        found[again] = rng.integers(n, size=(len(again), n_drawn))
    return found


def _bound(strata: Sequence[_Stratum], off: float, tilt: float) -> float:
    """No less than the share of all permutations as far off: the smaller of Chernoff's (1952) bounds of the two ways to see them.

    Each failure draws a rank, or each rank below the top draws a failure, as if by itself: what is permuted varies less than that
    (Joag-Dev & Proschan 1983). `tilt` is where the bound of the normal law has its least.
    """
    by_failures = [(one.share, one.rank) for one in strata]
    by_ranks = [(one.rank.max() - one.rank, -one.share) for one in strata]
    moved = off - sum(float(one.rank.max() * one.share.sum()) for one in strata)
    return min(_chernoff(by_failures, off, tilt), _chernoff(by_ranks, moved, tilt))


def _chernoff(sums: Sequence[tuple[Array, Array]], off: float, tilt: float) -> float:
    """Min over t of E exp(t (off - sum of x y)), where each x, none below 0, draws one of the y of its stratum; at most 1."""
    weights = [np.unique(x[x > 0], return_counts=True) for x, _ in sums]
    values = [np.unique(y, return_counts=True) for _, y in sums]

    def exponent(t: float) -> float:
        total = t * off
        for (x, n_x), (y, n_y) in zip(weights, values, strict=True):
            tilted = -t * np.outer(x, y)
            most = tilted.max(axis=1, initial=0.0)
            moments = (np.exp(tilted - most[:, None]) * n_y).sum(axis=1) / n_y.sum()
            total += float((n_x * (most + np.log(moments))).sum())
        return total

    return math.exp(min(0.0, *(exponent(float(t)) for t in np.geomspace(tilt / 8, tilt * 32, 40))))


def _ranks(values: Array) -> Array:
    """Ranks from 1, those of equal values their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])
