"""How tables look in a terminal: the leaderboard, the expected values of the demo, the last lines of a run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from rich.markup import escape
from rich.table import Table

from flows.commands.leaderboards import print_rows
from flows.observability.terminal import Console
from schemas.metrics import means_for_prompts_like_these
from schemas.tables import BENCHMARK_LONG
from tasks.lake.reading import Lake
from tasks.publish.leaderboard import format_estimate, leaderboard_rows

if TYPE_CHECKING:
    from flows.observability.summary import RunSummary


def read_cells(folder: Path) -> pl.DataFrame:
    """A publication's means for prompts like these."""
    return means_for_prompts_like_these(pl.read_parquet(folder / f"{BENCHMARK_LONG.name}.parquet"))


def print_leaderboard(console: Console, folder: Path, *, is_short: bool = False) -> None:
    """The leaderboard of a publication, a table for each rubric and judge."""
    print_rows(console, leaderboard_rows(read_cells(folder), is_headline_only=is_short))


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


def print_summary(console: Console, summary: "RunSummary") -> None:
    """What the run read, asked and published, and where to look next."""
    data, asked, published = summary.dataset, summary.asked, summary.published
    broken = {word: n for word, n in data.n_by_status.items() if word != "ok"}
    console.print(
        f"samples     {data.n_samples:,}, usable {data.n_ok:,}" + (f", not usable {json.dumps(broken)}" if broken else "")
    )
    if summary.imported is not None:
        found = summary.imported
        console.print(
            f"imported    {found.n_rows:,} rows: {found.n_stored:,} stored, {found.n_already_there:,} there already, "
            f"{found.n_unmatched:,} left out"
        )
        for example in found.unmatched_examples:
            console.print(f"            left out: {escape(example)}")
    else:
        reasked = f", {asked.n_reasked:,} of them asked again" if asked.n_reasked else ""
        console.print(f"requests    {summary.n_requests:,}: {asked.n_cached:,} stored already, {asked.n_asked:,} sent{reasked}")
    console.print(
        f"cells       {summary.n_cells:,}" + (f", of them [red]{summary.n_blocked:,} blocked[/]" if summary.n_blocked else "")
    )
    word = "new" if published.is_new else "unchanged: the same inputs were published before"
    current = "current" if published.is_current else "not made current"
    console.print(f"publication {published.publication_id[:16]} ({word}; {current})")
    lake = Lake(published.folder.parents[3])
    console.print(f"files       {escape(f'{lake.place}/{published.folder.relative_to(lake.root)}')}/")
    lake_option = _lake_option(lake)
    console.print(f"next        salon table{lake_option}    salon explain CELL{lake_option}")


def _lake_option(lake: Lake) -> str:
    return "" if Path("lake").resolve() == lake.root else f" --lake {escape(lake.place)}"
