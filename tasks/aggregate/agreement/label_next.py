"""Which samples people should rate next, so that the interval of two checkpoints' difference becomes the narrowest.

What is drawn is random within a category, whatever the judge says of it: labels chosen by score would correct nothing. How many
of each category is the lever. The file of the list is flows/agreement.py's.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.errors import InputError
from schemas.lineage import Lineage
from schemas.metrics import is_headline
from schemas.statuses.cells import Total
from schemas.statuses.people import MIN_IN_STRATUM, MIN_LABELLED, RatingStatus
from tasks.aggregate.agreement.grid import Grid, System
from tasks.aggregate.agreement.pairs import Rated, items_of, judge_values, rated_dimension
from tasks.aggregate.agreement.powered import stratified_powered
from tasks.aggregate.agreement.rated import ratings_of
from tasks.aggregate.intervals import LEVEL, Counts, Floats, t_quantile

_PRIOR_DF = 4
"""A category's own spread weighs as many labels as it has, the spread of all together as this many."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What labels are for: two checkpoints as `model/checkpoint`, a dimension; and how many ratings one person is to give."""

    n_ratings: int
    between: tuple[str, ...] = ()
    dimension: str | None = None


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """Samples to rate, in an order that names no checkpoint; half widths of the delta's interval, None where not known."""

    rubric_id: str
    dimension: str
    a: str
    b: str
    judge: str
    sample_ids: tuple[str, ...]
    n_prompts: int
    half_now: float | None
    half_then: float | None


def label_plan(
    judgements: pl.LazyFrame,
    scores: pl.LazyFrame,
    ratings: pl.DataFrame,
    rubrics: Mapping[str, Rubric],
    baseline: str | None,
    lineage: Lineage,
    wanted: Wanted,
) -> LabelPlan:
    """What to label next. Raises InputError where dimension or checkpoints are not those of the run, or nothing is left."""
    rubric, key = _dimension(rubrics, wanted.dimension)
    items, judged = items_of(judgements, rubric), judge_values(judgements, scores, rubric)
    mine = judged.drop_nulls("score").filter(pl.col("dimension") == key)["judge_model"].unique().sort().to_list()
    if not mine:
        raise InputError(
            f"no judge has a score of {key!r}, so the most informative labels cannot be determined; run `salon run` first"
        )
    good = ratings.filter(pl.col("status") == RatingStatus.OK.value)
    rated = rated_dimension(items, judged, ratings_of(good, rubric, key), rubric, key, mine[:1])
    grid = Grid(rated, are_all=True)
    a, b = _decision(grid.systems, baseline, wanted.between, lineage)
    judge = rated.judges[0]
    part = grid.part(Total.MACRO.value, judge.name)
    scored, labels = (side[a, part.rows] - side[b, part.rows] for side in (grid.judged[judge.name], grid.labels))
    is_open = ~np.isnan(scored) & np.isnan(labels)
    if not is_open.any():
        raise InputError(
            f"every prompt with a score of both {_name(grid.systems[a])} and {_name(grid.systems[b])} is labelled in {key!r}; "
            "name other checkpoints with --between, or another dimension with --label-dimension"
        )
    spread = _spread(labels, scored, part.strata)
    n_each, left = np.bincount(part.strata[~np.isnan(scored + labels)], minlength=len(spread)), wanted.n_ratings
    prompts = [grid.prompts[row] for row in np.flatnonzero(part.rows)]
    waiting = [_drawn(np.flatnonzero(is_open & (part.strata == c)).tolist(), prompts) for c in range(len(spread))]
    chosen: list[str] = []
    planned = n_each.copy()
    for stratum in _order(spread, n_each, [len(rows) for rows in waiting]):
        row = waiting[stratum].pop()
        samples = _samples(rated, grid, int(np.flatnonzero(part.rows)[row]), (a, b))
        if len(samples) > left:
            break
        chosen += samples
        left -= len(samples)
        planned[stratum] += 1
    n_prompts = int((planned - n_each).sum())
    if not n_prompts:
        raise InputError(f"{wanted.n_ratings} ratings cannot cover one prompt of two checkpoints; ask for 2 or more")
    n_all = np.bincount(part.strata[~np.isnan(scored)], minlength=len(spread))
    within = _within(labels if np.isfinite(labels).sum() > 1 else scored, part.strata)
    is_known = int(n_each.sum()) >= MIN_LABELLED and int(n_each.min()) >= MIN_IN_STRATUM
    halves = [_half(spread, n, n_all, within) if is_known else None for n in (n_each, planned)]
    ends = (_name(grid.systems[a]), _name(grid.systems[b]))
    return LabelPlan(rubric.id, key, *ends, judge.name, tuple(sorted(chosen, key=_digest)), n_prompts, halves[0], halves[1])


def _dimension(rubrics: Mapping[str, Rubric], wanted: str | None) -> tuple[Rubric, str]:
    every = [(rubric, one.key) for rubric in rubrics.values() if not rubric.is_of_pairs for one in rubric.dimensions]
    names = ", ".join(f"{rubric.id}.{key}" for rubric, key in every)
    if wanted is not None:
        found = [(rubric, key) for rubric, key in every if wanted in (key, f"{rubric.id}.{key}")]
        if len(found) != 1:
            raise InputError(
                f"--label-dimension {wanted!r} matches {'no' if not found else 'more than one'} dimension; available: {names}"
            )
        return found[0]
    main = [(rubric, key) for rubric, key in every if is_headline(key, {one.key for one in rubric.dimensions})]
    if len(main) != 1:
        raise InputError(f"the benchmark has {len(main)} headline dimensions; say which with --label-dimension: {names}")
    return main[0]


def _decision(systems: Sequence[System], baseline: str | None, between: Sequence[str], lineage: Lineage) -> tuple[int, int]:
    """The two checkpoints; by default the newest one against the benchmark's baseline, else against its predecessor."""
    names = [_name(system) for system in systems]
    ways = f"--between MODEL/CHECKPOINT --between MODEL/CHECKPOINT, of {', '.join(names)}"
    if between:
        for name in between:
            if name not in names:
                raise InputError(f"--between {name!r} is not a checkpoint of the run; name two: {ways}")
        if len(set(between)) != 2:
            raise InputError(f"--between names {len(set(between))} checkpoints, but a difference needs two: {ways}")
        return names.index(between[0]), names.index(between[1])
    others = [number for number, name in enumerate(names) if name != baseline]
    if len({systems[number][0] for number in others}) != 1 or len(names) < 2:
        raise InputError(f"name the two checkpoints that the labels should tell apart: {ways}")
    ordered = sorted(others, key=lambda number: lineage.key(systems[number]))
    return ordered[-1], names.index(baseline) if baseline in names else ordered[-2]


def _name(system: System) -> str:
    return "/".join(system)


def _spread(labels: Floats, scored: Floats, strata: Counts) -> Floats:
    """Standard deviation, by category, of what the judge leaves unexplained; of its own differences while labels are few."""
    powered = stratified_powered(labels, scored, strata)
    values = scored
    if powered is not None and powered.n_labelled < powered.n_prompts:
        slope = powered.tuning * powered.n_prompts / (powered.n_prompts - powered.n_labelled)
        values = labels - slope * scored
    n, squares = _squares(values, strata)
    pooled = float(squares.sum()) / max(int(n.sum()) - len(n), 1)
    found: Floats = np.sqrt((squares + _PRIOR_DF * pooled) / (np.maximum(n - 1, 0) + _PRIOR_DF))
    return found if pooled > 0 else np.ones(len(n))


def _within(values: Floats, strata: Counts) -> float:
    """The variance within a category, pooled over all: what lies between them is in no mean over them."""
    n, squares = _squares(values, strata)
    return float(squares.sum()) / max(int(n.sum()) - int((n > 0).sum()), 1)


def _squares(values: Floats, strata: Counts) -> tuple[Counts, Floats]:
    """By category, how many values there are, and the sum of their squared distances from its mean."""
    there = ~np.isnan(values)
    n = np.bincount(strata[there], minlength=int(strata.max()) + 1)
    means = np.bincount(strata[there], weights=values[there], minlength=len(n)) / np.maximum(n, 1)
    squares = np.bincount(strata[there], weights=(values[there] - means[strata[there]]) ** 2, minlength=len(n))
    return n, np.asarray(squares, dtype=np.float64)


def _order(spread: Floats, n_each: Counts, n_left: Sequence[int]) -> list[int]:
    """Categories in the order in which one more prompt narrows the mean over them most (Neyman 1934, one at a time)."""
    n, left, found = n_each.copy(), list(n_left), []
    while any(left):
        gains = [
            (math.inf if n[c] < MIN_IN_STRATUM else spread[c] ** 2 / (n[c] * (n[c] + 1)), -int(n[c])) if left[c] else (-1.0, 0)
            for c in range(len(n))
        ]
        best = max(range(len(n)), key=lambda c: gains[c])
        found.append(best)
        n[best] += 1
        left[best] -= 1
    return found


def _half(spread: Floats, n: Counts, n_all: Counts, within: float) -> float:
    """Half width of the delta's interval with `n` of `n_all` prompts labelled in each category, se as in stratified_powered()."""
    squares = (1 - n / n_all) * spread**2 / n + within / n_all
    return t_quantile(LEVEL, float(n.sum() - len(n) - 1)) * math.sqrt(float(squares.sum())) / len(n)


def _drawn(rows: Sequence[int], prompts: Sequence[str]) -> list[int]:
    """The rows in an order that depends on the prompts' names alone."""
    return sorted(rows, key=lambda row: _digest(prompts[row]))


def _samples(rated: Rated, grid: Grid, prompt: int, ends: tuple[int, int]) -> list[str]:
    """One sample of each of the two checkpoints that the judge scored, where it has no label of the prompt yet."""
    mine = (grid.unit_of == prompt) & ~np.isnan(rated.judges[0].values)
    names = rated.items["sample_id"].to_numpy()
    return [
        min(names[mine & (grid.system_of == end)].tolist(), key=_digest) for end in ends if np.isnan(grid.labels[end, prompt])
    ]


def _digest(name: str) -> str:
    return hashlib.sha256(f"label {name}".encode()).hexdigest()
