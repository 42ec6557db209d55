"""leaderboard.md: the leaderboard as a page that can be pasted into a README."""

from datetime import date
from itertools import groupby

import polars as pl

from tasks.publish.exports import escape_markdown, to_markdown
from tasks.publish.leaderboard import LeaderboardRow, leaderboard_rows

_HEADERS = ("model", "checkpoint", "mean and 95 % interval", "prompts", "images", "coverage", "failures", "cell")
_NOTES = """\
Means over categories, every category weighing the same; the interval is for prompts like these, with prompts as the
independent unit. A failure is counted and never averaged in. Coverage is the share of judgements with a score that counts.
`salon explain CELL` shows what a number is made of.
"""


def leaderboard_page(cells: pl.DataFrame, *, benchmark: str, run_date: date, publication_id: str) -> str:
    """The page: a table for each rubric, judge and dimension, best first."""
    lines = [f"# {escape_markdown(benchmark)}, {run_date.isoformat()}\n"]
    for (rubric_id, judge_model, dimension), rows in groupby(leaderboard_rows(cells), key=_table_of):
        lines.append(f"## {escape_markdown(rubric_id)}: {escape_markdown(dimension)}, judged by {escape_markdown(judge_model)}\n")
        lines.append(to_markdown(_HEADERS, [_line(row) for row in rows], n_text_columns=2))
    lines += [_NOTES, f"Publication {publication_id}.\n"]
    return "\n".join(lines)


def _table_of(row: LeaderboardRow) -> tuple[str, str, str]:
    return row.rubric_id, row.judge_model, row.dimension


def _line(row: LeaderboardRow) -> tuple[object, ...]:
    coverage = "" if row.coverage is None else f"{100 * row.coverage:.1f} %"
    return row.model, row.checkpoint, row.score, row.n_prompts, row.n_images, coverage, row.failures, row.cell_id
