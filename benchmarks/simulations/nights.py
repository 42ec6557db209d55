"""Simulate series of nights and count alarms, finds, verdicts and dates (`python -m benchmarks.simulations.nights`).

Nights are independent and normal; other worlds: alarms.py. The standard deviation between nights is that of a macro
mean whose paired standard error between two checkpoints is 0.037 (553 prompts × 4 images on a scale 0-10): 0.037 / √2. Everything
goes through drift() itself.
Exit code 1 where a number of docs/nights.md does not hold.
"""

import argparse
import math
import sys
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from benchmarks.simulations.one_series import N_BASELINE, N_QUIET, WINDOW, feasible, quiet_windows, share_of
from flows.observability.alerting import drifts
from schemas.tables.nights import NIGHTS
from schemas.tables.table import conform
from tasks.aggregate.drift.drift import drift

NIGHT_SD = 0.037 / math.sqrt(2)
ANCHOR_SD = NIGHT_SD / 2  # of the anchors: frozen pictures, so the judge's own noise alone
HEADLINE = ("overall_score",)
ASPECTS = ("a", "b", "c", "d", "e")
FIRST = date(2026, 1, 1)


@dataclass(frozen=True)
class World:
    """Families (benchmarks) of models × dimensions; from night N_BASELINE + N_QUIET on, models and judge are shifted."""

    n_families: int
    n_models: int = 3
    dimensions: tuple[str, ...] = HEADLINE
    n_nights: int = N_BASELINE + N_QUIET + WINDOW
    model_shift: float = 0.0
    judge_shift: float = 0.0
    anchor_sd: float = ANCHOR_SD
    has_anchors: bool = True

    def nights(self, seed: int) -> pl.DataFrame:
        """The NIGHTS table. Each model and dimension has noise of its own: for the family the worst case."""
        rng = np.random.default_rng(seed)
        shape = (self.n_families, self.n_models, len(self.dimensions), self.n_nights)
        family, model, dimension, night = (index.ravel() for index in np.indices(shape))
        since = night >= N_BASELINE + N_QUIET
        estimate = 6 + model / 2 + NIGHT_SD * rng.standard_normal(shape).ravel() + since * (self.model_shift + self.judge_shift)
        anchors = self.anchor_sd * rng.standard_normal((self.n_families, len(self.dimensions), self.n_nights))
        anchor = 5 + anchors[family, dimension, night] + since * self.judge_shift
        frame = pl.DataFrame({
            "benchmark": pl.Series(family).cast(pl.String).str.zfill(6),
            "run_date": pl.Series([FIRST + timedelta(int(n)) for n in range(self.n_nights)]).gather(pl.Series(night)),
            "model": "model-" + pl.Series(model).cast(pl.String),
            "checkpoint": pl.Series(night).cast(pl.String),
            "dimension": pl.Series(list(self.dimensions)).gather(pl.Series(dimension)),
            "estimate": estimate,
            "anchor_estimate": anchor if self.has_anchors else np.full(len(anchor), np.nan),
        })  # fmt: skip
        same = {
            "rubric_id": "plain", "rubric_version": "1", "judge_model": "eye", "measured_by": "eye", "category": "__macro__",
            "n_judgements": 2212, "scale_width": 10.0, "se": 0.08, "bridge_se": 0.0, "anchor_set": "f" * 64, "anchor_se": 0.08,
            "anchor_bridge_se": 0.0, "reason": None, "n_anchors_failed": 0,
        }  # fmt: skip
        whole = frame.with_columns(*(pl.lit(value).alias(name) for name, value in same.items()))
        return pl.DataFrame(conform(whole.with_columns(pl.col("anchor_estimate").fill_nan(None)), NIGHTS))


def watched(table: pl.DataFrame) -> pl.DataFrame:
    """The nights behind the baseline, with `since` (nights since the shift began) and `is_out` of the model's own chart."""
    first = FIRST + timedelta(N_BASELINE + N_QUIET)
    return table.filter(pl.col("limit_low").is_not_null()).with_columns(
        since=(pl.col("run_date") - first).dt.total_days(),
        is_out=(pl.col("ewma") < pl.col("limit_low")) | (pl.col("ewma") > pl.col("limit_high")),
    )


SERIES = ["benchmark", "model", "dimension"]


def quiet(n_families: int, seed: int, dimensions: tuple[str, ...] = (*HEADLINE, *ASPECTS)) -> dict[str, tuple[float, float]]:
    """Share and its standard error: headline series' 30-night windows with a false alarm, and nights with any in the family."""
    found = watched(drift(World(n_families, dimensions=dimensions).nights(seed)))
    late = found.filter(pl.col("since") >= 0)
    windows = late.filter(pl.col("dimension").is_in(HEADLINE)).group_by(SERIES).agg(pl.col("is_out").any())
    nights = found.group_by("benchmark", "run_date").agg(pl.col("is_alarm").any())
    by_family = nights.group_by("benchmark").agg(pl.col("is_alarm").mean())["is_alarm"]
    by_window = windows.group_by("benchmark").agg(pl.col("is_out").mean())["is_out"]
    return {"windows": share_of(by_window), "nights": share_of(by_family)}


def finds(drop: float, within: int, n_families: int, seed: int) -> tuple[float, float]:
    """Share of drops found within so many nights by the model's own chart, and its standard error."""
    found = watched(drift(World(n_families, model_shift=-drop).nights(seed)))
    soon = found.filter(pl.col("since").is_between(0, within - 1))
    is_found = soon.group_by(SERIES).agg((pl.col("ewma") < pl.col("limit_low")).any())["ewma"]
    return share_of(is_found)


def alerts(found: pl.DataFrame) -> pl.DataFrame:
    """What the alerting module makes of each night of each family: benchmark, since, is_told, and which models it names."""
    rows = []
    for one in found.partition_by("benchmark"):
        for night in one.partition_by("run_date"):
            told = drifts(night.with_columns(changed_under=None), night["run_date"][0])
            models = sorted({row["model"] for alert in told for row in alert.payload["rows"]})
            rows.append({"benchmark": night["benchmark"][0], "since": night["since"][0], "is_told": bool(told), "models": models})
    return pl.DataFrame(
        rows, schema={"benchmark": pl.String, "since": pl.Int64, "is_told": pl.Boolean, "models": pl.List(pl.String)}
    )


def told_in_quiet(n_nights: int, seed: int, dimensions: tuple[str, ...] = (*HEADLINE, *ASPECTS)) -> tuple[float, float]:
    """Share of at least `n_nights` quiet nights behind the baseline on which an alert is sent, for any series of the family."""
    n_families = -(-n_nights // (N_QUIET + WINDOW))
    told = alerts(watched(drift(World(n_families, dimensions=dimensions).nights(seed))))
    return share_of(told.group_by("benchmark").agg(pl.col("is_told").mean())["is_told"])


def told_of_drops(drop: float, within: int, n_families: int, seed: int) -> tuple[float, float]:
    """Share of models whose drop an alert names within so many nights."""
    world = World(n_families, model_shift=-drop, n_nights=N_BASELINE + N_QUIET + within)
    told = alerts(watched(drift(world.nights(seed))).filter(pl.col("since") >= 0))
    named = told.explode("models").drop_nulls("models").select("benchmark", "models").n_unique()
    n_models = n_families * world.n_models
    return _binomial(named / n_models, n_models)


def first_verdicts(world: World, seed: int, n_nights: int = 10) -> dict[str, float]:
    """Of the first alarms within so many nights of the shift: the share of each verdict; and of series without any, 'none'."""
    found = watched(drift(world.nights(seed))).filter(pl.col("since").is_between(0, n_nights - 1))
    alarms = found.filter("is_alarm").sort("run_date").group_by(SERIES, maintain_order=True).agg(pl.col("verdict").first())
    n_series = found.select(pl.struct(SERIES).n_unique()).item()
    counts = dict(alarms["verdict"].value_counts().iter_rows())
    return {word: n / n_series for word, n in counts.items()} | {"none": 1 - alarms.height / n_series}


def dates(drop: float, n_families: int, seed: int) -> float:
    """Of the drops under alarm ten nights after they began: the share dated within two nights of the truth."""
    found = watched(drift(World(n_families, model_shift=-drop).nights(seed)))
    tenth = found.filter(pl.col("since") == 9, pl.col("is_out"))
    off = (tenth["changed_on"] - (FIRST + timedelta(N_BASELINE + N_QUIET))).dt.total_days().abs()
    return float((off <= 2).mean())


def _binomial(share: float, n: int) -> tuple[float, float]:
    return share, math.sqrt(max(share * (1 - share), 1 / n) / n)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--feasible", action="store_true", help="print what night noise makes the finds possible, and stop")
    arguments = parser.parse_args()
    if arguments.feasible:
        Console().print(feasible())
        return 0
    n, seed = arguments.families, arguments.seed
    table = Table(title=f"{n} families, night sd {NIGHT_SD:.4f}, baseline {N_BASELINE} nights", box=None, title_justify="left")
    for column in ("what", "found", "± 2 se", "asked"):
        table.add_column(column)
    n_missed = 0

    def row(what: str, share: float, error: float, *, at_most: float | None = None, at_least: float | None = None) -> None:
        nonlocal n_missed
        is_missed = (at_most is not None and share > at_most + 2 * error) or (
            at_least is not None and share < at_least - 2 * error
        )
        n_missed += is_missed
        asked = f"≤ {at_most:.1%}" if at_most is not None else f"≥ {at_least:.1%}" if at_least is not None else ""
        table.add_row(what, f"[red]{share:.2%}[/]" if is_missed else f"{share:.2%}", f"{2 * error:.2%}", asked)

    calm = quiet(max(100, n // 10), seed)
    row("quiet nights with an alarm, 18 series and 6 sets of anchors", *calm["nights"], at_most=0.01)
    few = quiet(n, seed + 1, HEADLINE)
    row("quiet nights with an alarm, 3 series and 1 set of anchors", *few["nights"], at_most=0.01)
    n_told = max(1000, n // 2)
    row(f"{n_told} quiet nights with an alert, 18 series and 6 sets of anchors", *told_in_quiet(n_told, seed + 7), at_most=0.01)
    row("drop of 0.07 told of within 5 nights", *told_of_drops(0.07, 5, max(100, n // 10), seed + 8), at_least=0.90)
    for n_baseline in (30, 60):
        row(f"quiet 30-night windows with an alarm, baseline {n_baseline}", *quiet_windows(n_baseline), at_most=0.06)
    row("drop of 0.05 found within 10 nights", *finds(0.05, 10, n, seed + 2), at_least=0.85)
    row("drop of 0.07 found within 5 nights", *finds(0.07, 5, n, seed + 3), at_least=0.90)
    for shift in (-0.07, -0.2):
        by_judge, by_model = (
            first_verdicts(world, seed + 4) for world in (World(n, judge_shift=shift), World(n, model_shift=shift))
        )
        row(f"judge shifts by {shift}: blamed on the judge", *_binomial(by_judge.get("judge", 0), n), at_least=0.95)
        row(f"judge shifts by {shift}: blamed on the model", *_binomial(by_judge.get("model", 0), n), at_most=0.01)
        row(f"model shifts by {shift}: blamed on the model", *_binomial(by_model.get("model", 0), n))
        row(f"model shifts by {shift}: no verdict yet", *_binomial(by_model.get("unknown", 0), n))
        row(f"model shifts by {shift}: blamed on the judge", *_binomial(by_model.get("judge", 0), n), at_most=0.05)
    for drop in (0.05, 0.07, 0.1):
        row(f"drop of {drop} dated within 2 nights, on the tenth", *_binomial(dates(drop, n, seed + 6), n))
    Console().print(table)
    return int(n_missed > 0)


if __name__ == "__main__":
    sys.exit(main())
