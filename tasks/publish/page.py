"""leaderboard.md: the leaderboard as a page that can be pasted into a README."""

from collections.abc import Iterable
from itertools import groupby

import polars as pl

from tasks.publish.exports import escape_markdown, to_markdown
from tasks.publish.folders import PublicationName
from tasks.publish.leaderboard import LeaderboardRow, leaderboard_rows

_HEADERS = ("model", "checkpoint", "mean and 95 % interval", "prompts", "images", "coverage", "failures", "cell")
_NOTES = """\
Means over categories, every category weighing the same; the interval is for prompts like these, with prompts as the
independent unit. A failure is counted and never averaged in. Coverage is the share of judgements with a score that counts.
`salon explain CELL` shows what a number is made of.
"""


def leaderboard_page(cells: pl.DataFrame, name: PublicationName) -> str:
    """The page: a table for each rubric, judge and dimension, best first."""
    title = f"# {escape_markdown(name.benchmark)}, {name.run_date.isoformat()}\n"
    return "\n".join([title, markdown_tables(leaderboard_rows(cells)), _NOTES, f"Publication {name.publication_id}.\n"])


def markdown_tables(rows: Iterable[LeaderboardRow]) -> str:
    """A table with its heading for each rubric, judge and dimension, in the rows' order."""
    parts = []
    for (rubric_id, judge_model, dimension), mine in groupby(rows, key=_table_of):
        parts.append(f"## {escape_markdown(rubric_id)}: {escape_markdown(dimension)}, judged by {escape_markdown(judge_model)}\n")
        parts.append(to_markdown(_HEADERS, [_line(row) for row in mine], n_text_columns=2))
    return "\n".join(parts)


def _table_of(row: LeaderboardRow) -> tuple[str, str, str]:
    return row.rubric_id, row.judge_model, row.dimension


def _line(row: LeaderboardRow) -> tuple[object, ...]:
    coverage = "" if row.coverage is None else f"{100 * row.coverage:.1f} %"
    return row.model, row.checkpoint, row.score, row.n_prompts, row.n_images, coverage, row.failures, row.cell_id
