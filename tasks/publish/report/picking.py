"""Which samples the gallery shows: worst, best, most disputed and without a score, picked in Polars from the stored scores.

A candidate is one sample under one rubric and judge. Its `level` is its place on the scale: by the rubric's overall_score, or
where it has none by the mean of its dimensions; over the judge's repeats. Reading what the picked ones hold is gallery.py.
"""

from collections.abc import Mapping
from enum import StrEnum

import polars as pl

from schemas.statuses import ScoreStatus
from schemas.tables import JUDGEMENTS, SCORES
from tasks.publish.leaderboard import HEADLINE
from tasks.store import Lake


class Shelf(StrEnum):
    """Why a sample is in the gallery."""

    WORST = "worst"  # lowest level of its checkpoint under this rubric and judge
    BEST = "best"  # highest
    DISPUTED = "disputed"  # judges, or one judge's repeats, furthest apart; or a score a rule forbids
    NO_SCORE = "no_score"  # a judgement without a score that counts


PER_SHELF = 12
"""At most so many of one shelf, rubric, judge, model and checkpoint."""

_UNITS = 2**40
"""Of the whole scale: levels are whole numbers, because sums of fractions depend on the order in which threads bring them."""

_GROUP = ["rubric_id", "judge_model", "model", "checkpoint"]
_CARD = ["rubric_id", "sample_id"]


def picked(lake: Lake, ids: Mapping[str, str], cells: pl.DataFrame, n_cards: int) -> pl.DataFrame:
    """At most `n_cards` rows rubric_id, sample_id, rank, shelves (list): each group's first of each shelf before any second one.

    `cells` is benchmark_long, for the scales. Ties go by sample id, so the same lake gives the same picks.
    """
    candidates = _candidates(lake, ids, cells)
    shelves = [
        candidates.filter(pl.col("level").is_not_null()).with_columns(shelf=pl.lit(Shelf.WORST.value), badness=pl.col("level")),
        candidates.filter(pl.col("level").is_not_null()).with_columns(shelf=pl.lit(Shelf.BEST.value), badness=-pl.col("level")),
        candidates.filter(pl.col("dispute") > 0).with_columns(shelf=pl.lit(Shelf.DISPUTED.value), badness=-pl.col("dispute")),
        candidates.filter("has_no_score").with_columns(shelf=pl.lit(Shelf.NO_SCORE.value), badness=pl.lit(0, pl.Int64)),
    ]
    ranked = pl.concat(shelves).sort(*_GROUP, "shelf", "badness", "sample_id")
    ranked = ranked.with_columns(rank=pl.int_range(pl.len()).over(*_GROUP, "shelf")).filter(pl.col("rank") < PER_SHELF)
    cards = ranked.group_by(_CARD).agg(pl.col("rank").min(), shelves=pl.col("shelf").unique().sort())
    return cards.sort("rank", *_CARD).head(n_cards)


def judged_samples(lake: Lake, ids: Mapping[str, str]) -> pl.LazyFrame:
    """The plan's judgements, anchors left out: they watch the judge."""
    return lake.scan(JUDGEMENTS, ids["plan_id"]).filter(pl.col("occasion") == "")


def _candidates(lake: Lake, ids: Mapping[str, str], cells: pl.DataFrame) -> pl.DataFrame:
    asked = judged_samples(lake, ids).select(*_GROUP, "sample_id", "repeat", "request_key")
    scored = lake.scan(SCORES, ids["reading_id"]).select("request_key", "dimension", "score", score_status="status")
    scales = cells.select("rubric_id", "dimension", "scale_low", "scale_high").unique(["rubric_id", "dimension"], keep="first")
    headlined = cells.filter(dimension=HEADLINE)["rubric_id"].unique()
    rows = asked.join(scored, on="request_key", how="left").join(scales.lazy(), on=["rubric_id", "dimension"], how="left")
    is_scored = pl.col("score_status").eq_missing(ScoreStatus.SCORED.value)
    is_leading = (pl.col("dimension") == HEADLINE) | ~pl.col("rubric_id").is_in(headlined.implode())
    share = (pl.col("score") - pl.col("scale_low")) / (pl.col("scale_high") - pl.col("scale_low"))
    units = (share * _UNITS).round().cast(pl.Int64)
    per_ask = rows.group_by(*_GROUP, "sample_id", "repeat").agg(
        level=_mean(units.filter(is_scored & is_leading)),
        has_no_score=(~is_scored).any(),
        is_forbidden=pl.col("score_status").eq_missing(ScoreStatus.RULE_VIOLATION.value).any(),
    )
    spread = (pl.col("level").max() - pl.col("level").min()).over(_CARD)
    forbidden = pl.col("is_forbidden").any().over(_CARD)
    per_ask = per_ask.with_columns(dispute=pl.when(forbidden).then(_UNITS).otherwise(spread).fill_null(0))
    found = per_ask.group_by(*_GROUP, "sample_id").agg(
        _mean(pl.col("level")), pl.col("dispute").first(), pl.col("has_no_score").any()
    )
    return found.collect()


def _mean(units: pl.Expr) -> pl.Expr:
    """Of whole numbers, as a whole number; null where there are none."""
    return pl.when(units.count() > 0).then(units.sum() // units.count())
