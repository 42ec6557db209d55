"""The table preferences: what counts for how much, who stands on which side, what has no figure, and one correction for all."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from schemas.statuses.cells import Total
from schemas.tables.published import POSITION_BIAS, PREFERENCES
from tasks.aggregate.intervals import clustered_mean, mean_of_means
from tasks.aggregate.preferences.cells import ends, score_test
from tests.aggregate.preferences.conftest import said, tables, the_row, verdicts

pytestmark = pytest.mark.slow

COUNTS = ("n_win", "n_tie", "n_loss", "n_order_dependent", "n_unjudged")

NASTY = {
    "one prompt": ("a", (1.0, 1.0, 1.0), (1, 0, 0, 0, 0), "no_interval", "too_few_prompts"),
    "all wins": ("a a a a a a", (1.0, 1.0, 1.0), (6, 0, 0, 0, 0), "ok", None),
    "all losses": ("b b b b b b", (0.0, 0.0, 0.0), (0, 0, 6, 0, 0), "ok", None),
    "all ties": ("= = = = = =", (0.5, 0.5, 0.5), (0, 6, 0, 0, 0), "no_interval", "no_variation"),
    "always the first": ("f f f f f f", (0.5, 0.5, 0.5), (0, 0, 0, 6, 0), "no_interval", "no_variation"),
    "nothing read": ("? ? ?", (None, 0.0, 1.0), (0, 0, 0, 0, 3), "blocked", "unjudged"),
    "a win and a tie is order dependent": ("a= a a b b b", (5 / 12, 5 / 12, 5 / 12), (2, 0, 3, 1, 0), "ok", None),
    "one order leaves half open": ("a? a a b b ?=", (0.5, 3 / 6, 3.5 / 6), (2, 0, 2, 0, 2), "ok", "too_few_paired_prompts"),
    "the other way too": ("b? a a b b ?", (0.5, 2 / 6, 3.5 / 6), (2, 0, 2, 0, 2), "ok", "too_few_paired_prompts"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "figures", "counts", "status", "reason"), NASTY.values(), ids=NASTY)
def test_what_a_pair_is_worth(words, figures, counts, status, reason):
    row = the_row(tables(said("2", "1", words)))
    assert tuple(row[name] for name in COUNTS) == counts
    assert (row["status"], row["reason"]) == (status, reason)
    expected = figures if figures[0] is None else tuple(pytest.approx(figure) for figure in figures)
    assert (row["win_rate"], row["bound_low"], row["bound_high"]) == expected
    assert row["n_pairs"] == len(words.split())


def test_orders_that_disagree_are_half_and_what_they_could_change_stands_beside():
    row = the_row(tables(said("2", "1", "a a a b f s = a?")))
    assert row["win_rate"] == pytest.approx((3 + 2 * 0.5 + 0.5) / 7)
    assert row["win_rate_agreed"] == pytest.approx(3.5 / 5)
    assert (row["bound_low"], row["bound_high"]) == (pytest.approx(5 / 8), pytest.approx(5.5 / 8))
    assert (row["order_bound_low"], row["order_bound_high"]) == (pytest.approx(4 / 8), pytest.approx(6.5 / 8))


@pytest.mark.parametrize(
    ("a", "b", "baseline", "shown", "flags"),
    [
        ("10", "9", "m/1", ("10", "9"), (False, True)),  # by name 10 sorts first and is the newer one all the same
        ("9", "10", "m/1", ("10", "9"), (False, True)),
        ("1", "2", "m/1", ("2", "1"), (True, True)),
        ("1", "2", "m/2", ("1", "2"), (True, False)),
        ("k/1", "m/1", None, ("1", "1"), (False, False)),
        ("k/1", "m/1", "k/1", ("1", "1"), (True, False)),
    ],
    ids=["natural order", "turned", "baseline older", "baseline newer", "two models", "two models turned"],
)
def test_who_stands_on_which_side(a, b, baseline, shown, flags):
    row = the_row(tables(said(a, b, "a a a b a a"), baseline=baseline))
    assert (row["checkpoint_a"], row["checkpoint_b"]) == shown
    assert (row["is_to_baseline"], row["is_to_predecessor"]) == flags
    is_as_said = (row["model_a"], row["checkpoint_a"]) == tuple(a.split("/") if "/" in a else ("m", a))
    assert row["win_rate"] == pytest.approx(5 / 6 if is_as_said else 1 / 6)


def test_a_predecessor_is_the_one_before_and_no_other():
    found = tables(said("1", "2", "a b") + said("2", "3", "a b") + said("1", "3", "a b"), baseline=None)[PREFERENCES]
    flagged = found.filter(category=Total.MACRO.value).select("checkpoint_a", "checkpoint_b", "is_to_predecessor").rows()
    assert flagged == [("2", "1", True), ("3", "1", False), ("3", "2", True)]


def test_categories_weigh_the_same_and_pairs_do_in_the_other_total():
    rows = said("2", "1", "a a a a a a b b", "x") + [("2", "1", f"q{n}", word, "y") for n, word in enumerate("bb")]
    found = tables(rows)
    assert [the_row(found, name)["win_rate"] for name in ("x", "y", Total.MACRO, Total.MICRO)] == [0.75, 0.0, 0.375, 0.6]
    assert the_row(found)["reason"] == "too_few_paired_prompts"  # of two prompts in y nothing is tested
    assert the_row(found, Total.MICRO)["is_primary"] is False


@pytest.mark.parametrize(
    ("words", "p"),
    [
        (("a a a a a", "= = = = ="), 2**-4), (("a a a a a", "a a a a a", "= = = = ="), 2**-9), (("= = = = =", "= = = = ="), 1.0),
        (("a a a a a", "a a a a a", "b b b b b"), None), (("a a a a a", "b b b b b"), None),
    ],
    ids=["one of two", "two of three", "ties alone", "two against one", "one against one"],
)  # fmt: skip
def test_of_categories_that_each_say_one_thing_p_counts_the_prompts_that_say_it(words, p):
    """Ties have no sign to flip, and beside categories of the other side what is seen is not the most extreme pattern."""
    rows = [(a, b, f"{name}{prompt}", word, name) for name, each in zip("xyz", words, strict=False)
            for a, b, prompt, word, _ in said("2", "1", each)]  # fmt: skip
    row = the_row(tables(rows))
    assert (row["p"], row["test"], row["reason"]) == (p, None if p is None else "sign_flip", "no_variation")
    assert row["verdict"] == (None if p is None else "higher" if p < 0.05 else "open")


def test_a_difference_is_found_no_oftener_than_said_where_some_categories_are_unanimous():
    """One always wins, one always loses, one is a toss of five: the mean over them is one half."""
    draw, found = np.random.default_rng(0), []
    for _ in range(200):
        tossed = " ".join(draw.choice(["a", "b"], 5))
        rows = [("2", "1", f"{name}{n}", word, name) for name, words in (("x", "a a a a a"), ("y", "b b b b b"), ("z", tossed))
                for n, word in enumerate(words.split())]  # fmt: skip
        found.append(the_row(tables(rows))["p"])
    assert sum(p is not None and p < 0.05 for p in found) <= 10 + 2 * 3.1


@pytest.mark.parametrize("sizes", [(5, 100), (5, 30, 100), (8, 100)])
def test_equals_are_never_told_apart_with_certainty_because_a_small_category_agrees(sizes):
    """Five wins of five come once in sixteen tournaments of equals; beside a hundred prompts p was under 1e-6 then."""
    draw, found = np.random.default_rng(1), []
    for _ in range(400):
        means = [clustered_mean(draw.integers(0, 2, n) * 1.0, np.ones(n, np.int64), np.zeros(n)) for n in sizes]
        joint = mean_of_means(means)
        p, interval = score_test(joint), ends(joint, 0.95)
        assert (interval[0] > 0.5 or interval[1] < 0.5) == (p < 0.05)
        found.append(p)
    assert min(found) > 1e-4
    assert sum(p < 0.05 for p in found) <= 20 + 2.5 * 4.4


def test_on_the_floor_is_not_under_it():
    """0.55 * 100 is more than 55 in binary."""
    row = the_row(tables(said("2", "1", "a b = " * 18 + "a " + "? " * 45), floor=0.55))
    assert (row["coverage"], row["status"]) == (0.55, "ok")


def test_a_total_needs_every_category_that_others_have():
    rows = [*said("2", "1", "a b a a a a", "x"), ("3", "1", "q", "a", "y"), ("3", "1", "r", "a", None)]
    row = the_row(tables(rows, baseline="m/1"))
    assert (row["status"], row["reason"], row["win_rate"]) == ("null", "category_missing", None)


def test_without_categories_only_the_totals_stand():
    assert tables(said("2", "1", "a b a"))[PREFERENCES]["category"].to_list() == [Total.MACRO, Total.MICRO]


def test_under_the_floor_there_is_no_figure_and_on_it_there_is():
    rows = said("2", "1", "a a a a ?")
    assert the_row(tables(rows, floor=0.8))["win_rate"] == 1.0
    blocked = the_row(tables(rows, floor=0.81))
    assert (blocked["status"], blocked["reason"], blocked["win_rate"], blocked["p"]) == ("blocked", "unjudged", None, None)
    assert (blocked["bound_low"], blocked["bound_high"]) == (0.8, 1.0)


def test_every_total_is_one_comparison_of_one_family_and_unjudged_pairs_can_turn_it():
    wins = "a " * 30
    found = tables(said("2", "1", wins) + said("3", "1", wins + "? " * 60) + said("3", "2", "a b " * 15))[PREFERENCES]
    macro = found.filter(category=Total.MACRO.value)
    assert macro.select("checkpoint_a", "checkpoint_b", "verdict").rows() == [
        ("2", "1", "higher"), ("3", "1", "failures_could_turn_it"), ("3", "2", "open"),
    ]  # fmt: skip
    assert macro["n_family"].to_list() == [3, 3, 3]
    assert macro["p_adjusted"].to_list() == pytest.approx([min(1, 3 * p) for p in macro["p"]])
    assert macro["is_primary"].all()
    assert macro["family"].unique().to_list() == ["preferences | bench"]
    alone = tables(said("2", "1", wins) + said("3", "1", wins), family="pair")[PREFERENCES]
    assert alone["n_family"].unique().to_list() == [1]


def test_claims_are_of_the_headline_and_other_dimensions_are_exploratory():
    rows = [verdicts(said("2", "1", "a " * 30)).with_columns(dimension=pl.lit(name)) for name in ("overall_score", "realism")]
    found = tables(pl.concat(rows))
    macro = found[PREFERENCES].filter(category=Total.MACRO.value)
    assert macro.select("dimension", "is_primary", "n_family", "win_rate").rows() == [
        ("overall_score", True, 1, 1.0), ("realism", False, 1, 1.0),
    ]  # fmt: skip
    assert found[POSITION_BIAS]["dimension"].unique().sort().to_list() == ["overall_score", "realism"]


def test_pictures_of_one_prompt_are_one_unit():
    """Thirty pairs of three prompts are no thirty prompts: the interval is that of three."""
    rows = [("2", "1", f"p{n % 3}", "a" if n % 3 else "b") for n in range(30)]
    row = the_row(tables(rows))
    assert row["n_prompts"] == 3
    assert row["df"] == 2
    assert row["se"] == pytest.approx(np.std([0, 1, 1], ddof=1) / np.sqrt(3))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=40), st.sampled_from([0.9, 0.95, 0.9995]))
def test_the_interval_leaves_one_half_out_exactly_where_p_is_under_its_level(values, level):
    sums = np.array(values)
    mean = clustered_mean(sums, np.ones(len(sums), np.int64), np.zeros(len(sums)))
    interval, p = ends(mean, level), score_test(mean)
    if interval is not None and abs(p - (1 - level)) > 1e-9:
        assert (interval[0] > 0.5 or interval[1] < 0.5) == (p < 1 - level)


def test_of_many_single_pairs_the_interval_is_wilsons():
    """With a prompt each and no ties: Wilson's of a binomial share, its normal quantile a t one."""
    row = the_row(tables(said("2", "1", "a " * 1400 + "b " * 600)))
    theirs = binomtest(1400, 2000).proportion_ci(method="wilson")
    assert (row["ci_low"], row["ci_high"]) == (pytest.approx(theirs.low, abs=1e-4), pytest.approx(theirs.high, abs=1e-4))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "=", "f", "s", "?", "a?", "b?", "?=", "a="]), min_size=1, max_size=12))
def test_called_the_other_way_round_everything_is_negated(words):
    """The same verdicts with a and b exchanged: rates are 1 - rate, counts change sides, p stays."""
    rows = verdicts([("k/1", "m/1", f"p{n}", word) for n, word in enumerate(words)])
    swapped = rows.with_columns(
        first=1 - pl.col("second"), second=1 - pl.col("first"),
        outcome=pl.col("outcome").replace({"win_a": "win_b", "win_b": "win_a"}),
    )  # fmt: skip
    one, other = the_row(tables(rows, baseline="m/1")), the_row(tables(swapped, baseline="m/1"))
    assert [other[name] for name in COUNTS] == [one[name] for name in (*COUNTS[2::-1], *COUNTS[3:])]
    mirrored = (
        ("win_rate", "win_rate"),
        ("ci_low", "ci_high"),
        ("bound_low", "bound_high"),
        ("order_bound_high", "order_bound_low"),
    )
    for name, mirror in mirrored:
        assert (one[name] is None) == (other[mirror] is None)
        assert one[name] is None or one[name] == pytest.approx(1 - other[mirror])
    assert one["p"] == pytest.approx(other["p"])


BIASES = {
    "no bias": ("a b a b", (0.5, 0.0, 0.0, 0.0, 0.0)),
    "always the first": ("f f f f", (1.0, 1.0, 1.0, 0.0, 0.0)),
    "always the second": ("s s s s", (0.0, 1.0, 0.0, 1.0, 0.0)),
    "half of each": ("f f a b", (0.75, 0.5, 0.5, 0.0, 0.0)),
    "win and tie": ("a= = a b", (0.5625, 0.25, 0.0, 0.0, 0.375)),
    "what was read once says nothing": ("a? f a b", (2 / 3, 1 / 3, 1 / 3, 0.0, 0.0)),
}


@pytest.mark.parametrize(("words", "shares"), BIASES.values(), ids=BIASES)
def test_position_bias(words, shares):
    row = tables(said("2", "1", words))[POSITION_BIAS].row(0, named=True)
    found = tuple(row[name] for name in ("first_wins", "order_dependent", "always_first", "always_second", "ties"))
    assert found == pytest.approx(shares)


def test_position_bias_of_a_judge_that_was_never_read_twice_has_no_figure():
    rows = tables(said("2", "1", "a? ? ?="))[POSITION_BIAS]
    assert rows.select("status", "reason", "first_wins", "n_both_orders").unique().rows() == [("blocked", "unjudged", None, 0)]


def test_the_order_of_rows_changes_nothing():
    rows = verdicts(said("2", "1", "a b = f ? a a b", "x") + said("3", "1", "b = a? a a b", "y"))
    for table, found in tables(rows).items():
        assert found.equals(tables(rows.sample(fraction=1, shuffle=True, seed=3))[table])
