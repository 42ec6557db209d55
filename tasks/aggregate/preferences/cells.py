"""A pair of checkpoints in each category and total: win rate, counts, bounds, and the test of one half. Rows: win_rates.py."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy  # its parts are imported where they are first used

from schemas.statuses.cells import CellReason, Total
from tasks.aggregate.intervals import ClusteredMean, Floats, clustered_mean, interval, mean_of_means, rounded
from tasks.aggregate.preferences.prompts import COUNTS, MIDDLE, over_categories, slices

_SUMS = ("low", "high", "order_low", "order_high")
_NUMBERS = ("n", "n_pairs", "n_agreed", "n_asked", "n_said", "n_unanswered")
_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Cell:
    """What is known of a pair of checkpoints in one category or total; shares are None where no pair was judged.

    `bounds` are low, high, order_low and order_high of the win rate; `n_asked` the verdicts asked for, `n_said` those received,
    `n_unanswered` those of which a reply never came; `fewest` the prompts of its smallest category; `n_signed` those of
    categories off one half, None where these are on both sides of it.
    """

    mean: ClusteredMean | None
    agreed: float | None
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    n_pairs: int
    n_asked: int
    n_said: int
    n_unanswered: int
    n_prompts: int
    fewest: int
    n_signed: int | None

    @property
    def coverage(self) -> float:
        """The share of the verdicts received."""
        return self.n_said / self.n_asked


def cells_of(parts: pl.DataFrame, categories: Sequence[str], expected: Sequence[str]) -> dict[int, dict[str, Cell | None]]:
    """By meeting its cells by category and total, from the sums of one judge by meeting, category and prompt.

    `__macro__` weighs each category the same and is None where one of the `expected` is missing; `__micro__` takes the prompts
    as one sample.
    """
    found: dict[int, dict[str, Cell | None]] = {}
    for (meeting, category), cell in _cells(parts, "meeting", "category"):
        found.setdefault(meeting, {})[categories[category]] = cell
    for (meeting,), cell in _cells(over_categories(parts), "meeting"):
        strata = [found[meeting].get(category) for category in expected]
        known = [one for one in strata if one is not None]
        found[meeting] |= {
            Total.MACRO.value: _macro(known, cell) if len(known) == len(strata) else None, Total.MICRO.value: cell,
        }  # fmt: skip
    return found


def _cells(frame: pl.DataFrame, *by: str) -> Iterator[tuple[tuple[int, ...], Cell]]:
    columns = {name: frame[name].to_numpy() for name in ("value", "agreed", *_NUMBERS, *_SUMS, *COUNTS)}
    for key, start, end in slices(frame, *by):
        yield key, _cell({name: column[start:end] for name, column in columns.items()})


def _cell(columns: Mapping[str, Floats]) -> Cell:
    judged = columns["n"] > 0
    n_prompts, n_pairs, n_agreed = int(judged.sum()), int(columns["n_pairs"].sum()), int(columns["n_agreed"].sum())
    counts = tuple(int(columns[name].sum()) for name in COUNTS)
    mean = (
        clustered_mean(columns["value"][judged], columns["n"][judged].astype(np.int64), np.zeros(n_prompts))
        if n_prompts
        else None
    )
    return Cell(
        mean, float(columns["agreed"].sum()) / n_agreed if n_agreed else None,
        tuple(float(columns[name].sum()) / n_pairs for name in _SUMS), counts, n_pairs,
        int(columns["n_asked"].sum()), int(columns["n_said"].sum()), int(columns["n_unanswered"].sum()),
        n_prompts, n_prompts, _n_signed([mean] if mean else []),
    )  # fmt: skip


def _macro(strata: Sequence[Cell], whole: Cell) -> Cell:
    """The unweighted mean of categories; counts are those of the whole."""
    means, agreed = [one.mean for one in strata if one.mean], [one.agreed for one in strata if one.agreed is not None]
    n = len(strata)
    return Cell(
        mean_of_means(means) if len(means) == n else None, math.fsum(agreed) / n if len(agreed) == n else None,
        tuple(math.fsum(one.bounds[end] for one in strata) / n for end in range(len(_SUMS))), whole.counts, whole.n_pairs,
        whole.n_asked, whole.n_said, whole.n_unanswered,
        sum(one.n_prompts for one in strata), min(one.fewest for one in strata), _n_signed(means),
    )  # fmt: skip


def _n_signed(means: Sequence[ClusteredMean]) -> int | None:
    off = [mean for mean in means if abs(mean.mean - MIDDLE) > _SAME]
    return None if len({mean.mean > MIDDLE for mean in off}) > 1 else sum(mean.n_prompts for mean in off)


def is_still(mean: ClusteredMean) -> bool:
    """Whether no prompt differs from another, and not because all are at one end."""
    return mean.se is not None and mean.se <= _SAME < mean.mean < 1 - _SAME


def score_test(mean: ClusteredMean, n_signed: int | None = None) -> float | None:
    """Two-sided p of a mean of one half: the test whose interval is intervals.interval(). None where that has none.

    Where no prompt differs from another of its category, 2**(1 - n_signed): all signs flipped together, those of categories at
    one half having none; 1 where all are. None where `n_signed` is: what is seen is then not the most extreme pattern of signs.
    """
    if mean.se is None or mean.df is None:
        return None
    off, spread = mean.mean - MIDDLE, math.sqrt(max(0.0, mean.mean * (1 - mean.mean)))
    if spread <= _SAME:
        t = math.sqrt(mean.n_equal)
    elif mean.se <= _SAME:
        return None if n_signed is None else min(1.0, 2.0 ** (1 - n_signed))
    else:
        t = 2 * abs(off) * spread / mean.se
    return rounded(2 * float(scipy.special.stdtr(mean.df, -t)))


def ends(mean: ClusteredMean, level: float) -> tuple[float, float] | None:
    """The win rate's interval at a level; None where there is none."""
    found = interval(mean, 0.0, 1.0, level)
    return None if isinstance(found, CellReason) else (found.low, found.high)
