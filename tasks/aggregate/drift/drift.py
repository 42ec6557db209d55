"""The drift table: limits, alarms, verdicts and dates for every night of every series. No row looks at a later night.

The pieces: series.py makes the series, charts.py the charts and limits; the blame and the most likely dates stand below.
"""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import polars as pl

from schemas.errors import InputError
from schemas.statuses.nights import N_BASELINE, DriftReason, DriftVerdict
from schemas.tables.nights import DRIFT, NIGHTS
from schemas.tables.table import conform
from tasks.aggregate.drift.charts import ANCHORS, SERIES, with_alpha, with_charts
from tasks.aggregate.drift.ewma import degrees_of_freedom, p_values, quantiles
from tasks.aggregate.intervals import Floats


@dataclass(frozen=True, slots=True)
class Change:
    """`index` is the first night after the step; `shift` the mean after it less the mean before."""

    index: int
    shift: float
    shift_se: float


def change(values: Floats, n_baseline: int, sd: float) -> Change:
    """The step that makes the nights most likely, behind the baseline, for normal nights of one variance.

    Both means unknown: Hinkley, Biometrika 57 (1970); as a follow-up to control charts Samuel, Pignatiello & Calvin, Quality
    Engineering 10 (1998). Of equally likely nights the first. `values` holds more than `n_baseline` nights.
    """
    sums = np.cumsum(values - values[:n_baseline].mean())
    before = np.arange(n_baseline, len(values))
    after = len(values) - before
    mean_before = sums[before - 1] / before
    mean_after = (sums[-1] - sums[before - 1]) / after
    weight = before * after / len(values)
    best = int(np.argmax(weight * (mean_after - mean_before) ** 2))
    shift = float(mean_after[best] - mean_before[best])
    return Change(int(before[best]), shift, sd * float(1 / np.sqrt(weight[best])))


_KEY_TYPES: dict[str, pl.DataType] = {name: pl.Date() if name == "run_date" else pl.String() for name in NIGHTS.key}
LEAST_BASELINE = 8  # nights: with fewer the quantiles are so wide that nothing would ever be found


def drift(nights: pl.DataFrame, *, n_baseline: int = N_BASELINE) -> pl.DataFrame:
    """The DRIFT table of a NIGHTS table.

    Series of each rubric's overall score, or its only dimension, share most of the false alarms allowed. The first `n_baseline`
    observed nights of each series are its baseline. Raises InputError where it is too short, ValueError where a series has two
    rows for one night.
    """
    if n_baseline < LEAST_BASELINE:
        raise InputError(f"a baseline of {n_baseline} nights is too short for control limits; give {LEAST_BASELINE} or more")
    rows = _sorted(nights)
    found = with_charts(rows, n_baseline)
    limited = _with_limits(with_alpha(found))
    judged = verdicts(limited.with_columns(unseen=_unseen(), has_returned=_has_returned()))
    dated = _with_dates(judged, n_baseline)
    return pl.DataFrame(conform(dated.sort(DRIFT.key), DRIFT))


def _sorted(nights: pl.DataFrame) -> pl.DataFrame:
    rows = pl.DataFrame(conform(nights, NIGHTS)).sort(NIGHTS.key)
    if rows.select(pl.struct(NIGHTS.key).is_duplicated().any()).item():
        twice = rows.filter(pl.struct(NIGHTS.key).is_duplicated()).row(0, named=True)
        raise ValueError(f"the night {twice['run_date']} of {twice['model']} {twice['dimension']} occurs twice in the series")
    return rows.with_columns(is_seen=_is_seen())


def _is_seen() -> pl.Expr:
    """Whether the night is a new observation, unlike its checkpoint's last with an estimate: cached replies say nothing new."""
    is_there, own = pl.col("estimate").is_not_null(), [*SERIES, "checkpoint"]
    numbers = pl.col("estimate"), pl.col("se").fill_null(-1.0)  # without an interval, as the last time
    same = pl.all_horizontal(
        one == pl.when(is_there).then(one).forward_fill().shift().over(own, order_by="run_date") for one in numbers
    )
    return is_there & ~same.fill_null(value=False)


def _with_limits(rows: pl.DataFrame) -> pl.DataFrame:
    """Limits, p values, who is beyond them, and what was spent on false alarms: an alarm may be the anchors' alone."""
    own, theirs = _half_widths(rows, "alpha", ""), _half_widths(rows, "alpha_other", "anchor_")
    return rows.with_columns(
        ewma=pl.col("mean") + pl.col("deviation"),
        limit_low=pl.col("mean") - own,
        limit_high=pl.col("mean") + own,
        anchor_ewma=pl.col("anchor_mean") + pl.col("anchor_deviation"),
        anchor_limit_low=pl.col("anchor_mean") - theirs,
        anchor_limit_high=pl.col("anchor_mean") + theirs,
        is_out=pl.col("deviation").abs() > own,
        is_anchor_out=pl.col("anchor_deviation").abs() > theirs,
        anchor_p=_p_value(rows, "anchor_"),
        difference_p=_p_value(rows, "apart_"),
        n_baseline="n_seen",
        baseline_mean="mean",
        baseline_sd="sd",
        baseline_autocorrelation="autocorrelation",
        alpha=pl.when(pl.col("deviation").is_not_null()).then("alpha"),
        anchor_alpha=pl.when(pl.col("anchor_deviation").is_not_null()).then("alpha_other"),
    ).with_columns(
        alpha_spent=pl.when(pl.any_horizontal(pl.col("alpha", "anchor_alpha").is_not_null()))
        .then(pl.sum_horizontal("alpha", "anchor_alpha"))
        .cum_sum()
        .over(SERIES, order_by="run_date")
    )  # fmt: skip


def _half_widths(rows: pl.DataFrame, alpha: str, prefix: str) -> pl.Series:
    """How far from the baseline's mean the limits are; null where there are none."""
    wide = quantiles(rows[alpha].cast(pl.Float64).to_numpy(), _df(rows, prefix))
    return (pl.Series(wide) * rows[f"{prefix}deviation_se"]).fill_nan(None)


def _p_value(rows: pl.DataFrame, prefix: str) -> pl.Series:
    ratio = rows[f"{prefix}deviation"] / rows[f"{prefix}deviation_se"]
    return pl.Series(p_values(ratio.to_numpy(), _df(rows, prefix))).fill_nan(None)


def _df(rows: pl.DataFrame, prefix: str) -> Floats:
    return degrees_of_freedom(rows[f"{prefix}n_seen"].cast(pl.Float64).to_numpy())


def _unseen() -> pl.Expr:
    return (
        pl.when(pl.col("estimate").is_null())
        .then("reason")
        .when(~pl.col("is_seen"))
        .then(pl.lit(DriftReason.NOTHING_NEW.value))
        .when(pl.col("deviation").is_null())
        .then(pl.lit(DriftReason.BASELINE_INCOMPLETE.value))
    )


_APART = pl.col("estimate") - pl.col("anchor_estimate")
_RETURNED, _FAR = 1, 3  # standard deviations between nights


def _has_returned() -> pl.Expr:
    """Whether the anchors are back where they were, and the model is not: that their average is still off is of nights before.

    For two nights that asked them: by chance one night in six of a judge that is two standard deviations off lies as near.
    """
    is_near = (pl.col("anchor_estimate") - pl.col("anchor_mean")).abs() <= _RETURNED * pl.col("anchor_sd")
    was_near = is_near.forward_fill().shift().over([*SERIES, "anchor_set"], order_by="run_date")
    is_back = is_near & was_near
    is_apart = (_APART - pl.col("apart_mean")).abs() > _FAR * pl.col("apart_sd")
    return (is_back & is_apart).fill_null(value=False)


def _with_dates(rows: pl.DataFrame, n_baseline: int) -> pl.DataFrame:
    """When what is blamed changed, and by how much, as far as the nights up to the alarm tell.

    A model's change is dated on model less anchors: what the judge did before is no part of it.
    """
    types = _KEY_TYPES | {"changed_on": pl.Date(), "shift": pl.Float64(), "shift_se": pl.Float64()}
    by_judge, by_model = (pl.col("verdict") == verdict.value for verdict in (DriftVerdict.JUDGE, DriftVerdict.MODEL))
    seen = rows.filter("is_seen")
    own = _dates(seen, SERIES, "estimate", "baseline_sd", n_baseline, blamed=~by_judge & ~by_model)
    both = seen.filter(pl.col("anchor_estimate").is_not_null()).with_columns(apart=_APART)
    apart = _dates(both, [*SERIES, "anchor_set"], "apart", "apart_sd", n_baseline, blamed=by_model)
    asked = rows.filter(pl.col("anchor_estimate").is_not_null()).sort("run_date", "model")
    theirs = _dates(asked, ANCHORS, "anchor_estimate", "anchor_sd", n_baseline, blamed=by_judge)
    return rows.join(pl.DataFrame(own + apart + theirs, schema=types), on=NIGHTS.key, how="left", maintain_order="left")


def _dates(
    rows: pl.DataFrame, key: list[str], value: str, sd: str, n_baseline: int, *, blamed: pl.Expr
) -> list[dict[str, object]]:
    found = []
    wanted = rows.filter((pl.col("is_alarm") & blamed).any().over(key))
    for one in wanted.partition_by(key, maintain_order=True):
        nights = one.unique("run_date", keep="first", maintain_order=True)
        days, values = nights["run_date"].to_list(), nights[value].to_numpy()
        for alarm in one.filter(pl.col("is_alarm") & blamed).iter_rows(named=True):
            n_nights = bisect_right(days, alarm["run_date"])
            step = change(values[:n_nights], n_baseline, alarm[sd])
            found.append(
                {name: alarm[name] for name in NIGHTS.key}
                | {"changed_on": days[step.index], "shift": step.shift, "shift_se": step.shift_se}
            )
    return found


ATTRIBUTION_ALPHA = 0.01
"""Level of the two tests that share out the blame: of the anchors, and of model less anchors. They raise no alarm."""


def verdicts(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with `is_alarm`, `verdict` and `reason`.

    Needed: `is_out` and `is_anchor_out` (null where there are no limits), `anchor_p`, `difference_p`, `anchor_estimate`,
    `has_returned`: whether the anchors are back and the model is not, and `unseen`: why the model's series has no observation
    or no limits this night, null where it has both.
    """
    alarm = pl.col("is_out").fill_null(value=False) | pl.col("is_anchor_out").fill_null(value=False)
    calm = pl.when(pl.col("unseen").is_null()).then(_word(DriftVerdict.QUIET)).otherwise(_word(DriftVerdict.UNKNOWN))
    blamed = rows.with_columns(is_alarm=alarm, verdict=pl.when(alarm).then(_blame()).otherwise(calm))
    return blamed.with_columns(reason=_reason())


def _blame() -> pl.Expr:
    """Who is blamed for an alarm. Anchors alone beyond their limits is a judge, unless the model moved the other way."""
    anchors_moved = (pl.col("anchor_p") < ATTRIBUTION_ALPHA) & ~pl.col("has_returned")
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
