"""Which publication may become the current one, and which counts as good: one rule, and what it looks at. See pointer.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import polars as pl

from schemas.metrics import NO_TOTAL, means_for_prompts_like_these
from schemas.statuses.cells import CellReason, CellStatus, Total
from schemas.statuses.rows import UNANSWERED
from schemas.tables.published import BENCHMARK_LONG, FAILURES, PREFERENCES
from schemas.tables.table import Table
from tasks.lake.object_store.cache_folder import bring
from tasks.publish.standings.placed_cells import with_failures
from tasks.publish.standings.wording import failures_of

_MAX_UNANSWERED: Final = 0.01
"""The share of judgements without a reply, or one, up to which a cell counts as asked: some outlast every attempt of a run."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the rule looks at, counted over the means for prompts like these that can have an estimate.

    `n_cut_short`: cells that lack replies: more than one and more than 1 % of what was asked, or, where they are blocked, most of
    what they lack.
    """

    run_date: date
    n_cells: int = 0
    n_estimates: int = 0
    n_blocked: int = 0
    n_cut_short: int = 0

    @property
    def share(self) -> float:
        """The share of the cells that have an estimate."""
        return self.n_estimates / self.n_cells if self.n_cells else 0.0

    @property
    def is_full(self) -> bool:
        """Whether no cell was cut short, and at least half of them have an estimate."""
        return self.n_cut_short == 0 and self.n_estimates > 0 and self.share >= 0.5

    @property
    def is_good(self) -> bool:
        """Whether there is an estimate, no cell is blocked and none was cut short."""
        return self.n_estimates > 0 and self.n_blocked == self.n_cut_short == 0


def why_not_current(new: Standing, current: Standing | None) -> str | None:
    """Why a publication does not become the current one, in a clause; None where it does.

    It needs an estimate, a run date not before the current one's, and it must be full. One that is not full takes the place of
    such a one alone that is not full either and shows no larger share of its cells.
    """
    if not new.n_estimates:
        return "none of its cells has an estimate"
    if current is None:
        return None
    if new.run_date < current.run_date:
        return f"its run date, {new.run_date}, is before the current one's, {current.run_date}"
    if new.is_full or not (current.is_full or new.share < current.share):
        return None
    n, n_current, lack = new.n_cut_short, 0, "lack replies"
    if not n:
        n, n_current, lack = new.n_cells - new.n_estimates, current.n_cells - current.n_estimates, "have no estimate"
    cause = f"{n} of its {new.n_cells} cells {lack}"
    if current.is_full:
        return f"{cause}, and {n_current or 'none'} of the current one's {current.n_cells}"
    shares = f"{current.n_estimates} of {current.n_cells} cells; here {new.n_estimates} of {new.n_cells}"
    return f"{cause}, and the current one has a larger share of estimates ({shares})"


def why_not_good(new: Standing, last_good: Standing | None) -> str | None:
    """Why a publication is not the last good one, in a clause; None where it is."""
    if not new.is_good:
        return f"{new.n_blocked} of its {new.n_cells} cells are blocked and {new.n_cut_short} lack replies"
    if last_good is not None and new.run_date < last_good.run_date:
        return f"its run date, {new.run_date}, is before the last good one's, {last_good.run_date}"
    return None


def standing_of(tables: Mapping[Table, pl.DataFrame], run_date: date) -> Standing:
    """The standing of `benchmark_long` rows, and of the `failures` beside them; and of comparisons by pairs."""
    cells = means_for_prompts_like_these(with_failures(tables))
    mine = cells.filter(pl.col("estimate").is_not_null() | ~_can_have_none())
    blocked = mine.filter(pl.col("status") == CellStatus.BLOCKED.value)
    pairs = tables.get(PREFERENCES, PREFERENCES.empty()).filter(category=Total.MACRO.value)
    n_blocked_pairs = pairs.filter(status=CellStatus.BLOCKED.value).height
    n_cut_short = sum(map(_is_cut_short, mine.iter_rows(named=True))) + sum(
        map(_is_cut_short_of_pairs, pairs.iter_rows(named=True))
    )
    return Standing(
        run_date, mine.height + pairs.height, mine["estimate"].count() + pairs["win_rate"].count(),
        blocked.height + n_blocked_pairs, n_cut_short,
    )  # fmt: skip


def standing_in(folder: Path, run_date: date) -> Standing:
    """The standing of a published folder; one that is gone or cannot be read shows nothing, and gives way."""
    try:
        paths = {table: bring(folder / f"{table.name}.parquet") for table in (BENCHMARK_LONG, FAILURES, PREFERENCES)}
        there = {table: path for table, path in paths.items() if table is BENCHMARK_LONG or path.is_file()}
        return standing_of({table: pl.read_parquet(path) for table, path in there.items()}, run_date)
    except (OSError, pl.exceptions.PolarsError):
        return Standing(run_date)


def _can_have_none() -> pl.Expr:
    """Whether nothing is amiss with a cell that has no number: its total cannot be, or the question applies to nothing in it."""
    return (pl.col("status") == CellStatus.NULL.value) & pl.col("reason").is_in([*NO_TOTAL, CellReason.NOT_APPLICABLE.value])


def _is_cut_short(cell: Mapping[str, Any]) -> bool:
    n_unanswered = sum(n for word, n in failures_of(cell) if word in UNANSWERED)
    return _is_too_many(n_unanswered, cell["n_failed"], cell["n_judgements"], is_blocked=cell["status"] == CellStatus.BLOCKED)


def _is_cut_short_of_pairs(row: Mapping[str, Any]) -> bool:
    n_unanswered, is_blocked = row.get("n_unanswered"), bool(row["status"] == CellStatus.BLOCKED)
    if n_unanswered is None:  # an older release's: why its pairs lack verdicts is not in the row
        return is_blocked
    n_asked = row["n_verdicts_asked"]
    return _is_too_many(n_unanswered, n_asked - row["n_verdicts"], n_asked, is_blocked=is_blocked)


def _is_too_many(n_unanswered: int, n_failed: int, n_asked: int, *, is_blocked: bool) -> bool:
    is_cause = is_blocked and 2 * n_unanswered >= n_failed
    return n_unanswered > 0 and (is_cause or n_unanswered > max(1.0, _MAX_UNANSWERED * n_asked))
