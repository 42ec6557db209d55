"""Who stands above whom by pairs: rank ranges from published verdicts, and from ratings (ratings.py) where two have none."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from schemas.statuses.cells import CellReason, RatedState, Total
from schemas.tables.table import Row
from tasks.aggregate.comparisons.families import Family
from tasks.aggregate.standings import rank_ranges

_BOARD = ("rubric_id", "dimension", "judge_model")


def without_verdict(rating_pairs: Iterable[Row], win_rates: Iterable[Row]) -> list[Row]:
    """Every two ratings of one judge that no tested win rate is of: those two never met, or on too few prompts.

    Where one is, ranks go by its verdict, so that no rank says what the judge's own comparison of the two leaves open.
    Two that met in some categories alone are left out too: they have no total, and ratings may go against what they did say.
    """
    told = {_both(row) for row in win_rates if _is_tested_total(row) or _lacks_category(row)}
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
        family_of = {one: _family(pair) for pair in reversed(pairs) for one in _both(pair)}
        for row in mine:
            one = _one(row, "")
            yield row | ranges.get(one, {}) | family_of.get(one, {})


def _is_tested_total(row: Row) -> bool:
    return row["category"] == Total.MACRO and row.get("p") is not None


def _lacks_category(row: Row) -> bool:
    return row["category"] == Total.MACRO and row.get("reason") == CellReason.CATEGORY_MISSING


def _family(pair: Row) -> Row:
    return {name: pair[name] for name in ("adjustment", "family", "n_family")}


def _one(row: Row, end: str) -> tuple[object, object]:
    return row[f"model{end}"], row[f"checkpoint{end}"]


def _both(row: Row) -> frozenset[tuple[object, object]]:
    return frozenset(_one(row, end) for end in ("_a", "_b"))


def _board(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in _BOARD)
