"""What does not apply, in a category, a checkpoint or a dimension: no number, and a row that counts it."""

import polars as pl
import pytest

from schemas.tables.published import BENCHMARK_LONG, COMPARISONS, FAILURES, STANDINGS
from tasks.publish.leaderboard import answers_of, leaderboard_rows
from tasks.publish.standings.placed_cells import placed

TABLES = (BENCHMARK_LONG, STANDINGS, COMPARISONS, FAILURES)
ASIDE = ("not_applicable", None, None, 0.0, 10.0)


def test_a_category_in_which_nothing_is_applicable_is_counted_and_the_macro_mean_says_so(make_rubric, aggregate, one):
    rows = [{"model": "full", "prompt": c + p, "sample": c + p, "category": c, "scores": {"q": 4}} for c in "xy" for p in "12"]
    rows += [
        {"model": "half", "prompt": c + p, "sample": c + p, "category": c, "scores": {"q": 4 if c == "x" else ASIDE}}
        for c in "xy" for p in "12"
    ]  # fmt: skip
    table = aggregate(rows, make_rubric({None: ("q",)}, report_by="category"))
    macro = one(table, model="half", category="__macro__")
    assert (macro["estimate"], macro["status"], macro["reason"]) == (None, "null", "not_applicable")
    totals = [one(table, model="half", category=category) for category in ("__macro__", "__micro__", "x")]
    assert [(row["n_judgements"], row["n_not_applicable"]) for row in totals] == [(2, 2), (2, 2), (2, 0)]
    assert one(table, model="full", category="__micro__")["n_not_applicable"] == 0
    y = one(table, model="half", category="y")
    assert (y["estimate"], y["status"], y["reason"], y["coverage"]) == (None, "null", "not_applicable", None)
    assert (y["n_judgements"], y["n_failed"], y["n_not_applicable"]) == (0, 0, 2)


@pytest.mark.parametrize(
    ("of_step", "whose"),
    [
        pytest.param({"1": 4, "2": ASIDE}, ", all of 2", id="one checkpoint"),
        pytest.param({"1": ASIDE, "2": 4, "3": ASIDE}, " (3 of 1, 3 of 3)", id="all but one"),
        pytest.param({"1": ASIDE, "2": ASIDE}, "", id="every checkpoint, and so the dimension"),
    ],
)
def test_a_checkpoint_to_which_a_dimension_never_applies_stands_there_without_a_number(of_step, whose, make_rubric, all_tables):
    rows = [
        {"checkpoint": step, "prompt": p, "sample": p, "scores": {"overall_score": score, "r": 3}}
        for step, score in of_step.items()
        for p in "abc"
    ]
    tables = all_tables(rows, make_rubric({None: ("overall_score", "r")}), min_paired_prompts=2, baseline="north/1")
    empty = [step for step, score in of_step.items() if score == ASIDE]
    for name in ("benchmark_long", "standings", "benchmark_wide"):
        assert set(tables[name].filter(dimension="overall_score")["checkpoint"]) == set(of_step)
    cells = tables["benchmark_long"].filter(pl.col("checkpoint").is_in(empty), dimension="overall_score")
    told = ("estimate", "bound_low", "coverage", "status", "reason", "n_judgements", "n_scored", "n_failed", "n_not_applicable")
    assert set(cells.select(told).rows()) == {(None, None, None, "null", "not_applicable", 0, 0, 0, 3)}
    standings = tables["standings"].filter(pl.col("checkpoint").is_in(empty), dimension="overall_score")
    assert set(standings.select("rank_low", "state", "reason").rows()) == {(None, "not_compared", "not_applicable")}
    assert standings["is_headline"].all()
    assert tables["comparisons"].filter(dimension="overall_score")["delta"].is_null().all()

    board = placed({table: tables[table.name] for table in TABLES})
    lines = {row.checkpoint: row for row in leaderboard_rows(board)}
    assert {row.dimension for row in lines.values()} == {"overall_score"}
    assert {(lines[step].score, lines[step].why) for step in empty} == {
        ("– (not_applicable)", "no number: the question applies to none of 3 judgements")
    }
    (sentences,) = answers_of(board).values()
    assert sentences[-1] == f"No score is missing; {3 * len(empty)} more are not applicable{whose}."
    assert sum("applies to none of 3 judgements" in one for one in sentences) == 1
