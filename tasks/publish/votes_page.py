"""How agreement on pairs of pictures reads, on the page and in the terminal: judge and people beside each other."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from schemas.records import PEOPLE
from schemas.statuses.cells import Total
from schemas.statuses.people import Against, AgreementMetric, Assessor
from schemas.tables.agreement import AGREEMENT
from schemas.tables.published import POSITION_BIAS
from schemas.tables.table import Table
from tasks.publish.standings.pair_boards import PairBoard, pair_boards, rating, verdict, win_rate
from tasks.publish.standings.wording import made_by, number

ALL = "__all__"
OF_PAIRS = AgreementMetric.VOTE_ACCURACY.value
"""The metric that only a dimension with votes has."""
HEADERS = ("", "against", "same verdict", "without ties", "κ", "by order alone", "unjudged", "pairs")
_SHOWN = (
    AgreementMetric.VOTE_ACCURACY, AgreementMetric.VOTE_ACCURACY_WITHOUT_TIES, AgreementMetric.COHEN_KAPPA,
    AgreementMetric.ORDER_DEPENDENT, AgreementMetric.UNJUDGED,
)  # fmt: skip
_CALLED = {
    Against.RATERS_MAJORITY: "people's majority", Against.OTHER_RATERS_MAJORITY: "the others' majority",
    Against.EACH_RATER: "each person",
}  # fmt: skip


Beside = tuple[tuple[str, ...], list[tuple[str, ...]]]


class VoteBoard(NamedTuple):
    """A dimension that people voted on: lines of HEADERS, and tables of ratings and win rates, each its headers and lines."""

    title: str
    lines: list[tuple[str, ...]]
    beside: list[Beside]


def split_off(overall: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `agreement` on single pictures, and those on pairs."""
    is_of_pairs = (pl.col("metric") == OF_PAIRS).any().over("rubric_id", "dimension")
    marked = overall.with_columns(is_of_pairs=is_of_pairs)
    return marked.filter(~pl.col("is_of_pairs")), marked.filter("is_of_pairs")


def vote_boards(tables: Mapping[Table, pl.DataFrame]) -> Iterator[VoteBoard]:
    """A board for each dimension that has votes; none where there are no votes."""
    _, rows = split_off(tables[AGREEMENT].filter(model=ALL, category=Total.MICRO.value))
    boards = pair_boards({**tables, POSITION_BIAS: POSITION_BIAS.empty()})  # that is a benchmark's own
    for (rubric_id, dimension), mine in rows.group_by("rubric_id", "dimension", maintain_order=True):
        beside = [one for one in boards if (one.rubric_id, one.dimension) == (rubric_id, dimension)]
        yield VoteBoard(f"{rubric_id}: {dimension}, pairs", list(_lines(mine)), [_ratings(beside), _win_rates(beside)])


def _lines(rows: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    for (kind, subject, against), mine in rows.group_by("subject_kind", "subject", "against", maintain_order=True):
        by_metric = {row["metric"]: row for row in mine.iter_rows(named=True)}
        figures = [figure(by_metric.get(metric.value)) for metric in _SHOWN]
        who = _CALLED.get(subject, subject) if kind == Assessor.RATERS else f"{kind} {subject}"
        yield who, _CALLED.get(against, str(against)), *figures, f"{by_metric[OF_PAIRS]['n_items']:,}"


def figure(row: Mapping[str, Any] | None) -> str:
    """An agreement's figure with its interval, else why there is none."""
    if row is None:
        return ""
    if row["estimate"] is None:
        return str(row["reason"]).replace("_", " ")
    ends = "" if row["ci_low"] is None else f" [{number(row['ci_low'], 2)}, {number(row['ci_high'], 2)}]"
    return f"{number(row['estimate'], 3)}{ends}"


def _ratings(boards: list[PairBoard]) -> Beside:
    """Each checkpoint's points by each judge and by people."""
    name = _namer(boards)
    return _beside("points", {board.judge_model: {name(row, ""): rating(row) for row in board.ratings} for board in boards})


def _win_rates(boards: list[PairBoard]) -> Beside:
    """Each two checkpoints' win rate and what it says, by each judge and by people."""
    name = _namer(boards)
    return _beside("wins", {
        board.judge_model: {
            f"{name(row, '_a')} against {name(row, '_b')}": f"{win_rate(row)} {verdict(row)}".strip()
            for row in board.comparisons
        }
        for board in boards
    })  # fmt: skip


def _namer(boards: list[PairBoard]) -> Callable[[Mapping[str, Any], str], str]:
    """What all of them call a row's checkpoint: with its model where any has several, or one row would become two."""
    is_one_model = len({row[f"model_{end}"] for board in boards for row in board.comparisons for end in "ab"}) == 1
    return lambda row, end: made_by(row[f"model{end}"], row[f"checkpoint{end}"], is_one_model=is_one_model)


def _beside(what: str, by_judge: Mapping[str, Mapping[str, str]]) -> Beside:
    names = dict.fromkeys(name for found in by_judge.values() for name in found)
    lines = [(name, *(found.get(name, "") for found in by_judge.values())) for name in names]
    return (what, *("people" if judge == PEOPLE else judge for judge in by_judge)), lines
