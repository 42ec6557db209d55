"""The leaderboard: a row per model and checkpoint, under each rubric, judge and headline dimension. Printing is the command's."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import polars as pl

from schemas.metrics import HEADLINE, means_for_prompts_like_these
from schemas.statuses import CellStatus, Total

NO_ESTIMATE = "–"


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
