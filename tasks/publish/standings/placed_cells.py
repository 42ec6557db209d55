"""The cells of a publication beside what its standings say of them, and what kept scores from them."""

import json
from collections.abc import Mapping

import polars as pl

from schemas.metrics import ADDRESS, BOARD
from schemas.tables.published import BENCHMARK_LONG, FAILURES, STANDINGS
from schemas.tables.table import Table
from tasks.publish.exam import marks

_OWN = [name for name in STANDINGS.columns if name not in BENCHMARK_LONG.columns]


def placed(tables: Mapping[Table, pl.DataFrame]) -> pl.DataFrame:
    """The cells of `benchmark_long` with what `standings` says of them (its reason as `standing_reason`), their `failures`.

    And what their judge is `blind_to` in the dimension, as its exam found.

    Null where it says nothing: in a publication from before there was such a table there are estimates and no ranks. Cells
    that are placed already stay so.
    """
    cells = with_failures(tables)
    if "standing_reason" in cells.columns:
        return cells
    known = [STANDINGS.empty(), *(tables[table] for table in (STANDINGS,) if table in tables)]  # of an older one without a column
    beside = pl.concat(known, how="diagonal").select("cell_id", *_OWN, standing_reason="reason")
    placed_ones = cells.join(beside, on="cell_id", how="left", maintain_order="left")
    return placed_ones.join(marks(tables), on=list(BOARD), how="left", maintain_order="left")


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
