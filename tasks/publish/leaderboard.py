"""The leaderboard: a row per model and checkpoint, under each rubric, judge and headline dimension. Printing is the command's.

leaderboard.md, a page that can be pasted into a README, stands below.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby

import polars as pl

from schemas.metrics import HEADLINE, means_for_prompts_like_these
from schemas.statuses import CellStatus, Total
from tasks.publish.exports import escape_markdown, to_markdown
from tasks.publish.folders import PublicationName

NO_ESTIMATE = "–"

_HEADERS = ("model", "checkpoint", "mean and 95 % interval", "prompts", "images", "coverage", "failures", "cell")
_NOTES = """\
Means over categories, every category weighing the same; the interval is for prompts like these, with prompts as the
independent unit. A failure is counted and never averaged in. Coverage is the share of judgements with a score that counts.
`salon explain CELL` shows what a number is made of.
"""


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """One line of the leaderboard. `score` is for reading ("7.42 [6.91, 7.93]", or a dash and why); the numbers are beside it."""

    rubric_id: str
    judge_model: str
    dimension: str
    model: str
    checkpoint: str
    score: str
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    status: str
    reason: str | None
    n_prompts: int
    n_images: int
    n_judgements: int
    n_failed: int
    coverage: float | None
    failures: str
    cell_id: str


def leaderboard_rows(
    cells: pl.DataFrame, *, category: str = Total.MACRO.value, is_headline_only: bool = True
) -> list[LeaderboardRow]:  # fmt: skip
    """The rows of one category (default: the mean over categories), best first within rubric, judge and dimension.

    With `is_headline_only` a rubric that has an `overall_score` shows that alone; every other shows all its dimensions
    that have such a row.
    """
    chosen = means_for_prompts_like_these(cells).filter(pl.col("category") == category)
    if is_headline_only:
        with_headline = cells.filter(pl.col("dimension") == HEADLINE)["rubric_id"].unique()
        chosen = chosen.filter((pl.col("dimension") == HEADLINE) | ~pl.col("rubric_id").is_in(with_headline.implode()))
    order = ["rubric_id", "judge_model", "dimension", "estimate", "model", "checkpoint"]
    chosen = chosen.sort(order, descending=[name == "estimate" for name in order], nulls_last=True)
    return [_row(row) for row in chosen.iter_rows(named=True)]


def leaderboard(rows: Sequence[LeaderboardRow]) -> pl.DataFrame:
    """Leaderboard rows as a frame, numbers in full precision."""
    schema = pl.Schema({
        "estimate": pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64, "coverage": pl.Float64,
        "n_prompts": pl.Int64, "n_images": pl.Int64, "n_judgements": pl.Int64, "n_failed": pl.Int64,
    })  # fmt: skip
    names = [field.name for field in fields(LeaderboardRow)]
    return pl.DataFrame([asdict(row) for row in rows], schema={name: schema.get(name, pl.String()) for name in names})


def format_estimate(estimate: float | None, ci_low: float | None, ci_high: float | None, n_digits: int = 2) -> str:
    """Such as "7.42 [6.91, 7.93]"; the number alone where there is no interval; a dash where there is no number."""
    if estimate is None:
        return NO_ESTIMATE
    number = _number(estimate, n_digits)
    if ci_low is None or ci_high is None:
        return number
    return f"{number} [{_number(ci_low, n_digits)}, {_number(ci_high, n_digits)}]"


def _row(cell: dict[str, object]) -> LeaderboardRow:
    known = {name: cell[name] for name in (field.name for field in fields(LeaderboardRow)) if name in cell}
    failures = json.loads(str(cell["failures_json"]))
    listed = ", ".join(f"{reason} {n}" for reason, n in sorted(failures.items(), key=lambda item: (-item[1], item[0])))
    return LeaderboardRow(**known, score=_score(cell), failures=listed)  # type: ignore[arg-type]


def _score(cell: dict[str, object]) -> str:
    estimate, low, high = (cell[name] for name in ("estimate", "ci_low", "ci_high"))
    text = format_estimate(estimate, low, high)  # type: ignore[arg-type]
    if cell["status"] == CellStatus.OK:
        return text
    why = f"{cell['status']}: {cell['reason']}" if cell["status"] == CellStatus.BLOCKED else f"{cell['reason']}"
    return f"{text} ({why})"


def _number(value: float, n_digits: int) -> str:
    return f"{round(value, n_digits) + 0.0:.{n_digits}f}"  # + 0.0: no "-0.00"


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
