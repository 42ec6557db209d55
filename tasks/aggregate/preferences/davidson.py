"""Bradley-Terry strengths with ties (Davidson) from sums of wins, ties and losses, and their covariance over prompts.

With strengths λ and tie parameter ν, i beats j with a chance proportional to exp((λi - λj)/2), loses with exp((λj - λi)/2), ties
with ν (Bradley & Terry, Biometrika 39, 1952; Davidson, JASA 65, 1970). Who can be rated at all is ratings.py.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tasks.aggregate.intervals import Counts, Floats

_MAX_STEPS = 200
_SMALL = 1e-12


@dataclass(frozen=True, slots=True)
class Tallied:
    """Weighted wins, ties and losses of checkpoint `one` against `other` on one prompt each; shape (rows,), numbered from 0."""

    one: Counts
    other: Counts
    prompt: Counts
    win: Floats
    tie: Floats
    loss: Floats

    def among(self, kept: npt.NDArray[np.bool_]) -> "Tallied":
        """The rows kept, checkpoints and prompts numbered anew."""
        ends = np.unique(np.concatenate([self.one[kept], self.other[kept]]))
        return Tallied(
            np.searchsorted(ends, self.one[kept]), np.searchsorted(ends, self.other[kept]),
            np.unique(self.prompt[kept], return_inverse=True)[1], self.win[kept], self.tie[kept], self.loss[kept],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fit:
    """Strengths λ in log-odds, their mean 0, shape (n,); ν, None where ties are taken as half a win; covariance of λ, (n, n).

    `covariance` is None where one prompt is all there is.
    """

    strengths: Floats
    tie_parameter: float | None
    covariance: Floats | None
    n_prompts: int


def fitted(tallied: Tallied, *, has_ties: bool) -> Fit:
    """Maximum likelihood by Newton's method with step halving, and its prompt-clustered sandwich covariance.

    A maximum must exist (ratings.py). `has_ties`: ν is estimated; else a tie is half a win and half a loss.
    """
    n = int(max(tallied.one.max(), tallied.other.max())) + 1
    code, place = np.unique(tallied.one * n + tallied.other, return_inverse=True)
    sums = np.stack([np.bincount(place, part) for part in (tallied.win, tallied.tie, tallied.loss)]).astype(np.float64)
    one, other = code // n, code % n
    beta = np.zeros(n + 1)  # strengths, then log ν; the first strength stays 0
    free = np.arange(1, n + 1 if has_ties else n)
    for _ in range(_MAX_STEPS):
        gradient, information = _derivatives(beta, one, other, sums, has_ties=has_ties)
        step = np.zeros(n + 1)
        step[free] = np.linalg.solve(information[np.ix_(free, free)], gradient[free])
        likelihood, size = _likelihood(beta, one, other, sums, has_ties=has_ties), 1.0
        while size > _SMALL and _likelihood(beta + size * step, one, other, sums, has_ties=has_ties) < likelihood - _SMALL:
            size /= 2
        beta = beta + size * step
        if np.abs(step).max() < _SMALL:
            break
    covariance = _sandwich(beta, tallied, free, has_ties=has_ties)
    centre = np.eye(n) - 1 / n
    return Fit(
        beta[:n] - beta[:n].mean(), float(np.exp(beta[n])) if has_ties else None,
        None if covariance is None else centre @ covariance[:n, :n] @ centre, int(tallied.prompt.max()) + 1,
    )  # fmt: skip


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


def _derivatives(beta: Floats, one: Counts, other: Counts, sums: Floats, *, has_ties: bool) -> tuple[Floats, Floats]:
    """Gradient and information of strengths and log ν: of an exponential family in (points, ties)."""
    n, total = len(beta) - 1, sums.sum(axis=0)
    points, ties, variances = _expected(beta, one, other, has_ties=has_ties)
    off = sums[0] + sums[1] / 2 - total * points
    gradient = np.append(np.bincount(one, off, n) - np.bincount(other, off, n), (sums[1] - total * ties).sum())
    information = np.zeros((n + 1, n + 1))
    of_points, of_both, of_ties = (total * part for part in variances)
    for sign, row, column in ((1, one, one), (1, other, other), (-1, one, other), (-1, other, one)):
        np.add.at(information, (row, column), sign * of_points)
    across = np.bincount(one, of_both, n) - np.bincount(other, of_both, n)
    information[:n, n], information[n, :n], information[n, n] = across, across, of_ties.sum()
    return gradient, information


def _expected(beta: Floats, one: Counts, other: Counts, *, has_ties: bool) -> tuple[Floats, Floats, tuple[Floats, ...]]:
    """Of one pair: expected points and ties; variance of points, their covariance, variance of ties."""
    win, tie, _ = (np.exp(part) for part in _chances(beta, one, other, has_ties=has_ties))
    points = win + tie / 2
    return points, tie, (win + tie / 4 - points**2, tie / 2 - points * tie, tie * (1 - tie))


def _sandwich(beta: Floats, tallied: Tallied, free: Counts, *, has_ties: bool) -> Floats | None:
    """A⁻¹ (Σ_p g_p g_pᵀ) A⁻¹ · K/(K - 1), g_p the score of prompt p's pairs (Liang & Zeger, Biometrika 73, 1986)."""
    n, n_prompts = len(beta) - 1, int(tallied.prompt.max()) + 1
    if n_prompts < 2:
        return None
    sums = np.stack([tallied.win, tallied.tie, tallied.loss])
    _, information = _derivatives(beta, tallied.one, tallied.other, sums, has_ties=has_ties)
    points, ties, _ = _expected(beta, tallied.one, tallied.other, has_ties=has_ties)
    total = sums.sum(axis=0)
    off = sums[0] + sums[1] / 2 - total * points
    flat = np.zeros(n_prompts * (n + 1))
    for sign, end in ((1, tallied.one), (-1, tallied.other)):
        flat += sign * np.bincount(tallied.prompt * (n + 1) + end, off, len(flat))
    scores = flat.reshape(n_prompts, n + 1)
    scores[:, n] = np.bincount(tallied.prompt, sums[1] - total * ties, n_prompts)
    moved = np.linalg.solve(information[np.ix_(free, free)], scores[:, free].T)
    covariance = np.zeros((n + 1, n + 1))
    covariance[np.ix_(free, free)] = np.einsum("ip,jp->ij", moved, moved) * n_prompts / (n_prompts - 1)
    return covariance
