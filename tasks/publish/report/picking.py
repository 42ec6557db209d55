"""Which samples the gallery shows: worst, best, most disputed and without a score, picked in Polars from the stored scores.

A shelf of the worst or the best holds at most half of its group: who stands in the middle, or is tied between both ends, has a
card and is on neither.

A candidate is one sample under one rubric and judge. Its `level` is its place on the scale: by the rubric's overall_score, or
where it has none by the mean of its dimensions; over the judge's repeats. Reading what the picked ones hold is gallery.py.

The tables are read as streams, and names become numbers: of most judgements no text is in memory.
"""

from collections.abc import Iterator
from enum import StrEnum

import numpy as np
import polars as pl

from schemas.identities import RunIds
from schemas.metrics import HEADLINE
from schemas.statuses.rows import NO_FAILURES, JudgementStatus, ScoreStatus
from schemas.tables.stored import JUDGEMENTS, SCORES
from tasks.lake.reading import Lake
from tasks.lake.request_rows import HASHES, Keys, number_of


class Shelf(StrEnum):
    """Why a sample is in the gallery."""

    WORST = "worst"  # lowest level of its checkpoint under this rubric and judge
    BEST = "best"  # highest
    DISPUTED = "disputed"  # judges, or one judge's repeats, furthest apart; or a score a rule forbids
    NO_SCORE = "no_score"  # a judgement without a score that counts


_ENDS = (Shelf.WORST, Shelf.BEST)

PER_SHELF = 12
"""At most so many of one shelf, rubric, judge, model and checkpoint."""

_UNITS = 2**40
"""Of the whole scale: levels are whole numbers, because sums of fractions depend on the order in which threads bring them."""

_GROUP = ["rubric_id", "judge_model", "model", "checkpoint"]
_CARD = ["rubric_id", "sample_id"]
_SAMPLE = ["rubric_id", "sample"]
_IS_OF_ONE = (pl.col("occasion") == "") & pl.col("second_sample_id").is_null()
IS_COUNTED = pl.col("status") != JudgementStatus.DUPLICATE.value
"""An older release planned duplicates as none: they are no part of its figures."""


def picked(lake: Lake, ids: RunIds, cells: pl.DataFrame, n_cards: int) -> pl.DataFrame:
    """At most `n_cards` rows, each group's first of each shelf before any second one.

    Their columns: rubric_id, sample_id, rank, shelves (list), and places (list): how far in front the card stands on each.
    `cells` is benchmark_long, for the scales. Ties go by sample id, so the same lake gives the same picks.
    """
    candidates = _candidates(lake, ids, cells)
    level, dispute = pl.col("level"), pl.col("dispute")
    shelves = {
        Shelf.WORST: (level.is_not_null(), level),
        Shelf.BEST: (level.is_not_null(), -level),
        Shelf.DISPUTED: (dispute > 0, -dispute),
        Shelf.NO_SCORE: (pl.col("has_no_score"), pl.lit(0, pl.Int64)),
    }
    foremost = [
        _foremost(candidates.lazy().filter(is_one), badness, is_an_end=shelf in _ENDS).with_columns(shelf=pl.lit(shelf.value))
        for shelf, (is_one, badness) in shelves.items()
    ]
    ranked = _named(lake, ids, pl.concat(foremost)).sort("badness", "sample_id")
    ranked = ranked.with_columns(rank=pl.int_range(pl.len()).over(*_GROUP, "shelf")).filter(pl.col("rank") < PER_SHELF)
    on = ranked.filter(pl.col("rank") < pl.col("n_at_most")).group_by(*_CARD, "shelf").agg(place=pl.col("rank").min())
    on = on.sort("shelf").group_by(_CARD, maintain_order=True).agg(shelves="shelf", places="place")
    cards = ranked.group_by(_CARD).agg(pl.col("rank").min()).join(on, on=_CARD, how="left")
    cards = cards.with_columns(pl.col("shelves", "places").fill_null([]))
    return cards.sort("rank", *_CARD).head(n_cards)


def judged_samples(lake: Lake, ids: RunIds) -> pl.LazyFrame:
    """The plan's judgements of single samples, anchors left out: they watch the judge."""
    return lake.scan(JUDGEMENTS, ids.plan_id).filter(_IS_OF_ONE)


def _foremost(shelf: pl.LazyFrame, badness: pl.Expr, *, is_an_end: bool) -> pl.DataFrame:
    """Those that may be among the first PER_SHELF of their group, and how many of its first the shelf takes: `n_at_most`.

    Most ties are broken here, by the samples' numbers: on a scale of five a fifth of all have the lowest level.
    """
    half = pl.min_horizontal(badness.count() // 2, PER_SHELF).cast(pl.Int64) if is_an_end else pl.lit(PER_SHELF, pl.Int64)
    far = badness.top_k(half).min() if is_an_end else pl.lit(None, pl.Int64)  # where the other end begins
    lone = pl.when(badness.min() < badness.max()).then(badness.min())
    ends = shelf.group_by(_GROUP).agg(end=badness.bottom_k(PER_SHELF).max(), n_at_most=half, far=far, lone=lone)
    found = shelf.select(*_GROUP, "row", "sample", badness=badness).join(ends, on=_GROUP, nulls_equal=True)
    near = found.filter(pl.col("badness") <= pl.col("end")).collect().sort("badness", "sample")
    last = near.group_by(_GROUP).agg(last=pl.col("sample").slice(PER_SHELF - 1, 1).first())
    is_first = (pl.col("badness") < pl.col("end")) | (pl.col("sample") <= pl.col("last")).fill_null(value=True)
    is_apart = (pl.col("badness") < pl.col("far")) | (pl.col("badness") == pl.col("lone")) if is_an_end else pl.lit(value=True)
    n_at_most = pl.when(is_apart).then("n_at_most").otherwise(0)
    return near.join(last, on=_GROUP, nulls_equal=True).filter(is_first).select(*_GROUP, "row", "badness", n_at_most=n_at_most)


def _named(lake: Lake, ids: RunIds, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the sample_id that their judgement has."""
    wanted = rows.lazy().select("row").unique()
    numbered = lake.scan(JUDGEMENTS, ids.plan_id).select("sample_id").with_row_index("row")
    names = numbered.join(wanted, on="row", how="semi").collect(engine="streaming")
    return rows.join(names, on="row").with_columns(pl.col("rubric_id").cast(pl.String))


def _candidates(lake: Lake, ids: RunIds, cells: pl.DataFrame) -> pl.DataFrame:
    """A row for each group and sample: its number, level, dispute, has_no_score, and `row`, that of one of its judgements.

    A sample that is an earlier one again is none: one card shows both.
    """
    is_first = pl.col("duplicate_of_sample_id").is_null()
    numbered = lake.scan(JUDGEMENTS, ids.plan_id).with_row_index("row").filter(_IS_OF_ONE, IS_COUNTED, is_first)
    few = pl.col(_GROUP).cast(pl.Categorical)
    sample, repeat = number_of("sample_id"), pl.col("repeat").cast(pl.Int32)
    asked = numbered.select("row", few, sample=sample, repeat=repeat, **HASHES).collect(engine="streaming")
    per_ask = asked.drop(*HASHES).with_columns(_found(Keys.of(asked, np.arange(asked.height, dtype=np.int32)), lake, ids, cells))
    has_several = asked["repeat"].n_unique() > 1 or asked["judge_model"].n_unique() > 1
    spread = (pl.col("level").max() - pl.col("level").min()).over(_SAMPLE) if has_several else pl.lit(0, pl.Int64)
    forbidden = pl.col("is_forbidden").any().over(_SAMPLE) if has_several else pl.col("is_forbidden")
    per_ask = per_ask.with_columns(dispute=pl.when(forbidden).then(_UNITS).otherwise(spread).fill_null(0))
    if not has_several:
        return per_ask
    return per_ask.group_by(*_GROUP, "sample").agg(
        _mean(pl.col("level")), pl.col("dispute").first(), pl.col("has_no_score").any(), pl.col("row").first()
    )


def _found(asked: Keys, lake: Lake, ids: RunIds, cells: pl.DataFrame) -> pl.DataFrame:
    """level, has_no_score and is_forbidden of each request in `asked`, by its row."""
    n = len(asked.row)
    level, has_level, has_no_score, is_forbidden = np.zeros(n, np.int64), np.zeros(n, bool), np.ones(n, bool), np.zeros(n, bool)
    for requests in _requests(lake, ids, cells):
        place, row = asked.find(*(requests[name].to_numpy() for name in HASHES))
        level[row] = requests["level"].fill_null(0).to_numpy()[place]
        has_level[row] = requests["level"].is_not_null().to_numpy()[place]
        has_no_score[row] = requests["has_no_score"].to_numpy()[place]
        is_forbidden[row] = requests["is_forbidden"].to_numpy()[place]
    columns = {"level": level, "has_level": has_level, "has_no_score": has_no_score, "is_forbidden": is_forbidden}
    found = pl.DataFrame(columns).with_columns(level=pl.when("has_level").then("level"))
    return found.drop("has_level")


def _requests(lake: Lake, ids: RunIds, cells: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """What each request's scores say, some parts of them at a time: HASHES, level, has_no_score, is_forbidden."""
    scales = cells.select("rubric_id", "dimension", "scale_low", "scale_high").unique(["rubric_id", "dimension"], keep="first")
    headlined = cells.filter(dimension=HEADLINE)["rubric_id"].unique()
    is_scored = pl.col("status").eq_missing(ScoreStatus.SCORED.value)
    is_leading = (pl.col("dimension") == HEADLINE) | ~pl.col("rubric_id").is_in(headlined.implode())
    share = (pl.col("score") - pl.col("scale_low")) / (pl.col("scale_high") - pl.col("scale_low"))
    units = pl.when(is_scored & is_leading).then((share * _UNITS).round().cast(pl.Int64))
    is_forbidden = pl.col("status").eq_missing(ScoreStatus.RULE_VIOLATION.value)
    for scores in lake.scans(SCORES, ids.reading_id):
        scored = scores.join(scales.lazy(), on=["rubric_id", "dimension"], how="left")
        rows = scored.filter(~pl.col("status").is_in([word.value for word in NO_FAILURES])).select(
            **HASHES, units=units, is_scored=is_scored, is_forbidden=is_forbidden
        )
        found = rows.group_by(*HASHES).agg(
            level=_mean(pl.col("units")), has_no_score=(~pl.col("is_scored")).any(), is_forbidden=pl.col("is_forbidden").any()
        )
        yield found.collect(engine="streaming")


def _mean(units: pl.Expr) -> pl.Expr:
    """Of whole numbers, as a whole number; null where there are none."""
    return pl.when(units.count() > 0).then(units.sum() // units.count())
