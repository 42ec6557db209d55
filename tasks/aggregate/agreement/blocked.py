"""Which means an agreement withholds: what the leaderboard blocks stays blocked beside people. The means are corrected.py.

The missing scores of a blocked cell are too many for its mean, and for whatever else is made of the scores that are there:
its correction, its differences. People's own mean needs none of them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from schemas.metrics import means_for_prompts_like_these
from schemas.statuses.cells import CellStatus
from schemas.statuses.people import Estimator
from schemas.statuses.rows import ReplyStatus
from schemas.tables.published import BENCHMARK_LONG, FAILURES
from schemas.tables.table import Table
from tasks.aggregate.agreement.pairs import ALL, Rated
from tasks.aggregate.tallies import commonest

_SCOPE = ("rubric_id", "judge_model", "dimension", "category")
_CELL = (*_SCOPE, "model", "checkpoint")


@dataclass(frozen=True, slots=True)
class Blocked:
    """The blocked cells, each with its commonest failure; `reference` is the judge in people's place."""

    cells: Mapping[tuple[object, ...], str] = field(default_factory=dict)
    reference: str | None = None

    @classmethod
    def of(cls, board: Mapping[Table, pl.DataFrame], reference: str | None) -> "Blocked":
        """Those of a leaderboard, and those of all checkpoints together, by the same floor, as far as they were asked."""
        means = means_for_prompts_like_these(board[BENCHMARK_LONG])
        alone = means.filter(status=CellStatus.BLOCKED.value)
        cells = {tuple(row[name] for name in _CELL): str(row["reason"]) for row in alone.iter_rows(named=True)}
        failures: dict[tuple[object, ...], Counter[str]] = {}
        is_asked = pl.col("reason") != ReplyStatus.NOT_ASKED.value  # else a checkpoint not asked yet would block the others
        for *scope, reason, n in board[FAILURES].filter(is_asked).select(*_SCOPE, "reason", "n_failed").iter_rows():
            failures.setdefault(tuple(scope), Counter())[reason] += n
        sums = means.group_by(*_SCOPE).agg(pl.col("n_scored").sum(), pl.col("coverage_floor").first())
        for *scope, n_scored, floor in sums.iter_rows():
            failed = failures.get(tuple(scope), Counter())
            if failed and n_scored / (n_scored + failed.total()) < floor:
                cells[*scope, ALL, ALL] = commonest(failed)
        return cls(cells, reference)

    def why(self, rated: Rated, judge: str | None, estimator: Estimator, place: tuple[str, str, str]) -> str | None:
        """The commonest failure of a blocked cell that the figure of a category, model and checkpoint is made of; else None."""
        sources = {Estimator.JUDGE: (judge,), Estimator.LABELS: (self.reference,)}.get(estimator, (judge, self.reference))
        keys = ((rated.rubric.id, one, rated.dimension, *place) for one in sources if one is not None)
        return next((self.cells[key] for key in keys if key in self.cells), None)
