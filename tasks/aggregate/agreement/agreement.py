"""The `agreement` table: judges and metrics against people, and people against each other, each figure with its interval.

Per dimension over all samples, per category, and per checkpoint. Who is compared is pairs.py, the figures
metrics.py, the intervals bootstrap.py.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.errors import InputError
from schemas.statuses import Against, AgreementMetric, AgreementReason, Assessor, CellStatus, RatingStatus
from schemas.tables import AGREEMENT, Table
from tasks.aggregate.agreement import bootstrap
from tasks.aggregate.agreement.metrics import Floats, krippendorff_alpha, pair_metric
from tasks.aggregate.agreement.pairs import (
    Pair,
    Rated,
    Scope,
    items_of,
    judge_values,
    pairs,
    people,
    rated_dimension,
    scopes,
)
from tasks.aggregate.intervals import LEVEL
from tasks.aggregate.tables import Settings

CI_METHOD = "cluster_bootstrap_percentile"
ON_ONE_SCALE = frozenset({AgreementMetric.QUADRATIC_KAPPA, AgreementMetric.KRIPPENDORFF_ALPHA, AgreementMetric.BIAS})
BETWEEN_DIMENSIONS = (AgreementMetric.SPEARMAN, AgreementMetric.KENDALL_TAU_B, AgreementMetric.PEARSON)
_ON_STEP = 1e-9  # of a step: 0.1 has no exact binary form
_ZERO = 1e-12

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with the ends of its interval, or why it, or they, are not there."""

    estimate: float | None = None
    ends: tuple[float, float] | None = None
    reason: AgreementReason | None = None


def agreement(
    judgements: pl.LazyFrame | pl.DataFrame,
    scores: pl.LazyFrame | pl.DataFrame,
    ratings: pl.DataFrame,
    rubrics: Mapping[str, Rubric],
    run: Settings,
) -> pl.DataFrame:
    """The agreement table of one run, sorted. Raises InputError where ratings are of a dimension that no rubric has."""
    return rated_table(AGREEMENT, rated_dimensions(judgements.lazy(), scores.lazy(), ratings, rubrics), run, _agreement_rows)


def rated_table(
    table: Table, found: Iterable[tuple[Rubric, list[Rated]]], run: Settings, rows_of: Callable[[list[Rated]], Iterable[Row]]
) -> pl.DataFrame:
    """What `rows_of` makes of each rubric's rated dimensions as a table, sorted."""
    rows: list[Row] = []
    for rubric, dimensions in found:
        named = run.named | {"ci_level": LEVEL, "rubric_id": rubric.id, "rubric_version": rubric.version}
        rows += [named | row for row in rows_of(dimensions)]
    return table.frame(rows).sort(table.key)


def rated_dimensions(
    judgements: pl.LazyFrame, scores: pl.LazyFrame, ratings: pl.DataFrame, rubrics: Mapping[str, Rubric]
) -> Iterator[tuple[Rubric, list[Rated]]]:
    """Each rubric with its rated dimensions. Raises InputError where a dimension of the ratings is no rubric's."""
    wanted = set(ratings["dimension"].unique())
    known = {dimension.key for rubric in rubrics.values() for dimension in rubric.dimensions}
    if lost := sorted(wanted - known):
        raise InputError(
            f"there are ratings of dimension {lost[0]!r}, which no rubric of the benchmark has; the dimensions are "
            f"{', '.join(sorted(known))}"
        )
    good = ratings.filter(pl.col("status") == RatingStatus.OK.value)
    asked = judgements.select("rubric_id", "judge_model").unique().sort("rubric_id", "judge_model").collect()
    for rubric in sorted(rubrics.values(), key=lambda one: one.id):
        keys = [dimension.key for dimension in rubric.dimensions if dimension.key in wanted]
        judges = asked.filter(pl.col("rubric_id") == rubric.id)["judge_model"].to_list()
        if keys and judges:
            items, judged = items_of(judgements, rubric), judge_values(judgements, scores, rubric)
            yield rubric, [rated_dimension(items, judged, good, rubric, key, judges) for key in keys]


def published(number: float) -> float:
    """A figure to 12 digits: the last ones differ between processors, published bytes may not."""
    return float(f"{number:.12g}")


def _agreement_rows(dimensions: list[Rated]) -> Iterator[Row]:
    for rated in dimensions:
        yield from _dimension_rows(rated)
    for one, other in combinations(dimensions, 2):
        yield from _between_rows(one, other)


def _dimension_rows(rated: Rated) -> Iterator[Row]:
    for pair in pairs(rated):
        both = ~np.isnan(pair.subject.values) & ~np.isnan(pair.other.values)
        for scope in scopes(rated.items, both):
            x, y = pair.subject.values[scope.rows], pair.other.values[scope.rows]
            for metric in AgreementMetric:
                figure = _no_figure(metric, pair, rated, x, y) or _figure(metric, x, y, scope)
                yield _row(rated, pair, scope, metric, figure)
    if len(rated.raters) > 1:
        yield from _together_rows(rated)


def _no_figure(metric: AgreementMetric, pair: Pair, rated: Rated, x: Floats, y: Floats) -> Figure | None:
    """Why there can be no such figure, seen before it is computed; None where there can be one."""
    if np.isnan(pair.subject.values).all():
        return Figure(reason=AgreementReason.NO_SCORES)
    if np.isnan(pair.other.values).all():
        return Figure(reason=AgreementReason.NO_RATINGS)
    if len(x) < 2:
        return Figure(reason=AgreementReason.TOO_FEW_ITEMS)
    if metric in ON_ONE_SCALE and not (pair.subject.has_scale and pair.other.has_scale):
        return Figure(reason=AgreementReason.SCALE_NOT_DECLARED)
    if metric is AgreementMetric.QUADRATIC_KAPPA:
        steps = (pair.subject.step, pair.other.step)
        is_labels = None not in steps and _are_labels(np.concatenate([x, y]), rated.low, min(step or 0.0 for step in steps))
        return None if is_labels else Figure(reason=AgreementReason.NOT_ON_LABELS)
    return None


def _are_labels(values: Floats, low: float, step: float) -> bool:
    n_steps = (values - low) / step
    return bool(np.all(np.abs(n_steps - np.round(n_steps)) <= _ON_STEP))


def _figure(metric: AgreementMetric, x: Floats, y: Floats, scope: Scope) -> Figure:
    estimate = pair_metric(metric, x, y)
    if estimate is None:
        is_large = metric is AgreementMetric.PAIRWISE_ACCURACY
        return Figure(reason=AgreementReason.TOO_MANY_ITEMS if is_large else AgreementReason.NO_VARIATION)
    if len(scope.prompts) < bootstrap.MIN_PROMPTS:
        return Figure(estimate, reason=AgreementReason.TOO_FEW_PROMPTS)
    replicates = bootstrap.pair_replicates(metric, x, y, scope.clusters, bootstrap.draws(scope.prompts))
    return _with_ends(estimate, replicates)


def _with_ends(estimate: float, replicates: Floats | None) -> Figure:
    ends = bootstrap.ends(replicates, LEVEL)
    if ends is None or ends[1] - ends[0] <= _ZERO:
        return Figure(estimate, reason=AgreementReason.TOO_MANY_ITEMS if replicates is None else AgreementReason.NO_VARIATION)
    return Figure(estimate, ends)


def _together_rows(rated: Rated) -> Iterator[Row]:
    """Krippendorff's alpha of all raters at once, with the cells some of them left empty."""
    values = rated.raters_values()
    for scope in scopes(rated.items, np.sum(~np.isnan(values), axis=1) > 1):
        mine = values[scope.rows]
        estimate = krippendorff_alpha(mine)
        if not all(rater.has_scale for rater in rated.raters):
            figure = Figure(reason=AgreementReason.SCALE_NOT_DECLARED)
        elif estimate is None:
            figure = Figure(reason=AgreementReason.NO_VARIATION if len(mine) else AgreementReason.TOO_FEW_ITEMS)
        elif len(scope.prompts) < bootstrap.MIN_PROMPTS:
            figure = Figure(estimate, reason=AgreementReason.TOO_FEW_PROMPTS)
        else:
            replicates = bootstrap.alpha_replicates(mine, scope.clusters, bootstrap.draws(scope.prompts))
            figure = _with_ends(estimate, replicates)
        everyone = people(rated, Against.EACH_OTHER)
        pair = Pair(everyone, Against.EACH_OTHER.value, everyone, len(rated.raters))
        yield _row(rated, pair, scope, AgreementMetric.KRIPPENDORFF_ALPHA, figure)


def _between_rows(one: Rated, other: Rated) -> Iterator[Row]:
    """How people's ratings of one dimension go with their ratings of another."""
    mean = people(one, Against.RATERS_MEAN), people(other, Against.RATERS_MEAN)
    by_name = {rater.name: rater for rater in other.raters}
    same = [(rater, by_name[rater.name]) for rater in one.raters if rater.name in by_name]
    for mine, theirs in [*same, mean] if len(same) > 1 else same:
        both = ~np.isnan(mine.values) & ~np.isnan(theirs.values)
        pair = Pair(mine, theirs.name, theirs, len(same) if mine.kind is Assessor.RATERS else 1)
        for scope in scopes(one.items, both):
            x, y = mine.values[scope.rows], theirs.values[scope.rows]
            for metric in BETWEEN_DIMENSIONS:
                figure = _no_figure(metric, pair, one, x, y) or _figure(metric, x, y, scope)
                yield _row(one, pair, scope, metric, figure) | {"against_dimension": other.dimension}


def _row(rated: Rated, pair: Pair, scope: Scope, metric: AgreementMetric, figure: Figure) -> Row:
    status = CellStatus.NULL if figure.estimate is None else CellStatus.NO_INTERVAL if figure.ends is None else CellStatus.OK
    has_scale = metric in ON_ONE_SCALE and pair.subject.has_scale and pair.other.has_scale
    low, high = (published(end) for end in figure.ends) if figure.ends else (None, None)
    return {
        "dimension": rated.dimension, "subject_kind": pair.subject.kind.value, "subject": pair.subject.name,
        "against": pair.against, "against_dimension": None, "model": scope.model, "checkpoint": scope.checkpoint,
        "category": scope.category, "metric": metric.value,
        "estimate": None if figure.estimate is None else published(figure.estimate),
        "ci_low": low, "ci_high": high, "ci_method": CI_METHOD if figure.ends else None,
        "scale_low": rated.low if has_scale else None, "scale_high": rated.high if has_scale else None,
        "n_items": int(scope.rows.sum()), "n_prompts": len(scope.prompts), "n_raters": pair.n_raters,
        "status": status.value, "reason": figure.reason.value if figure.reason else None,
    }  # fmt: skip
