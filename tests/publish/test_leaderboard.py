"""What the leaderboard shows, in which order, and how a missing number reads."""

from datetime import date

import polars as pl
import pytest

from schemas.metrics import TOTALS
from schemas.tables.published import BENCHMARK_LONG, FAILURES
from tasks.publish.folders import PublicationName
from tasks.publish.latex import leaderboard_tex
from tasks.publish.leaderboard import format_estimate, leaderboard, leaderboard_page, leaderboard_rows
from tasks.publish.standings.placed_cells import with_failures
from tasks.publish.standings.wording import failures_of
from tests.support.small_lake import filled_row

NAME = PublicationName("nightly", "p" * 64, date(2026, 11, 3))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((7.4249, 6.905, 7.9), "7.42 [6.91, 7.90]"), ((7.0, None, None), "7.00"), ((None, None, None), "–"),
        ((-0.001, None, None), "0.00"),
        ((10.0, 9.996, 10.0), "10.00 [10.00, 10.00]"),
    ],
)  # fmt: skip
def test_format_estimate(numbers, text):
    assert format_estimate(*numbers) == text


def test_a_rubric_with_an_overall_score_shows_that_alone(small_cells):
    assert [row.dimension for row in leaderboard_rows(small_cells)] == ["overall_score"]
    every = leaderboard_rows(small_cells, is_headline_only=False)
    assert {row.dimension for row in every} == {"overall_score", "colors_accuracy", "counting_accuracy"}
    without = small_cells.filter(pl.col("dimension") != "overall_score")
    assert {row.dimension for row in leaderboard_rows(without)} == {"colors_accuracy", "counting_accuracy"}
    assert leaderboard_rows(without)[0].score == "– (not_in_all_categories)"


def test_best_first_and_missing_last(small_cells):
    base = small_cells.filter(pl.col("dimension") == "overall_score")
    better = base.with_columns(model=pl.lit("better"), estimate=pl.col("estimate") + 1)
    blocked = base.with_columns(
        model=pl.lit("a"), estimate=None, ci_low=None, ci_high=None, status=pl.lit("blocked"), reason=pl.lit("refusal")
    )
    rows = leaderboard_rows(pl.concat([blocked.cast(base.schema), base, better]))
    assert [row.model for row in rows] == ["better", "lab/north", "a"]
    assert rows[2].score == "– (blocked: refusal)"
    assert rows[1].why == "2 of 9 without a score (1 broken_image, 1 refusal), with them 5.10 to 7.10"
    assert rows[2].why.startswith("blocked: no judgement of one category has a score: 2 of 9 without")
    assert (rows[1].n_judgements, rows[1].n_failed, rows[1].n_images) == (9, 2, 6)


def test_a_category_can_be_shown(small_cells):
    (row,) = leaderboard_rows(small_cells, category="colors")
    assert row.score.startswith("6.00 [")


def test_the_frame_holds_the_rows(small_cells):
    frame = leaderboard(leaderboard_rows(small_cells))
    assert frame.row(0, named=True)["estimate"] == leaderboard_rows(small_cells)[0].estimate
    assert leaderboard([]).columns == frame.columns


def test_the_page_is_escaped(small_cells):
    hostile = small_cells.with_columns(model=pl.lit("<img src=x onerror=alert(1)>|`x`\n# owned"))
    page = leaderboard_page(hostile, NAME)
    assert "<img" not in page.replace("\\<img", "")
    assert page.count("\n# ") == 0
    row, reason = [line for line in page.splitlines() if "onerror" in line]
    assert row.replace("\\|", "").count("|") == 10
    assert reason.startswith("- \\<img")


def test_the_page_says_what_it_shows(small_cells):
    page = leaderboard_page(small_cells, NAME)
    assert page.startswith("# nightly, 2026-11-03\n")
    assert "| – | lab/north | 1\\|a | 6.50 \\[" in page
    assert "77.8 %" in page
    assert "\nMeans over categories, all with the same weight; the interval" in page
    assert "\nMeans; the interval" in leaderboard_page(small_cells.filter(pl.col("category").is_in(TOTALS)), NAME)


def test_a_coverage_that_lacks_something_is_not_whole(small_cells):
    nearly = small_cells.with_columns(coverage=pl.lit(2999 / 3000))
    assert "| 99.97 % |" in leaderboard_page(nearly, NAME)
    assert r"99.97\,\%" in leaderboard_tex(nearly, NAME)


def test_failures_stand_beside_every_figure_of_an_address_also_those_of_old_publications():
    """A publication from before the table `failures` has them as JSON text in the cell."""
    ids = {"mean": "a" * 12, "share_at_least_7": "b" * 12}
    address = {
        "rubric_id": "r",
        "judge_model": "j",
        "model": "m",
        "checkpoint": "c",
        "dimension": "score",
        "category": "__macro__",
    }
    cells = BENCHMARK_LONG.frame(filled_row(BENCHMARK_LONG, metric=name, cell_id=id_, **address) for name, id_ in ids.items())
    counted = {"empty": 1, "refusal": 3, "malformed": 1}
    rows = [filled_row(FAILURES, cell_id=ids["mean"], reason=word, n_failed=n, **address) for word, n in counted.items()]
    told = [("refusal", 3), ("empty", 1), ("malformed", 1)]
    new = with_failures({BENCHMARK_LONG: cells, FAILURES: FAILURES.frame(rows)})
    assert [failures_of(row) for row in new.to_dicts()] == [told, told]
    old = cells.with_columns(failures_json=pl.Series(['{"empty":1,"malformed":1,"refusal":3}', "{}"]))
    assert [failures_of(row) for row in with_failures({BENCHMARK_LONG: old}).to_dicts()] == [told, []]
    assert [failures_of(row) for row in with_failures({BENCHMARK_LONG: cells}).to_dicts()] == [[], []]
