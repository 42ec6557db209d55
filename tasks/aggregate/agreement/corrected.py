"""The `corrected` table: beside a judge's mean, people's mean of what they rated, and the judge's mean corrected by it.

All three are unweighted means of prompt aggregates (the mean over a prompt's samples), on the rubric's scale, so that they
estimate the same thing. The correction is prediction-powered inference.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.statuses import Against, AgreementReason, CellStatus, Estimator
from schemas.tables import AGREEMENT, CORRECTED, JUDGEMENTS, SCORES, Table
from tasks.aggregate.agreement.agreement import Row, agreement, published, rated_dimensions, rated_table
from tasks.aggregate.agreement.metrics import Floats
from tasks.aggregate.agreement.pairs import Assessment, Rated, Scope, people, scopes
from tasks.aggregate.intervals import ClusteredMean, Counts, Interval, interval
from tasks.aggregate.tables import Settings
from tasks.context import StageContext

MIN_LABELLED = 10
"""Under this many labelled prompts the tuning follows noise: no corrected mean is given."""

CI_METHOD = "wilson_t_prompts"


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A corrected mean; `tuning` is lambda, how much of the judge's scores is used."""

    mean: float
    se: float
    df: float
    tuning: float
    n_labelled: int
    n_prompts: int

    def clustered(self) -> ClusteredMean:
        """The same as a mean whose unit is the prompt: what intervals.interval() takes."""
        return ClusteredMean(self.mean, self.se, self.df, self.n_labelled, None)


def mean_of_prompts(values: Floats) -> ClusteredMean:
    """The plain mean of K prompt aggregates with its standard error s/√K; shape (K,), K at least 1."""
    n = len(values)
    se = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    return ClusteredMean(float(values.mean()), se, float(n - 1) if n > 1 else None, n, None)


def powered_mean(labels: Floats, judged: Floats, judged_rest: Floats, categories: Counts) -> PoweredMean | None:
    """The power-tuned mean: mean(Y) + λ (mean of F over the rest − mean of F over the labelled).

    `labels` Y and `judged` F are aggregates of the same n prompts and `categories` their categories, shape (n,);
    `judged_rest` of the N unlabelled, (N,). λ = cov(Y, F) / ((1 + n/N) var F), not under 0. With M = n + N and
    R = Y − λ (M/N) F, se² = (1 − n/M) var R / n + var Y / M: which prompts were labelled, and which M prompts there are.
    var R has n − 2 degrees of freedom, one for λ; var Y is within categories, whose sizes are the benchmark's own.
    None under MIN_LABELLED labelled or two unlabelled prompts, or where the judge never varies.
    """
    n, rest = len(labels), len(judged_rest)
    if n < MIN_LABELLED or rest < 2:
        return None
    variance = float(np.concatenate([judged, judged_rest]).var(ddof=1))
    if variance <= 0:
        return None
    tuning = max(0.0, float(np.cov(labels, judged, ddof=1)[0, 1]) / ((1 + n / rest) * variance))
    mean = float(labels.mean()) + tuning * float(judged_rest.mean() - judged.mean())
    residuals = labels - tuning * (n + rest) / rest * judged
    among_all = float(np.square(residuals - residuals.mean()).sum()) / (n - 2) / n * rest / (n + rest)
    se = math.sqrt(among_all + _variance_within(labels, categories) / (n + rest))
    return PoweredMean(mean, se, float(n - 2), tuning, n, n + rest)


def _variance_within(values: Floats, categories: Counts) -> float:
    """Variance pooled within categories; over all where every category has one value."""
    names, places = np.unique(categories, return_inverse=True)
    n = np.bincount(places)
    freedom = len(values) - len(names)
    if not freedom:
        return float(values.var(ddof=1))
    means = np.bincount(places, weights=values) / n
    return float(np.square(values - means[places]).sum()) / freedom


def agreement_tables(context: StageContext, rated: pl.DataFrame) -> dict[Table, pl.DataFrame]:
    """The tables `agreement` and `corrected` of a run and people's ratings."""
    judged = context.lake.scan(JUDGEMENTS, context.ids.plan_id), context.lake.scan(SCORES, context.ids.reading_id)
    run = Settings.of(context)
    return {
        AGREEMENT: agreement(*judged, rated, context.rubrics, run),
        CORRECTED: corrected(*judged, rated, context.rubrics, run),
    }


def corrected(
    judgements: pl.LazyFrame | pl.DataFrame,
    scores: pl.LazyFrame | pl.DataFrame,
    ratings: pl.DataFrame,
    rubrics: Mapping[str, Rubric],
    run: Settings,
) -> pl.DataFrame:
    """The corrected table of one run, sorted: three estimators for each rated dimension, judge and scope."""
    return rated_table(CORRECTED, rated_dimensions(judgements.lazy(), scores.lazy(), ratings, rubrics), run, _corrected_rows)


def _corrected_rows(dimensions: list[Rated]) -> Iterator[Row]:
    for rated in dimensions:
        if rated.raters:
            yield from _dimension_rows(rated)


def _dimension_rows(rated: Rated) -> Iterator[Row]:
    labels = people(rated, Against.RATERS_MEAN)
    for scope in scopes(rated.items, ~np.isnan(labels.values)):
        yield _row(rated, None, scope, Estimator.LABELS, _labels(labels, scope))
    for judge in rated.judges:
        is_known = ~np.isnan(judge.values) | ~np.isnan(labels.values)
        for scope in scopes(rated.items, is_known):
            by_judge, by_people = (_prompt_means(one, scope) for one in (judge.values, labels.values))
            for estimator in (Estimator.JUDGE, Estimator.PREDICTION_POWERED):
                made = _made(estimator, labels, by_judge, by_people, _categories(rated, scope))
                yield _row(rated, judge.name, scope, estimator, made)


class _Made(NamedTuple):
    """A mean and its lambda, or why there is none; prompts used, and those labelled."""

    mean: ClusteredMean | None
    tuning: float | None
    reason: AgreementReason | None
    n_prompts: int
    n_labelled: int


def _labels(labels: Assessment, scope: Scope) -> _Made:
    means = _prompt_means(labels.values, scope)
    there = means[~np.isnan(means)]
    if not len(there):
        return _Made(None, None, AgreementReason.NO_RATINGS, 0, 0)
    if not labels.has_scale:
        return _Made(None, None, AgreementReason.SCALE_NOT_DECLARED, len(there), len(there))
    return _Made(mean_of_prompts(there), None, None, len(there), len(there))


def _made(estimator: Estimator, labels: Assessment, judged: Floats, labelled: Floats, categories: Counts) -> _Made:
    has_score, has_label = ~np.isnan(judged), ~np.isnan(labelled)
    both, rest = has_score & has_label, has_score & ~has_label
    n_used, n_labelled = int(has_score.sum()), int(both.sum())
    if not n_used:
        return _Made(None, None, AgreementReason.NO_SCORES, 0, int(has_label.sum()))
    if estimator is Estimator.JUDGE:
        return _Made(mean_of_prompts(judged[has_score]), None, None, n_used, n_labelled)
    if not labels.has_scale:
        return _Made(None, None, AgreementReason.SCALE_NOT_DECLARED, n_used, n_labelled)
    if not rest.any():
        return _Made(None, None, AgreementReason.ALL_LABELLED, n_used, n_labelled)
    powered = powered_mean(labelled[both], judged[both], judged[rest], categories[both])
    if powered is None:
        is_few = n_labelled < MIN_LABELLED or int(rest.sum()) < 2
        return _Made(None, None, AgreementReason.TOO_FEW_PROMPTS if is_few else AgreementReason.NO_VARIATION, n_used, n_labelled)
    return _Made(powered.clustered(), powered.tuning, None, n_used, n_labelled)


def _prompt_means(values: Floats, scope: Scope) -> Floats:
    """Each prompt's mean over its samples that have a number, NaN where none has; shape (prompts of the scope,)."""
    mine = values[scope.rows]
    is_there = ~np.isnan(mine)
    n = np.bincount(scope.clusters[is_there], minlength=len(scope.prompts))
    sums = np.bincount(scope.clusters[is_there], weights=mine[is_there], minlength=len(scope.prompts))
    return np.where(n > 0, sums / np.maximum(n, 1), np.nan)


def _categories(rated: Rated, scope: Scope) -> Counts:
    """Each prompt's category as a number; of a prompt in several, the last in the order of samples. Shape (prompts,)."""
    numbers = rated.items["category"].rank("dense").fill_null(0).to_numpy()[scope.rows]
    found = np.zeros(len(scope.prompts), dtype=np.int64)
    found[scope.clusters] = numbers
    return found


def _row(rated: Rated, judge: str | None, scope: Scope, estimator: Estimator, made: _Made) -> Row:
    mean, tuning, reason, n_prompts, n_labelled = made
    if mean and not rated.low <= mean.mean <= rated.high:  # a correction can pass an end of the scale by chance
        mean, reason = None, AgreementReason.OFF_SCALE
    ends = interval(mean, rated.low, rated.high) if mean else None
    found = ends if isinstance(ends, Interval) else None
    status = CellStatus.NULL if mean is None else CellStatus.OK if found else CellStatus.NO_INTERVAL
    why = reason or (ends if mean and not found else None)
    se = mean.se if mean else None
    return {
        "judge_model": judge, "dimension": rated.dimension, "model": scope.model, "checkpoint": scope.checkpoint,
        "category": scope.category, "estimator": estimator.value, "estimate": published(mean.mean) if mean else None,
        "se": None if se is None else published(se), "ci_low": published(found.low) if found else None,
        "ci_high": published(found.high) if found else None, "ci_method": CI_METHOD if found else None,
        "df": mean.df if mean else None, "scale_low": rated.low, "scale_high": rated.high,
        "power_tuning": None if tuning is None else published(tuning), "n_prompts": n_prompts,
        "n_prompts_labelled": n_labelled, "n_raters": len(rated.raters), "status": status.value,
        "reason": str(why) if why else None,
    }  # fmt: skip
