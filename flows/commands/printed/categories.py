"""A rubric's means by category as one table: a row for each checkpoint, a column for each category. Rankings are tables.py."""

from collections.abc import Sequence

import polars as pl
from rich.table import Table
from rich.text import Text

from flows.observability.terminal import Console, name_of, one_line
from schemas.metrics import NO_TOTAL, TOTALS, headlines, means_for_prompts_like_these
from schemas.statuses.cells import CellStatus
from tasks.publish.leaderboard import LeaderboardRow
from tasks.publish.standings.categories import worse_categories
from tasks.publish.standings.wording import DASH, made_by, number

_STYLES = {CellStatus.OK: "", CellStatus.NO_INTERVAL: "yellow", CellStatus.BLOCKED: "red", CellStatus.NULL: "dim"}


def print_categories(console: Console, rows: Sequence[LeaderboardRow], cells: pl.DataFrame) -> None:
    """For each judge and leading dimension of the rows its means by category; nothing where there is but one category.

    `rows` are of one rubric, over all categories and in the order they are to stand; `cells` its placed ones. More
    categories than the terminal is wide for go into further blocks.
    """
    means = means_for_prompts_like_these(cells).filter(~pl.col("category").is_in(TOTALS))
    primary = headlines(cells)
    of_claims = [row for row in rows if (row.rubric_id, row.dimension) in primary] or rows  # or what --dimension names
    leading = [row for row in of_claims if row.reason not in NO_TOTAL]
    for judge_model, dimension in dict.fromkeys((row.judge_model, row.dimension) for row in leading):
        mine = [row for row in leading if (row.judge_model, row.dimension) == (judge_model, dimension)]
        found = means.filter(judge_model=judge_model, dimension=dimension).sort("category").to_dicts()
        by_cell = {(row["model"], row["checkpoint"], row["category"]): row for row in found}
        categories = list(dict.fromkeys(row["category"] for row in found))
        if len(categories) > 1:
            console.print(
                Text.assemble(one_line(f" {dimension} by category"), (one_line(f", judged by {judge_model}: means"), "dim"))
            )
            name_width = min(console.width // 2, max(len("checkpoint"), *(len(_name(row, mine)) for row in mine)))
            for some in _blocks(categories, console.width - name_width):
                console.print(_block(mine, some, by_cell, name_width))
            console.print(Text(" with intervals and any ranks: --category NAME\n", style="dim"))


def print_worse(console: Console, comparisons: pl.DataFrame, *, command: str = "") -> None:
    """worse_categories(); `command` is the one whose --category shows one."""
    found = worse_categories(comparisons)
    if found is not None:
        said, is_finding = found
        style = "red" if is_finding else "yellow"
        console.print(Text(one_line(f"{said}; {command}--category NAME shows one"), style=style))


def _blocks(categories: list[str], width: int) -> list[list[str]]:
    """As many columns at once as fit beside the names."""
    n = max(1, (width - 1) // (max(_column_width(name) for name in categories) + 2))
    return [categories[start : start + n] for start in range(0, len(categories), n)]


def _column_width(category: str) -> int:
    return max(len("blocked"), *(len(word) for word in category.replace("_", " ").split()))


def _block(
    rows: Sequence[LeaderboardRow], categories: list[str], by_cell: dict[tuple[str, str, str], dict[str, object]], name_width: int
) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("checkpoint", overflow="fold", width=name_width)
    for category in categories:
        table.add_column(name_of(category.replace("_", " ")), justify="right", min_width=_column_width(category), overflow="fold")
    for row in rows:
        cells = (by_cell.get((row.model, row.checkpoint, category)) for category in categories)
        table.add_row(name_of(_name(row, rows)), *map(_cell, cells))
    return table


def _cell(cell: dict[str, object] | None) -> Text:
    if cell is None:
        return Text(DASH, style="dim")
    estimate, status = cell["estimate"], CellStatus(str(cell["status"]))
    shown = number(estimate, 2) if isinstance(estimate, float) else "blocked" if status is CellStatus.BLOCKED else DASH
    return Text(shown, style=_STYLES[status])


def _name(row: LeaderboardRow, rows: Sequence[LeaderboardRow]) -> str:
    return made_by(row.model, row.checkpoint, is_one_model=len({one.model for one in rows}) == 1)
