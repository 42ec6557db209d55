"""Rows of `preferences`: a's win rate against b, its interval, its test against one half. Corrected together: families.py."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy  # its parts are imported where they are first used

from schemas.benchmark import Statistics
from schemas.statuses import CellReason, CellStatus, ComparisonReason, ComparisonTest, PairReason, Total
from tasks.aggregate.families import Family
from tasks.aggregate.intervals import LEVEL, ClusteredMean, Floats, clustered_mean, interval, mean_of_means
from tasks.aggregate.preferences.prompts import COUNTS, MIDDLE, PAIR, Meeting, by_prompt, slices

Row = dict[str, object]
CI_METHOD = "wilson_t_clustered"
_BOUNDS = ("bound_low", "bound_high", "order_bound_low", "order_bound_high")
_SUMS = ("low", "high", "order_low", "order_high")
_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Cell:
    """What is known of a pair of checkpoints in one category or total; shares are None where no pair was judged.

    `bounds` are low, high, order_low and order_high of the win rate; `fewest` the prompts of its smallest category.
    """

    mean: ClusteredMean | None
    agreed: float | None
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    n_pairs: int
    n_judged: int
    fewest: int


def cells_of(pairs: pl.DataFrame, expected: Sequence[str]) -> dict[tuple[str, ...], dict[str, Cell | None]]:
    """By pair of checkpoints (the columns PAIR): its cells by category and total, from the turned pairs of one rubric and judge.

    `__macro__` weighs each category the same and is None where one of the `expected` is missing; `__micro__` takes the prompts
    as one sample.
    """
    found: dict[tuple[str, ...], dict[str, Cell | None]] = {}
    parts, whole = by_prompt(pairs, *PAIR, "category"), by_prompt(pairs, *PAIR)
    for address, cell in _cells(parts, *PAIR, "category"):
        found.setdefault(address[:-1], {})[address[-1]] = cell
    for names, cell in _cells(whole, *PAIR):
        strata = [found[names].get(category) for category in expected]
        known = [one for one in strata if one is not None]
        found[names] |= {
            Total.MACRO.value: _macro(known, cell) if len(known) == len(strata) else None, Total.MICRO.value: cell,
        }  # fmt: skip
    return found


def _cells(frame: pl.DataFrame, *by: str) -> Iterator[tuple[tuple[str, ...], Cell]]:
    columns = {name: frame[name].to_numpy() for name in ("value", "agreed", "n", "n_pairs", *_SUMS, *COUNTS)}
    for names, start, end in slices(frame, *by):
        yield names, _cell({name: column[start:end] for name, column in columns.items()})


def _cell(columns: Mapping[str, Floats]) -> Cell:
    judged = columns["n"] > 0
    n_prompts, n_judged, n_pairs = int(judged.sum()), int(columns["n"].sum()), int(columns["n_pairs"].sum())
    counts = tuple(int(columns[name].sum()) for name in COUNTS)
    n_agreed = sum(counts[:3])
    mean = (
        clustered_mean(columns["value"][judged], columns["n"][judged].astype(np.int64), np.zeros(n_prompts))
        if n_prompts
        else None
    )
    return Cell(
        mean, float(columns["agreed"].sum()) / n_agreed if n_agreed else None,
        tuple(float(columns[name].sum()) / n_pairs for name in _SUMS), counts, n_pairs, n_judged, n_prompts,
    )  # fmt: skip


def _macro(strata: Sequence[Cell], whole: Cell) -> Cell:
    """The unweighted mean of categories; counts are those of the whole."""
    means, agreed = [one.mean for one in strata if one.mean], [one.agreed for one in strata if one.agreed is not None]
    n = len(strata)
    return Cell(
        mean_of_means(means) if len(means) == n else None, math.fsum(agreed) / n if len(agreed) == n else None,
        tuple(math.fsum(one.bounds[end] for one in strata) / n for end in range(len(_SUMS))), whole.counts, whole.n_pairs,
        whole.n_judged, min(one.fewest for one in strata),
    )  # fmt: skip


def score_test(mean: ClusteredMean) -> float | None:
    """Two-sided p of a mean of one half: the test whose interval is intervals.interval(). None where that has none.

    Where no prompt differs from another, 2**(1 - K): all signs flipped together; 1 where all are at one half.
    """
    if mean.se is None or mean.df is None:
        return None
    off, spread = mean.mean - MIDDLE, math.sqrt(max(0.0, mean.mean * (1 - mean.mean)))
    if spread <= _SAME:
        t = math.sqrt(mean.n_prompts)
    elif mean.se <= _SAME:
        return 1.0 if abs(off) <= _SAME else 2.0 ** (1 - mean.n_prompts)
    else:
        t = 2 * abs(off) * spread / mean.se
    return float(f"{2 * float(scipy.special.stdtr(mean.df, -t)):.12g}")


def ends(mean: ClusteredMean, level: float) -> tuple[float, float] | None:
    """The win rate's interval at a level; None where there is none."""
    found = interval(mean, 0.0, 1.0, level)
    return None if isinstance(found, CellReason) else (found.low, found.high)


def win_rate_rows(meeting: Meeting, cells: Mapping[str, Cell | None], floor: float, statistics: Statistics) -> Iterator[Row]:
    """A row for each category and total of two checkpoints, not corrected yet: as families.corrected() takes them."""
    is_divided = set(cells) != {Total.UNNAMED, Total.MACRO, Total.MICRO}
    for category, cell in cells.items():
        if category == Total.UNNAMED and not is_divided:
            continue
        row = meeting.named | {
            "category": category, "family": Family.PREFERENCES if category == Total.MACRO else Family.CATEGORIES,
            "ci_level": LEVEL, "is_stopped_early": False, "n_prompts": 0, "n_pairs": 0,
        } | dict.fromkeys(COUNTS, 0)  # fmt: skip
        yield row | (_figures(cell, floor, statistics) if cell else _null(CellReason.CATEGORY_MISSING))


def _null(reason: CellReason) -> Row:
    return {"status": CellStatus.NULL.value, "reason": reason.value}


def _figures(cell: Cell, floor: float, statistics: Statistics) -> Row:
    row: Row = {**dict(zip(_BOUNDS, cell.bounds, strict=True)), **dict(zip(COUNTS, cell.counts, strict=True))}
    row |= {"n_pairs": cell.n_pairs, "coverage": cell.n_judged / cell.n_pairs}
    if cell.mean is None or cell.n_judged < floor * cell.n_pairs:
        return row | {"status": CellStatus.BLOCKED.value, "reason": PairReason.UNJUDGED.value}
    mean = cell.mean
    row |= {"win_rate": mean.mean, "win_rate_agreed": cell.agreed, "se": mean.se, "df": mean.df, "n_prompts": mean.n_prompts}
    found = interval(mean, 0.0, 1.0)
    if isinstance(found, CellReason):
        row |= {"status": CellStatus.NO_INTERVAL.value, "reason": found.value}
    else:
        row |= {"ci_low": found.low, "ci_high": found.high, "ci_method": CI_METHOD, "status": CellStatus.OK.value}
        row["ends_at"] = lambda level: ends(mean, level)
    if mean.se is not None and cell.fewest < statistics.min_paired_prompts:
        return row | {"reason": row.get("reason") or ComparisonReason.TOO_FEW_PAIRED_PROMPTS.value}
    return row | _tested(mean, cell.bounds)


def _tested(mean: ClusteredMean, bounds: tuple[float, ...]) -> Row:
    """P, and what families.py decides by: the distance from one half and what unjudged pairs can have made of it."""
    p = score_test(mean)
    if p is None:
        return {}
    is_still = mean.se is not None and mean.se <= _SAME < mean.mean < 1 - _SAME
    test = ComparisonTest.SIGN_FLIP if is_still else ComparisonTest.SCORE_T
    off = mean.mean - MIDDLE
    low, high = min(bounds[0] - MIDDLE, off), max(bounds[1] - MIDDLE, off)
    return {"p": p, "test": test.value, "delta": off, "delta_bound_low": low, "delta_bound_high": high, "width": MIDDLE}
