"""Under the coverage floor pairs say nothing: no rating, rank or liking for a place, as no win rate; counts stay."""

import polars as pl
import pytest

from schemas.statuses.cells import Total
from schemas.tables.published import POSITION_BIAS, PREFERENCE_RATINGS, PREFERENCES
from tasks.aggregate.preferences.adaptive import next_comparisons
from tasks.aggregate.preferences.evidence import Plan
from tests.aggregate.preferences.conftest import said, tables, the_row, verdicts

FULL, THIN = "a a a b b a a = b a ", "a a b a ? ? ? ? ? ? "
"""All of ten pairs judged; four of ten."""
CIRCLE = said("1", "2", FULL) + said("2", "3", FULL) + said("1", "3", FULL)


def ratings(rows, **how) -> dict[str, dict]:
    found = tables(rows, floor=0.8, **how)[PREFERENCE_RATINGS].filter(pl.col("judge_model") != "__pooled__")
    return {row["checkpoint"]: row for row in found.iter_rows(named=True)}


STATES = {
    "all under it": (said("1", "2", THIN) + said("2", "3", THIN) + said("1", "3", THIN), dict.fromkeys("123", "blocked")),
    "all over it": (CIRCLE, dict.fromkeys("123", "rated")),
    "one opponent under it": (said("1", "2", FULL) + said("2", "3", FULL) + said("1", "3", THIN), dict.fromkeys("123", "rated")),
    "one checkpoint's every pair": (CIRCLE + said("4", "1", THIN) + said("4", "2", THIN), {"4": "blocked"}),
    "the baseline, which met many such, stays": (
        CIRCLE + [row for name in "456789" for row in said(name, "1", THIN)], dict.fromkeys("456789", "blocked")
    ),
    "an island behind it": (CIRCLE + said("4", "1", THIN) + said("4", "5", FULL), {"4": "blocked", "5": "not_rated"}),
    "won all, and what it lost is under it": (CIRCLE + said("4", "1", "a a a") + said("4", "2", THIN), {"4": "blocked"}),
    "no verdict at all": (CIRCLE + said("4", "1", "? ? ?"), {"4": "not_rated"}),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "states"), STATES.values(), ids=STATES)
def test_a_rating_stands_only_on_pairs_over_the_floor(rows, states):
    found, compared = ratings(rows), tables(rows, floor=0.8)[PREFERENCES].filter(pl.col("verdict").is_not_null())
    assert {name: row["state"] for name, row in found.items()} == dict.fromkeys(found, "rated") | states
    for name, row in found.items():
        is_there = row["state"] == "rated"
        assert [row[column] is not None for column in ("rating", "ci_low", "n_pairs_rated")] == [is_there] * 3, name
        is_compared = name in {*compared["checkpoint_a"], *compared["checkpoint_b"]}
        assert (row["rank_low"] is not None) == (is_there or is_compared), name
        assert row["reason"] == {"rated": None, "blocked": "unjudged"}.get(row["state"], row["reason"])
    assert {row["coverage_floor"] for row in found.values()} == {0.8}


def test_what_is_left_out_changes_none_of_the_others():
    thin = said("1", "4", THIN) + said("2", "4", "b b b ? ? ?")
    alone, beside = ratings(CIRCLE), ratings(CIRCLE + thin)
    for name in "123":
        assert [beside[name][column] for column in ("rating", "se", "rank_low", "rank_high", "n_family", "n_pairs_rated")] == [
            alone[name][column] for column in ("rating", "se", "rank_low", "rank_high", "n_family", "n_pairs_rated")
        ]  # fmt: skip
    four, one = beside["4"], beside["1"]
    assert (four["n_pairs"], four["n_pairs_asked"], four["coverage"], four["n_opponents_blocked"]) == (7, 16, 7 / 16, 2)
    assert (one["n_pairs"], one["n_pairs_rated"], one["n_pairs_asked"], one["coverage"]) == (24, 20, 30, 0.8)
    assert (one["n_opponents"], one["n_opponents_blocked"]) == (3, 1)


def test_no_rank_says_which_is_better_of_two_whose_pairs_are_under_the_floor():
    """Far apart by way of a third; what they did against one another is not known well enough to say so."""
    steps = said("2", "1", "a a a b " * 30) + said("3", "2", "a a a b " * 30)
    never_met, under = ratings(steps), ratings(steps + said("3", "1", THIN))
    assert [(row["rank_low"], row["rank_high"]) for row in never_met.values()] == [(3, 3), (2, 2), (1, 1)]
    assert [(row["rank_low"], row["rank_high"]) for row in under.values()] == [(2, 3), (2, 2), (1, 2)]
    assert [row["n_family"] for row in under.values()] == [2, 2, 2]
    assert [row["rating"] for row in under.values()] == [row["rating"] for row in never_met.values()]


def test_where_the_baseline_has_no_rating_the_mean_has_0():
    found = ratings(said("2", "3", FULL) + said("2", "1", THIN))
    assert {row["anchor"] for row in found.values() if row["state"] == "rated"} == {"__mean__"}


def test_all_judges_together_have_the_coverage_of_all_their_verdicts():
    one, other = verdicts(said("2", "1", FULL), "eye"), verdicts(said("2", "1", THIN), "ear")
    found = tables(pl.concat([one, other]), floor=0.8)[PREFERENCE_RATINGS].sort("judge_model", "checkpoint")
    assert found.filter(checkpoint="2").select("judge_model", "state", "coverage").rows() == [
        ("__pooled__", "blocked", 0.7), ("ear", "blocked", 0.4), ("eye", "rated", 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(("words", "floor", "status"), [("f a f a ?", 0.8, "ok"), ("f a f a ?", 0.81, "blocked")])
def test_position_bias_has_no_shares_under_the_floor(words, floor, status):
    row = tables(said("2", "1", words), floor=floor)[POSITION_BIAS].row(0, named=True)
    assert (row["status"], row["coverage"], row["coverage_floor"], row["n_both_orders"]) == (status, 0.8, floor, 4)
    shares = [row[name] for name in ("first_wins", "first_wins_low", "order_dependent", "always_first", "ties")]
    assert [share is None for share in shares] == [status == "blocked"] * 5
    assert (row["reason"], row["n_prompts"]) == ("unjudged" if status == "blocked" else None, 4)


@pytest.mark.parametrize(
    ("words", "plan", "expected"),
    [("? ?", None, ("blocked", "unjudged")), ("", Plan({"x": 5, "y": 2}), ("null", "category_missing"))],
    ids=["asked in vain", "not reached"],
)
def test_position_bias_without_a_category_says_why_as_its_win_rate_does(words, plan, expected):
    found = tables(said("1", "2", "a a b a =", "x") + said("1", "2", words, "y"), plan)
    for table in (PREFERENCES, POSITION_BIAS):
        assert found[table].filter(category=Total.MACRO).select("status", "reason").row(0) == expected, table.name


def test_a_blocked_row_keeps_its_counts():
    rows = said("2", "1", THIN, "x") + [("2", "1", f"q{n}", "a", "y") for n in range(2)]
    found = tables(rows, floor=0.8)
    for category, n_prompts, n_pairs in (("x", 4, 10), ("y", 2, 2), (Total.MACRO, 6, 12), (Total.MICRO, 6, 12)):
        row = the_row(found, category)
        assert (row["n_prompts"], row["n_pairs"], row["win_rate"] is None) == (n_prompts, n_pairs, category != "y"), category


def test_a_total_that_lacks_a_category_keeps_its_counts_and_has_no_bounds():
    rows = [*said("2", "1", "a b a a a ?", "x"), ("3", "1", "q", "a", "y")]
    row = tables(rows)[PREFERENCES].filter(category=Total.MACRO.value, checkpoint_a="2").row(0, named=True)
    assert (row["reason"], row["n_prompts"], row["n_pairs"], row["coverage"]) == ("category_missing", 5, 6, 5 / 6)
    assert (row["bound_low"], row["order_bound_high"]) == (None, None)
    row = tables(rows, floor=0.9)[PREFERENCES].filter(category=Total.MACRO.value, checkpoint_a="2").row(0, named=True)
    assert (row["status"], row["reason"], row["win_rate"], row["bound_low"]) == ("blocked", "unjudged", None, None)


@pytest.mark.parametrize("refused", ["y", None])
def test_a_category_without_a_verdict_blocks_what_is_a_mean_over_it(refused):
    """All of its pairs refused: nothing is said of the mean as if it were not there, in no rating and by no rank either."""
    rows = said("2", "1", "a " * 34 + "b " * 6, "x") + said("2", "1", "? ?", refused)
    found = tables(rows, floor=0.9)
    row = the_row(found)
    assert (row["status"], row["reason"], row["win_rate"], row["verdict"]) == ("blocked", "unjudged", None, None)
    assert (row["coverage"], row["bound_low"], row["bound_high"]) == (40 / 42, 0.85 / 2, (0.85 + 1) / 2)
    assert {name: (one["state"], one["rank_low"]) for name, one in ratings(rows).items()} == dict.fromkeys(
        "12", ("blocked", None)
    )
    (both,) = tables(pl.concat([verdicts(rows, "eye"), verdicts(rows, "ear")]), floor=0.9)[PREFERENCE_RATINGS].filter(
        checkpoint="2", judge_model="__pooled__"
    ).iter_rows(named=True)  # fmt: skip
    assert (both["state"], both["reason"], both["rank_low"]) == ("blocked", "unjudged", None)


def test_two_cut_lines_are_no_category():
    """Nobody could be asked about that pair, and what it is of nobody could read: it costs coverage alone."""
    rows = verdicts(said("2", "1", "a " * 34 + "b " * 6, "x") + said("2", "1", "?", None))
    cut = rows.with_columns(is_planned=pl.col("category").is_not_null())
    row, whole = (the_row(tables(some, floor=0.9)) for some in (cut, rows))
    assert (row["win_rate"], row["n_unjudged"], row["coverage"], row["verdict"]) == (0.85, 1, 40 / 41, "higher")
    assert whole["win_rate"] is None, "a pair without a category that was asked is of one"


@pytest.mark.parametrize(("n_unread", "is_decided"), [(10, True), (11, False)], ids=["on the floor", "under it"])
def test_what_would_be_blocked_is_asked_on(n_unread, is_decided):
    """Forty wins are decided; with fewer verdicts than may be published the comparison is not left."""
    rows, plan = verdicts(said("2", "1", "a " * 40 + "? " * n_unread)), Plan({None: 100})
    (one,) = next_comparisons(rows, [(("m", "2"), ("m", "1"))], plan, min_coverage=0.8)
    assert (one.is_decided, one.value > 0) == (is_decided, not is_decided)
    assert the_row(tables(rows, plan, floor=0.8))["verdict"] == ("higher" if is_decided else None)
