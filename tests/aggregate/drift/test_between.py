"""Two nights held against each other by their anchors: which are, by how much they changed, whether that is sure."""

import polars as pl
import pytest

from tasks.aggregate.drift.anchors import SCORED
from tasks.aggregate.drift.between import moved


def night(*categories, **said):
    """A night's scores: of each category {anchor: score}."""
    common = {"rubric_id": "r", "rubric_version": "1", "judge_model": "eye", "dimension": "score"} | said
    rows = [
        common | {"category": f"c{n}", "anchors": list(scores), "scores": [float(score) for score in scores.values()]}
        for n, scores in enumerate(categories)
    ]
    return pl.DataFrame(rows, schema=SCORED)


def anchors(*scores):
    return dict(enumerate(scores))


STILL = anchors(1, 2, 3, 4, 5, 6, 7, 8)


@pytest.mark.parametrize(
    ("before", "after", "delta", "n", "is_sure"),
    [
        (night(STILL), night(STILL), 0.0, 8, False),
        (night(STILL), night(anchors(0, 1, 2, 3, 4, 5, 6, 7)), -1.0, 8, True),
        (night(anchors(*range(1, 8))), night(anchors(*range(7))), -1.0, 7, False),
        (night(STILL), night(anchors(0, 1, 2, 3, 5, 5, 6, 7)), -0.875, 8, True),
        (night(STILL), night(anchors(2, 1, 4, 3, 6, 5, 8, 7)), 0.0, 8, False),
        (night(STILL), night(anchors(1, 2, 3, 4, 5, 6, 7, 6)), -0.25, 8, False),
        (night(STILL), night({0: 0, 1: 1, 9: 9}), -1.0, 2, False),
        (night(anchors(1, 1), anchors(1, 1, 1, 1, 1, 1)), night(anchors(2, 2), anchors(1, 1, 1, 1, 1, 1)), 0.5, 8, False),
        (night(anchors(1), anchors(1, 1, 1)), night(anchors(2), anchors(1, 1, 1)), 0.25, 4, False),
        (night(anchors(0.1, 0.2, 0.3)), night(anchors(0.1 + 0.2 - 0.2, 0.2, 0.3)), 0.0, 3, False),
    ],
    ids=[
        "nothing", "all alike", "all alike, but too few", "nearly all", "to and fro", "one alone", "those of both nights",
        "categories weigh the same", "a category of one", "rounding",
    ],
)  # fmt: skip
def test_by_how_much(before, after, delta, n, is_sure):
    found = moved(before, after)["r", "eye", "score"]
    assert (found.delta, found.n_anchors, found.is_sure) == (pytest.approx(delta), n, is_sure)


@pytest.mark.parametrize(
    "after",
    [night({7: 1}), night({100: 1, 101: 2}), night(STILL, rubric_version="2"), night(STILL, judge_model="ear"), night()],
    ids=["one anchor", "none in common", "another version", "another judge", "none asked"],
)
def test_where_nothing_can_be_said(after):
    assert moved(night(STILL), after) == {}


def test_what_is_left_has_both_errors():
    found = moved(night(STILL), night(anchors(0, 1, 2, 3, 5, 5, 6, 7)))["r", "eye", "score"]
    left, alone = found.left_of(-1.0, 0.25, 40.0), found.change
    assert left.delta == pytest.approx(-0.125)
    assert (left.high - left.low) / 2 == pytest.approx(3.4995 * (0.25**2 + found.se**2) ** 0.5, rel=1e-4)  # t of 7 at 99 %
    assert alone.low < found.delta < alone.high < 0
    assert found.left_of(-1.0, None, None).low is None
