"""Asking until decided: bets that cannot be won by luck, rules that looking does not harm, and the rows published of them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schemas.statuses.cells import Total
from schemas.tables.published import POSITION_BIAS, PREFERENCES
from tasks.aggregate.preferences.adaptive import next_comparisons
from tasks.aggregate.preferences.evidence import WATCHED, Plan, anytime_interval, anytime_p, log_capital
from tests.aggregate.preferences.conftest import said, tables, the_row, verdicts

VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=60).map(np.array)
OLD, NEW = ("m", "1"), ("m", "2")


def test_a_fair_bet_does_not_grow_on_average():
    """Of every pattern of eight fair prompts the mean capital is at most 1: that is what makes any stopping rule safe."""
    patterns = (np.arange(2**8)[:, None] >> np.arange(8)) % 2
    assert np.mean([np.exp(log_capital(row, row, 0.5)) for row in patterns.astype(float)]) <= 1 + 1e-12


def test_however_often_one_looks_few_fair_sequences_are_ever_called_unfair():
    draw = np.random.default_rng(11)
    fair = draw.choice([0.0, 0.5, 1.0], (400, 200))
    ever = [any(anytime_p(row[:n], row[:n], 0.5) < 0.05 for n in range(5, 201, 5)) for row in fair]
    assert np.mean(ever) <= 0.05


@settings(max_examples=60, deadline=None)
@given(VALUES, st.sampled_from([0.05, 0.001]), st.floats(0.02, 0.98), st.randoms(use_true_random=False))
def test_the_interval_holds_the_means_that_the_bets_do_not_rule_out_in_any_order(values, alpha, mean, shuffle):
    low, high = anytime_interval(values, values, alpha)
    assert low - 1e-6 <= values.mean() <= high + 1e-6
    if min(abs(mean - low), abs(mean - high)) > 1e-6:
        assert (low < mean < high) == (anytime_p(values, values, mean) >= alpha)
    shuffled, capital = values.tolist(), log_capital(values, values, mean)
    shuffle.shuffle(shuffled)
    assert log_capital(np.array(shuffled), np.array(shuffled), mean) == capital
    assert log_capital(1 - values, 1 - values, 1 - mean) == pytest.approx(capital, abs=1e-9)


def watch(words: str, n_planned: int, *, is_last: bool = False, n_family: int | None = None, targets=((NEW, OLD),)):
    plan = Plan({None: n_planned}, targets if is_last else ())
    return next_comparisons(verdicts(said("1", "2", words)), targets, plan, n_family)


def test_a_target_is_asked_until_it_is_decided_and_then_no_more():
    few, many = watch("b " * 4, 100)[0], watch("b " * 30, 100)[0]
    assert (few.is_decided, few.verdict, few.win_rate) == (False, "open", 1.0)
    assert few.value > 0
    assert (many.is_decided, many.verdict, many.value, many.n_prompts) == (True, "higher", 0.0, 30)
    assert watch("b " * 30, 100, targets=((OLD, NEW),))[0].verdict == "lower"
    assert not watch("b " * 16, 100, n_family=10_000)[0].is_decided
    assert watch("b " * 16, 100, n_family=1)[0].is_decided


def test_what_is_nearly_decided_comes_first_and_what_is_even_after_what_was_not_asked_yet():
    third = ("m", "3")
    rows = said("1", "2", "b " * 12 + "a b ") + said("1", "3", "a b " * 20)
    targets = [(NEW, OLD), (third, OLD), (NEW, third)]
    near, even, unasked = next_comparisons(verdicts(rows), targets, Plan({None: 200}))
    assert near.value > unasked.value > even.value > 0
    assert (unasked.n_prompts, unasked.win_rate, unasked.p) == (0, None, 1.0)


def test_nothing_is_known_before_the_first_verdict():
    (one,) = next_comparisons(verdicts([]), [(NEW, OLD)], Plan({"x": 10}))
    assert (one.is_decided, one.n_prompts, one.win_rate) == (False, 0, None)
    assert one.value > 0


def test_when_all_prompts_are_asked_the_rest_of_the_error_rate_is_spent():
    words = "b b b a = " * 8
    early, late = watch(words, 40)[0], watch(words, 40, is_last=True)[0]
    fixed = the_row(tables(said("1", "2", words)))["p"]
    assert not early.is_decided
    assert late.p == pytest.approx(fixed / (1 - WATCHED))
    assert (late.is_decided, late.is_complete, late.value) == (True, True, 0.0)


def test_with_too_few_prompts_in_a_category_nothing_is_decided_or_tested():
    rows = said("1", "2", "b " * 40, "x") + [("1", "2", f"q{n}", "b", "y") for n in range(4)]
    plan = Plan({"x": 80, "y": 80})
    (one,) = next_comparisons(verdicts(rows), [(NEW, OLD)], plan)
    row = the_row(tables(rows, plan))
    assert (one.is_decided, row["p"], row["status"], row["reason"]) == (False, None, "no_interval", "too_few_paired_prompts")
    assert next_comparisons(verdicts(rows), [(NEW, OLD)], plan, min_paired_prompts=4)[0].is_decided


def test_a_category_without_a_verdict_keeps_the_target_open():
    rows = verdicts(said("1", "2", "b " * 40, "x"))
    (one,) = next_comparisons(rows, [(NEW, OLD)], Plan({"x": 40, "y": 40}))
    assert (one.is_decided, one.win_rate) == (False, None)


def test_a_planned_category_that_was_not_reached_leaves_no_published_total():
    """Money ended the asking: interval and p are of the mean over both categories, and so the rate would have to be."""
    rows, plan = said("1", "2", "b " * 30, "x"), Plan({"x": 100, "y": 10})
    found = tables(rows, plan)
    row, bias = the_row(found), found[POSITION_BIAS].filter(category=Total.MACRO).row(0, named=True)
    assert (row["status"], row["reason"], row["win_rate"], row["p"]) == ("null", "category_missing", None, None)
    assert (bias["status"], bias["reason"]) == ("null", "category_missing")
    assert the_row(found, "x")["win_rate"] == 1.0


def test_categories_weigh_the_same_in_what_is_decided():
    """Many prompts of x for the one, few of y for the other: an even total is not decided by where the prompts are."""
    rows = said("1", "2", "b " * 90, "x") + [("1", "2", f"q{n}", "a", "y") for n in range(10)]
    (one,) = next_comparisons(verdicts(rows), [(NEW, OLD)], Plan({"x": 90, "y": 10}))
    assert (one.is_decided, one.win_rate) == (False, 0.5)


def test_the_published_row_of_a_target_that_stopped_says_what_was_watched_and_nothing_else():
    rows = said("1", "2", "b " * 30, "x") + [("1", "2", f"q{n}", "b", "y") for n in range(30)]
    found = tables(rows, Plan({"x": 100, "y": 100}))
    macro, micro = the_row(found), the_row(found, Total.MICRO)
    (watched,) = next_comparisons(verdicts(rows), [(NEW, OLD)], Plan({"x": 100, "y": 100}))
    assert (macro["p"], macro["test"], macro["verdict"]) == (watched.p, "anytime_valid", "higher")
    assert (macro["is_stopped_early"], macro["ci_method"]) == (True, "confidence_sequence")
    assert macro["ci_low_adjusted"] > 0.5
    assert (micro["p"], micro["status"], micro["reason"]) == (None, "no_interval", "stopped_early")
    done = tables(rows, Plan({"x": 30, "y": 30}, [(OLD, NEW)]))
    assert not done[PREFERENCES]["is_stopped_early"].any()
    assert the_row(done, Total.MICRO)["p"] is not None


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(st.sampled_from("bbba=f?"), min_size=2, max_size=60),
    is_last=st.booleans(),
    failures=st.sampled_from(["at_random", "worst_case"]),
)
@example(words=["b"] * 15 + ["a"] * 8 + ["?"] * 14, is_last=True, failures="worst_case")
def test_what_is_published_is_what_was_decided(words, is_last, failures):
    """One family of one: decided, p under 0.05, one half outside the corrected interval, and a verdict are the same thing."""
    rows, plan = said("1", "2", " ".join(["b"] * 5 + words)), Plan({None: 70}, [(OLD, NEW)] if is_last else ())
    row = the_row(tables(rows, plan, failures=failures))
    (watched,) = next_comparisons(verdicts(rows), [(NEW, OLD)], plan, failures=failures)
    assert row["p"] == watched.p
    assert row["verdict"] == watched.verdict
    assert watched.is_decided == (row["verdict"] in ("higher", "lower"))
    assert row["ci_low_adjusted"] <= row["win_rate"] <= row["ci_high_adjusted"]
    if abs(row["p"] - 0.05) > 1e-6:
        assert (watched.verdict != "open") == (row["ci_low_adjusted"] > 0.5 or row["ci_high_adjusted"] < 0.5)


@pytest.mark.parametrize("failures", ["at_random", "worst_case"])
def test_refusals_in_one_category_decide_nothing_of_two_equals(failures):
    """Half of all on average, and a third of the one category unread: what is left of it must not let the other one win."""
    rows = said("1", "2", "a a a a ? b ? a a ? " * 60, "x") + [
        ("1", "2", f"q{n}", word, "y") for n, word in enumerate(("b b b b b b b a " * 75).split())
    ]
    plan = Plan({"x": 800, "y": 800})
    (one,) = next_comparisons(verdicts(rows), [(NEW, OLD)], plan, failures=failures)
    row = the_row(tables(rows, plan, failures=failures))
    assert row["win_rate"] == pytest.approx(0.5, abs=0.01)
    assert (one.is_decided, one.verdict, row["verdict"], row["p"]) == (False, "open", "open", 1.0)
    assert row["ci_low"] < 0.5 < row["ci_high"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "=", "?", "b?"]), min_size=5, max_size=40), st.sampled_from(["a", "=", "b"]))
def test_a_missing_verdict_is_never_more_evidence_than_any_verdict_would_be(words, instead):
    every = {word: word for word in words} | {"?": instead, "b?": instead if instead != "a" else "="}  # one order said b
    p = [watch(" ".join(["b"] * 5 + each), 200)[0].p for each in (words, [every[word] for word in words])]
    assert p[0] >= p[1]


def test_rows_of_other_pairs_change_nothing():
    rows = said("1", "2", "b " * 20)
    plan = Plan({None: 60})
    alone = next_comparisons(verdicts(rows), [(NEW, OLD)], plan)
    beside = next_comparisons(pl.concat([verdicts(rows), verdicts(said("1", "3", "a a b"))]), [(NEW, OLD)], plan)
    assert alone == beside
