"""Failures of a cell whose category nobody could read: which categories they may belong to decides how far they move a mean.

They count in the cell's totals and open no category. In the worst case of a mean over categories each stands where it moves that
mean most: it belongs to one of them. Which judgements these are is judged.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np

from tasks.aggregate.judged import Array


@dataclass(frozen=True, slots=True)
class UnknownCategory:
    """`n` failed samples of a cell, and the lowest and the highest score each can have been."""

    n: int = 0
    low: float = 0.0
    high: float = 0.0


ALL_KNOWN = UnknownCategory()


def with_worst(columns: Sequence[tuple[Array, Array]], n: int, score: float, *, is_low: bool) -> list[tuple[Array, Array]]:
    """The sums and numbers of samples of each category's prompts, and n more samples of this score, each a prompt of its own.

    They stand where the mean of the categories' means becomes lowest, else highest.
    """
    sign = 1 if is_low else -1

    def mean(place: int, n_more: int) -> float:
        return sign * (totals[place][0] + n_more * score) / (totals[place][1] + n_more)

    totals = [(float(np.add.reduce(sums)), int(counts.sum())) for sums, counts in columns]
    given = _dealt(n, len(columns), mean)
    return [
        (np.append(sums, np.full(k, score)), np.append(counts, np.ones(k, np.int64)))
        for (sums, counts), k in zip(columns, given, strict=True)
    ]


Shared = tuple[Array, Array, Array, Array]
"""Sums and numbers of samples of a category's prompts that two cells share: a's, then b's."""


def with_worst_pairs(columns: Sequence[Shared], n: int, a: float, b: float) -> list[Shared]:
    """The same of two cells, and n more prompts on which one has the score a, the other b, where the mean difference gets worst.

    Worst is lower where a < b, else higher. Each failure meets a picture that nobody knows: it may have any score.
    """
    sign = 1 if a < b else -1

    def delta(place: int, n_more: int) -> float:
        sum_a, n_a, sum_b, n_b = totals[place]
        return sign * ((sum_a + n_more * a) / (n_a + n_more) - (sum_b + n_more * b) / (n_b + n_more))

    totals = [tuple(float(np.add.reduce(one)) for one in each) for each in columns]
    given = _dealt(n, len(columns), delta)
    return [
        tuple(np.append(one, np.full(k, more, one.dtype)) for one, more in zip(each, (a, 1, b, 1), strict=True))  # type: ignore[misc]
        for each, k in zip(columns, given, strict=True)
    ]


def _dealt(n: int, n_categories: int, value: Callable[[int, int], float]) -> list[int]:
    """How many of n each category gets, one after the other where it lowers `value`, by place and number given, most."""
    given = [0] * n_categories
    changes = [(value(place, 1) - value(place, 0), place) for place in range(n_categories)]
    heapify(changes)
    for _ in range(n):
        place = changes[0][1]
        given[place] += 1
        heapreplace(changes, (value(place, given[place] + 1) - value(place, given[place]), place))
    return given
