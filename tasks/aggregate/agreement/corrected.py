"""The `corrected` table: beside a judge's mean, people's mean of what they rated, and the judge's mean corrected by it.

All three are unweighted means of prompt aggregates (the mean over a prompt's samples), on the rubric's scale, so that they
estimate the same thing. Formulas are powered.py; differences and ranks deltas.py. What the judge alone says is as the
leaderboard has it: one question has one answer, corrected in one family.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.statuses.cells import CellStatus, Total
from schemas.statuses.people import MIN_LABELLED, Against, AgreementReason, Estimator
from schemas.tables.agreement import AGREEMENT, CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS
from schemas.tables.published import COMPARISONS, STANDINGS
from schemas.tables.stored import JUDGEMENTS, REPLIES, SCORES
from schemas.tables.table import Row, Table
from tasks.aggregate.agreement.agreement import agreement_rows, rated_table
from tasks.aggregate.agreement.blocked import Blocked
from tasks.aggregate.agreement.deltas import corrected_deltas
from tasks.aggregate.agreement.estimates import MAX_RATERS, Made
from tasks.aggregate.agreement.grid import Grid
from tasks.aggregate.agreement.label_check import label_check
from tasks.aggregate.agreement.pairs import Assessment, Rated, Scope, people, scopes
from tasks.aggregate.agreement.powered import (
    RaterSpread,
    mean_of_prompts,
    powered_mean,
    prompt_weights,
    rater_spread,
    with_raters,
)
from tasks.aggregate.agreement.rated import rated_dimensions
from tasks.aggregate.intervals import Counts, Floats, rounded
from tasks.aggregate.tables import Settings, aggregated
from tasks.context import Reference, StageContext

CI_METHOD = "wilson_t_prompts"


def agreement_tables(context: StageContext, reference: Reference) -> dict[Table, pl.DataFrame]:
    """The tables of an agreement, less the ratings themselves, of a run and what it is held against. Votes: votes.py."""
    judgements, scores = context.lake.scan(JUDGEMENTS, context.ids.plan_id), context.lake.scan(SCORES, context.ids.reading_id)
    run = Settings.of(context)
    found = list(rated_dimensions(judgements, scores, reference.ratings, context.rubrics, reference.judge))
    board = leaderboard_of(context) if found else {}
    blocked = Blocked.of(board, reference.judge) if found else Blocked()
    tables = {AGREEMENT: rated_table(AGREEMENT, found, run, agreement_rows), CORRECTED: corrected(found, run, blocked)}
    deltas = corrected_deltas(found, run, blocked)
    return tables | (as_published(deltas, board) if found else deltas)


def corrected(found: Iterable[tuple[Rubric, list[Rated]]], run: Settings, blocked: Blocked) -> pl.DataFrame:
    """The corrected table of one run, sorted: three estimators for each rated dimension, judge and scope."""

    def rows(dimensions: list[Rated]) -> Iterator[Row]:
        return (row for rated in dimensions if rated.raters for row in _dimension_rows(rated, blocked))

    return rated_table(CORRECTED, found, run, rows)


def _dimension_rows(rated: Rated, blocked: Blocked) -> Iterator[Row]:
    labels, grid = people(rated, Against.RATERS_MEAN), Grid(rated)
    for scope in scopes(rated.items, ~np.isnan(labels.values)):
        yield _row(rated, None, scope, Estimator.LABELS, _labels(rated, labels, scope), blocked)
    for judge in rated.judges:
        checks = {is_within: label_check(grid, judge, is_within=is_within) for is_within in (True, False)}
        is_known = ~np.isnan(judge.values) | ~np.isnan(labels.values)
        for scope in scopes(rated.items, is_known):
            check = checks[scope.category != Total.MICRO]
            for estimator in (Estimator.JUDGE, Estimator.PREDICTION_POWERED):
                made = _made(estimator, rated, labels, judge, scope)
                yield _row(rated, judge.name, scope, estimator, made, blocked) | check.row


def _labels(rated: Rated, labels: Assessment, scope: Scope) -> Made:
    means = _prompt_means(labels.values, scope)
    there = means[~np.isnan(means)]
    if not len(there):
        return Made(None, AgreementReason.NO_RATINGS, 0, 0)
    if not labels.has_scale:
        return Made(None, AgreementReason.SCALE_NOT_DECLARED, len(there), len(there))
    spread = _raters_part(rated, scope, ~np.isnan(means))
    return Made(with_raters(mean_of_prompts(there), spread), None, len(there), len(there), spread=spread)


def _raters_part(rated: Rated, scope: Scope, is_used: np.ndarray) -> RaterSpread | None:
    if len(rated.raters) > MAX_RATERS:
        return None
    by_rater = np.column_stack([_prompt_means(rater.values, scope) for rater in rated.raters])
    ratings = np.where(is_used[:, None], by_rater, np.nan)
    return rater_spread(ratings, prompt_weights(is_used, np.zeros(len(is_used), dtype=np.int64)), rated.are_named)


def _made(estimator: Estimator, rated: Rated, labels: Assessment, judge: Assessment, scope: Scope) -> Made:
    judged, labelled = (_prompt_means(one.values, scope) for one in (judge, labels))
    has_score, has_label = ~np.isnan(judged), ~np.isnan(labelled)
    both, rest = has_score & has_label, has_score & ~has_label
    n_used, n_labelled = int(has_score.sum()), int(both.sum())
    if not n_used:
        return Made(None, AgreementReason.NO_SCORES, 0, int(has_label.sum()))
    if estimator is Estimator.JUDGE:
        return Made(mean_of_prompts(judged[has_score]), None, n_used, n_labelled)
    if not labels.has_scale:
        return Made(None, AgreementReason.SCALE_NOT_DECLARED, n_used, n_labelled)
    if not rest.any():
        return Made(None, AgreementReason.ALL_LABELLED, n_used, n_labelled)
    powered = powered_mean(labelled[both], judged[both], judged[rest], _categories(rated, scope)[both])
    if powered is None:
        is_few = n_labelled < MIN_LABELLED or int(rest.sum()) < 2
        return Made(None, AgreementReason.TOO_FEW_PROMPTS if is_few else AgreementReason.NO_VARIATION, n_used, n_labelled)
    spread = _raters_part(rated, scope, both)
    return Made(with_raters(powered.clustered(), spread), None, n_used, n_labelled, powered.tuning, spread)


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


def _row(rated: Rated, judge: str | None, scope: Scope, estimator: Estimator, made: Made, blocked: Blocked) -> Row:
    why_blocked = blocked.why(rated, judge, estimator, (scope.category, scope.model, scope.checkpoint))
    figure, is_blocked, row = made.shown(rated.low, rated.high, why_blocked)
    status = CellStatus.NULL if row["estimate"] is None else CellStatus.NO_INTERVAL if row["ci_low"] is None else CellStatus.OK
    return row | {
        "judge_model": judge, "dimension": rated.dimension, "model": scope.model, "checkpoint": scope.checkpoint,
        "category": scope.category, "estimator": estimator.value, "ci_method": None if row["ci_low"] is None else CI_METHOD,
        "rater_se": None if figure.spread is None else rounded(figure.spread.variance**0.5),
        "power_tuning": None if figure.tuning is None else rounded(figure.tuning), "n_prompts": figure.n_prompts,
        "n_prompts_labelled": figure.n_labelled, "n_raters": len(rated.raters),
        "status": (CellStatus.BLOCKED if is_blocked else status).value,
    }  # fmt: skip


_COMPARED = (
    "delta", "se", "df", "ci_low", "ci_high", "ci_low_adjusted", "ci_high_adjusted", "p", "p_adjusted", "verdict", "adjustment",
    "family", "n_family", "status", "reason",
)  # fmt: skip
_RANKED = ("state", "reason", "rank_low", "rank_high", "n_ranked", "adjustment", "family", "n_family")


def leaderboard_of(context: StageContext) -> dict[Table, pl.DataFrame]:
    """The tables a run of the same judgements publishes."""
    lake, ids = context.lake, context.ids
    of_one = lake.scan(JUDGEMENTS, ids.plan_id).filter(pl.col("second_sample_id").is_null())
    scores, replies = lake.scan(SCORES, ids.reading_id), lake.scan(REPLIES, ids.snapshot_id)
    return aggregated(of_one, scores, replies, context.rubrics, Settings.of(context))


def as_published(made: Mapping[Table, pl.DataFrame], board: Mapping[Table, pl.DataFrame]) -> dict[Table, pl.DataFrame]:
    """Both corrected tables with the leaderboard's figures, verdicts and ranks in the judge's rows. What it lacks stays."""
    standings = _from(board[STANDINGS], STANDINGS.key, made[CORRECTED_STANDINGS], _RANKED)
    is_unexplained = pl.col("reason").is_null() & pl.col("ci_low").is_null()  # ranked there, but these intervals are not those
    why = pl.when(is_unexplained).then(made[CORRECTED_STANDINGS]["reason"]).otherwise("reason")
    return {
        CORRECTED_COMPARISONS: _from(board[COMPARISONS], COMPARISONS.key, made[CORRECTED_COMPARISONS], _COMPARED),
        CORRECTED_STANDINGS: standings.with_columns(reason=why),
    }


def _from(board: pl.DataFrame, key: Sequence[str], mine: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    theirs = board.select(*key, *(pl.col(name).alias(f"board_{name}") for name in columns), is_there=pl.lit(value=True))
    is_theirs = (pl.col("estimator") == Estimator.JUDGE.value) & pl.col("is_there")
    taken = {name: pl.when(is_theirs).then(f"board_{name}").otherwise(name) for name in columns}
    return mine.join(theirs, on=key, how="left", maintain_order="left").with_columns(**taken).select(mine.columns)
