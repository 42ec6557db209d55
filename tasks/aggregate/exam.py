"""The table `exam`: how many planted faults a judge notices, by dimension, less what its noise alone would notice.

What is planted, and in what, is tasks/ingest/twins; which rows mark a dimension as blind is tasks/publish. Formulas and their
sources: docs/statistics.md.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from rubrics.faults import meant_for
from rubrics.model import Dimension, Rubric
from schemas.benchmark.exam import OCCASION, Exam, ExamReason, PlantedFault, Sight
from schemas.identities import address_id
from schemas.statuses.cells import CellReason
from schemas.statuses.rows import ScoreStatus
from schemas.tables.nights import EXAM
from schemas.tables.table import Row
from tasks.aggregate.comparisons.families import ALPHA
from tasks.aggregate.intervals import LEVEL, ClusteredMean, Interval, clustered_mean, interval
from tasks.aggregate.tables import Settings

CI_METHOD = "wilson-t clustered by prompt; of net after Newcombe (1998)"
STEP_SHARE = 0.1
"""A step of a dimension whose scores may be any decimal number, in widths of its scale: one point of 0 to 10."""

_EXACT = 1e-9  # of a step: scores are sums of decimals
_BY = ["rubric_id", "judge_model", "repeat"]


@dataclass(frozen=True, slots=True)
class Noticed:
    """Two shares over the same samples, by prompt; and how far they go together, from -1 to 1."""

    faulted: ClusteredMean
    harmless: ClusteredMean
    correlation: float


def exam_table(
    judgements: pl.LazyFrame, scores: pl.LazyFrame, twins: pl.DataFrame, rubrics: Mapping[str, Rubric], run: Settings, exam: Exam
) -> pl.DataFrame:
    """EXAM, sorted by its key. `twins` has twin_id and sample_id, whose twin it is; scores are of the run's reading."""
    held = _held(judgements, scores, twins)
    rows: list[Row] = []
    for (rubric_id, version, judge, dimension, fault), mine in held.sort("sample_id", "repeat").group_by(
        "rubric_id", "rubric_version", "judge_model", "dimension", "fault", maintain_order=True
    ):
        rubric = rubrics[str(rubric_id)]
        scale = next((one for one in rubric.dimensions if one.key == dimension), None)
        if scale is None or scale.is_lower_better:
            continue  # tables have a figure that turns it
        named: Row = {
            "rubric_id": rubric_id, "rubric_version": version, "judge_model": judge, "dimension": dimension, "fault": fault,
            "is_meant": meant_for(rubric.id, scale.key, PlantedFault(str(fault)), exam.meant), "floor": exam.floor,
        }  # fmt: skip
        exam_id = address_id(run.benchmark, *(named[name] for name in EXAM.key))
        rows.append(run.named | named | {"exam_id": exam_id} | figures_of(mine, scale))
    return EXAM.frame(_judged(rows)).sort(EXAM.key)


def _held(judgements: pl.LazyFrame, scores: pl.LazyFrame, twins: pl.DataFrame) -> pl.DataFrame:
    """A row for each faulted twin, repeat and dimension: untouched, harmless and faulted score, null where there is none."""
    linked = twins.lazy().select("twin_id", "sample_id")
    asked = judgements.filter(pl.col("request_key").is_not_null(), pl.col("second_sample_id").is_null())
    of_twins = asked.filter(occasion=OCCASION).join(linked, left_on="sample_id", right_on="twin_id")
    of_twins = of_twins.select(*_BY, "rubric_version", "request_key", sample_id="sample_id_right", fault="checkpoint")
    own = asked.filter(pl.col("occasion") == "").join(linked.select("sample_id").unique(), on="sample_id", how="semi")
    own = own.select(*_BY, "sample_id", "prompt_id", "request_key")
    both = of_twins.collect(), own.collect()
    keys = pl.concat([frame.select("request_key") for frame in both]).unique()
    is_whole = pl.col("item").is_null() | (pl.col("item") == "")
    said = scores.filter(is_whole).join(keys.lazy(), on="request_key", how="semi").select(
        "request_key", "dimension", score=pl.when(pl.col("status") == ScoreStatus.SCORED.value).then("score")
    ).collect()  # fmt: skip
    faulted = both[0].filter(pl.col("fault") != PlantedFault.HARMLESS.value).join(said, on="request_key").drop("request_key")
    harmless = both[0].filter(fault=PlantedFault.HARMLESS.value).join(said, on="request_key")
    untouched = both[1].join(said, on="request_key").select(*_BY, "sample_id", "prompt_id", "dimension", untouched="score")
    at = [*_BY, "sample_id", "dimension"]
    return (
        faulted.rename({"score": "faulted"})
        .join(harmless.select(*at, harmless="score"), on=at, how="left")
        .join(untouched, on=at)
    )


def figures_of(rows: pl.DataFrame, scale: Dimension) -> Row:
    """Counts, shares and drop of one fault in one dimension; rows have prompt_id and the untouched, harmless and faulted score.

    Beside the columns of EXAM, `estimates` are what `net` has its interval from.
    """
    step = step_of(scale)
    row: Row = {
        "step": step, "scale_low": scale.minimum, "scale_high": scale.maximum, "ci_level": LEVEL, "n_samples": 0, "n_prompts": 0
    }  # fmt: skip
    both = rows.filter(pl.col("untouched").is_not_null(), pl.col("harmless").is_not_null())
    row["n_lost"] = both.filter(pl.col("faulted").is_null()).height
    whole = both.filter(pl.col("faulted").is_not_null())
    has_room = pl.col("untouched") - scale.minimum >= step * (1 - _EXACT)
    kept = whole.filter(has_room)
    row["n_no_room"] = whole.height - kept.height
    if kept.is_empty():
        return row | {"reason": (ExamReason.NO_ROOM if whole.height else ExamReason.NO_TWINS).value}

    def is_notice(twin: str) -> pl.Expr:
        return (pl.col("untouched") - pl.col(twin) >= step * (1 - _EXACT)).cast(pl.Float64)

    kept = kept.with_columns(
        noticed=is_notice("faulted"), false_notices=is_notice("harmless"), drop=pl.col("harmless") - pl.col("faulted")
    )
    names = ("noticed", "false_notices", "drop")
    prompts = kept.group_by("prompt_id", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"), *(pl.col(name).sum() for name in names),
        *(((pl.col(name) - pl.col(name).mean()) ** 2).sum().alias(f"{name}_within") for name in names),
    )  # fmt: skip
    means = {name: clustered_mean(*(np.asarray(prompts[one]) for one in (name, "n", f"{name}_within"))) for name in names}
    noticed = Noticed(means["noticed"], means["false_notices"], _correlation(prompts, means))
    width = scale.maximum - scale.minimum
    return row | {
        "n_samples": kept.height, "n_prompts": prompts.height, "net": means["noticed"].mean - means["false_notices"].mean,
        "estimates": noticed, **_shares("noticed", means["noticed"], 0.0, 1.0),
        **_shares("false_notices", means["false_notices"], 0.0, 1.0), **_shares("drop", means["drop"], -width, width),
    }  # fmt: skip


def _shares(name: str, mean: ClusteredMean, low: float, high: float) -> Row:
    ends = interval(mean, low, high)
    row: Row = {name: mean.mean}
    return row | {f"{name}_low": ends.low, f"{name}_high": ends.high} if isinstance(ends, Interval) else row


def _correlation(prompts: pl.DataFrame, means: Mapping[str, ClusteredMean]) -> float:
    """Of the two shares' errors, from prompt to prompt."""
    n = np.asarray(prompts["n"])
    a, b = (np.asarray(prompts[name]) - means[name].mean * n for name in ("noticed", "false_notices"))
    product, first, second = float((a * b).sum()), float((a**2).sum()), float((b**2).sum())
    return max(-1.0, min(1.0, product / math.sqrt(first * second))) if first > _EXACT and second > _EXACT else 0.0


def net_interval(noticed: Noticed, level: float = LEVEL) -> Interval | CellReason:
    """The interval of the difference of two shares over the same samples, by squaring and adding their own intervals' halves.

    Newcombe (1998, method 10; as MOVER: Zou & Donner 2008), with Wilson's clustered intervals. Unlike d ± t·se it has a width
    where nothing is noticed, or everything.
    """
    ends = [interval(mean, 0.0, 1.0, level) for mean in (noticed.faulted, noticed.harmless)]
    if not isinstance(ends[0], Interval):
        return ends[0]
    if not isinstance(ends[1], Interval):
        return ends[1]
    p, q, difference = noticed.faulted.mean, noticed.harmless.mean, noticed.faulted.mean - noticed.harmless.mean
    below = _together(p - ends[0].low, ends[1].high - q, noticed.correlation)
    above = _together(ends[0].high - p, q - ends[1].low, noticed.correlation)
    return Interval(max(-1.0, difference - below), min(1.0, difference + above))


def _together(a: float, b: float, correlation: float) -> float:
    return math.sqrt(max(0.0, a**2 + b**2 - 2 * correlation * a * b))


def step_of(dimension: Dimension) -> float:
    """How far a score must fall to be a notice: the scale's step, the least distance of two answers, else STEP_SHARE of it."""
    numbers = sorted({number for _, number in dimension.answers})
    gaps = [after - before for before, after in pairwise(numbers)]
    return dimension.step or min(gaps, default=STEP_SHARE * (dimension.maximum - dimension.minimum))


def _judged(rows: list[Row]) -> Iterator[Row]:
    """The rows with the intervals of `net`, its correction within each family (Bonferroni), and the verdict against the floor."""
    for family in ("exam", "exam, other"):
        mine = [row for row in rows if (row["is_meant"] is False) == (family != "exam")]
        known = {id(row): found for row in mine if isinstance(found := row.get("estimates"), Noticed)}
        ends = {key: net_interval(noticed) for key, noticed in known.items()}
        n_family = sum(isinstance(one, Interval) for one in ends.values())
        for row in mine:
            found = _verdict(known[id(row)], ends[id(row)], n_family, row["floor"]) if id(row) in known else {}
            yield row | {"family": family, "n_family": n_family} | found


def _verdict(noticed: Noticed, ends: Interval | CellReason, n_family: int, floor: float) -> Row:
    adjusted = net_interval(noticed, 1 - ALPHA / max(1, n_family))
    if not isinstance(ends, Interval) or not isinstance(adjusted, Interval):
        return {"reason": ends.value if isinstance(ends, CellReason) else None}
    sight = Sight.BLIND if adjusted.high < floor else Sight.SEES if adjusted.low >= floor else Sight.CANNOT_TELL
    return {
        "net_low": ends.low, "net_high": ends.high, "net_low_adjusted": adjusted.low, "net_high_adjusted": adjusted.high,
        "ci_method": CI_METHOD, "verdict": sight.value,
    }  # fmt: skip
