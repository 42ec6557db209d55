"""Rows of benchmark_wide: a checkpoint's means over all categories beside its rank, its deltas and its categories."""

import json
from collections import defaultdict
from collections.abc import Sequence

from schemas.metrics import BOARD, TOTALS, is_mean_for_prompts_like_these
from schemas.statuses.cells import Total
from schemas.tables.table import Row

_OF_STANDINGS = (
    "rank_low", "rank_high", "n_ranked", "delta_predecessor", "p_predecessor", "delta_baseline", "p_baseline",
    "has_unequal_failures",
)  # fmt: skip


def wide_rows(long: Sequence[Row], standings: Sequence[Row]) -> list[Row]:
    """One row for each `__macro__` mean for prompts like these. Where it does not exist, so do rank and deltas not."""
    beside: dict[tuple[object, ...], dict[str, Row]] = defaultdict(dict)
    for row in long:
        if is_mean_for_prompts_like_these(row):
            beside[_contestant(row)][str(row["category"])] = row
    standing = {_contestant(row): row for row in standings if row["category"] == Total.MACRO}
    return [_row(cells, standing.get(key, {})) for key, cells in beside.items()]


def _row(cells: dict[str, Row], standing: Row) -> Row:
    macro, micro = (cells[name] for name in TOTALS)
    by_category = {name: row["estimate"] for name, row in cells.items() if name not in TOTALS}
    return {name: standing.get(name) for name in _OF_STANDINGS} | macro | {
        "micro_estimate": micro["estimate"], "micro_ci_low": micro["ci_low"], "micro_ci_high": micro["ci_high"],
        "categories_json": json.dumps(dict(sorted(by_category.items())), ensure_ascii=False, separators=(",", ":")),
    }  # fmt: skip


def _contestant(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in (*BOARD, "model", "checkpoint"))
