"""The cells of a publication beside what its standings say of them, and what kept scores from them."""

import json
from collections.abc import Mapping

import polars as pl

from schemas.metrics import ADDRESS, BOARD, TOTALS, means_for_prompts_like_these
from schemas.statuses.cells import ComparisonKind, Total
from schemas.tables.published import BENCHMARK_LONG, FAILURES, STANDINGS
from schemas.tables.table import Table
from tasks.publish.standings.exam import marks

_OWN = [name for name in STANDINGS.columns if name not in BENCHMARK_LONG.columns]


def placed(tables: Mapping[Table, pl.DataFrame]) -> pl.DataFrame:
    """The cells of `benchmark_long` with what `standings` says of them (its reason as `standing_reason`), their `failures`.

    And what their judge is `blind_to` in the dimension, as its exam found; of a total its `n_small_categories`, each with fewer
    prompts than a comparison needs.

    Null where it says nothing: in a publication from before there was such a table there are estimates and no ranks. Cells
    that are placed already stay so.
    """
    cells = with_failures(tables)
    if "standing_reason" in cells.columns:
        return cells
    known = [STANDINGS.empty(), *(tables[table] for table in (STANDINGS,) if table in tables)]  # of an older one without a column
    beside = pl.concat(known, how="diagonal").select("cell_id", *_OWN, standing_reason="reason")
    placed_ones = _with_small_categories(cells.join(beside, on="cell_id", how="left", maintain_order="left"))
    return placed_ones.join(marks(tables), on=list(BOARD), how="left", maintain_order="left")


def _with_small_categories(cells: pl.DataFrame) -> pl.DataFrame:
    key = [*BOARD, "model", "checkpoint"]
    totals = cells.filter(pl.col("n_prompts_needed").is_not_null(), category=Total.MACRO.value).select(*key, "n_prompts_needed")
    of_categories = means_for_prompts_like_these(cells).filter(~pl.col("category").is_in(TOTALS)).drop("n_prompts_needed")
    is_small = pl.col("n_prompts").is_between(1, pl.col("n_prompts_needed") - 1)
    n_small = of_categories.join(totals, on=key).group_by(key).agg(n_small_categories=is_small.sum())
    counted = n_small.with_columns(category=pl.lit(Total.MACRO.value))
    return cells.join(counted, on=[*key, "category"], how="left", maintain_order="left")


_SAID = {
    "delta": "delta", "delta_low": "ci_low_adjusted", "delta_high": "ci_high_adjusted", "p": "p_adjusted", "verdict": "verdict",
    "reason": "reason", "n_prompts": "n_prompts_paired",
}  # fmt: skip
"""A comparison's columns, by the columns of a standing that say the same."""
_OF_FAMILY = ("adjustment", "family", "n_family")
_KINDS = {"predecessor": ComparisonKind.PREDECESSOR.value, "baseline": ComparisonKind.BASELINE.value}


def with_comparisons(cells: pl.DataFrame, comparisons: pl.DataFrame) -> pl.DataFrame:
    """Placed cells; those that no ranking holds with what `comparisons` says of them, and no rank.

    Such are single categories, and means over all images, of a dimension that is ranked by its total. Their family is
    exploratory, and so are they.
    """
    for name, kind in _KINDS.items():
        columns = {_named(word, name): column for word, column in _SAID.items()} | {own: own for own in _OF_FAMILY}
        mine = comparisons.filter(pl.col("comparison") == kind, pl.col("delta").is_not_null())
        beside = mine.select(**{"cell_id": "cell_id_a", **{f"{own} compared": column for own, column in columns.items()}})
        joined = cells.join(beside, on="cell_id", how="left", maintain_order="left")
        is_alone = pl.col("state").is_null() & pl.col(f"delta_{name} compared").is_not_null()
        cells = joined.with_columns(
            *(pl.when(is_alone).then(f"{own} compared").otherwise(own).alias(own) for own in columns),
            is_headline=pl.when(is_alone).then(statement=False).otherwise("is_headline"),
        ).drop(f"{own} compared" for own in columns)
    return cells


def _named(word: str, other: str) -> str:
    """As in delta_predecessor_low."""
    first, _, end = word.partition("_") if word.startswith("delta") else (word, "", "")
    return f"{first}_{other}_{end}" if end else f"{word}_{other}"


def with_failures(tables: Mapping[Table, pl.DataFrame]) -> pl.DataFrame:
    """The cells of `benchmark_long` with a column `failures`: a list of {reason, n_failed}, the commonest first.

    It is what the table `failures` says of the mean at the same address; a publication from before there was that table says
    it as JSON text in the cell.
    """
    cells = tables[BENCHMARK_LONG]
    if "failures" in cells.columns:
        return cells
    key, rows = list(ADDRESS), tables.get(FAILURES, FAILURES.empty())
    if "failures_json" in cells.columns:
        key, told = ["cell_id"], cells.select("cell_id", "failures_json").rows()
        listed = [(cell, word, n) for cell, text in told for word, n in json.loads(text).items()]
        schema = {name: rows.schema[name] for name in ("cell_id", "reason", "n_failed")}
        rows = pl.DataFrame(listed, schema=schema, orient="row")
    ordered = rows.sort("n_failed", "reason", descending=[True, False]).group_by(key, maintain_order=True)
    return cells.join(ordered.agg(failures=pl.struct("reason", "n_failed")), on=key, how="left", maintain_order="left")
