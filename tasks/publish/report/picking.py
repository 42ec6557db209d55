"""Which samples the gallery shows: worst, best, most disputed and without a score, picked in Polars from the stored scores.

A candidate is one sample under one rubric and judge. Its `level` is its place on the scale: by the rubric's overall_score, or
where it has none by the mean of its dimensions; over the judge's repeats. Reading what the picked ones hold is gallery.py.

The tables are read as streams, and names become numbers: of most judgements no text is in memory.
"""

from enum import StrEnum

import polars as pl

from schemas.identities import RunIds
from schemas.metrics import HEADLINE
from schemas.statuses import JudgementStatus, ScoreStatus
from schemas.tables import JUDGEMENTS, SCORES
from tasks.lake.reading import Lake


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
_SAMPLE = ["rubric_id", "sample"]
_IS_NO_DUPLICATE = pl.col("status") != JudgementStatus.DUPLICATE.value
_KEY, _NUMBER = pl.col("request_key").hash(1).alias("key"), pl.col("sample_id").hash(1).alias("sample")


def picked(lake: Lake, ids: RunIds, cells: pl.DataFrame, n_cards: int) -> pl.DataFrame:
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
    ranked = _named(lake, ids, pl.concat(_foremost(shelf) for shelf in shelves)).sort("badness", "sample_id")
    ranked = ranked.with_columns(rank=pl.int_range(pl.len()).over(*_GROUP, "shelf")).filter(pl.col("rank") < PER_SHELF)
    cards = ranked.group_by(_CARD).agg(pl.col("rank").min(), shelves=pl.col("shelf").unique().sort())
    return cards.sort("rank", *_CARD).head(n_cards)


def judged_samples(lake: Lake, ids: RunIds, *, has_duplicates: bool = False) -> pl.LazyFrame:
    """The plan's judgements, anchors left out: they watch the judge. Duplicates only where they are asked for."""
    found = lake.scan(JUDGEMENTS, ids.plan_id).filter(pl.col("occasion") == "")
    return found if has_duplicates else found.filter(_IS_NO_DUPLICATE)


def _foremost(shelf: pl.DataFrame) -> pl.DataFrame:
    """Those that may be among the first PER_SHELF of their group: whoever is no worse placed than its last one."""
    ends = shelf.group_by(_GROUP).agg(end=pl.col("badness").bottom_k(PER_SHELF).max())
    found = shelf.join(ends, on=_GROUP, nulls_equal=True).filter(pl.col("badness") <= pl.col("end"))
    return found.select(*_GROUP, "row", "shelf", "badness")


def _named(lake: Lake, ids: RunIds, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the sample_id that their judgement has."""
    wanted = rows.lazy().select("row").unique()
    numbered = lake.scan(JUDGEMENTS, ids.plan_id).select("sample_id").with_row_index("row")
    names = numbered.join(wanted, on="row", how="semi").collect(engine="streaming")
    return rows.join(names, on="row").with_columns(pl.col("rubric_id").cast(pl.String))


def _candidates(lake: Lake, ids: RunIds, cells: pl.DataFrame) -> pl.DataFrame:
    """A row for each group and sample: level, dispute, has_no_score, and `row`, the number of one of its judgements."""
    numbered = lake.scan(JUDGEMENTS, ids.plan_id).with_row_index("row").filter(pl.col("occasion") == "", _IS_NO_DUPLICATE)
    few = pl.col(_GROUP).cast(pl.Categorical)
    asked = numbered.select("row", few, _NUMBER, "repeat", _KEY).collect(engine="streaming")
    per_ask = asked.join(_requests(lake, ids, cells), on="key", how="left").drop("key")
    per_ask = per_ask.with_columns(pl.col("has_no_score").fill_null(pl.lit(value=True)))
    has_several = asked["repeat"].n_unique() > 1 or asked["judge_model"].n_unique() > 1
    spread = (pl.col("level").max() - pl.col("level").min()).over(_SAMPLE) if has_several else pl.lit(0, pl.Int64)
    forbidden = pl.col("is_forbidden").fill_null(pl.lit(value=False))
    forbidden = forbidden.any().over(_SAMPLE) if has_several else forbidden
    per_ask = per_ask.with_columns(dispute=pl.when(forbidden).then(_UNITS).otherwise(spread).fill_null(0))
    if not has_several:
        return per_ask
    return per_ask.group_by(*_GROUP, "sample").agg(
        _mean(pl.col("level")), pl.col("dispute").first(), pl.col("has_no_score").any(), pl.col("row").first()
    )


def _requests(lake: Lake, ids: RunIds, cells: pl.DataFrame) -> pl.DataFrame:
    """What each request's scores say: key, level, has_no_score, is_forbidden."""
    scales = cells.select("rubric_id", "dimension", "scale_low", "scale_high").unique(["rubric_id", "dimension"], keep="first")
    headlined = cells.filter(dimension=HEADLINE)["rubric_id"].unique()
    scored = lake.scan(SCORES, ids.reading_id).join(scales.lazy(), on=["rubric_id", "dimension"], how="left")
    is_scored = pl.col("status").eq_missing(ScoreStatus.SCORED.value)
    is_leading = (pl.col("dimension") == HEADLINE) | ~pl.col("rubric_id").is_in(headlined.implode())
    share = (pl.col("score") - pl.col("scale_low")) / (pl.col("scale_high") - pl.col("scale_low"))
    units = pl.when(is_scored & is_leading).then((share * _UNITS).round().cast(pl.Int64))
    is_forbidden = pl.col("status").eq_missing(ScoreStatus.RULE_VIOLATION.value)
    rows = scored.select(_KEY, units=units, is_scored=is_scored, is_forbidden=is_forbidden)
    found = rows.group_by("key").agg(
        level=_mean(pl.col("units")), has_no_score=(~pl.col("is_scored")).any(), is_forbidden=pl.col("is_forbidden").any()
    )
    return found.collect(engine="streaming")


def _mean(units: pl.Expr) -> pl.Expr:
    """Of whole numbers, as a whole number; null where there are none."""
    return pl.when(units.count() > 0).then(units.sum() // units.count())
