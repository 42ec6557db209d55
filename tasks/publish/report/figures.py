"""The charts of one board as drawings, with the sentence a screen reader hears. What is on their axes is charts.py."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from schemas.metrics import natural_key
from schemas.statuses.cells import ComparisonVerdict
from schemas.tables.table import Row
from tasks.publish.report.boards import Board
from tasks.publish.report.drawing import draw
from tasks.publish.report.formats import number, percent, words

if TYPE_CHECKING:
    import altair as alt

Made = tuple[str, "alt.TopLevelMixin", list[Row], bool]
"""Title, chart, its rows, and whether it shows fewer than the table."""
N_DRAWN = 30  # checkpoints in a chart: the best of them; the tables hold all
N_TREND = 200  # points of a trend
MAX_CATEGORIES = 14
N_LETTERS = 28  # of a name beside a chart of differences
_PAIR = ("model_a", "checkpoint_a", "model_b", "checkpoint_b")
_DECIDED = (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing and its caption; `is_cut` says that it shows fewer than the table."""

    title: str
    svg: Markup
    is_cut: bool


def figures(board: Board) -> list[Figure]:
    """The drawings of a board that its numbers allow."""
    makers: list[Callable[[Board], Made | None]] = [_standing, _heatmap, _distribution, _deltas]
    made = [one for maker in makers for one in [maker(board)] if one is not None]
    whose = f"{words(board.dimension)} under {board.rubric_id}, judged by {board.judge_model}"
    says = "The numbers are in the table below."
    return [Figure(title, draw(chart, rows, f"{title}: {whose}. {says}"), is_cut) for title, chart, rows, is_cut in made]


def _standing(board: Board) -> Made | None:
    """Over checkpoints where a model has several, else model beside model."""
    from tasks.publish.report import charts  # Altair takes half a second to load: whoever draws nothing does not wait for it

    shown = [row for row in board.rows if row["estimate"] is not None]
    if not shown:
        return None
    scale = f"mean, scale {board.scale_low:g} to {board.scale_high:g}"
    ordered = sorted(shown, key=lambda row: (row.get("place") or 0, natural_key(row["checkpoint"]), row["checkpoint"]))
    if len({row["model"] for row in shown}) < len(shown) <= N_TREND:
        rows = [
            {name: row[name] for name in ("model", "checkpoint", "estimate", "ci_low", "ci_high")} | {"order": index}
            for index, row in enumerate(ordered)
        ]
        return "Trend over checkpoints, 95 % intervals", charts.trend(rows, scale), rows, False
    names = board.names
    rows = [
        {
            "name": names[row["model"], row["checkpoint"]], "order": index, "value": row["estimate"], "is_marked": index == 0,
            "low": row["ci_low"], "high": row["ci_high"],
        }
        for index, row in enumerate(shown[:N_DRAWN])
    ]  # fmt: skip
    return "Means, 95 % intervals", charts.intervals(rows, scale), rows, len(shown) > N_DRAWN


def _deltas(board: Board) -> Made | None:
    from tasks.publish.report import charts

    names = board.names
    pairs = {tuple(row[name] for name in _PAIR): row for row in board.deltas if row["delta"] is not None}
    known = [*pairs.values()]  # once each: the predecessor may be the baseline too
    rows = [
        {
            "name": f"{index}\n{_both_ends(names[row['model_a'], row['checkpoint_a']])}\nvs {_both_ends(_other(row))}",
            "order": index, "value": row["delta"],
            "low": row["ci_low_adjusted"], "high": row["ci_high_adjusted"], "is_marked": row["verdict"] in _DECIDED,
        }
        for index, row in enumerate(known[:N_DRAWN])
    ]  # fmt: skip
    if not rows:
        return None
    chart = charts.differences(rows, "difference of means; the first is better →")
    return "Differences, intervals for all comparisons together", chart, rows, len(known) > N_DRAWN


def _heatmap(board: Board) -> Made | None:
    from tasks.publish.report import charts

    if not 2 <= len(board.categories) <= MAX_CATEGORIES:
        return None
    rows = []
    for index, ((model, checkpoint), name) in enumerate(list(board.names.items())[:N_DRAWN]):
        for category in board.categories:
            estimate = board.cells.get((model, checkpoint, category), {}).get("estimate")
            value = {"estimate": estimate, "text": number(estimate)}
            rows.append({"name": name, "order": index, "category": words(category)} | value)
    return "Mean by category", charts.heatmap(rows, board.scale_low, board.scale_high), rows, len(board.names) > N_DRAWN


def _distribution(board: Board) -> Made | None:
    from tasks.publish.report import charts

    names = board.names
    order = {key: index for index, key in enumerate(names) if index < N_DRAWN}
    n_steps = len({row["score_from"] for row in board.shares})
    are_whole = _are_whole_steps(board)
    rows = [
        {
            "name": names[row["model"], row["checkpoint"]], "order": order[row["model"], row["checkpoint"]],
            "score": _step(row, is_whole=are_whole), "score_from": row["score_from"], "share": row["share"],
            "text": percent(row["share"], 0) if row["share"] >= 0.005 and n_steps <= 11 else "",
        }
        for row in board.shares
        if (row["model"], row["checkpoint"]) in order
    ]  # fmt: skip
    title = "score" if are_whole else "score (from – to under)"
    return ("Share of the scores, by score", charts.distributions(rows, title), rows, len(names) > N_DRAWN) if rows else None


def _are_whole_steps(board: Board) -> bool:
    """Whether every score is the lower end of its step: the mean of those ends is then the mean of the scores."""
    sums: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in board.shares:
        sums[row["model"], row["checkpoint"]] += row["share"] * row["score_from"]
    near = 1e-6 * (board.scale_high - board.scale_low)
    means = {(row["model"], row["checkpoint"]): row["estimate"] for row in board.rows if row["estimate"] is not None}
    return all(abs(sums[key] - mean) <= near for key, mean in means.items() if key in sums)


def _step(row: Row, *, is_whole: bool) -> str:
    above = "" if is_whole or row["score_below"] is None else f" – {row['score_below']:g}"
    return f"{row['score_from']:g}{above}"


def _other(row: Row) -> str:
    return str(row["checkpoint_b"] if row["model_a"] == row["model_b"] else f"{row['model_b']} / {row['checkpoint_b']}")


def _both_ends(name: str) -> str:
    """A name that fits on a line beside a chart: of a long one the beginning and the end, by which checkpoints differ."""
    name = " ".join(name.split())
    return name if len(name) <= N_LETTERS else f"{name[: N_LETTERS // 2 - 1]}…{name[-N_LETTERS // 2 :]}"
