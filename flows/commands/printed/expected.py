"""What the demo's means must be under its painter's known error rates, in the terminal."""

from pathlib import Path

import polars as pl
from rich.table import Table

from flows.commands.tables import read_cells
from flows.observability.terminal import Console
from tasks.publish.leaderboard import format_estimate


def print_expected(console: Console, folder: Path) -> None:
    """Beside each checkpoint's overall_score, what it must be under the painter's known error rates."""
    from demo.truth import expected

    truth = expected()
    table = Table(
        title="What the painter's known error rates make of overall_score", title_justify="left", title_style="bold", box=None
    )
    for name in ("rubric", "checkpoint", "mean [95 % interval]", "exact expected value", "inside"):
        table.add_column(name, justify="right" if name == "exact expected value" else "left")
    rows = read_cells(folder).filter(pl.col("dimension") == "overall_score", pl.col("category") == "__macro__")
    for row in rows.sort("rubric_id", "estimate", descending=[False, True], nulls_last=True).iter_rows(named=True):
        value = truth.get((row["rubric_id"], row["checkpoint"], row["dimension"], "__macro__"))
        if value is None:
            continue
        is_inside = row["ci_low"] is not None and row["ci_low"] <= value <= row["ci_high"]
        estimate = format_estimate(row["estimate"], row["ci_low"], row["ci_high"])
        table.add_row(row["rubric_id"], row["checkpoint"], estimate, f"{value:.3f}", "yes" if is_inside else "no")
    console.print(table)
    console.print()
