"""A night on which some anchors have no score: its mean is moved by what the others say, and by nothing else."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.aggregate.drift.anchors import SCORED, anchor_cells, anchor_scores, with_the_missing
from tasks.aggregate.drift.drift import drift
from tasks.aggregate.drift.series import night_series
from tasks.aggregate.tables import Settings, cells

pytestmark = pytest.mark.slow

FIRST = date(2026, 1, 1)
WHOLE = {"text": (2.0, 4.0, 9.0), "colour": tuple(3.0 + n / 4 for n in range(12))}
MEAN = (5.0 + 4.375) / 2


def refused(night, *anchors):
    return {(night, anchor): "refusal" for anchor in anchors}


@pytest.fixture(scope="module")
def charted(make_rubric, make_frames):
    """(night, anchor) -> what became of it, and by night what the judge's scores moved by -> the nights' drift."""
    asked = make_rubric({"text": ("q",), "colour": ("q",)})

    def run(n_nights, became, moved=None, floor=0.5):
        own, frozen, scored = [], [], []
        for night in range(n_nights):
            day, wobble = FIRST + timedelta(night), (0.02, -0.01, 0.03, -0.03, 0.01, -0.02)[night % 6]
            by = wobble + (moved or {}).get(night, 0.0)
            rows = [
                {"model": "north", "checkpoint": f"c{night:02d}", "category": category, "prompt": f"{category} {n}",
                 "sample": f"{category} {n}", "scores": {"q": 4 + n / 4 + by}}
                for category in WHOLE for n in range(6)
            ] + [
                {"model": "frozen", "checkpoint": "old", "occasion": day.isoformat(), "category": category,
                 "prompt": f"anchor {category} {n}", "sample": f"anchor {category} {n}",
                 "scores": {"q": became.get((night, f"{category} {n}"), level + by)}}
                for category, levels in WHOLE.items() for n, level in enumerate(levels)
            ]  # fmt: skip
            judgements, scores = make_frames(rows, asked)
            named = Settings("nightly", "d" * 64, "e" * 64, day, floor)
            own.append(cells(judgements, scores, {"plain": asked}, named))
            frozen.append(anchor_cells(judgements, scores, {"plain": asked}, named))
            mine = anchor_scores(judgements, scores, {"plain": asked}, day)
            scored.append(mine.select(pl.lit("nightly").alias("benchmark"), pl.lit(day).alias("run_date"), *mine.columns))
        return drift(night_series(own, frozen, scored), n_baseline=8)

    return run


@pytest.mark.parametrize(
    ("became", "n_failed"),
    [
        ({}, 0),
        (refused(10, "text 2"), 1),
        (refused(10, "text 0", "text 1"), 2),
        (refused(10, "text 2", "colour 0", "colour 11"), 3),
        ({(10, "text 2"): ("not_applicable", "not_applicable", None, None, None)}, 0),
    ],
    ids=["all are scored", "the best is refused", "one of a category is left", "of both categories", "does not apply"],
)
def test_the_mean_of_the_anchors_does_not_move_with_which_are_missing(charted, became, n_failed):
    night = charted(11, became).row(10, named=True)
    assert (night["n_anchors_failed"], night["anchor_estimate"]) == (n_failed, pytest.approx(MEAN + 0.01, abs=1e-9))


def test_an_anchor_without_a_score_is_none_of_those_scored(make_rubric, make_frames):
    """Two nights are held against each other by what both scored: one without a score would leave no mean at all."""
    rows = [
        {
            "model": "frozen",
            "checkpoint": "old",
            "occasion": FIRST.isoformat(),
            "prompt": str(n),
            "sample": str(n),
            "scores": {"q": s},
        }
        for n, s in enumerate((3.0, "refusal", 5.0))
    ]
    asked = make_rubric({None: ("q",)})
    found = anchor_scores(*make_frames(rows, asked), {"plain": asked}, FIRST)
    assert [sorted(scores) for scores in found["scores"]] == [[3.0, 5.0]]
    assert found["anchors"].list.len().to_list() == [2]


def test_a_judge_that_moved_is_seen_in_the_anchors_that_are_left(charted):
    night = charted(11, refused(10, "text 2"), {10: -0.5}).row(10, named=True)
    assert night["anchor_estimate"] == pytest.approx(MEAN + 0.01 - 0.5, abs=1e-9)


def test_anchors_missing_for_nights_raise_no_alarm_and_a_harder_judge_does(charted):
    lacking = {at: why for night in range(9, 14) for at, why in refused(night, "text 1", "text 2").items()}
    quiet = charted(14, lacking)
    assert quiet["n_anchors_failed"].to_list() == [0] * 9 + [2] * 5
    assert set(quiet["verdict"][8:]) == {"quiet"}
    harder = charted(14, lacking, dict.fromkeys(range(10, 14), -0.5))
    assert harder.filter("is_alarm")["verdict"].unique().to_list() == ["judge"]


@pytest.mark.parametrize("n_refused", [1, 8, 9, 30])
def test_an_anchor_that_is_first_scored_late_is_no_change(charted, n_refused):
    """The hardest is refused at first, on a part of the baseline or on all of it: it is no part of what is held together."""
    late = {at: why for night in range(n_refused) for at, why in refused(night, "text 0").items()}
    found = charted(34, late)
    mean, wobbles = ((9 + 4) / 2 + 4.375) / 2, (0.02, -0.01, 0.03, -0.03, 0.01, -0.02)
    assert found["anchor_estimate"].to_list() == pytest.approx([mean + wobbles[night % 6] for night in range(34)], abs=1e-9)
    assert not found["is_alarm"].any()


def test_a_judge_that_grew_harder_is_told_where_an_anchor_came_late(charted):
    late = {at: why for night in range(6) for at, why in refused(night, "text 0").items()}
    found = charted(16, late, dict.fromkeys(range(12, 16), -0.5))
    assert found.filter("is_alarm")["verdict"].unique().to_list() == ["judge"]


def test_a_category_without_a_scored_anchor_has_no_mean(charted):
    night = charted(11, refused(10, "text 0", "text 1", "text 2")).row(10, named=True)
    assert (night["anchor_estimate"], night["n_anchors_failed"]) == (None, 3)


def test_a_night_without_a_mean_of_the_anchors_moves_no_other(charted):
    """The first, too: what it could score is not what the later ones are held against."""
    lost = refused(0, "colour 10", "colour 11") | refused(9, "colour 10", "colour 11")
    found = charted(12, lost | refused(11, "colour 11"), floor=0.9)
    assert found["n_anchors_failed"].to_list() == [2, *[0] * 8, 2, 0, 1]
    assert found["anchor_estimate"].is_null().to_list() == [night in (0, 9) for night in range(12)]
    assert found["anchor_set"].n_unique() == 1
    assert found["anchor_estimate"][11] == pytest.approx(MEAN - 0.02, abs=1e-9)


def test_a_night_that_scored_only_anchors_without_a_level_has_no_mean():
    """Those that the first night did not score: their mean is no mean of the others, and the next night has one again."""
    none = np.nan
    found = with_the_missing(*_series(np.array([[5, 5, none], [5, 5, none], [none, none, 9], [none, 5, 9]])))
    assert found["anchor_estimate"].to_list() == [5, 5, None, 5]


_NIGHTS = 9
gaps = st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=_NIGHTS, max_size=_NIGHTS)


def _series(values):
    """(frozen, scored) of nights × anchors of one category; NaN where an anchor has no score."""
    named = {"benchmark": "b", "rubric_id": "r", "rubric_version": "1", "judge_model": "j", "dimension": "q"}
    days = [FIRST + timedelta(n) for n in range(len(values))]
    frozen = pl.DataFrame([
        named | {"anchor_set": "a", "run_date": day, "category": "__macro__", "anchor_estimate": float(np.nanmean(row))}
        for day, row in zip(days, values, strict=True)
    ])  # fmt: skip
    scored = pl.DataFrame(
        [
            named | {"run_date": day, "category": "c", "anchors": np.flatnonzero(~np.isnan(row)).tolist(),
                     "scores": row[~np.isnan(row)].tolist()}
            for day, row in zip(days, values, strict=True)
        ],
        schema={"benchmark": pl.String(), "run_date": pl.Date()} | SCORED,
    )  # fmt: skip
    return frozen, scored


@given(
    gaps, st.lists(st.integers(0, 10), min_size=6, max_size=6), st.lists(st.integers(-3, 3), min_size=_NIGHTS, max_size=_NIGHTS)
)
def test_whatever_is_missing_nights_that_move_all_alike_are_found_exactly(is_missing, levels, moved):
    values = np.array(levels, float) + np.array(moved, float)[:, None]
    gone = np.array(is_missing)
    gone[:, 0] = False  # one anchor ties the nights together
    gone[0] = False
    found = with_the_missing(*_series(np.where(gone, np.nan, values)))["anchor_estimate"]
    assert found.to_list() == pytest.approx([np.mean(levels) + night for night in moved], abs=1e-6)


@given(gaps, st.integers(1, _NIGHTS - 1), st.integers(0, 2**32 - 1))
def test_no_night_looks_at_a_later_one_and_whole_ones_stay_to_the_last_digit(is_missing, cut, seed):
    values = np.random.default_rng(seed).uniform(0, 10, (_NIGHTS, 6))
    gone = np.array(is_missing)
    gone[:, 0] = False
    lacking = np.where(gone, np.nan, values)
    whole = with_the_missing(*_series(lacking))["anchor_estimate"]
    assert with_the_missing(*_series(lacking[:cut]))["anchor_estimate"].equals(whole.head(cut))
    frozen, scored = _series(values)
    assert with_the_missing(frozen, scored).equals(frozen)
