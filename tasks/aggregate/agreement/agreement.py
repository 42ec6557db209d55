"""The `agreement` table: judges and metrics against people, and people against each other, each figure with its interval.

Per dimension over all samples, per category, and per checkpoint. Who is compared is pairs.py, the figures
metrics.py, the intervals jackknife.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.statuses.cells import CellStatus
from schemas.statuses.people import Against, AgreementMetric, AgreementReason, Assessor
from schemas.tables.table import Row, Table
from tasks.aggregate.agreement import jackknife
from tasks.aggregate.agreement.grid import Grid
from tasks.aggregate.agreement.metrics import (
    ALPHAS,
    LABEL_DISTANCES,
    MIN_PROMPTS,
    has_enough_labels,
    krippendorff_alpha,
    n_prompts_alike,
    pair_metric,
)
from tasks.aggregate.agreement.pairs import Pair, Rated, Scope, pairs, people, scopes
from tasks.aggregate.agreement.systems import MIN_SYSTEMS, has_enough, system_figures
from tasks.aggregate.intervals import LEVEL, Floats, rounded
from tasks.aggregate.tables import Settings

ORDER_METHOD = "pairs_paired_t_bonferroni"
OF_SYSTEMS = (AgreementMetric.SYSTEM_KENDALL_TAU, AgreementMetric.SYSTEM_PAIRWISE_ACCURACY)
OF_VOTES = (
    AgreementMetric.VOTE_ACCURACY, AgreementMetric.VOTE_ACCURACY_WITHOUT_TIES, AgreementMetric.ORDER_DEPENDENT,
    AgreementMetric.UNJUDGED,
)  # fmt: skip
OF_UNSCORED = (AgreementMetric.UNSCORED, AgreementMetric.UNSCORED_BIAS)
OF_ITEMS = tuple(metric for metric in AgreementMetric if metric not in (*OF_SYSTEMS, *OF_VOTES, *OF_UNSCORED))
ON_LABELS = frozenset({AgreementMetric.QUADRATIC_KAPPA, AgreementMetric.KRIPPENDORFF_ALPHA_NOMINAL, *LABEL_DISTANCES})
ON_ONE_SCALE = frozenset({*ON_LABELS, *ALPHAS, AgreementMetric.BIAS})
BETWEEN_DIMENSIONS = (AgreementMetric.SPEARMAN, AgreementMetric.KENDALL_TAU_B, AgreementMetric.PEARSON)
_ON_STEP = 1e-9  # of a step: 0.1 has no exact binary form


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with the ends of its interval, or why it, or they, are not there."""

    estimate: float | None = None
    ends: tuple[float, float] | None = None
    reason: AgreementReason | None = None

    def row(self, metric: AgreementMetric) -> Row:
        """Its columns."""
        status = CellStatus.NULL if self.estimate is None else CellStatus.NO_INTERVAL if self.ends is None else CellStatus.OK
        low, high = (rounded(end) for end in self.ends) if self.ends else (None, None)
        return {
            "metric": metric.value, "estimate": None if self.estimate is None else rounded(self.estimate), "ci_low": low,
            "ci_high": high, "ci_method": jackknife.ci_method(metric) if self.ends else None, "status": status.value,
            "reason": self.reason.value if self.reason else None,
        }  # fmt: skip


def rated_table(
    table: Table, found: Iterable[tuple[Rubric, list[Rated]]], run: Settings, rows_of: Callable[[list[Rated]], Iterable[Row]]
) -> pl.DataFrame:
    """What `rows_of` makes of each rubric's rated dimensions as a table, sorted."""
    rows: list[Row] = []
    for rubric, dimensions in found:
        named = run.named | {"ci_level": LEVEL, "rubric_id": rubric.id, "rubric_version": rubric.version}
        rows += [named | row for row in rows_of(dimensions)]
    return table.frame(rows).sort(table.key)


def agreement_rows(dimensions: list[Rated]) -> Iterator[Row]:
    """The rows of the agreement table of one rubric's rated dimensions."""
    for rated in dimensions:
        yield from _dimension_rows(rated)
    for one, other in combinations(dimensions, 2):
        yield from _between_rows(one, other)


def _dimension_rows(rated: Rated) -> Iterator[Row]:
    for pair in pairs(rated):
        both = ~np.isnan(pair.subject.values) & ~np.isnan(pair.other.values)
        for scope in scopes(rated.items, both):
            x, y = pair.subject.values[scope.rows], pair.other.values[scope.rows]
            for metric in OF_ITEMS:
                figure = _no_figure(metric, pair, rated, x, y) or figure_of(metric, x, y, scope)
                yield _row(rated, pair, scope, metric, figure)
        for scope, found in _unscored(rated, pair):
            yield from (_row(rated, pair, scope, metric, Figure(estimate)) for metric, estimate in found.items())
    if len(rated.raters) > 1:
        yield from _together_rows(rated)
    if rated.raters:
        yield from _system_rows(rated)


def _unscored(rated: Rated, pair: Pair) -> Iterator[tuple[Scope, dict[AgreementMetric, float]]]:
    """Of a judge beside all people, the rated samples it gave no score: their share, and by how much people rate them otherwise.

    All other figures leave them out, and what a judge refuses is rarely a random part.
    """
    is_with_people = pair.against == Against.RATERS_MEAN or len(rated.raters) == 1
    failed, ratings = pair.subject.failed, pair.other.values
    if pair.subject.kind is not Assessor.JUDGE or not is_with_people or failed is None:
        return
    is_scored = ~np.isnan(pair.subject.values)
    for scope in scopes(rated.items, ~np.isnan(ratings) & (failed | is_scored)):
        lost, kept = scope.rows & failed, scope.rows & is_scored
        if lost.any():
            found = {AgreementMetric.UNSCORED: float(lost.sum() / scope.rows.sum())}
            if kept.any():
                found[AgreementMetric.UNSCORED_BIAS] = float(ratings[lost].mean() - ratings[kept].mean())
            yield scope, found


def _no_figure(metric: AgreementMetric, pair: Pair, rated: Rated, x: Floats, y: Floats) -> Figure | None:
    """Why there can be no such figure, seen before it is computed; None where there can be one."""
    if why := _nobody(pair):
        return Figure(reason=why)
    if len(x) < 2:
        return Figure(reason=AgreementReason.TOO_FEW_ITEMS)
    if metric in ON_ONE_SCALE and not (pair.subject.has_scale and pair.other.has_scale):
        return Figure(reason=AgreementReason.SCALE_NOT_DECLARED)
    if metric in ON_LABELS and not _are_labels(np.concatenate([x, y]), rated.low, (pair.subject.step, pair.other.step)):
        return Figure(reason=AgreementReason.NOT_ON_LABELS)
    return None


def _nobody(pair: Pair) -> AgreementReason | None:
    """Who of the two has no number at all."""
    if np.isnan(pair.subject.values).all():
        return AgreementReason.NO_SCORES
    return AgreementReason.NO_RATINGS if np.isnan(pair.other.values).all() else None


def _are_labels(values: Floats, low: float, steps: Sequence[float | None]) -> bool:
    """Whether everybody has labels, and every number is one of the finest."""
    if None in steps:
        return False
    n_steps = (values - low) / min(step or 0.0 for step in steps)
    return bool(np.all(np.abs(n_steps - np.round(n_steps)) <= _ON_STEP))


def figure_of(metric: AgreementMetric, x: Floats, y: Floats, scope: Scope) -> Figure:
    """The figure of `x` and `y`, shape (samples of the scope,), with its interval over the scope's prompts."""
    estimate = pair_metric(metric, x, y)
    if estimate is None:
        is_large = metric is AgreementMetric.PAIRWISE_ACCURACY
        return Figure(reason=AgreementReason.TOO_MANY_ITEMS if is_large else AgreementReason.NO_VARIATION)
    if len(scope.prompts) < MIN_PROMPTS:
        return Figure(estimate, reason=AgreementReason.TOO_FEW_PROMPTS)
    if not has_enough_labels(metric, np.column_stack([x, y]), scope.clusters):
        return Figure(estimate, reason=AgreementReason.TOO_FEW_PROMPTS)
    replicates = jackknife.pair_replicates(metric, x, y, scope.clusters)
    return _with_ends(metric, estimate, replicates, scope)


def _with_ends(metric: AgreementMetric, estimate: float, replicates: Floats | None, scope: Scope) -> Figure:
    ends = jackknife.ends(metric, estimate, replicates, LEVEL, n_prompts_alike(scope.clusters))
    if ends is None:
        return Figure(estimate, reason=AgreementReason.TOO_MANY_ITEMS if replicates is None else AgreementReason.NO_VARIATION)
    return Figure(estimate, ends)


def _together_rows(rated: Rated) -> Iterator[Row]:
    """Krippendorff's alphas of all raters at once, with the cells some of them left empty."""
    values = rated.raters_values()
    everyone = people(rated, Against.EACH_OTHER)
    pair = Pair(everyone, Against.EACH_OTHER.value, everyone, len(rated.raters))
    for scope in scopes(rated.items, np.sum(~np.isnan(values), axis=1) > 1):
        for metric in ALPHAS:
            yield _row(rated, pair, scope, metric, _together(metric, rated, values[scope.rows], scope))


def _together(metric: AgreementMetric, rated: Rated, mine: Floats, scope: Scope) -> Figure:
    if not all(rater.has_scale for rater in rated.raters):
        return Figure(reason=AgreementReason.SCALE_NOT_DECLARED)
    if len(mine) < 2:
        return Figure(reason=AgreementReason.TOO_FEW_ITEMS)
    if metric in ON_LABELS and not _are_labels(mine[~np.isnan(mine)], rated.low, [rater.step for rater in rated.raters]):
        return Figure(reason=AgreementReason.NOT_ON_LABELS)
    estimate = krippendorff_alpha(mine, ALPHAS[metric])  # of labels a pass for each: not of thousands of different numbers
    if estimate is None:
        return Figure(reason=AgreementReason.NO_VARIATION)
    are_enough = has_enough_labels(metric, mine, scope.clusters, are_named=rated.are_named)
    if len(scope.prompts) < MIN_PROMPTS or not are_enough:
        return Figure(estimate, reason=AgreementReason.TOO_FEW_PROMPTS)
    return _with_ends(metric, estimate, jackknife.alpha_replicates(mine, scope.clusters, ALPHAS[metric]), scope)


def _system_rows(rated: Rated) -> Iterator[Row]:
    """Whether judges and metrics put the checkpoints in the order people do, over the samples both have a number for."""
    grid = Grid(rated)
    for pair in pairs(rated):
        is_with_people = pair.against == Against.RATERS_MEAN or len(rated.raters) == 1
        if pair.subject.kind is Assessor.RATER or not is_with_people or len(grid.systems) < MIN_SYSTEMS:
            continue
        both = ~np.isnan(pair.subject.values) & ~np.isnan(pair.other.values)
        sides = [grid.means(np.where(both, values, np.nan)) for values in (pair.subject.values, pair.other.values)]
        found, n_systems = system_figures(*sides), int(has_enough(*sides).sum())
        whole = next(scopes(rated.items, both))
        why = _nobody(pair) or AgreementReason.TOO_FEW_PROMPTS
        for metric in OF_SYSTEMS:
            estimate, ends = found.get(metric, (None, None))
            row = _row(rated, pair, whole, metric, Figure(estimate, ends, None if ends else why))
            yield row | {"n_items": n_systems, "ci_method": ORDER_METHOD if ends else None}


def _between_rows(one: Rated, other: Rated) -> Iterator[Row]:
    """How people's ratings of one dimension go with their ratings of another."""
    mean = people(one, Against.RATERS_MEAN), people(other, Against.RATERS_MEAN)
    by_name = {rater.name: rater for rater in other.raters}
    same = [(rater, by_name[rater.name]) for rater in one.raters if rater.name in by_name]
    names = {rater.name for rater in one.by_name} & {rater.name for rater in other.by_name}
    each = [(mine, theirs) for mine, theirs in same if mine.name in names]
    for mine, theirs in [*each, mean] if len(same) > 1 or len(same) > len(each) else each:
        both = ~np.isnan(mine.values) & ~np.isnan(theirs.values)
        pair = Pair(mine, theirs.name, theirs, len(same) if mine.kind is Assessor.RATERS else 1)
        for scope in scopes(one.items, both):
            x, y = mine.values[scope.rows], theirs.values[scope.rows]
            for metric in BETWEEN_DIMENSIONS:
                figure = _no_figure(metric, pair, one, x, y) or figure_of(metric, x, y, scope)
                yield _row(one, pair, scope, metric, figure) | {"against_dimension": other.dimension}


def _row(rated: Rated, pair: Pair, scope: Scope, metric: AgreementMetric, figure: Figure) -> Row:
    has_scale = metric in ON_ONE_SCALE and pair.subject.has_scale and pair.other.has_scale
    return figure.row(metric) | {
        "dimension": rated.dimension, "subject_kind": pair.subject.kind.value, "subject": pair.subject.name,
        "against": pair.against, "against_dimension": None, "model": scope.model, "checkpoint": scope.checkpoint,
        "category": scope.category,
        "scale_low": rated.low if has_scale else None, "scale_high": rated.high if has_scale else None,
        "n_items": int(scope.rows.sum()), "n_prompts": len(scope.prompts), "n_raters": pair.n_raters,
    }  # fmt: skip
