"""Agreement of votes and ratings from them, written out in plain Python and by a general optimiser. No tests here."""

import math
from collections import Counter
from collections.abc import Callable
from statistics import fmean

import numpy as np
from scipy import optimize, stats


def accuracy(x: list[float], y: list[float]) -> float:
    return fmean(one == other for one, other in zip(x, y, strict=True))


def kappa(x: list[float], y: list[float]) -> float:
    n, of_x, of_y = len(x), Counter(x), Counter(y)
    chance = sum(of_x[label] * of_y[label] for label in of_x) / n**2
    return (accuracy(x, y) - chance) / (1 - chance)


def most(said: list[float]) -> float | None:
    ranked = Counter(said).most_common()
    return None if not ranked else 0.5 if len(ranked) > 1 and ranked[0][1] == ranked[1][1] else ranked[0][0]


def leave_one_out(x: list[float], y: list[float], prompts: list[str], figure: Callable[..., float]) -> tuple[float, float]:
    """Wilson's interval of a share with the error of Tukey's jackknife over prompts, written out."""
    sizes = Counter(prompts)
    kept = [[(a, b) for a, b, prompt in zip(x, y, prompts, strict=True) if prompt != name] for name in sizes]
    found = np.array([figure(*map(list, zip(*pairs, strict=True))) for pairs in kept])
    k, share = len(sizes), figure(x, y)
    n = share * (1 - share) / ((k - 1) / k * ((found - found.mean()) ** 2).sum())
    k_equal = min(k, sum(sizes.values()) ** 2 / sum(size**2 for size in sizes.values()))
    squared = stats.t.ppf(0.975, k_equal - 1) ** 2
    middle, half = share + squared / (2 * n), math.sqrt(squared * share * (1 - share) / n + (squared / (2 * n)) ** 2)
    return (middle - half) / (1 + squared / n), (middle + half) / (1 + squared / n)


def davidson(votes: list[tuple[str, str, float, float]]) -> dict[str, float]:
    """Points above step-1000 by a general optimiser, of (checkpoint, other, worth, weight)."""
    names = sorted({end for a, b, _, _ in votes for end in (a, b)})

    def loss(at: np.ndarray) -> float:
        strength, nu = dict(zip(names, [0.0, *at[:-1]], strict=True)), at[-1]
        total = 0.0
        for a, b, worth, weight in votes:
            half = (strength[a] - strength[b]) / 2
            logits = {1.0: half, 0.0: -half, 0.5: nu}
            total -= weight * (logits[worth] - math.log(sum(map(math.exp, logits.values()))))
        return total

    found = optimize.minimize(loss, np.zeros(len(names)), method="BFGS", options={"gtol": 1e-8}).x
    return {name: 400 / math.log(10) * value for name, value in zip(names, [0.0, *found[:-1]], strict=True)}
