"""What became of each judgement in each dimension: a score that counts, or why not and what it can have been.

Judgements that were never planned (a broken sample, a missing column) are outcomes too: they fail by their own reason. Scores
are read as a stream, never all at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.errors import CorruptLakeError
from schemas.statuses.rows import NO_FAILURES, ScoreStatus
from tasks.aggregate.judged import Array, Judged
from tasks.aggregate.scales import is_asked, scale
from tasks.lake.request_rows import HASHES, Keys, joined


@dataclass(frozen=True, slots=True)
class Outcomes:
    """One dimension: `row` of each judgement with a score that counts, and its `score`; the other columns are of the failures.

    A failure has its row, the lowest and the highest the score can have been, the reason, and whether a rule forbids a
    readable score. `aside_row`: judgements to which the dimension does not apply; they are in none of these.
    """

    row: Array
    score: Array
    failed_row: Array
    low: Array
    high: Array
    reason: Array
    is_violation: Array
    aside_row: Array = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def is_empty(self) -> bool:
        """Whether no judgement is asked about the dimension."""
        return not len(self.row) and not len(self.failed_row) and not len(self.aside_row)


def scores_of(judged: Judged, judgements: pl.LazyFrame, scores: pl.LazyFrame, rubric: Rubric) -> dict[str, Outcomes]:
    """The outcomes of every dimension that is asked about, from one pass over the rubric's scores.

    Raises CorruptLakeError where a planned judgement has no score row: the reading is not of this plan.
    """
    keys = [dimension.key for dimension in rubric.dimensions]
    kept: dict[str, list[tuple[Array, ...]]] = {key: [] for key in keys}
    failed: dict[str, list[tuple[Array, ...]]] = {key: [] for key in keys}
    aside: dict[str, list[Array]] = {key: [] for key in keys}
    has_row = np.ones(judged.frame.height, bool)
    has_row[judged.keys.row] = False
    rest = np.flatnonzero(has_row)
    for batch in _batches(judged.keys, scores, rubric):
        rows = batch["row"].to_numpy()
        has_row[rows] = True
        dimension, is_scored = batch["dimension"].to_physical().to_numpy(), batch["is_scored"].to_numpy()
        score = batch["score"].to_numpy()
        for number, key in enumerate(keys):
            chosen = np.flatnonzero(is_scored & (dimension == number))
            if len(chosen):
                kept[key].append((rows[chosen], score[chosen]))
        for (number,), part in batch.filter("is_aside").group_by(pl.col("dimension").to_physical()):
            aside[keys[number]].append(part["row"].to_numpy())
        for row, number, low, high, reason, is_violation in _failures(batch):
            failed[keys[number]].append((row, low, high, reason, is_violation))
    if not has_row.all():
        _say_lost(judged, has_row, judgements, rubric)
    kinds = rubric.items.kinds.values() if rubric.items else ()
    nobodys = {key for key in kinds if not (kept[key] or failed[key] or aside[key])}  # no sample has an item of it
    found = {
        key: _outcomes(
            kept.pop(key), [*failed[key], _not_planned(judged, rest[:0] if key in nobodys else rest, rubric, key)], aside[key]
        )
        for key in keys
    }
    return {key: outcomes for key, outcomes in found.items() if not outcomes.is_empty}


def _batches(keys: Keys, scores: pl.LazyFrame, rubric: Rubric) -> Iterator[pl.DataFrame]:
    """The rubric's scores beside the rows of the judgements they answer."""
    dimensions = pl.Enum([dimension.key for dimension in rubric.dimensions])
    is_scored = pl.col("status") == ScoreStatus.SCORED.value
    is_mine = pl.col("rubric_id") == rubric.id
    if rubric.is_of_lists or any(one.is_lower_better for variant in rubric.variants.values() for one in variant.dimensions):
        is_mine &= pl.col("dimension").is_in(
            dimensions.categories.to_list()
        )  # no table has the others, nor what each item was answered
    wanted = scores.filter(is_mine).select(
        "request_key",
        "score",
        pl.col("dimension").cast(dimensions),
        is_scored=is_scored,
        is_aside=pl.col("status").is_in([word.value for word in NO_FAILURES]),
        is_violation=pl.col("status") == ScoreStatus.RULE_VIOLATION.value,
        reason=pl.when(~is_scored).then(pl.coalesce("reason", "status")),
        low=pl.when(~is_scored).then("bound_low"),
        high=pl.when(~is_scored).then("bound_high"),
    )
    return joined(wanted, keys)


def _failures(batch: pl.DataFrame) -> Iterator[tuple[Any, ...]]:
    for (number,), part in batch.filter(~pl.col("is_scored"), ~pl.col("is_aside")).group_by(pl.col("dimension").to_physical()):
        columns = (part[name].to_numpy() for name in ("low", "high", "reason", "is_violation"))
        yield part["row"].to_numpy(), number, *columns


def _outcomes(kept: list[tuple[Array, ...]], failed: list[tuple[Array, ...]], aside: list[Array]) -> Outcomes:
    nothing = (np.empty(0, np.int32), np.empty(0))
    row, score = (np.concatenate(parts) for parts in zip(nothing, *kept, strict=True))
    failed_row, low, high, reason, is_violation = (np.concatenate(parts) for parts in zip(*failed, strict=True))
    return Outcomes(row, score, failed_row, low, high, reason, is_violation, np.concatenate([nothing[0], *aside]))


def _not_planned(judged: Judged, rows: Array, rubric: Rubric, key: str) -> tuple[Array, ...]:
    """Failures that never became a request: each can have been anything on the scale it would have been scored on."""
    category = judged.strata["category"].gather(judged.stratum[judged.prompt[rows]])
    rest = judged.frame[rows].select(pl.col("status", "reason").cast(pl.String), category=category)
    asked = {category: scale(rubric, category, key) for category in rest["category"].unique() if is_asked(rubric, category, key)}
    chosen = rest["category"].is_in(list(asked)).to_numpy()
    mine = rest.filter(pl.Series(chosen))
    ends = np.array([asked[category] for category in mine["category"]]).reshape(-1, 2)
    reason = mine.select(pl.coalesce("reason", "status")).to_series().to_numpy().astype(object)
    return rows[chosen].astype(np.int32), ends[:, 0], ends[:, 1], reason, np.zeros(mine.height, bool)


def _say_lost(judged: Judged, has_row: Array, judgements: pl.LazyFrame, rubric: Rubric) -> None:
    lost = np.flatnonzero(~has_row)
    is_first = HASHES["key"] == pl.lit(int(judged.keys.key[judged.keys.row == lost[0]][0]), pl.UInt64)
    first = judgements.filter(is_first).select("sample_id").head(1).collect().item()
    raise CorruptLakeError(
        f"{len(lost)} planned judgements of rubric {rubric.id} have no row in scores (the first: sample {first}); the scores "
        "belong to another plan; run the benchmark again, which rereads the replies"
    )
