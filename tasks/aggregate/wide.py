"""benchmark_wide: a row per rubric, judge, model, checkpoint and dimension, made from the rows of the other two tables."""

import json
from collections import defaultdict
from collections.abc import Sequence

from schemas.metrics import BOARD, TOTALS, is_mean_for_prompts_like_these
from schemas.statuses import ComparisonKind, Total
from tasks.aggregate.comparisons import ALPHA, rank_ranges

Row = dict[str, object]


def wide_rows(long: Sequence[Row], comparisons: Sequence[Row]) -> list[Row]:
    """One row for each `__macro__` mean for prompts like these. Where it does not exist, so do rank and deltas not."""
    means = [row for row in long if is_mean_for_prompts_like_these(row)]
    beside: dict[tuple[object, ...], dict[str, Row]] = defaultdict(dict)
    for row in means:
        beside[_contestant(row)][str(row["category"])] = row
    compared: dict[tuple[object, ...], dict[str, Row]] = defaultdict(dict)
    rankings: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in comparisons:
        if row["category"] != Total.MACRO:
            continue
        if row["comparison"] == ComparisonKind.EACH_OTHER:
            rankings[_table(row)].append(row)
        else:
            compared[(*_table(row), row["model_a"], row["checkpoint_a"])][str(row["comparison"])] = row
    ranks = _ranks([row for row in means if row["category"] == Total.MACRO], rankings)
    return [_row(beside[key], compared[key], ranks.get(key, {})) for key in beside]


def _row(cells: dict[str, Row], compared: dict[str, Row], rank: Row) -> Row:
    macro, micro = (cells[name] for name in TOTALS)
    by_category = {name: row["estimate"] for name, row in cells.items() if name not in TOTALS}
    before, base = (compared.get(kind.value, {}) for kind in (ComparisonKind.PREDECESSOR, ComparisonKind.BASELINE))
    return macro | rank | {
        "micro_estimate": micro["estimate"], "micro_ci_low": micro["ci_low"], "micro_ci_high": micro["ci_high"],
        "categories_json": json.dumps(dict(sorted(by_category.items())), ensure_ascii=False, separators=(",", ":")),
        "delta_predecessor": before.get("delta"), "p_predecessor": before.get("p_adjusted"),
        "delta_baseline": base.get("delta"), "p_baseline": base.get("p_adjusted"),
    }  # fmt: skip


def _ranks(macros: Sequence[Row], rankings: dict[tuple[object, ...], list[Row]]) -> dict[tuple[object, ...], Row]:
    """Rank range of each contestant of each ranking that was compared; alone in it, one is first."""
    tables: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in macros:
        if row["estimate"] is not None:
            tables[_table(row)].append(row)
    found: dict[tuple[object, ...], Row] = {}
    for table, rows in tables.items():
        rows_compared = rankings[table]
        if not rows_compared and len(rows) > 1:
            continue
        names = [(str(row["model"]), str(row["checkpoint"])) for row in rows]
        flagged = {name for row in rows_compared if row.get("has_unequal_failures") for name in _both(row)}
        for (model, checkpoint), (low, high) in rank_ranges(names, rows_compared, ALPHA).items():
            found[*table, model, checkpoint] = {
                "rank_low": low, "rank_high": high, "n_ranked": len(rows), "has_unequal_failures": (model, checkpoint) in flagged,
            }  # fmt: skip
    return found


def _both(row: Row) -> tuple[tuple[str, str], tuple[str, str]]:
    return (str(row["model_a"]), str(row["checkpoint_a"])), (str(row["model_b"]), str(row["checkpoint_b"]))


def _table(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in BOARD)


def _contestant(row: Row) -> tuple[object, ...]:
    return (*_table(row), row["model"], row["checkpoint"])
