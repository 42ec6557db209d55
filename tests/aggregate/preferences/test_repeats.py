"""Pairs asked repeatedly: one pair of pictures is one pair, worth the mean of its repeats, in every table of pairs."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.tables.published import POSITION_BIAS, PREFERENCE_RATINGS, PREFERENCES
from tasks.aggregate.preferences.adaptive import next_comparisons
from tasks.aggregate.preferences.evidence import Plan
from tasks.aggregate.preferences.ratings import POINTS
from tests.aggregate.preferences.conftest import said, tables, the_row, verdicts

COUNTS = ("n_win", "n_tie", "n_loss", "n_order_dependent", "n_unjudged")
OF_REPEATS = ["n_verdicts_asked", "n_verdicts"]
"""What alone says how often a pair was asked."""


def asked(*pairs: str) -> list[tuple]:
    """A pair a prompt, each with the words of its repeats."""
    return [("2", "1", f"p{n:03d}", words, None) for n, words in enumerate(pairs)]


ONE = {
    "won twice": ("a a", 1.0, (1.0, 1.0), (1.0, 1.0), "n_win"),
    "won and tied": ("a =", 0.75, (0.75, 0.75), (0.75, 0.75), "n_win"),
    "won and lost is even": ("a b", 0.5, (0.5, 0.5), (0.5, 0.5), "n_tie"),
    "lost twice of three": ("a b b", 1 / 3, (1 / 3, 1 / 3), (1 / 3, 1 / 3), "n_loss"),
    "won, and once by order": ("a f", 0.75, (0.75, 0.75), (0.5, 1.0), "n_win"),
    "tied, and once by order": ("= s", 0.5, (0.5, 0.5), (0.25, 0.75), "n_order_dependent"),
    "one repeat cannot be read": ("a ?", 1.0, (0.5, 1.0), (0.5, 1.0), "n_win"),
    "one repeat has one order": ("b a?", 0.0, (0.25, 0.5), (0.25, 0.5), "n_loss"),
    "none can be read": ("? b?", None, (0.0, 0.75), (0.0, 0.75), "n_unjudged"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "value", "bounds", "order_bounds", "counted"), ONE.values(), ids=ONE)
def test_what_a_pair_asked_repeatedly_is_worth(words, value, bounds, order_bounds, counted):
    row = the_row(tables(asked(words)))
    assert {name: row[name] for name in COUNTS} == {name: int(name == counted) for name in COUNTS}
    assert (row["n_pairs"], row["n_verdicts_asked"]) == (1, len(words.split()))
    assert row["win_rate"] == (None if value is None else pytest.approx(value))
    assert (row["bound_low"], row["bound_high"]) == pytest.approx(bounds)
    assert (row["order_bound_low"], row["order_bound_high"]) == pytest.approx(order_bounds)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "=", "f", "?", "a?"]), min_size=3, max_size=12), st.integers(2, 3))
def test_a_judge_that_says_the_same_again_changes_nothing(words, n_repeats):
    """Every column of the three tables, but the two that count verdicts."""
    rows = [*asked(*words), *said("3", "1", "a b =")]
    once, again = ([(a, b, prompt, " ".join([word] * n), None) for a, b, prompt, word, _ in rows] for n in (1, n_repeats))
    for (table, found), repeated in zip(tables(once).items(), tables(again).values(), strict=True):
        assert found.drop(OF_REPEATS, strict=False).equals(repeated.drop(OF_REPEATS, strict=False)), table.name


def test_pairs_weigh_the_same_however_often_each_was_asked():
    assert the_row(tables(asked("a a a a", "b", "= ?")))["win_rate"] == 0.5
    of_one_prompt = [("2", "1", "p", "a a a", None), ("2", "1", "p", "b", None)]
    assert the_row(tables(of_one_prompt))["win_rate"] == 0.5


def test_the_rate_without_pairs_that_go_by_order_leaves_out_such_repeats():
    row = the_row(tables(asked("a f", "b b", "f s")))
    assert row["win_rate"] == pytest.approx((0.75 + 0 + 0.5) / 3)
    assert row["win_rate_agreed"] == 0.5, "of two pairs: one won where its orders agree, one lost"


def test_coverage_counts_each_repeat_as_that_of_cells_does():
    rows = asked("a ?", "b b", "a a", "b ?", "a a")
    row = the_row(tables(rows, floor=0.8))
    assert (row["coverage"], row["n_verdicts"], row["n_unjudged"], row["status"]) == (0.8, 8, 0, "ok")
    assert the_row(tables(rows, floor=0.81))["status"] == "blocked"


def test_a_rating_is_made_of_the_parts_of_each_pair():
    """Repeats that disagree are part of a win and part of a loss: without ties the points are the odds of the mean."""
    found = tables(asked("a a", "a b", "a a b b", "a", "b b a"))[PREFERENCE_RATINGS].filter(checkpoint="2").row(0, named=True)
    won = 1 + 0.5 + 0.5 + 1 + 1 / 3
    assert found["rating"] == pytest.approx(POINTS * np.log(won / (5 - won)), abs=1e-6)
    assert (found["n_pairs"], found["n_pairs_rated"], found["n_win"], found["n_tie"], found["n_loss"]) == (5, 5, 2, 2, 1)


def test_position_bias_takes_the_mean_of_a_pairs_repeats():
    row = tables(asked("f a", "b b b", "a ?"))[POSITION_BIAS].row(0, named=True)
    assert (row["first_wins"], row["order_dependent"], row["always_first"]) == pytest.approx((0.75 / 3 + 1 / 3, 0.5 / 3, 0.5 / 3))
    assert (row["n_pairs"], row["n_both_orders"], row["coverage"]) == (3, 3, 6 / 7)


def test_evidence_is_a_prompt_at_a_time_and_repeats_are_none():
    """Asked twice, twelve wins are no twenty-four."""
    target, plan = [(("m", "2"), ("m", "1"))], Plan({None: 40})
    once, twice = (next_comparisons(verdicts(asked(*[words] * 12)), target, plan)[0] for words in ("a", "a a"))
    assert (twice.p, twice.n_prompts) == (once.p, 12)


def test_votes_of_several_people_on_a_pair_are_verdicts_each():
    rows = verdicts(asked("a b", "a a")).with_columns(rater=pl.Series(["ann", "bob", "ann", "bob"]))
    row = tables(rows)[PREFERENCES].row(0, named=True)
    assert (row["n_pairs"], row["n_win"], row["n_loss"]) == (4, 3, 1)


def test_thirds_add_up_to_the_same_in_any_order():
    draw = np.random.default_rng(3)
    words = [" ".join(draw.choice(["a", "b", "=", "f", "?"], 3)) for _ in range(200)]
    rows = verdicts([("2", "1", f"p{n % 7}", word) for n, word in enumerate(words)])
    for table, found in tables(rows).items():
        assert found.equals(tables(rows.sample(fraction=1, shuffle=True, seed=4))[table]), table.name
