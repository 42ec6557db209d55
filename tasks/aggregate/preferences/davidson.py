"""Bradley-Terry strengths with ties (Davidson) from sums of wins, ties and losses, and their errors over prompts.

With strengths λ and tie parameter ν, i beats j with a chance proportional to exp((λi - λj)/2), loses with exp((λj - λi)/2), ties
with ν (Bradley & Terry, Biometrika 39, 1952; Davidson, JASA 65, 1970). Who can be rated at all is ratings.py.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tasks.aggregate.intervals import Counts, Floats

_MAX_STEPS = 200
_SMALL = 1e-12
_PROMPTS_AT_ONCE = 500
_NUMBERS_AT_ONCE = 1_000_000  # 8 MB, of which some five are held: a prompt has as many as the square of the checkpoints


@dataclass(frozen=True, slots=True)
class Tallied:
    """Weighted wins, ties and losses of checkpoint `one` against `other` on one prompt each; shape (rows,), numbered from 0."""

    one: Counts
    other: Counts
    prompt: Counts
    category: Counts
    win: Floats
    tie: Floats
    loss: Floats

    @property
    def sums(self) -> Floats:
        """Wins, ties and losses, shape (3, rows)."""
        return np.stack([self.win, self.tie, self.loss])

    def rows(self, some: Counts | npt.NDArray[np.bool_]) -> "Tallied":
        """Those of these numbers, or where it is so."""
        return Tallied(
            self.one[some], self.other[some], self.prompt[some], self.category[some],
            self.win[some], self.tie[some], self.loss[some],
        )  # fmt: skip

    def among(self, kept: npt.NDArray[np.bool_]) -> "Tallied":
        """The rows kept, checkpoints and prompts numbered anew."""
        some = self.rows(kept)
        ends, prompt = np.unique(np.concatenate([some.one, some.other])), np.unique(some.prompt, return_inverse=True)[1]
        return replace(some, one=np.searchsorted(ends, some.one), other=np.searchsorted(ends, some.other), prompt=prompt)


class Errors(NamedTuple):
    """Variance of the difference of every two strengths, the last their mean, and its degrees of freedom; (n + 1, n + 1) each."""

    variances: Floats
    df: Floats


@dataclass(frozen=True, slots=True)
class Fit:
    """Strengths λ in log-odds, their mean 0, shape (n,); ν, None where a tie is half a win; errors, None of one prompt."""

    strengths: Floats
    tie_parameter: float | None
    errors: Errors | None


def fitted(tallied: Tallied, *, has_ties: bool) -> Fit:
    """Maximum likelihood by Newton's method with step halving, and its prompt-clustered sandwich errors.

    A maximum must exist (ratings.py). `has_ties`: ν is estimated; else a tie is half a win and half a loss.
    """
    n = int(max(tallied.one.max(), tallied.other.max())) + 1
    code, place = np.unique(tallied.one * n + tallied.other, return_inverse=True)
    sums = np.stack([np.bincount(place, part) for part in tallied.sums]).astype(np.float64)
    one, other = code // n, code % n
    beta = np.zeros(n + 1)  # strengths, then log ν; the first strength stays 0
    free = np.arange(1, n + 1 if has_ties else n)
    whole = one, other, sums, np.zeros_like(one), 1
    for _ in range(_MAX_STEPS):
        (gradient,), (information,) = _derivatives(beta, *whole, has_ties=has_ties)
        step = np.zeros(n + 1)
        step[free] = np.linalg.solve(information[np.ix_(free, free)], gradient[free])
        likelihood, size = _likelihood(beta, one, other, sums, has_ties=has_ties), 1.0
        while size > _SMALL and _likelihood(beta + size * step, one, other, sums, has_ties=has_ties) < likelihood - _SMALL:
            size /= 2
        beta = beta + size * step
        if np.abs(step).max() < _SMALL:
            break
    _, (information,) = _derivatives(beta, *whole, has_ties=has_ties)
    inverse = np.zeros((n + 1, n + 1))
    inverse[np.ix_(free, free)] = np.linalg.inv(information[np.ix_(free, free)])
    errors = _errors(beta, tallied, inverse, has_ties=has_ties)
    return Fit(beta[:n] - beta[:n].mean(), float(np.exp(beta[n])) if has_ties else None, errors)


def _chances(beta: Floats, one: Counts, other: Counts, *, has_ties: bool) -> tuple[Floats, Floats, Floats]:
    """The logarithms of win, tie and loss; of a tie minus infinity without ν."""
    half = (beta[one] - beta[other]) / 2
    tie = np.full_like(half, beta[-1] if has_ties else -np.inf)
    top = np.logaddexp(np.logaddexp(half, -half), tie)
    return half - top, tie - top, -half - top


def _likelihood(beta: Floats, one: Counts, other: Counts, sums: Floats, *, has_ties: bool) -> float:
    win, tie, loss = _chances(beta, one, other, has_ties=has_ties)
    if not has_ties:
        return float(((sums[0] + sums[1] / 2) * win + (sums[2] + sums[1] / 2) * loss).sum())
    return float((sums[0] * win + sums[1] * tie + sums[2] * loss).sum())


def _derivatives(
    beta: Floats, one: Counts, other: Counts, sums: Floats, prompt: Counts, n_prompts: int, *, has_ties: bool
) -> tuple[Floats, Floats]:
    """Gradient and information of strengths and log ν by prompt: of an exponential family in (points, ties).

    Shapes (k, n + 1) and (k, n + 1, n + 1) of k prompts numbered from 0.
    """
    n, total, nu = len(beta) - 1, sums.sum(axis=0), np.full_like(one, len(beta) - 1)
    points, ties, variances = _expected(beta, one, other, has_ties=has_ties)
    off, off_ties = sums[0] + sums[1] / 2 - total * points, sums[1] - total * ties
    of_points, of_both, of_ties = (total * part for part in variances)
    gradient, information = np.zeros((n_prompts, n + 1)), np.zeros((n_prompts, n + 1, n + 1))
    for end, part in ((one, off), (other, -off), (nu, off_ties)):
        np.add.at(gradient, (prompt, end), part)
    for row, column, part in (
        (one, one, of_points), (other, other, of_points), (one, other, -of_points), (other, one, -of_points),
        (one, nu, of_both), (nu, one, of_both), (other, nu, -of_both), (nu, other, -of_both), (nu, nu, of_ties),
    ):  # fmt: skip
        np.add.at(information, (prompt, row, column), part)
    return gradient, information


def _expected(beta: Floats, one: Counts, other: Counts, *, has_ties: bool) -> tuple[Floats, Floats, tuple[Floats, ...]]:
    """Of one pair: expected points and ties; variance of points, their covariance, variance of ties."""
    win, tie, _ = (np.exp(part) for part in _chances(beta, one, other, has_ties=has_ties))
    points = win + tie / 2
    return points, tie, (win + tie / 4 - points**2, tie / 2 - points * tie, tie * (1 - tie))


def _errors(beta: Floats, tallied: Tallied, inverse: Floats, *, has_ties: bool) -> Errors | None:
    """The errors; None of one prompt. `inverse`: A⁻¹, of the information on all prompts together.

    A⁻¹ (Σ_c k_c/(k_c - 1) Σ_p g_p g_pᵀ) A⁻¹, g_p the score of prompt p's pairs (Liang & Zeger, Biometrika 73, 1986), with
    Satterthwaite's (1946) df over the categories c: a category of few prompts weighs as much as one of many, and says as little
    of its own variance as those few. k_c is the number of prompts that say as much, were the model true (Kish 1965), at least 2.
    """
    n, n_prompts = len(beta) - 1, int(tallied.prompt.max()) + 1
    if n_prompts < 2:
        return None
    ends = np.zeros((n + 1, n + 1))  # strengths and their mean, each by what it takes of the free parameters
    ends[:n, :n], ends[n, :n] = np.eye(n), 1 / n
    to_ends = ends @ inverse
    is_in = np.zeros((n_prompts, int(tallied.category.max()) + 1), dtype=np.bool_)
    is_in[tallied.prompt, tallied.category] = True
    category = np.unique(is_in, axis=0, return_inverse=True)[1].reshape(-1)  # those of several categories are one of their own
    found, expected, squares = np.zeros((3, int(category.max()) + 1, n + 1, n + 1))
    order = np.argsort(tallied.prompt, kind="stable")
    n_at_once = max(1, min(_PROMPTS_AT_ONCE, _NUMBERS_AT_ONCE // (n + 1) ** 2))
    places = [*range(0, n_prompts, n_at_once), n_prompts]
    cuts = np.searchsorted(tallied.prompt[order], places)
    for (start, end), cut in zip(pairwise(places), pairwise(cuts), strict=True):
        some = tallied.rows(order[slice(*cut)])
        at = some.one, some.other, some.sums, some.prompt - start, end - start
        scores, each = _derivatives(beta, *at, has_ties=has_ties)
        moved, each = scores @ to_ends.T, _of_differences(to_ends @ each @ to_ends.T)
        for one in np.unique(category[start:end]):
            mine = category[start:end] == one
            found[one] += _of_differences(moved[mine].T @ moved[mine])
            expected[one] += each[mine].sum(axis=0)
            squares[one] += (each[mine] ** 2).sum(axis=0)
    df = np.maximum(1.0, expected**2 / np.maximum(squares, np.finfo(float).tiny) - 1)
    parts = found * (df + 1) / df
    variances, below = parts.sum(axis=0), (parts**2 / df).sum(axis=0)
    return Errors(variances, np.where(below > 0, variances**2 / np.where(below > 0, below, 1.0), n_prompts - 1.0))


def _of_differences(products: Floats) -> Floats:
    """From inner products of several (..., n, n) those of each difference of two with itself; never below 0."""
    own = np.diagonal(products, axis1=-2, axis2=-1)
    found: Floats = np.maximum(0.0, own[..., :, None] + own[..., None, :] - 2 * products)
    return found
