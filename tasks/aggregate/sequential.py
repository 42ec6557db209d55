"""Looks at a comparison before all its prompts were asked: what each may spend of the error rate, and whether to go on.

Boundaries of a group sequential test with O'Brien and Fleming's spending (Lan & DeMets, Biometrika 70, 1983), by recursive
integration (Armitage, McPherson & Rowe, JRSS A 132, 1969). Which checkpoints are asked on is flows/run/looks.py.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # its parts are imported where they are first used

from tasks.aggregate.intervals import Floats, rounded

_ALPHAS = np.concatenate([np.geomspace(1e-14, 1e-3, 60), np.geomspace(1.05e-3, 0.9999, 100)])
"""Error rates whose boundaries are worked out; what lies between is read off a line in logarithms."""
_N_NODES = 64
_N_HALVINGS = 60
_LARGEST_Z = 37.0  # beyond it a chance is no number any more
_OPTIMISTIC_Z = 1.2815515655446004  # the far end of an interval of 80 %


@dataclass(frozen=True, slots=True)
class Look:
    """A look: what share of the planned information it and those before it had, rising, in (0, 1]; and those that may follow.

    One look at everything, `(1.0,)`, leaves every p and level as it is.
    """

    shares: tuple[float, ...]
    later: tuple[float, ...] = ()

    def level(self, level: float) -> float:
        """The nominal level an interval needs here, so that all looks' hold at once at `level` (Jennison & Turnbull 1989)."""
        if self.shares == (1.0,):
            return level
        return 1 - math.exp(float(np.interp(math.log(max(1 - level, _ALPHAS[0])), np.log(_ALPHAS), _curve(self.shares))))

    def p(self, nominal: float) -> float:
        """The smallest error rate at which this look finds a difference with this nominal p; to 12 digits, as all published p.

        It is under α exactly where the interval at level(1 - α) leaves 0 out.
        """
        if nominal >= 1 or self.shares == (1.0,):
            return min(1.0, nominal)
        curve = _curve(self.shares)
        if nominal >= math.exp(curve[-1]):
            return 1.0
        found = float(np.interp(math.log(max(nominal, 1e-300)), curve, np.log(_ALPHAS)))
        return rounded(math.exp(found))

    def chance(self, nominal: float, alpha: float, *, is_other_side: bool = False) -> float:
        """The chance that the last look finds a difference at `alpha`, if it is at the far end of its interval of 80 % now.

        Of the side on which it is seen, or of the other.

        Conditional power (Lan, Simon & Halperin 1982) with an optimistic difference in place of the expected one.
        """
        every, share = self.shares + self.later, self.shares[-1]
        if not self.later:
            return 0.0
        critical = -float(scipy.special.ndtri((1 - Look(every).level(1 - alpha)) / 2))
        z = min(_LARGEST_Z, -float(scipy.special.ndtri(max(nominal, 1e-300) / 2))) * (-1 if is_other_side else 1)
        drift = (z + _OPTIMISTIC_Z) / math.sqrt(share)
        expected = z * math.sqrt(share) + drift * (1 - share)
        return float(scipy.special.ndtr((expected - critical) / math.sqrt(1 - share)))


WHOLE = Look((1.0,))
"""One look, at everything."""


@lru_cache(maxsize=4096)
def _curve(shares: tuple[float, ...]) -> Any:
    """Logarithms of the nominal two-sided levels of the last of these looks, one for each of _ALPHAS; rising."""
    z = -scipy.special.ndtri(_ALPHAS / 4)[:, None]  # each side has its own half
    spent = np.concatenate([4 * scipy.special.ndtr(-z / np.sqrt(share)) for share in shares], axis=1)
    spends = np.maximum(np.diff(spent, axis=1, prepend=0.0), 1e-320)
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    bound = -scipy.special.ndtri(spends[:, 0] / 2)
    bound = np.minimum(bound, _LARGEST_Z)
    x = np.zeros((len(_ALPHAS), _N_NODES))
    mass = x
    for number, share in enumerate(shares):
        if number:
            step = math.sqrt(share - shares[number - 1])
            bound = _bound(x, mass, share, step, spends[:, number])
        if number + 1 < len(shares):  # the chance of being at x (as a sum of increments) and not having been out yet
            edge = bound[:, None] * math.sqrt(share)
            new = edge * nodes
            if number:
                density = np.exp(-(((new[:, :, None] - x[:, None, :]) / step) ** 2) / 2) / (step * math.sqrt(2 * math.pi))
                density = (density * mass[:, None, :]).sum(axis=2)
            else:
                density = np.exp(-(new**2) / (2 * share)) / math.sqrt(2 * math.pi * share)
            x, mass = new, density * weights * edge
    return scipy.special.log_ndtr(-bound) + np.log(2)


def _bound(x: Floats, mass: Floats, share: float, step: float, spends: Floats) -> Any:
    """The z beyond which a look has a chance of `spends`, shape (n_alphas,)."""
    low, high = np.zeros(len(spends)), np.full(len(spends), _LARGEST_Z)
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        edge = middle[:, None] * math.sqrt(share)
        out = scipy.special.ndtr((x - edge) / step) + scipy.special.ndtr((-x - edge) / step)
        is_under = (out * mass).sum(axis=1) < spends
        low, high = np.where(is_under, low, middle), np.where(is_under, middle, high)
    return (low + high) / 2
