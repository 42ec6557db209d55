"""The charts of every series joined to its nights, and what each may spend on false alarms. One chart: ewma.py."""

import numpy as np
import polars as pl

from schemas.metrics import HEADLINE
from tasks.aggregate.drift.ewma import charts

SPREAD_FLOOR = 0.0005  # of the scale's width: what moves less from night to night is taken to move so much
FAMILY_ALPHA = 0.009  # expected false alarms a night, over all series of a benchmark together: a tenth less than the 1 % allowed
NIGHT_ALPHA = 0.0025  # at most, of one series: what keeps quiet 30-night windows without an alarm, see docs/nights.md
HEADLINE_SHARE = 5 / 6  # of FAMILY_ALPHA, for the series of headline dimensions, where such are named


def shared_alpha(n_headline: int, n_other: int, *, is_headline: bool) -> float:
    """A series' probability of a false alarm on a night (Bonferroni, weighted); never above NIGHT_ALPHA.

    Headline series share HEADLINE_SHARE of FAMILY_ALPHA and the others the rest; where there is one kind, it has all.
    """
    if not n_headline or not n_other:
        share = FAMILY_ALPHA / max(n_headline, n_other)
    elif is_headline:
        share = FAMILY_ALPHA * HEADLINE_SHARE / n_headline
    else:
        share = FAMILY_ALPHA * (1 - HEADLINE_SHARE) / n_other
    return min(NIGHT_ALPHA, share)


_RUBRIC = ["benchmark", "rubric_id", "rubric_version", "judge_model", "dimension", "category"]
SERIES = [*_RUBRIC, "model", "n_judgements"]
"""What a series is. A dataset of another size is another series: its nights cannot be held against the old ones."""
ANCHORS = [*_RUBRIC, "anchor_set"]
_FIGURES = ("n_seen", "mean", "sd", "autocorrelation", "deviation", "deviation_se")


def with_charts(rows: pl.DataFrame, n_baseline: int) -> pl.DataFrame:
    """The rows joined with three charts: the model's (no prefix), the anchors' (`anchor_`), their difference (`apart_`)."""
    seen = rows.filter("is_seen")
    asked = rows.filter(pl.col("anchor_estimate").is_not_null())
    anchors = asked.unique([*ANCHORS, "run_date"], maintain_order=True)
    both = seen.filter(pl.col("anchor_estimate").is_not_null()).with_columns(
        apart=pl.col("estimate") - pl.col("anchor_estimate"), apart_bridge=pl.col("bridge_se") - pl.col("anchor_bridge_se")
    )
    found = rows
    for frame, key, value, bridge, prefix in (
        (seen, SERIES, "estimate", "bridge_se", ""), (anchors, ANCHORS, "anchor_estimate", "anchor_bridge_se", "anchor_"),
        (both, [*SERIES, "anchor_set"], "apart", "apart_bridge", "apart_"),
    ):  # fmt: skip
        made = _charts(frame, key, value, bridge, n_baseline).rename({name: f"{prefix}{name}" for name in _FIGURES})
        found = found.join(made, on=[*key, "run_date"], how="left", maintain_order="left")
    return found.with_columns(pl.col("n_seen").forward_fill().over(SERIES, order_by="run_date").fill_null(0))


def _charts(frame: pl.DataFrame, key: list[str], value: str, bridge: str, n_baseline: int) -> pl.DataFrame:
    """The chart of each series of the frame, a row a night: key, run_date and _FIGURES.

    `n_seen`: nights of the baseline that a night's limits rest on; before there are limits, those seen so far.
    """
    rows = frame.sort([*key, "run_date"]).with_columns(
        series=pl.struct(key).rle_id().cast(pl.Int64), night=pl.int_range(pl.len()).over(key)
    )
    series, night = (rows[name].to_numpy() for name in ("series", "night"))
    shape = (rows["series"].n_unique(), int(night.max()) + 1) if len(rows) else (0, 0)
    values, bridge_se = np.full(shape, np.nan), np.full(shape, np.nan)
    values[series, night], bridge_se[series, night] = rows[value].to_numpy(), rows[bridge].to_numpy()
    floor = SPREAD_FLOOR * rows["scale_width"].filter(rows["night"] == 0).to_numpy()
    found = charts(values, bridge_se, n_baseline, floor, NIGHT_ALPHA)
    n = found.n[series, night]
    return rows.select(
        *key, "run_date", n_seen=pl.Series(np.where(n > 0, n, night + 1)),
        **{
            name: pl.Series(getattr(found, figure)[series, night]).fill_nan(None)
            for name, figure in zip(_FIGURES[1:], ("mean", "sd", "autocorrelation", "deviation", "se"), strict=True)
        },
    )  # fmt: skip


def with_alpha(rows: pl.DataFrame) -> pl.DataFrame:
    """What each series and each set of anchors may spend on false alarms, by the family under watch on the very night.

    Most is for each rubric's overall score, or its only dimension: what a leaderboard shows of it.
    """
    alone = pl.col("dimension").n_unique().over("benchmark", "run_date", "rubric_id", "rubric_version") == 1
    rows = rows.with_columns(is_headline=(pl.col("dimension") == HEADLINE) | alone)
    night = ["benchmark", "run_date"]
    watched = rows.group_by(night).agg(
        n_headline=(pl.col("deviation").is_not_null() & pl.col("is_headline")).sum(),
        n_models=(pl.col("deviation").is_not_null() & ~pl.col("is_headline")).sum(),
        n_anchors=pl.struct(ANCHORS).filter(pl.col("anchor_deviation").is_not_null()).n_unique(),
    )  # fmt: skip
    shared = [
        (
            benchmark, run_date, n_headline + n_other,
            *(shared_alpha(n_headline, n_other, is_headline=leads) if n_headline + n_other else None for leads in (True, False)),
        )
        for benchmark, run_date, n_headline, n_models, n_anchors in watched.iter_rows()
        for n_other in [n_models + n_anchors]
    ]  # fmt: skip
    types = {name: rows.schema[name] for name in night}
    types |= {"n_family": pl.Int64(), "alpha_headline": pl.Float64(), "alpha_other": pl.Float64()}
    spent = pl.DataFrame(shared, schema=types, orient="row")
    return rows.join(spent, on=night, how="left", maintain_order="left").with_columns(
        alpha=pl.when("is_headline").then("alpha_headline").otherwise("alpha_other")
    )
