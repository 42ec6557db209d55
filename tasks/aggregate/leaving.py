"""Who is asked no more after a look, by the replies up to it: the run asks by this, and a publication is recomputed by it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import polars as pl

from rubrics.model import Rubric
from schemas.benchmark.file import Statistics
from schemas.metrics import primary_of
from schemas.statuses.cells import Total
from schemas.statuses.rows import JudgementStatus
from schemas.tables.table import Row
from tasks.aggregate.comparisons.families import need_no_more
from tasks.aggregate.judged import CATEGORY
from tasks.aggregate.looks import PlannedPrompts, planned_prompts
from tasks.aggregate.scales import total_reason

CHECKPOINT = pl.concat_str("model", "checkpoint", separator="/")
RowsOf = Callable[[pl.LazyFrame], Sequence[Row]]
"""headline_rows() of these judgements."""


@dataclass(frozen=True)
class Leaving:
    """One rubric and judge whose checkpoints are asked look by look.

    `judgements`: all that is planned of them; `prompts`: of all judges, as a mean needs the categories of each; `n_family`: how
    many comparisons the published table corrects together with these, at most.
    """

    judgements: pl.LazyFrame
    prompts: PlannedPrompts
    primary: Sequence[str]
    n_family: int
    judge: str
    benchmark: str
    statistics: Statistics
    _shared: dict[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, judgements: pl.LazyFrame, rubrics: Mapping[str, Rubric], rubric: Rubric, judge: str, benchmark: str, by: Statistics
    ) -> Self:
        """From all judgements of a plan but those of pairs."""
        of_cells = judgements.filter(pl.col("occasion") == "")
        mine = of_cells.filter(pl.col("rubric_id") == rubric.id, pl.col("judge_model") == judge)
        n_family = _n_family(of_cells, rubrics, rubric, by)
        return cls(mine, planned_prompts(judgements, rubric), _primary(rubric, by), n_family, judge, benchmark, by)

    def after(self, look: int, ended: Mapping[str, int], rows_of: RowsOf) -> frozenset[str]:
        """The checkpoints, as "model/checkpoint", that need no more prompts; `ended`: the looks after which some were left."""
        if not self.prompts.are_enough(self.judge, self.primary, look, self.statistics.min_paired_prompts):
            return frozenset()
        last = CHECKPOINT.replace_strict(ended, default=look, return_dtype=pl.Int64)
        rows = rows_of(self.judgements.filter(pl.col("first_look") <= last))  # one left may have replies that others asked for
        closed = need_no_more(rows, self.benchmark, self.statistics, self.n_family, self._never_comes)
        return closed - ended.keys()

    def replayed(self, rows_of: RowsOf) -> dict[str, int]:
        """Who was left, each with the look after which, as it follows from the replies that there are."""
        ended: dict[str, int] = {}
        if self.judge not in self.prompts.up_to:  # recorded replies: nobody is asked, look by look or otherwise
            return ended
        for look in range(1, max(len(n) for n in self.prompts.up_to[self.judge].values())):
            ended |= dict.fromkeys(self.after(look, ended, rows_of), look)
        return ended

    def _never_comes(self, row: Row) -> bool:
        """Whether no reply to come can give a comparison its p: its other end, or the prompts that both need, are not planned."""
        shared = self._planned_for_both(*(f"{row[f'model_{end}']}/{row[f'checkpoint_{end}']}" for end in "ab"))
        of_mean = self.prompts.asked_in.get(str(row["dimension"]), frozenset()) & self.prompts.up_to[self.judge].keys()
        names = of_mean if row["category"] == Total.MACRO else [str(row["category"])]
        return any(shared.get(name, 0) < max(1, self.statistics.min_paired_prompts) for name in names) or not shared

    def _planned_for_both(self, a: str, b: str) -> Mapping[str, int]:
        """By category, the prompts that are asked of both."""
        if (a, b) not in self._shared:
            of_both = self._planned.filter(pl.col("checkpoint").is_in([a, b])).group_by("category", "prompt").len()
            self._shared[a, b] = dict(of_both.filter(pl.col("len") == 2).group_by("category").len().iter_rows())
        return self._shared[a, b]

    @cached_property
    def _planned(self) -> pl.DataFrame:
        """The prompts asked of each checkpoint: their texts are not held, as there may be millions."""
        asked = self.judgements.filter(pl.col("status") == JudgementStatus.PLANNED.value)
        named = asked.select(category=CATEGORY, checkpoint=CHECKPOINT, prompt=pl.col("prompt_id").hash())
        return named.unique().with_columns(pl.col("category", "checkpoint").cast(pl.Categorical)).collect(engine="streaming")


def _n_family(of_cells: pl.LazyFrame, rubrics: Mapping[str, Rubric], rubric: Rubric, by: Statistics) -> int:
    if by.family == "pair":
        return _n_rankings(rubric, by)
    counted = of_cells.group_by("rubric_id", "judge_model").agg(n=pl.struct("model", "checkpoint").n_unique())
    rows = counted.collect(engine="streaming").iter_rows()
    sizes = [(rubric_id, _n_pairs(n, by) * _n_rankings(rubrics[rubric_id], by)) for rubric_id, _, n in rows]
    if by.family == "table":
        return max(n for rubric_id, n in sizes if rubric_id == rubric.id)
    return sum(n for _, n in sizes)


def _n_pairs(n_checkpoints: int, by: Statistics) -> int:
    """Every two; above max_ranked each with the baseline and with its predecessor."""
    return n_checkpoints * (n_checkpoints - 1) // 2 if n_checkpoints <= by.max_ranked else 2 * n_checkpoints


def _n_rankings(rubric: Rubric, by: Statistics) -> int:
    return sum(1 if total_reason(rubric, key) is None else max(1, len(rubric.variants)) for key in _primary(rubric, by))


def _primary(rubric: Rubric, by: Statistics) -> list[str]:
    return primary_of(rubric.id, [dimension.key for dimension in rubric.dimensions], by.primary)
