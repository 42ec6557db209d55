"""Rows of `position_bias`: how often a judge's verdict goes with the order in which it was shown two pictures."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from schemas.statuses.cells import CellReason, CellStatus, PairReason, Total
from schemas.tables.table import Row
from tasks.aggregate.intervals import LEVEL, ClusteredMean, Floats, clustered_mean, interval, mean_of_means
from tasks.aggregate.preferences.prompts import SHARES, slices
from tasks.aggregate.preferences.win_rates import CI_METHOD

Means = Mapping[str, ClusteredMean]
Part = tuple[Mapping[str, float], Means]
_WITH_INTERVAL = ("first_wins", "order_dependent")


def bias_rows(pairs: pl.DataFrame, categories: Sequence[str], expected: Sequence[str], floor: float) -> Iterator[Row]:
    """A row for each category and both totals, from the pairs of one judge.

    Pairs with both verdicts alone: each shows either checkpoint first once, so that quality falls out and 0.5 is no bias. Under
    the coverage floor there are no shares, as there is no win rate.
    """
    parts = {categories[number]: part for number, part in _counted(pairs)}
    ((_, (total, means)),) = _counted(pairs.with_columns(category=pl.lit(0)))
    found = [parts[name] for name in expected if name in parts]
    is_lacking = len(found) < len(expected)
    yield _row(Total.MACRO.value, total, _mean(found, len(expected)), floor, is_lacking=is_lacking)
    yield _row(Total.MICRO.value, total, means, floor)
    if list(expected) != [Total.UNNAMED.value]:
        for name, part in parts.items():
            yield _row(name, *part, floor)


def _mean(parts: Sequence[Part], n_expected: int) -> Means:
    """The unweighted mean of the categories; nothing where one of them is missing."""
    each = {name: [mean for _, means in parts if (mean := means.get(name))] for name in SHARES}
    return {name: mean_of_means(means) for name, means in each.items() if len(means) == n_expected}


def _counted(pairs: pl.DataFrame) -> Iterator[tuple[int, Part]]:
    """By category: numbers of pairs, and the share of each kind."""
    read, counts = pl.col("value").is_not_null(), ("n_asked", "n_said")
    sums = (
        pairs.group_by("category", "prompt")
        .agg(pl.len().alias("n_pairs"), read.sum().alias("n"), pl.col(*counts, *SHARES).sum())
        .sort("category", "prompt")
    )
    columns = {name: sums[name].to_numpy() for name in ("n_pairs", "n", *counts, *SHARES)}
    for (number,), start, end in slices(sums, "category"):
        mine = {column: values[start:end] for column, values in columns.items()}
        n_asked, n_said, n_pairs, n_read = (int(mine[name].sum()) for name in (*counts, "n_pairs", "n"))
        yield number, ({"n_pairs": n_pairs, "n_both_orders": n_read, "coverage": n_said / n_asked}, _means(mine))


def _means(columns: Mapping[str, Floats]) -> Means:
    there = columns["n"] > 0
    if not there.any():
        return {}
    n_read, still = columns["n"][there].astype(np.int64), np.zeros(int(there.sum()))
    return {name: clustered_mean(columns[name][there], n_read, still) for name in SHARES}


def _row(category: str, counts: Mapping[str, float], means: Means, floor: float, *, is_lacking: bool = False) -> Row:
    """Without shares, it says why as the row of `preferences` does. `is_lacking`: the total lacks a category."""
    row: Row = {"category": category, "ci_level": LEVEL, "n_prompts": means["ties"].n_prompts if means else 0, **counts}
    if counts["coverage"] < floor or not (means or is_lacking):
        return row | {"status": CellStatus.BLOCKED.value, "reason": PairReason.UNJUDGED.value}
    if not means:
        return row | {"status": CellStatus.NULL.value, "reason": CellReason.CATEGORY_MISSING.value}
    row |= {name: mean.mean for name, mean in means.items()}
    reasons = set()
    for name in _WITH_INTERVAL:
        found = interval(means[name], 0.0, 1.0)
        if isinstance(found, CellReason):
            reasons.add(found.value)
        else:
            row |= {f"{name}_low": found.low, f"{name}_high": found.high, "ci_method": CI_METHOD}
    status = CellStatus.NO_INTERVAL if reasons else CellStatus.OK
    return row | {"status": status.value, "reason": min(reasons, default=None)}
