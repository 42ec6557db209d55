"""Whether a judge moved between two nights, by what it said of the same frozen anchors. The series of all nights is drift.py.

A checkpoint's replies are those of its own night, and are not bought again. What two checkpoints of two nights differ by is the
pictures and the judge together; the anchors, the same pictures on both nights, differ by the judge alone.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from tasks.aggregate.drift.anchors import ANCHOR
from tasks.aggregate.drift.drift import ATTRIBUTION_ALPHA
from tasks.aggregate.intervals import ClusteredMean, Counts, Floats, clustered_mean, mean_of_means, t_quantile

LEVEL = 1 - ATTRIBUTION_ALPHA
_SAME = 1e-9  # of a point: nearer than this is rounding


@dataclass(frozen=True, slots=True)
class Change:
    """A difference and its interval at LEVEL, which is not corrected for others; None where it has no standard error."""

    delta: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Moved:
    """By how much the anchors of one rubric, judge and dimension changed from one night to another. `se` is paired by anchor.

    `n_changed`: those anchors whose score is another one.
    """

    delta: float
    se: float
    df: float
    n_anchors: int
    n_changed: int

    @property
    def change(self) -> Change:
        """The change and its interval."""
        return _change(self.delta, self.se, self.df)

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes 0. Where changes are all alike it has no width, and so few of them may be chance."""
        if self.se <= _SAME and 2.0 ** (1 - self.n_changed) > ATTRIBUTION_ALPHA:  # p of all signs alike
            return False
        return abs(self.delta) > _SAME and abs(self.delta) > t_quantile(LEVEL, self.df) * self.se

    def left_of(self, delta: float, se: float | None, df: float | None) -> Change:
        """What is left of a difference of checkpoints of the two nights, if the judge moved their pictures as it did anchors."""
        if se is None or df is None:
            return Change(delta - self.delta, None, None)
        return _change(delta - self.delta, math.hypot(se, self.se), min(df, self.df))


def moved(before: pl.DataFrame, after: pl.DataFrame) -> dict[tuple[str, str, str], Moved]:
    """What changed from one night to another (both SCORED), by rubric, judge and dimension; anchors scored on both alone count.

    A mean over categories, each weighing the same; where one has a single anchor, over all anchors. Two rubrics of one name and
    different versions are not held against each other, and one anchor alone says nothing.
    """
    first, second = (one.explode("anchors", "scores") for one in (before, after))
    both = first.join(second, on=[*ANCHOR, "anchors"]).sort(*ANCHOR, "anchors")
    apart = both.select(*ANCHOR, apart=pl.col("scores_right") - pl.col("scores"))
    found: dict[tuple[str, str, str], Moved] = {}
    for key, rows in apart.group_by("rubric_id", "judge_model", "dimension", maintain_order=True):
        mean = _mean([one["apart"].to_numpy() for one in rows.partition_by("category", maintain_order=True)])
        if mean.se is not None and mean.df is not None:
            rubric_id, judge_model, dimension = map(str, key)
            n_changed = rows.filter(pl.col("apart").abs() > _SAME).height
            found[rubric_id, judge_model, dimension] = Moved(mean.mean, mean.se, mean.df, rows.height, n_changed)
    return found


def _mean(by_category: list[Floats]) -> ClusteredMean:
    if min(map(len, by_category)) < 2:
        by_category = [np.concatenate(by_category)]
    return mean_of_means([clustered_mean(one, _once(one), np.zeros(len(one))) for one in by_category])


def _once(values: Floats) -> Counts:
    return np.ones(len(values), dtype=np.int64)


def _change(delta: float, se: float, df: float) -> Change:
    half = t_quantile(LEVEL, df) * se
    return Change(delta, delta - half, delta + half)
