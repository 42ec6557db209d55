"""The tables of pairs as terminal, page and Markdown show them. What they say in sentences: pair_answers.py."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from schemas.errors import CorruptLakeError
from schemas.metrics import is_headline
from schemas.statuses.cells import CellStatus, ComparisonVerdict, Total
from schemas.tables.published import POSITION_BIAS, PREFERENCE_RATINGS, PREFERENCES
from schemas.tables.table import Table
from tasks.lake.object_store.cache_folder import bring
from tasks.publish.standings.wording import DASH, best_first, counted, made_by, percent, signed

Row = Mapping[str, Any]
VERDICTS = {
    ComparisonVerdict.HIGHER: "better",
    ComparisonVerdict.LOWER: "worse",
    ComparisonVerdict.OPEN: "can't tell",
    ComparisonVerdict.FAILURES_COULD_TURN_IT: "missing verdicts could turn it",
}


@dataclass(frozen=True, slots=True)
class PairBoard:
    """What a judge says of pairs in a dimension: comparisons over all categories, ratings best first, its liking for a place."""

    rubric_id: str
    judge_model: str
    dimension: str
    is_headline: bool
    comparisons: Sequence[Row]
    ratings: Sequence[Row]
    bias: Row | None
    has_categories: bool  # then a win rate is the mean over them

    @property
    def anchor(self) -> str:
        """Where it stands on the page: an id without spaces, which attributes that list ids would take for two."""
        name = f"pairs-{self.rubric_id}-{self.dimension}-{self.judge_model}"
        plain = re.sub(r"[^\w.-]", "-", name, flags=re.ASCII)
        return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"

    @property
    def is_one_model(self) -> bool:
        """Whether a checkpoint's name alone says which it is."""
        return len({row[name] for row in self.comparisons for name in ("model_a", "model_b")}) == 1

    @property
    def n_pairs(self) -> int:
        """Pairs of pictures, each asked in both orders."""
        return sum(row["n_pairs"] for row in self.comparisons)

    @property
    def has_repeats(self) -> bool:
        """Whether a pair was asked several times in both orders; not known of older publications."""
        return sum(row.get("n_verdicts_asked") or 0 for row in self.comparisons) > self.n_pairs

    @property
    def n_blocked(self) -> int:
        """Comparisons without a figure because too many pairs have no verdict."""
        return sum(row["status"] == CellStatus.BLOCKED for row in self.comparisons)

    @property
    def has_baseline(self) -> bool:
        """Whether something was held against the baseline."""
        return any(row["is_to_baseline"] for row in self.comparisons)

    @property
    def zero(self) -> str | None:
        """Whose rating is 0 points, as in the column anchor; None where nobody is rated."""
        return next((row["anchor"] for row in self.ratings if row["anchor"]), None)

    @property
    def n_ranked(self) -> int | None:
        """Of how many a rank is; None where nobody has one."""
        return next((row["n_ranked"] for row in self.ratings if row["n_ranked"]), None)

    def to(self, rated: Row, kind: str) -> Row | None:
        """The comparison of a rated checkpoint with its "predecessor" or the "baseline"; None where it was not made."""
        mine = (rated["model"], rated["checkpoint"])
        found = (row for row in self.comparisons if row[f"is_to_{kind}"] and (row["model_a"], row["checkpoint_a"]) == mine)
        return next(found, None)

    def name(self, row: Row, end: str = "") -> str:
        """What a row's checkpoint is called; `end` is "_a" or "_b" of a comparison."""
        return made_by(row[f"model{end}"], row[f"checkpoint{end}"], is_one_model=self.is_one_model)


def pair_boards(tables: Mapping[Table, pl.DataFrame]) -> list[PairBoard]:
    """Every board of the publication, a rubric's headline first; none where no rubric compared pairs."""
    if PREFERENCES not in tables or tables[PREFERENCES].is_empty():
        return []
    compared = tables[PREFERENCES].filter(category=Total.MACRO.value)
    ratings = tables[PREFERENCE_RATINGS]
    biases = tables[POSITION_BIAS].filter(category=Total.MICRO.value)  # shares of the pairs that are counted beside them
    listed = dict(compared.group_by("rubric_id").agg(pl.col("dimension").unique()).iter_rows())
    found = []
    for rubric_id, judge_model, dimension in compared.select("rubric_id", "judge_model", "dimension").unique().iter_rows():
        mine = {"rubric_id": rubric_id, "judge_model": judge_model, "dimension": dimension}
        rows = compared.filter(**mine).to_dicts()
        main = [row["is_primary"] for row in rows if row["is_primary"] is not None]
        is_main = main[0] if main else is_headline(dimension, listed[rubric_id])
        rated = [row | {"estimate": row["rating"]} for row in ratings.filter(**mine).to_dicts()]
        bias = next(iter(biases.filter(**mine).to_dicts()), None)
        has_categories = not set(tables[PREFERENCES].filter(**mine)["category"]) <= {*Total}
        board = PairBoard(rubric_id, judge_model, dimension, is_main, rows, sorted(rated, key=best_first), bias, has_categories)
        place = {(row["model"], row["checkpoint"]): number for number, row in enumerate(board.ratings)}
        rows.sort(key=lambda row: (place[row["model_a"], row["checkpoint_a"]], place[row["model_b"], row["checkpoint_b"]]))
        found.append(board)
    return sorted(found, key=lambda one: (one.rubric_id, one.judge_model, not one.is_headline, one.dimension))


def n_rates(boards: Sequence[PairBoard]) -> tuple[int, int]:
    """How many win rates the boards have, and how many of them are blocked."""
    return sum(len(one.comparisons) for one in boards), sum(one.n_blocked for one in boards)


def win_rate(row: Row) -> str:
    """Such as "73.3 % [58.4, 84.1]", the interval being the corrected one where there is one; a dash where there is no figure."""
    if row["win_rate"] is None:
        return DASH
    low, high = (row[f"{end}_adjusted"] if row[f"{end}_adjusted"] is not None else row[end] for end in ("ci_low", "ci_high"))
    return percent(row["win_rate"]) + ("" if low is None else f" [{percent(low)}, {percent(high)}]".replace(" %", ""))


def verdict(row: Row) -> str:
    """What the win rate says of a, such as "better"; where it was not tested, why."""
    if row["verdict"] is None:
        return str(row["reason"] or "").replace("_", " ")
    is_claim = row["verdict"] in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)
    return VERDICTS[row["verdict"]] + (", exploratory" if is_claim and row["is_primary"] is False else "")


def too_few_verdicts(row: Row) -> str:
    """What blocks a win rate: coverage, or that no pair has a verdict, or none of one category."""
    if row["coverage"] >= row["coverage_floor"]:
        return "no pair of one category has a verdict" if row["coverage"] else "no pair has a verdict"
    received, needed = percent(row["coverage"], beside=row["coverage_floor"]), percent(row["coverage_floor"])
    return f"{received} of the verdicts received, {needed} needed (gate.min_coverage)"


def decided(row: Row) -> str:
    """Wins, ties and losses, such as "20–8–10"."""
    return f"{row['n_win']}–{row['n_tie']}–{row['n_loss']}"


def received(row: Row) -> str:
    """How many verdicts were received, where a pair was asked repeatedly and some were not; otherwise empty."""
    n_asked, n_said = row.get("n_verdicts_asked"), row.get("n_verdicts")  # as older publications have none
    return f" ({n_said:,} of {n_asked:,} verdicts received)" if n_asked != n_said and n_asked != row["n_pairs"] else ""


def counts(row: Row) -> str:
    """Wins, ties and losses, and beside them the pairs whose orders disagree, those without a verdict, repeats without one."""
    told = decided(row)
    for name, word in (("n_order_dependent", "by order alone"), ("n_unjudged", "without a verdict")):
        told += f", {row[name]} {word}" if row[name] else ""
    return told + received(row)


def rating(row: Row) -> str:
    """Points with their interval, and how many opponents they say nothing of; why there are none."""
    if row["rating"] is None:
        return str(row["reason"]).replace("_", " ")
    interval = "" if row["ci_low"] is None or row["se"] == 0 else f" [{signed(row['ci_low'], 0)}, {signed(row['ci_high'], 0)}]"
    points = signed(row["rating"], 0) + (interval if row["rating"] else "")
    n_left_out = row.get("n_opponents_blocked")  # as older publications have none
    return points + (f", {counted(n_left_out, 'opponent')} left out" if n_left_out else "")


OVER_CATEGORIES = ", averaged over the categories, all with the same weight"
"""What a win rate is where there are categories: behind "the share of pairs that the first wins"."""
_NOTES = """\
A win rate is the share of pairs that the first wins{over_categories}; a tie counts half, and so does a pair whose two orders
disagree. The interval is for prompts like these, with prompts as the independent unit, corrected together for all comparisons
of their family. A pair without a verdict is counted and never a tie. `salon explain PAIR` shows what a win rate is made of.
"""

PAIR_HEADERS = ("checkpoint", "against", "wins and 95 % interval", "better?", "won, tied, lost", "prompts", "pair")


def pair_lines(board: PairBoard) -> list[tuple[str, ...]]:
    """A line of PAIR_HEADERS for each comparison."""
    return [
        (
            board.name(row, "_a"),
            board.name(row, "_b"),
            win_rate(row),
            verdict(row),
            counts(row),
            str(row["n_prompts"]),
            row["pair_id"],
        )
        for row in board.comparisons
    ]


def boards_in(folder: Path) -> list[PairBoard]:
    """pair_boards() of a publication's folder. Raises CorruptLakeError."""
    paths = {table: bring(folder / f"{table.name}.parquet") for table in (PREFERENCES, PREFERENCE_RATINGS, POSITION_BIAS)}
    try:
        return pair_boards({table: pl.read_parquet(path) for table, path in paths.items() if path.is_file()})
    except pl.exceptions.PolarsError as error:
        said = f"a table of pairs in {folder} is not what was published ({str(error)[:200]})"
        raise CorruptLakeError(f"{said}; restore it, or move the folder away and run again") from error


def pair_notes(boards: Sequence[PairBoard]) -> str:
    """What win rates are, below the tables of a page."""
    return _NOTES.format(over_categories=OVER_CATEGORIES * any(board.has_categories for board in boards))
