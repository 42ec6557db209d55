"""Two cells held against each other, prompt by prompt; of few prompts by the exact test below. Which are: comparisons.py."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported where they are first used

from schemas.statuses.cells import CellStatus, ComparisonTest
from schemas.tables.table import Row
from tasks.aggregate.intervals import LEVEL, ClusteredMean, effective_number, jackknife_error, mean_of_means, rounded, t_quantile
from tasks.aggregate.judged import Array
from tasks.aggregate.sequential import Look
from tasks.aggregate.tallies import Tally
from tasks.aggregate.unknown_category import Shared, UnknownCategory, with_worst_pairs

POWER = 0.80
N_EXACT = 16
"""Prompts: up to so many all patterns of signs are looked at, 65,536 of them: 1 ms a comparison; four more take 20."""
SAME = 1e-9  # of the scale's width: prompt means closer than this are a tie, a spread below it is rounding


@dataclass(frozen=True, slots=True)
class Paired:
    """A mean less another over the prompts scored for both; `se` and `df` None where there is one such prompt.

    `parts` are what each prompt adds to delta, `weights` its weight in it (their sum is 1), shape (n_prompts,). `n_effective`:
    prompts of the same weight each that would say as much. `n_identical`: prompts of which both are asked the very same.
    """

    delta: float
    se: float | None
    df: float | None
    n_prompts: int
    win: int
    tie: int
    loss: int
    parts: Array
    weights: Array
    n_effective: float
    n_identical: int = 0


def paired(a: Tally, b: Tally, width: float) -> Paired | None:
    """The difference of two ratio estimators over shared clusters and its jackknife standard error; None without a shared one.

    With the residuals e_p = sum_p - m n_p, leaving prompt p out changes delta by e_bp / (N_b - n_bp) - e_ap / (N_a - n_ap): the
    covariance of the two is in it. df is effective_number() - 1 of the prompts' mean shares. `width` is the scale's.
    """
    if a.scored is None or b.scored is None:
        return None
    (sums_a, counts_a, _, prompts_a), (sums_b, counts_b, _, prompts_b) = a.scored, b.scored
    asked_a, asked_b = a.asked, b.asked
    if not np.array_equal(prompts_a, prompts_b):
        _, in_a, in_b = np.intersect1d(prompts_a, prompts_b, assume_unique=True, return_indices=True)
        sums_a, counts_a, sums_b, counts_b = sums_a[in_a], counts_a[in_a], sums_b[in_b], counts_b[in_b]
        asked_a, asked_b = asked_a[in_a], asked_b[in_b]
    n_prompts = len(sums_a)
    if not n_prompts:
        return None
    apart = sums_a / counts_a - sums_b / counts_b
    win, loss = int((apart > SAME * width).sum()), int((apart < -SAME * width).sum())
    found, parts, weights = _difference(sums_a, counts_a, sums_b, counts_b)
    se, df = (None, None) if n_prompts == 1 else (found.se, found.df)
    return Paired(
        found.mean, se, df, n_prompts, win, n_prompts - win - loss, loss, parts, weights, found.n_equal,
        int((asked_a == asked_b).sum()),
    )  # fmt: skip


def _difference(sums_a: Array, counts_a: Array, sums_b: Array, counts_b: Array) -> tuple[ClusteredMean, Array, Array]:
    """The difference of two ratio estimators over the same prompts, its se 0 where there is one; parts and weights of Paired."""
    n_a, n_b = int(counts_a.sum()), int(counts_b.sum())
    mean_a, mean_b = float(sums_a.sum()) / n_a, float(sums_b.sum()) / n_b
    delta, weights = mean_a - mean_b, (counts_a / n_a + counts_b / n_b) / 2
    of_a, of_b = sums_a - mean_a * counts_a, sums_b - mean_b * counts_b
    changes = of_a / np.maximum(1, n_a - counts_a) - of_b / np.maximum(1, n_b - counts_b)
    n_effective = effective_number(weights)
    mean = ClusteredMean(delta, jackknife_error(changes), max(1.0, n_effective - 1), len(sums_a), None, n_effective)
    return mean, of_a / n_a - of_b / n_b + delta * weights, weights


def mean_of_paired(strata: Sequence[Paired]) -> Paired:
    """The unweighted mean of the categories' deltas; its error is that of intervals.error_over_strata()."""
    counts = {
        name: sum(getattr(stratum, name) for stratum in strata) for name in ("n_prompts", "win", "tie", "loss", "n_identical")
    }
    parts, weights = (
        np.concatenate([getattr(stratum, name) for stratum in strata]) / len(strata) for name in ("parts", "weights")
    )
    mean = mean_of_means([ClusteredMean(one.delta, one.se, one.df, one.n_prompts, None, one.n_effective) for one in strata])
    return Paired(mean.mean, mean.se, mean.df, **counts, parts=parts, weights=weights, n_effective=mean.n_equal)


def is_still(found: Paired, width: float) -> bool:
    """Whether the prompts' differences do not vary."""
    return found.se is not None and found.se <= SAME * width


def tested(found: Paired, width: float, look: Look) -> Row:
    """P of no difference, its test, delta's uncorrected interval; of few prompts `ends_at`, which gives it at any level.

    p and interval hold whichever look was to be the last; `p_nominal` is as if there were no other. No mean of so few prompts is
    near enough to normal: all patterns of signs are looked at.
    """
    se, df, level = found.se or 0.0, found.df or 1.0, look.level(LEVEL)
    can_be_found = found.n_prompts > N_EXACT or least_p(found.n_prompts) < 1 - LEVEL
    row: Row = {"mde80": mde80(se, df) if can_be_found else None, "status": CellStatus.OK.value, "reason": None}
    if found.n_prompts <= N_EXACT:
        means = subset_means(found.parts, found.weights)
        low, high = exact_interval(means, level, width)
        row |= {"p_nominal": exact_p(means, width), "test": ComparisonTest.SIGN_FLIP.value}
        # made again, since a million means are too many to keep
        row["ends_at"] = lambda level: exact_interval(subset_means(found.parts, found.weights), level, width)
    else:
        half = t_quantile(level, df) * se
        low, high = max(-width, found.delta - half), min(width, found.delta + half)
        row |= {"p_nominal": t_test(found.delta, se, df), "test": ComparisonTest.PAIRED_T.value}
    return row | {"ci_low": low, "ci_high": high, "p": look.p(row["p_nominal"])}


def t_test(delta: float, se: float, df: float) -> float:
    """Two-sided p of Student's t."""
    return rounded(2.0 * float(scipy.special.stdtr(df, -abs(delta) / se)))


def sign_flip_p(strata: Sequence[tuple[float, int]], width: float) -> float | None:
    """Exact p where every prompt of a category differs by one amount: the share of sign patterns at least as extreme.

    `strata`: each category's difference and number of prompts. 1 where nothing differs. None where categories differ in sign:
    their mean is then not the most extreme pattern.
    """
    signs = {math.copysign(1, delta) for delta, _ in strata if abs(delta) > SAME * width}
    n_flips = sum(n_prompts for delta, n_prompts in strata if abs(delta) > SAME * width)
    return 1.0 if not signs else (2.0 ** (1 - n_flips) if len(signs) == 1 else None)


def mde80(se: float, df: float) -> float:
    """The true difference that is found in 80 % of cases, two-sided at 5 %: (t at 0.975 + t at 0.80) · se (Bloom 1995)."""
    return (t_quantile(LEVEL, df) + rounded(float(scipy.special.stdtrit(df, POWER)))) * se


def delta_bounds(strata: Sequence[tuple[Tally, Tally]], unknown: Sequence[UnknownCategory]) -> list[ClusteredMean]:
    """The lowest and the highest mean difference over the prompts judged for both: each failure at the end that makes it so.

    `unknown`: those of each of the two that may belong to any of the strata.
    """
    both = [(a, b) for a, b in strata if np.isin(a.columns["prompt"], b.columns["prompt"]).any()]
    return [_bound(both, unknown, ends) for ends in (("low", "high"), ("high", "low"))]


def _bound(strata: Sequence[tuple[Tally, Tally]], unknown: Sequence[UnknownCategory], ends: tuple[str, str]) -> ClusteredMean:
    columns: list[Shared] = []
    for a, b in strata:
        (prompts_a, sums_a, n_a), (prompts_b, sums_b, n_b) = (_by_prompt(one, end) for one, end in ((a, ends[0]), (b, ends[1])))
        _, in_a, in_b = np.intersect1d(prompts_a, prompts_b, assume_unique=True, return_indices=True)
        columns.append((sums_a[in_a], n_a[in_a], sums_b[in_b], n_b[in_b]))
    first = next((one for one in unknown if one.n), None)
    if first is not None:  # one scale has all of them
        columns = with_worst_pairs(columns, sum(one.n for one in unknown), getattr(first, ends[0]), getattr(first, ends[1]))
    return mean_of_means([_difference(*each)[0] for each in columns])


def _by_prompt(tally: Tally, end: str) -> tuple[Array, Array, Array]:
    """Prompts, each once, and the sums and numbers of their samples: one may stand in two categories."""
    prompts, place = np.unique(tally.columns["prompt"], return_inverse=True)
    return prompts, np.bincount(place, tally.columns[end]), np.bincount(place, tally.columns["n_samples"])


def subset_means(parts: Array, weights: Array) -> Array:
    """The weighted means of all sets of the prompts' differences, in no order, shape (2**n_prompts - 1,).

    `parts` and `weights` as of Paired. Where both have as many pictures of each prompt a part is the prompt's own difference
    times its weight; else that of the linearised ratio.
    """
    sums = np.zeros((2, 2 ** len(parts)))
    for n, one in enumerate(zip(parts, weights, strict=True)):
        np.add(sums[:, : 2**n], np.array(one)[:, None], out=sums[:, 2**n : 2 ** (n + 1)])
    means: Array = sums[0, 1:] / sums[1, 1:]
    return means


def exact_p(means: Array, width: float) -> float:
    """Two-sided p of the sign flip test of no difference: twice the share of patterns as extreme as the one seen."""
    below, above = (means <= SAME * width).sum(), (means >= -SAME * width).sum()
    return rounded(min(1.0, 2 * (1 + int(min(below, above))) / (len(means) + 1)))


def least_p(n_prompts: int) -> float:
    """The least p that the sign flip test of so many prompts can have: all of them on one side."""
    return 2.0 ** (1 - n_prompts)


def exact_interval(means: Array, level: float, width: float) -> tuple[float, float]:
    """The differences that the sign flip test keeps at this level (Hartigan, JASA 64, 1969); the scale where it keeps all.

    An end is 0 where exact_p() takes it for that.
    """
    n_left_out = math.ceil((1 - level) * (len(means) + 1) / 2 * (1 - SAME) - 1)
    if n_left_out < 1:
        return -width, width
    ends = n_left_out - 1, len(means) - n_left_out
    low, high = (0.0 if abs(end) <= SAME * width else rounded(float(end)) for end in np.partition(means, ends)[list(ends)])
    return max(-width, low), min(width, high)
