"""The exact test of few prompts: all patterns of signs of what each prompt adds to a difference, and its interval."""

import math

import numpy as np

from tasks.aggregate.intervals import rounded
from tasks.aggregate.judged import Array

N_EXACT = 16
"""Prompts: up to so many all patterns of signs are looked at, 65,536 of them: 1 ms a comparison; four more take 20."""
SAME = 1e-9  # of the scale's width: prompt means closer than this are a tie, a spread below it is rounding


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
