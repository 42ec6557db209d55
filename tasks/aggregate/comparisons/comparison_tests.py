"""Two cells held against each other, prompt by prompt. Which cells are: comparisons.py. Corrections: families.py."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported where they are first used

from schemas.statuses.cells import CellStatus, ComparisonTest
from tasks.aggregate.intervals import LEVEL, added, rounded, t_quantile
from tasks.aggregate.judged import Array
from tasks.aggregate.sequential import Look
from tasks.aggregate.tallies import Tally

POWER = 0.80
N_EXACT = 12  # prompts: up to so many all patterns of signs are looked at, 4,096 of them
SAME = 1e-9  # of the scale's width: prompt means closer than this are a tie, a spread below it is rounding


@dataclass(frozen=True, slots=True)
class Paired:
    """A mean less another over the prompts scored for both; `se` and `df` None where there is one such prompt.

    `parts` are what each prompt adds to delta, `weights` its weight in it (their sum is 1), shape (n_prompts,).
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


def paired(a: Tally, b: Tally, width: float) -> Paired | None:
    """The difference of two ratio estimators over shared clusters and its linearised standard error; None without a shared one.

    With the residuals e_p = (sum_p - m n_p) / N of each, se² = K/(K - 1) Σ (e_ap - e_bp)² (Cochran 1977, ch. 6; the
    covariance of the two is in the difference), df = K - 1. `width` is the scale's.
    """
    if a.scored is None or b.scored is None:
        return None
    (sums_a, counts_a, _, prompts_a), (sums_b, counts_b, _, prompts_b) = a.scored, b.scored
    if not np.array_equal(prompts_a, prompts_b):
        _, in_a, in_b = np.intersect1d(prompts_a, prompts_b, assume_unique=True, return_indices=True)
        sums_a, counts_a, sums_b, counts_b = sums_a[in_a], counts_a[in_a], sums_b[in_b], counts_b[in_b]
    n_prompts = len(sums_a)
    if not n_prompts:
        return None
    delta, residuals = _linearised(sums_a, counts_a, sums_b, counts_b)
    apart = sums_a / counts_a - sums_b / counts_b
    win, loss = int((apart > SAME * width).sum()), int((apart < -SAME * width).sum())
    counts = {"win": win, "tie": n_prompts - win - loss, "loss": loss}
    weights = np.full(n_prompts, 1 / n_prompts)
    parts = residuals + delta * weights
    if n_prompts == 1:
        return Paired(delta, None, None, 1, **counts, parts=parts, weights=weights)
    variance = float((residuals**2).sum()) * n_prompts / (n_prompts - 1)
    return Paired(
        delta, math.sqrt(variance), float(n_prompts - 1), n_prompts, **counts, parts=parts, weights=weights
    )  # fmt: skip


def _linearised(sums_a: Array, counts_a: Array, sums_b: Array, counts_b: Array) -> tuple[float, Array]:
    """The difference of two ratio estimators over the same prompts, and what each prompt adds to its error."""
    n_a, n_b = int(counts_a.sum()), int(counts_b.sum())
    mean_a, mean_b = float(sums_a.sum()) / n_a, float(sums_b.sum()) / n_b
    return mean_a - mean_b, (sums_a - mean_a * counts_a) / n_a - (sums_b - mean_b * counts_b) / n_b


def mean_of_paired(strata: Sequence[Paired]) -> Paired:
    """The unweighted mean of the categories' deltas: variances add, degrees of freedom after Satterthwaite (1946)."""
    n = len(strata)
    delta = math.fsum(stratum.delta for stratum in strata) / n
    counts = {name: sum(getattr(stratum, name) for stratum in strata) for name in ("n_prompts", "win", "tie", "loss")}
    parts, weights = (np.concatenate([getattr(stratum, name) for stratum in strata]) / n for name in ("parts", "weights"))
    known = [(s.se**2 / n**2, s.df) for s in strata if s.se is not None and s.df is not None]
    if len(known) < n:
        return Paired(delta, None, None, **counts, parts=parts, weights=weights)
    return Paired(delta, *added(known, float(counts["n_prompts"] - n)), **counts, parts=parts, weights=weights)


def is_still(found: Paired, width: float) -> bool:
    """Whether the prompts' differences do not vary."""
    return found.se is not None and found.se <= SAME * width


def tested(found: Paired, width: float, look: Look) -> dict[str, object]:
    """P of no difference, its test, delta's uncorrected interval; of few prompts `subset_means` for the corrected one.

    p and interval hold whichever look was to be the last; `p_nominal` is as if there were no other. No mean of so few prompts is
    near enough to normal: all patterns of signs are looked at.
    """
    se, df, level = found.se or 0.0, found.df or 1.0, look.level(LEVEL)
    can_be_found = found.n_prompts > N_EXACT or least_p(found.n_prompts) < 1 - LEVEL
    row: dict[str, object] = {"mde80": mde80(se, df) if can_be_found else None, "status": CellStatus.OK.value, "reason": None}
    if found.n_prompts <= N_EXACT:
        means = subset_means(found)
        low, high = exact_interval(means, level, width)
        row |= {"p_nominal": exact_p(means, width), "test": ComparisonTest.SIGN_FLIP.value, "subset_means": means}
    else:
        half = t_quantile(level, df) * se
        low, high = max(-width, found.delta - half), min(width, found.delta + half)
        row |= {"p_nominal": t_test(found.delta, se, df), "test": ComparisonTest.PAIRED_T.value}
    return row | {"ci_low": low, "ci_high": high, "p": look.p(float(str(row["p_nominal"])))}


def t_test(delta: float, se: float, df: float) -> float:
    """Two-sided p of Student's t."""
    return rounded(2.0 * float(scipy.special.stdtr(df, -abs(delta) / se)))


def subset_means(found: Paired) -> Array:
    """The weighted means of all sets of the prompts' differences, sorted, shape (2**n_prompts - 1,).

    With one picture a prompt the parts are the prompts' own differences; else those of the linearised ratio.
    """
    parts, weights = np.zeros(1), np.zeros(1)
    for part, weight in zip(found.parts, found.weights, strict=True):
        parts, weights = np.concatenate([parts, parts + part]), np.concatenate([weights, weights + weight])
    return np.sort(parts[1:] / weights[1:])


def exact_p(means: Array, width: float) -> float:
    """Two-sided p of the sign flip test of no difference: twice the share of patterns as extreme as the one seen."""
    below, above = (means <= SAME * width).sum(), (means >= -SAME * width).sum()
    return rounded(min(1.0, 2 * (1 + int(min(below, above))) / (len(means) + 1)))


def least_p(n_prompts: int) -> float:
    """The least p that the sign flip test of so many prompts can have: all of them on one side."""
    return 2.0 ** (1 - n_prompts)


def exact_interval(means: Array, level: float, width: float) -> tuple[float, float]:
    """The differences that the sign flip test keeps at this level (Hartigan, JASA 64, 1969); the scale where it keeps all."""
    n_left_out = math.ceil((1 - level) * (len(means) + 1) / 2 * (1 - SAME) - 1)
    if n_left_out < 1:
        return -width, width
    return float(max(-width, means[n_left_out - 1])), float(min(width, means[-n_left_out]))


def sign_flip_p(strata: Sequence[Paired], width: float) -> float | None:
    """Exact p where every prompt differs by one amount: the share of sign patterns at least as extreme.

    1 where nothing differs. None where categories differ in sign: their mean is then not the most extreme pattern.
    """
    signs = {math.copysign(1, stratum.delta) for stratum in strata if abs(stratum.delta) > SAME * width}
    n_flips = sum(stratum.n_prompts for stratum in strata if abs(stratum.delta) > SAME * width)
    return 1.0 if not signs else (2.0 ** (1 - n_flips) if len(signs) == 1 else None)


def mde80(se: float, df: float) -> float:
    """The true difference that is found in 80 % of cases, two-sided at 5 %: (t at 0.975 + t at 0.80) · se (Bloom 1995)."""
    return (t_quantile(LEVEL, df) + rounded(float(scipy.special.stdtrit(df, POWER)))) * se


@dataclass(frozen=True, slots=True)
class Bound:
    """A difference that failures may have made, with its standard error over prompts."""

    delta: float
    se: float
    df: float


def delta_bounds(a: Tally, b: Tally) -> tuple[Bound, Bound] | None:
    """The lowest and the highest difference over the prompts judged for both: every failure at the end that makes it so."""
    if not np.isin(a.columns["prompt"], b.columns["prompt"]).any():
        return None
    return _bound(a, b, ("low", "high")), _bound(a, b, ("high", "low"))


def mean_of_bounds(bounds: Sequence[Bound]) -> Bound:
    """The mean of the categories' bounds, as of their deltas."""
    n = len(bounds)
    found = added([(bound.se**2 / n**2, bound.df) for bound in bounds], min(bound.df for bound in bounds))
    return Bound(math.fsum(bound.delta for bound in bounds) / n, *found)


def _bound(a: Tally, b: Tally, ends: tuple[str, str]) -> Bound:
    (prompts_a, sums_a, n_a), (prompts_b, sums_b, n_b) = (_by_prompt(one, end) for one, end in ((a, ends[0]), (b, ends[1])))
    _, in_a, in_b = np.intersect1d(prompts_a, prompts_b, assume_unique=True, return_indices=True)
    delta, residuals = _linearised(sums_a[in_a], n_a[in_a], sums_b[in_b], n_b[in_b])
    n = len(in_a)
    return Bound(delta, math.sqrt(float((residuals**2).sum()) * n / max(1, n - 1)), float(max(1, n - 1)))


def _by_prompt(tally: Tally, end: str) -> tuple[Array, Array, Array]:
    """Prompts, each once, and the sums and numbers of their samples: one may stand in two categories."""
    prompts, place = np.unique(tally.columns["prompt"], return_inverse=True)
    return prompts, np.bincount(place, tally.columns[end]), np.bincount(place, tally.columns["n_samples"])
