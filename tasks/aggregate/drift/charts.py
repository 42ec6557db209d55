"""The charts of every series joined to its nights, and what each may spend on false alarms; one chart and its limits."""

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy  # its parts are imported where they are first used

from schemas.metrics import HEADLINE

Floats = npt.NDArray[np.float64]

LAMBDA = 0.3  # weight of the newest night: the best of those tried for a change found within five nights
N_BASELINE = 30
SPREAD_FLOOR = 0.0005  # of the scale's width: what moves less from night to night is taken to move so much
FAMILY_ALPHA = 0.009  # expected false alarms a night, over all series of a benchmark together: a tenth less than the 1 % allowed
HEADLINE_SHARE = 5 / 6  # of FAMILY_ALPHA, for the series of headline dimensions, where such are named
_DIGITS = 12  # of quantiles: mathematics libraries differ between processors in the last ones


@dataclass(frozen=True, slots=True)
class Chart:
    """`deviation` is the EWMA less the baseline's mean, `se` its standard error; both NaN during the baseline, shape (T,)."""

    mean: float
    sd: float
    deviation: Floats
    se: Floats


def chart(values: Floats, bridge_se: Floats, n_baseline: int, floor: float) -> Chart | None:
    """The EWMA of the nights behind the first `n_baseline`; None where there are not so many.

    `bridge_se` is the standard error of each night's bridge, taken as one common error of all bridged nights; `floor` the
    least standard deviation. deviation / se follows Student's t with n_baseline - 1 degrees of freedom where nothing changed.
    """
    n_nights = len(values)
    if n_nights < n_baseline:
        return None
    baseline = values[:n_baseline]
    mean = math.fsum(baseline) / n_baseline
    sd = max(math.sqrt(math.fsum((baseline - mean) ** 2) / (n_baseline - 1)), floor)
    common = math.fsum(bridge_se[:n_baseline]) / n_baseline
    deviation, se = np.full(n_nights, np.nan), np.full(n_nights, np.nan)
    level = error = 0.0
    for night in range(n_baseline, n_nights):
        level += LAMBDA * (float(values[night]) - mean - level)
        error += LAMBDA * (float(bridge_se[night]) - common - error)
        deviation[night] = level
        se[night] = math.sqrt(sd**2 * variance_factor(night - n_baseline + 1, n_baseline) + error**2)
    return Chart(mean, sd, deviation, se)


def variance_factor(n_since: int, n_baseline: int) -> float:
    """Variance of the EWMA of `n_since` nights about the mean of `n_baseline` nights, for nights of variance 1."""
    kept = (1 - LAMBDA) ** n_since
    return LAMBDA / (2 - LAMBDA) * (1 - kept**2) + (1 - kept) ** 2 / n_baseline


def night_alpha(n_baseline: int) -> float:
    """The false alarms a night that keep 95 % of quiet 30-night windows without one: see the table in docs/nights.md."""
    return 0.0025 if n_baseline <= N_BASELINE else 0.002


def shared_alpha(n_headline: int, n_other: int, *, is_headline: bool, n_baseline: int) -> float:
    """A series' probability of a false alarm on a night (Bonferroni, weighted); never above night_alpha().

    Headline series share HEADLINE_SHARE of FAMILY_ALPHA and the others the rest; where there is one kind, it has all.
    """
    if not n_headline or not n_other:
        share = FAMILY_ALPHA / max(n_headline, n_other)
    elif is_headline:
        share = FAMILY_ALPHA * HEADLINE_SHARE / n_headline
    else:
        share = FAMILY_ALPHA * (1 - HEADLINE_SHARE) / n_other
    return min(night_alpha(n_baseline), share)


def quantile(alpha: float, df: int) -> float:
    """Two-sided Student quantile."""
    return float(np.round(scipy.special.stdtrit(df, 1 - alpha / 2), _DIGITS))


def p_value(deviation: pl.Series, se: pl.Series, df: int) -> pl.Series:
    """Two-sided p of no change; null where there is no deviation."""
    ratio = (deviation / se).abs()
    found = np.round(2 * scipy.special.stdtr(df, -ratio.to_numpy()), _DIGITS)
    return pl.Series(found).fill_nan(None)


_RUBRIC = ["benchmark", "rubric_id", "rubric_version", "judge_model", "dimension", "category"]
SERIES = [*_RUBRIC, "model", "n_judgements"]
"""What a series is. A dataset of another size is another series: its nights cannot be held against the old ones."""
ANCHORS = [*_RUBRIC, "anchor_set"]
_FIGURES = ("n_seen", "mean", "sd", "deviation", "deviation_se")


def with_charts(rows: pl.DataFrame, n_baseline: int) -> pl.DataFrame:
    """The rows joined with three charts: the model's (no prefix), the anchors' (`anchor_`), their difference (`apart_`)."""
    seen = rows.filter("is_seen")
    asked = rows.filter(pl.col("anchor_estimate").is_not_null())
    anchors = asked.unique([*ANCHORS, "run_date"], maintain_order=True)
    both = seen.filter(pl.col("anchor_estimate").is_not_null()).with_columns(
        apart=pl.col("estimate") - pl.col("anchor_estimate"), apart_bridge=pl.col("bridge_se") - pl.col("anchor_bridge_se")
    )
    own = _charts(seen, SERIES, "estimate", "bridge_se", n_baseline)
    frozen = _charts(anchors, ANCHORS, "anchor_estimate", "anchor_bridge_se", n_baseline)
    apart = _charts(both, [*SERIES, "anchor_set"], "apart", "apart_bridge", n_baseline)
    return (
        rows.join(own, on=[*SERIES, "run_date"], how="left", maintain_order="left")
        .join(_prefixed(frozen, ANCHORS, "anchor_"), on=[*ANCHORS, "run_date"], how="left", maintain_order="left")
        .join(
            _prefixed(apart, [*SERIES, "anchor_set"], "apart_"),
            on=[*SERIES, "anchor_set", "run_date"],
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("n_seen").forward_fill().over(SERIES, order_by="run_date").fill_null(0))
    )


def _charts(frame: pl.DataFrame, key: list[str], value: str, bridge: str, n_baseline: int) -> pl.DataFrame:
    """One chart for each series of the frame: key, run_date, n_seen (of the baseline), mean, sd, deviation, deviation_se."""
    names = pl.DataFrame(schema={name: frame.schema[name] for name in [*key, "run_date"]})
    found = [names.with_columns(pl.lit(None, pl.Int64 if name == "n_seen" else pl.Float64).alias(name) for name in _FIGURES)]
    for one in frame.sort([*key, "run_date"]).partition_by(key, maintain_order=True):
        drawn = chart(one[value].to_numpy(), one[bridge].to_numpy(), n_baseline, SPREAD_FLOOR * one["scale_width"][0])
        lacking = pl.lit(None, pl.Float64)
        in_baseline = pl.int_range(pl.len()) < n_baseline - 1
        found.append(
            one.select(
                *key,
                "run_date",
                n_seen=(pl.int_range(pl.len(), dtype=pl.Int64) + 1).clip(upper_bound=n_baseline),
                mean=pl.when(~in_baseline).then(drawn.mean) if drawn else lacking,
                sd=pl.when(~in_baseline).then(drawn.sd) if drawn else lacking,
                deviation=pl.Series(drawn.deviation).fill_nan(None) if drawn else lacking,
                deviation_se=pl.Series(drawn.se).fill_nan(None) if drawn else lacking,
            )
        )
    return pl.concat(found)


def with_alpha(rows: pl.DataFrame, headline: Collection[str], n_baseline: int) -> pl.DataFrame:
    """What each series and each set of anchors may spend on false alarms, by the family under watch on the very night.

    Without `headline` it is each rubric's overall score, or its only dimension: what a leaderboard shows of it.
    """
    alone = pl.col("dimension").n_unique().over("benchmark", "run_date", "rubric_id", "rubric_version") == 1
    named = pl.col("dimension").is_in(sorted(headline))
    rows = rows.with_columns(is_headline=named if headline else (pl.col("dimension") == HEADLINE) | alone)
    night = ["benchmark", "run_date"]
    watched = rows.group_by(night).agg(
        n_headline=(pl.col("deviation").is_not_null() & pl.col("is_headline")).sum(),
        n_models=(pl.col("deviation").is_not_null() & ~pl.col("is_headline")).sum(),
        n_anchors=pl.struct(ANCHORS).filter(pl.col("anchor_deviation").is_not_null()).n_unique(),
    )  # fmt: skip
    shared = [
        {
            "benchmark": benchmark,
            "run_date": run_date,
            "n_family": n_headline + n_models + n_anchors,
            "alpha_headline": _spend(n_headline, n_models + n_anchors, n_baseline, is_headline=True),
            "alpha_other": _spend(n_headline, n_models + n_anchors, n_baseline, is_headline=False),
        }
        for benchmark, run_date, n_headline, n_models, n_anchors in watched.iter_rows()
    ]
    types = {name: rows.schema[name] for name in night} | {
        "n_family": pl.Int64,
        "alpha_headline": pl.Float64,
        "alpha_other": pl.Float64,
    }
    spent = pl.DataFrame(shared, schema=types)
    return rows.join(spent, on=night, how="left", maintain_order="left").with_columns(
        alpha=pl.when("is_headline").then("alpha_headline").otherwise("alpha_other")
    )


def _spend(n_headline: int, n_other: int, n_baseline: int, *, is_headline: bool) -> float | None:
    if not n_headline + n_other:
        return None
    return shared_alpha(n_headline, n_other, is_headline=is_headline, n_baseline=n_baseline)


def _prefixed(charts: pl.DataFrame, key: list[str], prefix: str) -> pl.DataFrame:
    return charts.rename({name: f"{prefix}{name}" for name in _FIGURES}).select(
        *key, "run_date", *(f"{prefix}{name}" for name in _FIGURES)
    )
