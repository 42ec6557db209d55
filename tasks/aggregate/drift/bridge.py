"""A replaced judge: the bridge fitted on samples that both judges scored, and the old series carried over it.

Formulae, assumptions and sources stand in docs/nights.md.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from schemas.statuses.cells import CellStatus
from schemas.statuses.nights import ReliabilityReason
from schemas.tables.nights import BRIDGES, NIGHTS
from schemas.tables.table import Row, conform
from tasks.aggregate.intervals import Counts, Floats, without_rounding
from tasks.aggregate.reliability.components import JUDGED, UNIT, image_means

OF = ["rubric_id", "rubric_version", "dimension"]
"""What a bridge between two judges is of: each has its own."""

MIN_PROMPTS = 10  # in all: with fewer a jackknife says little about its own error


def bridges(rows: pl.DataFrame, judge_old: str, judge_new: str, *, has_slope: bool = False) -> pl.DataFrame:
    """The BRIDGES table from scored() of the common set: one row per rubric and dimension that both judges have."""
    means = image_means(rows)
    on = [name for name in [*JUDGED, *UNIT] if name != "judge_model"]
    old, new = (means.filter(pl.col("judge_model") == judge).drop("judge_model") for judge in (judge_old, judge_new))
    common = old.join(new, on=on, suffix="_new").sort(on)
    found = []
    for one in common.partition_by(OF, maintain_order=True):
        fitted = _fitted(one, has_slope=has_slope)
        named = {name: one[name][0] for name in OF} | {"judge_old": judge_old, "judge_new": judge_new}
        counts = {"n_prompts": one["prompt_id"].n_unique(), "n_images": one.height}
        if isinstance(fitted, ReliabilityReason):
            fitted = {"status": CellStatus.NULL.value, "reason": fitted.value}
        found.append(named | {"bridge_kind": "line" if has_slope else "offset"} | counts | fitted)
    return BRIDGES.frame(found)


def joined(nights: pl.DataFrame, bridge: pl.DataFrame) -> pl.DataFrame:
    """The NIGHTS of earlier judges carried to the present one's scale, with its own as measured, as one series.

    `se` and `anchor_se` hold the bridges' error too; `bridge_se` and `anchor_bridge_se` hold it alone. Of judges that scored the
    same night, the present one's row stays, else that of the fewest bridges. Dimensions without a bridge keep their own series
    under the old judge. The bridges' order says who is present; a third judge goes on with what the first one began.
    """
    ready = bridge.filter(pl.col("status") == CellStatus.OK.value).drop("reason", "status")
    steps = [
        one | {"origin": judge, "n_crossed": n_crossed}
        for of in ready.partition_by(OF, maintain_order=True)
        for judge, path in _paths(of.to_dicts()).items()
        for n_crossed, one in enumerate(path)
    ]
    whole = nights.with_columns(n_crossed=0, origin="judge_model")
    schema = pl.Schema({**ready.schema, "origin": pl.String(), "n_crossed": whole.schema["n_crossed"]})
    for step in pl.DataFrame(steps, schema=schema).sort("n_crossed").partition_by("n_crossed", maintain_order=True):
        whole = _crossed(whole, step)
    whole = whole.sort("n_crossed", "measured_by").unique(NIGHTS.key, keep="first", maintain_order=True)
    return pl.DataFrame(conform(whole.select(NIGHTS.columns).sort(NIGHTS.key), NIGHTS))


def present_judges(bridge: pl.DataFrame) -> pl.DataFrame:
    """Of bridges in use: of each `judge_model`, by rubric, version and dimension, whose series has its nights (`present`)."""
    rows = [
        {name: of[name][0] for name in OF} | {"judge_model": judge, "present": now}
        for of in bridge.partition_by(OF, maintain_order=True)
        for judge, now in _present(of.to_dicts()).items()
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys([*OF, "judge_model", "present"], pl.String))


def _present(crossings: Sequence[dict[str, Any]]) -> dict[str, str]:
    present = {judge: judge for one in crossings for judge in (one["judge_old"], one["judge_new"])}
    for one in crossings:
        present |= {judge: one["judge_new"] for judge, now in present.items() if now == one["judge_old"]}
    return present


def _paths(crossings: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """By judge, the fewest of a dimension's bridges to the judge whose series has its nights now; of as many, the latest."""
    present, paths = _present(crossings), dict[str, list[dict[str, Any]]]()
    for end in sorted(set(present.values())):
        reached: dict[str, list[dict[str, Any]]] = {end: []}
        ahead = [end]
        for judge in ahead:
            for one in reversed(crossings):
                if one["judge_new"] == judge and one["judge_old"] not in reached:
                    reached[one["judge_old"]] = [one, *reached[judge]]
                    ahead.append(one["judge_old"])
        paths |= {judge: path for judge, path in reached.items() if present[judge] == end}
    return paths


def _crossed(nights: pl.DataFrame, step: pl.DataFrame) -> pl.DataFrame:
    """The nights with those that cross one of these bridges, each the next of its judge's path, on the further side."""
    on = [*OF, "origin", "n_crossed"]
    moved = nights.join(step, on=on, how="inner").with_columns(
        judge_model="judge_new",
        n_crossed=pl.col("n_crossed") + 1,
        **_carried("estimate", "se", "bridge_se"),
        **_carried("anchor_estimate", "anchor_se", "anchor_bridge_se"),
    )
    return pl.concat([nights.join(step, on=on, how="anti"), moved.select(nights.columns)])


def _carried(value: str, se: str, bridge_se: str) -> dict[str, pl.Expr]:
    off = pl.col(value) - pl.col("centre_old")
    own = pl.col("offset_se") ** 2 + off**2 * pl.col("slope_se") ** 2 + 2 * off * pl.col("offset_slope_cov")
    error = (own.clip(lower_bound=0) + (pl.col("slope") * pl.col(bridge_se)) ** 2).sqrt()
    return {
        value: pl.col(value) + pl.col("offset") + (pl.col("slope") - 1) * off,
        se: ((pl.col("slope") * pl.col(se)) ** 2 + own.clip(lower_bound=0)).sqrt(),
        bridge_se: pl.when(pl.col(value).is_null()).then(0.0).otherwise(error),
    }


def _fitted(common: pl.DataFrame, *, has_slope: bool) -> Row | ReliabilityReason:
    """The bridge new = old + offset + (slope - 1)(old - centre_old), as columns of BRIDGES; or why there is none.

    Fit on all prompts, and its error by leaving out one prompt at a time, category by category (the categories are fixed).
    """
    per_prompt, strata = _prompt_sums(common)
    n_prompts = np.bincount(strata)
    if n_prompts.min() < 2 or len(strata) < MIN_PROMPTS:
        return ReliabilityReason.TOO_FEW_PROMPTS
    totals = np.stack([per_prompt[strata == stratum].sum(axis=0) for stratum in range(len(n_prompts))])
    whole = _line(totals[None], has_slope=has_slope)[0]
    left_out = np.repeat(totals[None], len(strata), axis=0)
    left_out[np.arange(len(strata)), strata] -= per_prompt
    centre = whole[0]
    figures = np.column_stack(_at(_line(left_out, has_slope=has_slope), centre))
    if not np.isfinite(figures).all() or not np.isfinite(whole).all() or whole[2] <= 0:
        return ReliabilityReason.NO_VARIATION
    covariance = np.zeros((2, 2))
    for stratum, n in enumerate(n_prompts):
        off = figures[strata == stratum] - figures[strata == stratum].mean(axis=0)
        covariance += (n - 1) / n * (off.T @ off)
    offset_se, slope_se = np.sqrt(np.diag(covariance)).tolist()
    return {
        "centre_old": float(centre), "offset": float(whole[1]), "offset_se": offset_se, "slope": float(whole[2]),
        "slope_se": slope_se, "offset_slope_cov": float(covariance[0, 1]), "status": CellStatus.OK.value,
    }  # fmt: skip


def _prompt_sums(common: pl.DataFrame) -> tuple[Floats, Counts]:
    """Per prompt: n, sums of old, new, their squares and product, n times the shift; and each prompt's category."""
    old, new = common["score"].to_numpy(), common["score_new"].to_numpy()
    shift = float(old.mean())  # sums of squares of small numbers keep their digits
    old, new = old - shift, new - shift
    prompt = common.select(pl.struct("category", "prompt_id").rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    category = common.select(pl.col("category").rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    columns = [np.ones_like(old), old, new, old**2, new**2, old * new]
    sums = [np.bincount(prompt, weights=column) for column in columns]
    strata = np.zeros(len(sums[0]), dtype=np.int64)
    strata[prompt] = category
    return np.column_stack([*sums, sums[0] * shift]), strata


def _line(totals: Floats, *, has_slope: bool) -> Floats:
    """(centre_old, offset, slope) of each fit, shape (fits, 3), from sums of shape (fits, categories, 7).

    Centre and offset are means over categories. The slope is the ratio of the pooled standard deviations within categories
    (the geometric-mean line, or linear equating), 0 where the two judges do not go together.
    """
    n, old, new, old2, new2, product, shifts = np.moveaxis(totals, -1, 0)
    mean_old, mean_new = old / n, new / n
    centre = (mean_old + shifts / n).mean(axis=-1)
    offset = (mean_new - mean_old).mean(axis=-1)
    if not has_slope:
        return np.column_stack([centre, offset, np.ones_like(offset)])
    sums = old2.sum(axis=-1), new2.sum(axis=-1)
    spread_old = without_rounding(sums[0] - (n * mean_old**2).sum(axis=-1), sums[0])
    spread_new = without_rounding(sums[1] - (n * mean_new**2).sum(axis=-1), sums[1])
    together = without_rounding((product - n * mean_old * mean_new).sum(axis=-1), np.sqrt(sums[0] * sums[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(together > 0, np.sqrt(spread_new / spread_old), 0.0)
    return np.column_stack([centre, offset, slope])


def _at(fits: Floats, centre: float) -> tuple[Floats, Floats]:
    """Offsets of the fits at one common centre, and their slopes."""
    return fits[:, 1] + (fits[:, 2] - 1) * (centre - fits[:, 0]), fits[:, 2]
