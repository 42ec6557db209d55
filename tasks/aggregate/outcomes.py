"""What became of each judgement in each dimension: a score that counts, or why not and what it can have been.

Judgements that were never planned (a broken sample, a missing column) are outcomes too: they fail by their own reason. Scores
are read as a stream, never all at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.errors import CorruptLakeError
from schemas.statuses.rows import NO_FAILURES, ScoreStatus
from tasks.aggregate.judged import Array, Judged, numbered_within
from tasks.aggregate.scales import is_asked, scale
from tasks.lake.request_rows import HASHES, Keys, items_not_asked, joined


@dataclass(frozen=True, slots=True)
class Outcomes:
    """One dimension: `row` of each judgement with a score that counts, and its `score`; the other columns are of the failures.

    A failure has its row, the lowest and the highest the score can have been, the reason, and whether a rule forbids a
    readable score. `aside_row`: judgements to which the dimension does not apply; they are in none of these. Of a rubric that
    counts kinds of items a judgement has a row for each of its items of the kind: `item` and `failed_item` are hashes of their
    ids; None of another rubric.
    """

    row: Array
    score: Array
    failed_row: Array
    low: Array
    high: Array
    reason: Array
    is_violation: Array
    aside_row: Array = field(default_factory=lambda: np.empty(0, np.int32))
    item: Array | None = None
    failed_item: Array | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no judgement is asked about the dimension."""
        return not len(self.row) and not len(self.failed_row) and not len(self.aside_row)


@dataclass(frozen=True, slots=True)
class Averaged:
    """What a dimension's means average: samples, or of a kind a sample's items, whose repeats count once.

    `row` and `failed_row` number those of Outcomes' rows; of each number `prompt`, and `twin` as in Judged.
    """

    row: Array
    failed_row: Array
    prompt: Array
    twin: Array | None


def averaged(judged: Judged, outcomes: Outcomes) -> Averaged:
    """What the means of one dimension average."""
    sample, failed, twin = judged.sample[outcomes.row], judged.sample[outcomes.failed_row], judged.twin
    if outcomes.item is None or outcomes.failed_item is None:
        return Averaged(sample, failed, judged.sample_prompt, twin)
    both, item = np.concatenate([sample, failed]), np.concatenate([outcomes.item, outcomes.failed_item])
    number, of_sample = numbered_within(item, both)
    if twin is not None:
        of_number = np.empty(len(of_sample), np.int32)
        of_number[number] = numbered_within(item, twin[both])[0]
        twin = of_number
    return Averaged(number[: len(sample)], number[len(sample) :], judged.sample_prompt[of_sample], twin)


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
        score, of_items = batch["score"].to_numpy(), [batch["item"].to_numpy()] if rubric.kinds else []
        for number, key in enumerate(keys):
            chosen = np.flatnonzero(is_scored & (dimension == number))
            if len(chosen):
                kept[key].append((rows[chosen], score[chosen], *(item[chosen] for item in of_items)))
        for (number,), part in batch.filter("is_aside").group_by(pl.col("dimension").to_physical()):
            aside[keys[number]].append(part["row"].to_numpy())
        for number, columns in _failures(batch):
            failed[keys[number]].append(columns)
    if not has_row.all():
        _say_lost(judged, has_row, judgements, rubric)
    for key in keys:
        has_some = bool(kept[key] or failed[key] or aside[key])
        failed[key].append(_not_planned(judged, rest, rubric, key, is_known=has_some))
    found = {key: _outcomes(kept.pop(key), failed[key], aside[key]) for key in keys}
    return {key: outcomes for key, outcomes in found.items() if not outcomes.is_empty}


def _batches(keys: Keys, scores: pl.LazyFrame, rubric: Rubric) -> Iterator[pl.DataFrame]:
    """The rubric's scores beside the rows of the judgements they answer."""
    dimensions = pl.Enum([dimension.key for dimension in rubric.dimensions])
    is_scored = pl.col("status") == ScoreStatus.SCORED.value
    is_mine = pl.col("rubric_id") == rubric.id
    if rubric.is_of_lists or any(one.is_lower_better for one in rubric.said):
        is_mine &= pl.col("dimension").is_in(
            dimensions.categories.to_list()
        )  # no table has the others, nor what each item was answered
    of_items = {"item": pl.col("item").fill_null("").hash(1)} if rubric.kinds else {}
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
        **of_items,
    )
    return joined(wanted, keys)


def _failures(batch: pl.DataFrame) -> Iterator[tuple[int, tuple[Array, ...]]]:
    """The number of each dimension with failures, and their rows and columns."""
    names = [name for name in ("row", "low", "high", "reason", "is_violation", "item") if name in batch.columns]
    for (number,), part in batch.filter(~pl.col("is_scored"), ~pl.col("is_aside")).group_by(pl.col("dimension").to_physical()):
        yield int(str(number)), tuple(part[name].to_numpy() for name in names)


def _outcomes(kept: list[tuple[Array, ...]], failed: list[tuple[Array, ...]], aside: list[Array]) -> Outcomes:
    failed_row, low, high, reason, is_violation, *failed_item = (np.concatenate(parts) for parts in zip(*failed, strict=True))
    nothing = (np.empty(0, np.int32), np.empty(0), *[np.empty(0, np.uint64)] * len(failed_item))
    row, score, *item = (np.concatenate(parts) for parts in zip(nothing, *kept, strict=True))
    aside_row = np.concatenate([nothing[0], *aside])
    return Outcomes(row, score, failed_row, low, high, reason, is_violation, aside_row, *item, *failed_item)


def _not_planned(judged: Judged, rows: Array, rubric: Rubric, key: str, *, is_known: bool) -> tuple[Array, ...]:
    """Failures that never became a request: each can have been anything on the scale it would have been scored on.

    Of a kind, each item that a sample has of it; one of a sample whose items nobody could read, unless no sample `is_known` to
    have any.
    """
    rest = judged.frame[rows].select(pl.col("^items_json$"), pl.col("status", "reason").cast(pl.String))
    rest = rest.with_columns(
        row=rows.astype(np.int32), category=judged.strata["category"].gather(judged.stratum[judged.prompt[rows]])
    )
    if key in rubric.kinds:
        rest = items_not_asked(rest, key).filter(pl.lit(is_known) | (pl.col("item") != ""))
    else:
        rest = rest.with_columns(item=pl.lit(""))
    asked = {category: scale(rubric, category, key) for category in rest["category"].unique() if is_asked(rubric, category, key)}
    mine = rest.filter(pl.col("category").is_in(list(asked)))
    ends = np.array([asked[category] for category in mine["category"]]).reshape(-1, 2)
    reason = mine.select(pl.coalesce("reason", "status")).to_series().to_numpy().astype(object)
    of_items = [mine["item"].hash(1).to_numpy()] if rubric.kinds else []
    return mine["row"].to_numpy(), ends[:, 0], ends[:, 1], reason, np.zeros(mine.height, bool), *of_items


def _say_lost(judged: Judged, has_row: Array, judgements: pl.LazyFrame, rubric: Rubric) -> None:
    lost = np.flatnonzero(~has_row)
    is_first = HASHES["key"] == pl.lit(int(judged.keys.key[judged.keys.row == lost[0]][0]), pl.UInt64)
    first = judgements.filter(is_first).select("sample_id").head(1).collect().item()
    raise CorruptLakeError(
        f"{len(lost)} planned judgements of rubric {rubric.id} have no row in scores (the first: sample {first}); the scores "
        "belong to another plan; run the benchmark again, which rereads the replies"
    )
