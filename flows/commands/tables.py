"""How tables look in a terminal: the leaderboard, the expected values of the demo, the last lines of a run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from schemas.statuses import CellStatus
from schemas.tables import BENCHMARK_LONG
from tasks.publish.headline import means_for_prompts_like_these
from tasks.publish.leaderboard import LeaderboardRow, format_estimate, leaderboard_rows

if TYPE_CHECKING:
    from flows.pipeline import RunSummary

STYLES = {CellStatus.OK: "", CellStatus.NO_INTERVAL: "yellow", CellStatus.BLOCKED: "red", CellStatus.NULL: "dim"}


def read_cells(folder: Path) -> pl.DataFrame:
    """A publication's means for prompts like these."""
    return means_for_prompts_like_these(pl.read_parquet(folder / f"{BENCHMARK_LONG.name}.parquet"))


def print_leaderboard(console: Console, folder: Path, *, is_short: bool = False) -> None:
    """The leaderboard of a publication, a table for each rubric and judge."""
    print_rows(console, leaderboard_rows(read_cells(folder), is_headline_only=is_short))


def print_rows(console: Console, rows: list[LeaderboardRow]) -> None:
    """Leaderboard rows, a small table for each rubric, judge and dimension, narrow enough for 80 columns."""
    by_judge = dict.fromkeys((row.rubric_id, row.judge_model) for row in rows)
    for rubric_id, judge_model in by_judge:
        console.print(Text.assemble((rubric_id, "bold"), f", judged by {judge_model}"))
        mine = [row for row in rows if (row.rubric_id, row.judge_model) == (rubric_id, judge_model)]
        for dimension in dict.fromkeys(row.dimension for row in mine):
            console.print(_dimension_table(dimension, [row for row in mine if row.dimension == dimension]))
        console.print()


def _dimension_table(dimension: str, rows: list[LeaderboardRow]) -> Table:
    has_failures = any(row.failures for row in rows)
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column(Text(dimension, style="not dim"), overflow="fold", min_width=24)
    table.add_column("mean [95 %]", min_width=18)
    for name in ("prompts", "images", "coverage"):
        table.add_column(name, justify="right", no_wrap=True)
    if has_failures:
        table.add_column("without a score", overflow="fold")
    table.add_column("cell", no_wrap=True)
    for row in rows:
        coverage = "-" if row.coverage is None else f"{row.coverage:.1%}"
        score = Text(row.score, style=STYLES[CellStatus(row.status)])
        failures = [Text(row.failures or "-")] if has_failures else []
        made_by = Text(f"{row.model} / {row.checkpoint}")
        table.add_row(
            made_by, score, str(row.n_prompts), str(row.n_images), coverage, *failures, Text(row.cell_id[:8], style="dim")
        )
    return table


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
    console.print(f"files       {escape(str(published.folder))}/")
    lake = _lake_option(published.folder.parents[3])
    console.print(f"next        salon table{lake}    salon explain CELL{lake}")


def _lake_option(lake: Path) -> str:
    return "" if Path("lake").resolve() == lake else f" --lake {escape(str(lake))}"
