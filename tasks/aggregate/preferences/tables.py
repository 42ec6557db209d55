"""From verdicts of pairs to the tables preferences, preference_ratings and position_bias, and who stands above whom by pairs.

What a row says is in their files. Rank ranges rest on published verdicts, and on ratings (ratings.py) where two have none.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import polars as pl

from schemas.identities import address_id
from schemas.metrics import is_primary
from schemas.records import ALL_JUDGES
from schemas.statuses.cells import CellReason, RatedState, Total
from schemas.tables.published import POSITION_BIAS, PREFERENCE_RATINGS, PREFERENCES
from schemas.tables.table import Row, Table
from tasks.aggregate.comparisons.families import Family, corrected
from tasks.aggregate.preferences.cells import cells_of
from tasks.aggregate.preferences.evidence import Plan, evidence_of
from tasks.aggregate.preferences.position_bias import bias_rows
from tasks.aggregate.preferences.prompts import by_prompt, opens_category, pairs_of
from tasks.aggregate.preferences.ratings import rated
from tasks.aggregate.preferences.win_rates import win_rate_rows
from tasks.aggregate.standings import rank_ranges
from tasks.aggregate.tables import Settings
from tasks.stopping import check_not_stopped

_BOARD = ("rubric_id", "dimension", "judge_model")
Plans = Mapping[tuple[str, str], Plan]
"""By rubric and judge."""
Categories = Mapping[tuple[str, str], Sequence[str]]
"""By rubric and dimension."""


def preference_tables(
    verdicts: pl.DataFrame, run: Settings, plans: Plans | None = None, expected: Categories | None = None
) -> dict[Table, pl.DataFrame]:
    """PREFERENCES, PREFERENCE_RATINGS and POSITION_BIAS of one run, each sorted by its key; without rows where nothing was asked.

    `verdicts` has a row for each pair of pictures under one rubric, judge and dimension, and each repeat, both orders joined
    (verdicts.py).
    `plans`, by rubric and judge, are given where pairs were asked until decided (adaptive.py): what is said then holds however
    often one looked, and `verdicts` has only what was asked. `expected` says what totals are means of, where these verdicts
    stand beside others; by default categories_of() these.
    """
    expected = categories_of(verdicts, plans) if expected is None else expected
    compared: list[Row] = []
    ratings: list[Row] = []
    rating_pairs: list[Row] = []
    biases: list[Row] = []
    for (rubric_id, version, dimension), of_one in verdicts.sort("rubric_id", "dimension").group_by(
        "rubric_id", "rubric_version", "dimension", maintain_order=True
    ):
        named: Row = run.named | {"rubric_id": rubric_id, "rubric_version": version, "dimension": dimension}
        pairs = pairs_of(of_one, run.baseline, run.lineage)
        totals = expected.get((str(rubric_id), str(dimension)), pairs.categories)
        judges = pairs.frame["judge_model"].unique().sort().to_list()
        for judge in [*judges, *([ALL_JUDGES] if len(judges) > 1 else [])]:
            check_not_stopped()
            mine = pairs.frame if judge == ALL_JUDGES else pairs.frame.filter(judge_model=judge)
            parts, by_judge = by_prompt(mine, "meeting", "category"), named | {"judge_model": judge}
            rows, two = rated(parts, pairs, totals, run.baseline, run.min_coverage)
            ratings += [by_judge | row for row in rows]
            evidence = {} if plans is None or judge == ALL_JUDGES else evidence_of(parts, pairs, plans[str(rubric_id), judge])
            found: list[Row] = []
            for meeting, cells in cells_of(parts, pairs.categories, totals).items():
                found += win_rate_rows(pairs.meetings[meeting], cells, run.min_coverage, run.statistics, evidence.get(meeting))
            if judge == ALL_JUDGES:
                rating_pairs += [by_judge | row for row in [*two, *beside_ratings(rows, found)]]
                continue
            rating_pairs += [by_judge | row for row in without_verdict(two, found)]
            compared += [by_judge | row for row in found]
            biases += [by_judge | row for row in bias_rows(mine, pairs.categories, totals, run.min_coverage)]
    compared, rating_pairs = (
        corrected(_in_families(rows, verdicts, run), run.benchmark, run.statistics) for rows in (compared, rating_pairs)
    )
    found_rows = {
        PREFERENCES: [_of_win_rate(row, run.benchmark) for row in compared],
        PREFERENCE_RATINGS: list(with_ranks(ratings, compared, rating_pairs)),
        POSITION_BIAS: biases,
    }
    return {table: table.frame(rows).sort(table.key) for table, rows in found_rows.items()}


def _in_families(rows: list[Row], verdicts: pl.DataFrame, run: Settings) -> list[Row]:
    """Claims are made of a rubric's headline; comparisons in its other dimensions are exploratory, with the other aspects."""
    keys = dict(verdicts.group_by("rubric_id").agg(pl.col("dimension").unique()).iter_rows())
    for row in rows:
        rubric_id, dimension = str(row["rubric_id"]), str(row["dimension"])
        is_main = is_primary(rubric_id, dimension, keys[rubric_id], run.statistics.primary)
        if row["family"] != Family.CATEGORIES and not is_main:
            row["family"] = Family.ASPECTS
    return rows


def categories_of(verdicts: pl.DataFrame, plans: Plans | None = None) -> Categories:
    """By rubric and dimension the categories a total is a mean of: the planned ones, reached or not.

    Without plans those of all pairs that open one, also where nobody gave a verdict.
    """
    by = ("rubric_id", "dimension")
    category = pl.col("category").fill_null(Total.UNNAMED.value)
    each = verdicts.group_by(*by).agg(
        some=category.filter(opens_category(verdicts)).unique().sort(), all=category.unique().sort()
    )
    found = {(rubric, key): some or every for rubric, key, some, every in each.select(*by, "some", "all").iter_rows()}
    if plans is None:
        return found
    return {
        (rubric, key): sorted({name for (of, _), plan in plans.items() if of == rubric for name in plan.weights})
        for rubric, key in found
    }


def _of_win_rate(row: Row, benchmark: str) -> Row:
    """A corrected row with its address."""
    return row | {"pair_id": address_id(benchmark, *(row[name] for name in PREFERENCES.key))}


def without_verdict(rating_pairs: Iterable[Row], win_rates: Iterable[Row]) -> list[Row]:
    """Every two ratings of one judge that no tested win rate is of: those two never met, or on too few prompts.

    Where one is, ranks go by its verdict, so that no rank says what the judge's own comparison of the two leaves open.
    Two that met in some categories alone are left out too: they have no total, and ratings may go against what they did say.
    """
    lacking = CellReason.CATEGORY_MISSING
    totals = (row for row in win_rates if row["category"] == Total.MACRO)
    told = {_both(row) for row in totals if row.get("p") is not None or row.get("reason") == lacking}
    return [row for row in rating_pairs if _both(row) not in told]


def beside_ratings(ratings: Iterable[Row], win_rates: Iterable[Row]) -> list[Row]:
    """Win rates of all judges together, which nobody publishes, with whom has no rating: nothing else says where it stands."""
    unrated = {_one(row, "") for row in ratings if row["state"] != RatedState.RATED}
    mine = (row for row in win_rates if _is_tested_total(row) and _both(row) & unrated)
    return [row | {"family": Family.RATINGS} for row in mine]


def with_ranks(ratings: Sequence[Row], win_rates: Sequence[Row], rating_pairs: Sequence[Row]) -> Iterator[Row]:
    """The ratings, in the order of their boards, with rank ranges; `win_rates` and `rating_pairs` are corrected.

    All that are rated or stand in a tested comparison are ranked: who won all has no rating, and stands above whom it beat.
    """
    said: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in [*filter(_is_tested_total, win_rates), *rating_pairs]:
        said[_board(row)].append(row)
    for board, rows in groupby(ratings, key=_board):
        mine, pairs = list(rows), said[board]
        tested = {end for row in pairs for end in _both(row)}
        placed = [one for row in mine if (one := _one(row, "")) in tested or row["state"] == RatedState.RATED]
        ranges = rank_ranges(placed, pairs) if pairs else {}
        pair_of = {one: pair for pair in reversed(pairs) for one in _both(pair)}
        for row in mine:
            one = _one(row, "")
            family = {name: pair_of[one][name] for name in ("adjustment", "family", "n_family")} if one in pair_of else {}
            yield row | ranges.get(one, {}) | family


def _is_tested_total(row: Row) -> bool:
    return row["category"] == Total.MACRO and row.get("p") is not None


def _one(row: Row, end: str) -> tuple[object, object]:
    return row[f"model{end}"], row[f"checkpoint{end}"]


def _both(row: Row) -> frozenset[tuple[object, object]]:
    return frozenset(_one(row, end) for end in ("_a", "_b"))


def _board(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in _BOARD)
