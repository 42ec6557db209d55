"""One figure over prompts by the judge, by people, or by both: which of powered.py's formulas, and why there is none."""

from typing import NamedTuple

import numpy as np

from schemas.statuses.people import MIN_IN_STRATUM, MIN_LABELLED, AgreementReason, Estimator
from schemas.tables.table import Row
from tasks.aggregate.agreement.powered import (
    RaterSpread,
    prompt_weights,
    rater_spread,
    stratified_mean,
    stratified_powered,
    with_raters,
)
from tasks.aggregate.intervals import ClusteredMean, Floats, Interval, interval, rounded

MAX_RATERS = 100
"""Of more raters each weighs so little that their levels are not asked about."""


class Values(NamedTuple):
    """What an estimator is made of: labels of each prompt, all (prompts,) and each rater's (prompts, raters); the judge's.

    `are_named`: which raters are one person each, shape (raters,); None: all.
    """

    labels: Floats
    by_rater: Floats
    judged: Floats | None
    are_named: np.ndarray | None = None


class Made(NamedTuple):
    """A figure with its standard error, or why there is none; `spread` is the raters' part of it.

    `strata`: each category's mean and number of prompts, of what it is made of; of a corrected figure, of people's part.
    """

    mean: ClusteredMean | None
    reason: AgreementReason | None
    n_prompts: int
    n_labelled: int
    tuning: float | None = None
    spread: RaterSpread | None = None
    strata: tuple[tuple[float, int], ...] = ()

    def withheld(self) -> "Made":
        """Of a blocked cell: nothing but what it would have been made of."""
        return Made(None, AgreementReason.BLOCKED, self.n_prompts, self.n_labelled)

    def shown(self, low: float, high: float, why_blocked: str | None) -> tuple["Made", bool, Row]:
        """The figure, withheld where its cell is blocked; whether it is; its columns on a scale, or why they are empty."""
        is_blocked = why_blocked is not None and self.reason is not AgreementReason.NO_SCORES
        figure = self.withheld() if is_blocked else self
        mean, reason = figure.mean, figure.reason
        if mean and not low <= rounded(mean.mean) <= high:  # a correction can pass an end of the scale by chance
            mean, reason = None, AgreementReason.OFF_SCALE
        ends = interval(mean, low, high, allows_for_skew=True) if mean else None
        found = ends if isinstance(ends, Interval) else None
        why = why_blocked if is_blocked else reason or (None if found else ends)
        numbers = {"estimate": mean.mean, "se": mean.se, "df": mean.df} if mean else dict.fromkeys(("estimate", "se", "df"))
        numbers |= {"ci_low": found.low, "ci_high": found.high} if found else {"ci_low": None, "ci_high": None}
        row: Row = {name: None if value is None else rounded(value) for name, value in numbers.items()}
        return figure, is_blocked, row | {"scale_low": low, "scale_high": high, "reason": str(why) if why else None}


def made(estimator: Estimator, values: Values, strata: np.ndarray) -> Made:
    """A mean, or mean difference, of prompts, every category weighing the same. Needs MIN_LABELLED where people are in it."""
    has_label = ~np.isnan(values.labels)
    has_score = ~np.isnan(values.judged) if values.judged is not None else np.zeros_like(has_label)
    both = has_label & has_score
    judged = values.judged if values.judged is not None else np.full_like(values.labels, np.nan)
    if estimator is not Estimator.LABELS and not has_score.any():
        return Made(None, AgreementReason.NO_SCORES, 0, int(has_label.sum()))
    if estimator is Estimator.JUDGE:
        mean = stratified_mean(judged, strata)
        why = None if mean else AgreementReason.TOO_FEW_PROMPTS
        return Made(mean, why, int(has_score.sum()), int(both.sum()), strata=_by_stratum(judged, strata))
    used, n_prompts = (both, int(has_score.sum())) if estimator is not Estimator.LABELS else (has_label, int(has_label.sum()))
    n_labelled = int(used.sum())
    n_each = np.bincount(strata[used], minlength=int(strata.max(initial=-1)) + 1)
    if n_labelled < MIN_LABELLED or n_each.min(initial=MIN_LABELLED) < MIN_IN_STRATUM:
        return Made(None, AgreementReason.TOO_FEW_PROMPTS, n_prompts, n_labelled)
    spread = None
    if values.by_rater.shape[1] <= MAX_RATERS:
        ratings = np.where(used[:, None], values.by_rater, np.nan)
        spread = rater_spread(ratings, prompt_weights(used, strata), values.are_named)
    tuning = None
    one = np.where(used, judged - values.labels if estimator is Estimator.JUDGE_ERROR else values.labels, np.nan)
    if estimator is Estimator.PREDICTION_POWERED:
        powered = stratified_powered(values.labels, judged, strata)
        if not (has_score & ~has_label).any() or powered is None:
            is_whole = not (has_score & ~has_label).any()
            why = AgreementReason.ALL_LABELLED if is_whole else AgreementReason.NO_VARIATION
            return Made(None, why, n_prompts, n_labelled)
        mean, tuning = powered.clustered(), powered.tuning
    else:
        mean = stratified_mean(one, strata)
    found = with_raters(mean, spread) if mean else None
    return Made(found, None, n_prompts, n_labelled, tuning, spread, _by_stratum(one, strata))


def _by_stratum(values: Floats, strata: np.ndarray) -> tuple[tuple[float, int], ...]:
    parts = [values[(strata == number) & ~np.isnan(values)] for number in range(int(strata.max(initial=-1)) + 1)]
    return tuple((float(part.mean()), len(part)) for part in parts if len(part))
