"""What a night's alarm is blamed on: the model, the judge, both, or nobody for a stated reason. Limits are drift_limits.py."""

import polars as pl

from schemas.statuses import DriftReason, DriftVerdict

ATTRIBUTION_ALPHA = 0.01
"""Level of the two tests that share out the blame: of the anchors, and of model less anchors. They raise no alarm."""


def verdicts(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with `is_alarm`, `verdict` and `reason`.

    Needed: `is_out` and `is_anchor_out` (null where there are no limits), `anchor_p`, `difference_p`, `anchor_estimate`, and
    `unseen`: why the model's series has no observation or no limits this night, null where it has both.
    """
    alarm = pl.col("is_out").fill_null(value=False) | pl.col("is_anchor_out").fill_null(value=False)
    blamed = rows.with_columns(is_alarm=alarm, verdict=pl.when(alarm).then(_blame()).otherwise(_calm()))
    return blamed.with_columns(reason=_reason())


def _blame() -> pl.Expr:
    """Who is blamed for an alarm. Anchors alone beyond their limits is a judge, unless the model moved the other way."""
    anchors_moved = pl.col("anchor_p") < ATTRIBUTION_ALPHA
    moved_apart = pl.col("difference_p") < ATTRIBUTION_ALPHA
    only_anchors = ~pl.col("is_out").fill_null(value=False)
    return (
        pl.when(pl.col("anchor_p").is_null())
        .then(_word(DriftVerdict.UNKNOWN))
        .when(only_anchors & moved_apart.fill_null(value=False))
        .then(_word(DriftVerdict.BOTH))
        .when(only_anchors)
        .then(_word(DriftVerdict.JUDGE))
        .when(pl.col("difference_p").is_null())
        .then(_word(DriftVerdict.UNKNOWN))
        .when(anchors_moved & moved_apart)
        .then(_word(DriftVerdict.BOTH))
        .when(anchors_moved)
        .then(_word(DriftVerdict.JUDGE))
        .when(moved_apart)
        .then(_word(DriftVerdict.MODEL))
        .otherwise(_word(DriftVerdict.UNKNOWN))
    )


def _calm() -> pl.Expr:
    return pl.when(pl.col("unseen").is_null()).then(_word(DriftVerdict.QUIET)).otherwise(_word(DriftVerdict.UNKNOWN))


def _reason() -> pl.Expr:
    """Why the verdict is unknown; beside a judge's verdict, why the model's own series is not seen."""
    out = pl.col("is_out").fill_null(value=False) & (pl.col("verdict") == DriftVerdict.UNKNOWN.value)
    return (
        pl.when(~out)
        .then("unseen")
        .when(pl.col("anchor_estimate").is_null())
        .then(_word(DriftReason.NO_ANCHOR))
        .when(pl.col("anchor_p").is_null() | pl.col("difference_p").is_null())
        .then(_word(DriftReason.ANCHOR_BASELINE_INCOMPLETE))
        .otherwise(_word(DriftReason.CANNOT_SEPARATE))
    )


def _word(word: DriftVerdict | DriftReason) -> pl.Expr:
    return pl.lit(word.value)
