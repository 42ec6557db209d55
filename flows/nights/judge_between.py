"""Which compared checkpoints a judge moved between: their replies are of two nights, and its anchors changed from one to another.

The statistic is tasks/aggregate/drift/between.py; how it is told is flows/commands/printed/judge_moves.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from flows.nights.record import notes
from schemas.statuses.cells import ComparisonKind, ComparisonTest, Total
from tasks.publish.folders import publication_folder

if TYPE_CHECKING:  # imported where two nights are compared: a table that is printed needs none of it
    from tasks.aggregate.drift.between import Change


@dataclass(frozen=True, slots=True)
class Compared:
    """A difference of two checkpoints, (model, checkpoint) each, as published: candidate less reference.

    `se` and `df` are None where p is not that of their t test: of few prompts, and of looks.
    """

    rubric_id: str
    judge_model: str
    dimension: str
    candidate: tuple[str, str]
    reference: tuple[str, str]
    delta: float
    se: float | None
    df: float | None


@dataclass(frozen=True, slots=True)
class JudgeMove:
    """A difference behind which a judge moved too. Nights are dates (ISO); `left`: the difference less what anchors changed."""

    rubric_id: str
    judge_model: str
    dimension: str
    candidate: tuple[str, str]
    reference: tuple[str, str]
    night: str
    night_before: str
    n_anchors: int
    anchors: "Change"
    left: "Change"


def to_predecessors(comparisons: pl.DataFrame) -> list[Compared]:
    """Of published comparisons those of means over categories with the predecessor."""
    rows = comparisons.filter(
        pl.col("comparison") == ComparisonKind.PREDECESSOR.value,
        pl.col("category") == Total.MACRO.value,
        pl.col("delta").is_not_null(),
    )
    return [
        Compared(
            row["rubric_id"], row["judge_model"], row["dimension"], (row["model_a"], row["checkpoint_a"]),
            (row["model_b"], row["checkpoint_b"]), row["delta"], *error_of(row),
        )
        for row in rows.iter_rows(named=True)
    ]  # fmt: skip


def error_of(comparison: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The standard error and degrees of freedom of a published comparison, as Compared takes them."""
    is_t = comparison["test"] == ComparisonTest.PAIRED_T and comparison.get("n_looks") is None
    return (comparison["se"], comparison["df"]) if is_t else (None, None)


def judge_moves(lake_root: Path, benchmark: str, compared: Sequence[Compared], shown: Path) -> list[JudgeMove]:
    """Those of `compared` whose two nights' anchors differ by more than chance, in their order. `shown`: the publication.

    A checkpoint's night is the first that was noted about it and asked as the publication does: what was asked otherwise was
    asked anew since. Nothing is said of one that was judged on none, nor where the two nights asked no anchor in common.
    """
    publication_ids: dict[str, str] = {}
    days_of: dict[tuple[str, str], list[str]] = {one: [] for pair in compared for one in (pair.candidate, pair.reference)}
    for day, note in notes(lake_root, benchmark).items():
        publication_ids[day] = note.publication_id
        for checkpoint in days_of.keys() & note.checkpoints.items():
            days_of[checkpoint].append(day)
    if not any(days_of[one.candidate] and days_of[one.reference] for one in compared):
        return []
    is_alike = _asks_as(lake_root, benchmark, shown)
    found_on = {one: next((day for day in days if is_alike(publication_ids[day])), None) for one, days in days_of.items()}
    nights = {one: day for one, day in found_on.items() if day is not None}
    pairs = {(nights.get(one.candidate), nights.get(one.reference)) for one in compared}
    apart = {(after, before) for after, before in pairs if after and before and after != before}
    days = {day for pair in apart for day in pair}
    if not days:
        return []
    from flows.nights.series import anchor_scores_of
    from tasks.aggregate.drift.between import moved

    scores = anchor_scores_of(lake_root, benchmark, {day: publication_ids[day] for day in sorted(days)})
    changes = {
        (after, before): moved(scores[before], scores[after]) for after, before in apart if {after, before} <= scores.keys()
    }
    found = []
    for one in compared:
        after, before = nights.get(one.candidate, ""), nights.get(one.reference, "")
        change = changes.get((after, before), {}).get((one.rubric_id, one.judge_model, one.dimension))
        if change is not None and change.is_sure:
            named = (one.rubric_id, one.judge_model, one.dimension, one.candidate, one.reference)
            left = change.left_of(one.delta, one.se, one.df)
            found.append(JudgeMove(*named, after, before, change.n_anchors, change.change, left))
    return found


def _asks_as(lake_root: Path, benchmark: str, shown: Path) -> Callable[[str], bool]:
    """Whether a publication of the benchmark asked each rubric and judge as the one that is shown; no where it does not say."""
    from flows.nights.own_rubrics import asks_the_same
    from tasks.publish.identity import asked_otherwise
    from tasks.verify.publication import read_provenance

    now = read_provenance(shown)

    @cache
    def is_alike(publication_id: str) -> bool:
        was = read_provenance(publication_folder(lake_root, benchmark, publication_id))
        return bool(was and now) and not asked_otherwise(was or {}, now or {}, partial(asks_the_same, lake_root, {}))

    return is_alike
