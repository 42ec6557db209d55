"""What the page shows of the cells: a board for each rubric, judge and dimension, best first. How it looks: templates."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

import polars as pl

from schemas.lineage import Checkpoint, placed_in
from schemas.metrics import BOARD, NO_TOTAL, TOTALS, headlines, means_for_prompts_like_these, natural_key
from schemas.records import ALL_JUDGES
from schemas.statuses.cells import ComparisonKind, HealthMeasure, Total
from schemas.tables.published import COMPARISONS, DISTRIBUTIONS, HEALTH, STANDINGS
from schemas.tables.table import Row, Table
from tasks.publish.leaderboard import answers_of
from tasks.publish.report.formats import isolated, names_isolated, with_isolated
from tasks.publish.standings.pair_answers import pair_answers, pair_answers_together
from tasks.publish.standings.pair_boards import PairBoard
from tasks.publish.standings.placed_cells import placed
from tasks.publish.standings.wording import best_first, failures_of, namer, why

_CONTESTANT = ("model", "checkpoint")


@dataclass(frozen=True, slots=True)
class Board:
    """One ranking. `rows`: `__macro__` cells with their standing, best first; `cells`: (model, checkpoint, category).

    `deltas` are its comparisons to predecessor and baseline over all categories, `shares` its distribution over all
    categories. `has_total` is false where no total exists: the categories are then all there is.
    """

    anchor: str
    rubric_id: str
    judge_model: str
    dimension: str
    scale_low: float
    scale_high: float
    is_headline: bool
    has_total: bool
    rows: list[Row]
    categories: list[str]
    cells: dict[tuple[str, str, str], Row]
    deltas: list[Row]
    shares: list[Row]

    @property
    def blind_to(self) -> str | None:
        """What its judge does not notice in the dimension, in words; None where its exam found nothing of the kind."""
        return self.rows[0]["blind_to"] if self.rows else None

    @property
    def names(self) -> dict[tuple[str, str], str]:
        """How each contestant is called in a chart: its checkpoint, and its model where there are several."""
        name = namer(self.rows)
        return {(row["model"], row["checkpoint"]): name(row) for row in self.rows}


def answers_first(tables: Mapping[Table, pl.DataFrame], pairs: Sequence[PairBoard]) -> dict[tuple[str, str], list[str]]:
    """By rubric and judge the sentences that stand first on a page. What several judges say is under ALL_JUDGES, before each."""
    isolated_pairs = [*map(_isolated, pairs)]
    said = {(rubric_id, ALL_JUDGES): told for rubric_id, told in pair_answers_together(isolated_pairs).items()}
    said |= {(one.rubric_id, one.judge_model): pair_answers(one) for one in isolated_pairs if one.is_headline}
    return said | answers_of(names_isolated(placed(tables)), tables.get(COMPARISONS))


def _isolated(board: PairBoard) -> PairBoard:
    """The board with its names as they stand in sentences."""
    rows = [with_isolated(row) for row in board.comparisons]
    return replace(board, judge_model=isolated(board.judge_model), comparisons=rows)


def newest(tables: Mapping[Table, pl.DataFrame]) -> set[Checkpoint]:
    """The newest checkpoint of each model that has several."""
    if STANDINGS not in tables:
        return set()
    ordered = placed_in(tables[STANDINGS])
    n = Counter(model for model, _ in ordered)
    return {(model, checkpoint) for model, checkpoint in dict(ordered).items() if n[model] > 1}


def boards(tables: Mapping[Table, pl.DataFrame]) -> list[Board]:
    """Every ranking of the publication, the primary dimensions of a rubric first."""
    cells = placed(tables)
    means, primary = means_for_prompts_like_these(cells), headlines(cells)
    costs = _costs(rows_of(tables, HEALTH))
    compared, shares = (_by_board(rows_of(tables, table)) for table in (COMPARISONS, DISTRIBUTIONS))
    kinds = (ComparisonKind.PREDECESSOR, ComparisonKind.BASELINE)
    found = []
    for index, (key, mine) in enumerate(sorted(_by_board(means.to_dicts()).items())):
        macro = [_standing(row, costs) for row in mine if row["category"] == Total.MACRO]
        made = Board(
            anchor=f"board-{index + 1}",
            rubric_id=key[0],
            judge_model=key[1],
            dimension=key[2],
            scale_low=mine[0]["scale_low"],
            scale_high=mine[0]["scale_high"],
            is_headline=(key[0], key[2]) in primary,
            has_total=any(row["reason"] not in NO_TOTAL for row in macro),
            rows=sorted(macro, key=best_first),
            categories=sorted({row["category"] for row in mine} - set(TOTALS)),
            cells={(row["model"], row["checkpoint"], row["category"]): row for row in mine},
            deltas=[row for row in compared[key] if row["category"] == Total.MACRO and row["comparison"] in kinds],
            shares=[row for row in shares[key] if row["category"] == Total.MACRO],
        )
        found.append(made)
    return sorted(found, key=lambda board: (board.rubric_id, board.judge_model, not board.is_headline, board.anchor))


def by_judge(found: list[Board]) -> list[tuple[tuple[str, str], list[Board]]]:
    """The boards under each rubric and judge, in their order."""
    grouped = groupby(found, key=lambda board: (board.rubric_id, board.judge_model))
    return [(key, list(mine)) for key, mine in grouped]


def glance(headlines: list[Board]) -> list[tuple[tuple[str, str], list[Row | None]]]:
    """For each (model, checkpoint) its row in each of the rankings; by the mean of its places in them, the unranked last.

    Of the unranked a place is that among all that have a mean: best_first() has them by it.
    """
    keys = {(row["model"], row["checkpoint"]) for board in headlines for row in board.rows}
    standing = [{(row["model"], row["checkpoint"]): row for row in board.rows} for board in headlines]
    places: dict[tuple[str, str], list[float]] = defaultdict(list)
    estimated: dict[tuple[str, str], list[float]] = defaultdict(list)
    for board in headlines:
        for place, row in enumerate(one for one in board.rows if one["estimate"] is not None):
            of = estimated if row["rank_low"] is None else places
            of[row["model"], row["checkpoint"]].append(place)

    def order(key: tuple[str, str]) -> tuple[object, ...]:
        mine = places[key] or estimated[key]
        return not places[key], not mine, sum(mine) / max(1, len(mine)), key[0], natural_key(key[1]), key[1]

    return [(key, [rows.get(key) for rows in standing]) for key in sorted(keys, key=order)]


def rows_of(tables: Mapping[Table, pl.DataFrame], table: Table) -> list[Row]:
    """A table's rows in the order of its key, step-900 before step-1000; none where the publication lacks it."""
    if table not in tables:
        return []
    frame, named = tables[table], [name for name in table.key if name.startswith("checkpoint")]
    turn = {one: n for n, one in enumerate(sorted({*chain(*(frame[name].drop_nulls() for name in named))}, key=natural_key))}
    in_turn = {name: pl.col(name).replace_strict(turn, default=None, return_dtype=pl.Int64) for name in named if turn}
    return frame.sort([in_turn.get(name, pl.col(name)) for name in table.key]).to_dicts()


def _standing(cell: Row, costs: Mapping[tuple[str, ...], float | None]) -> Row:
    """The macro cell with its texts, and what health knows of it."""
    key = tuple(cell[name] for name in ("rubric_id", "judge_model", *_CONTESTANT))
    return cell | {"failures": failures_of(cell), "cost_usd": costs.get(key), "why": why(with_isolated(cell))}


def _by_board(rows: list[Row]) -> defaultdict[tuple[str, ...], list[Row]]:
    grouped: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[tuple(row[name] for name in BOARD)].append(row)
    return grouped


def _costs(health: list[Row]) -> dict[tuple[str, ...], float | None]:
    return {
        tuple(row[name] for name in ("rubric_id", "judge_model", *_CONTESTANT)): row["value"]
        for row in health
        if row["measure"] == HealthMeasure.COST_USD
    }
