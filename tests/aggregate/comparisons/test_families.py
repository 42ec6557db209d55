"""What is corrected together: p, intervals and verdicts of a family, and what a failure may turn."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from schemas.statuses.cells import Correction
from tasks.aggregate.comparisons.families import adjust, could_be_turned, interval_level, n_attainable
from tests.aggregate.scored_rows import FAILS, drawn, scored

CORRECTIONS = [correction.value for correction in Correction]


def test_bonferroni_by_hand_and_benjamini_hochberg():
    p = [0.04, 0.001, 0.03, 0.9]
    assert adjust(p, Correction.BONFERRONI) == pytest.approx([0.16, 0.004, 0.12, 1.0])
    assert adjust(p, Correction.BENJAMINI_HOCHBERG) == pytest.approx([0.04 * 4 / 3, 0.004, 0.04 * 4 / 3, 0.9])
    assert [adjust([], correction) for correction in Correction] == [[], []]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_a_correction_knows_no_order_and_never_helps(p, shuffle):
    order = list(range(len(p)))
    shuffle.shuffle(order)
    for correction in Correction:
        first, again = adjust(p, correction), adjust([p[i] for i in order], correction)
        assert again == pytest.approx([first[i] for i in order])
        assert all(raw <= found + 1e-15 <= 1 + 1e-12 for raw, found in zip(p, first, strict=True))


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=30), st.sampled_from(list(Correction)))
def test_an_interval_leaves_zero_out_exactly_where_p_says_so(p, correction):
    """A two-sided interval of level l leaves 0 out exactly where the raw p is under 1 - l."""
    adjusted = adjust(p, correction)
    level = interval_level(adjusted, correction)
    assert [raw < 1 - level for raw in p] == [found < 0.05 for found in adjusted] or any(
        raw == pytest.approx(1 - level) for raw in p
    )


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_p_interval_verdict_and_rank_never_contradict(make_rubric, all_tables, correction, seed):
    tables = all_tables(drawn(seed, 5, 5.5, 6, 8), make_rubric({None: ("q",)}), correction=correction, baseline="north/0")
    found = tables["comparisons"].filter(category="__macro__")
    assert found.height == 3 + 3 + 6
    for row in found.iter_rows(named=True):
        is_apart = row["ci_low_adjusted"] > 0 or row["ci_high_adjusted"] < 0
        assert is_apart == (row["p_adjusted"] < 0.05) == (row["verdict"] != "open")
        assert row["verdict"] in {"open", "higher" if row["delta"] > 0 else "lower"}
        assert row["ci_low_adjusted"] <= row["ci_low"] <= row["ci_high"] <= row["ci_high_adjusted"]
    assert set(found["verdict"]) > {"open"}, "the draw should hold both"
    standing = {row["checkpoint"]: row for row in tables["standings"].iter_rows(named=True)}
    for row in found.filter(comparison="each_other").iter_rows(named=True):
        a, b = standing[row["checkpoint_a"]], standing[row["checkpoint_b"]]
        if row["verdict"] == "higher":
            assert b["rank_low"] > 1
            assert a["rank_high"] < a["n_ranked"]


def test_one_pair_is_one_comparison_whatever_it_is_called(make_rubric, all_tables):
    """0, 1 and 2: the predecessor of 1 is the baseline too, and both are among each_other. Three pairs in all."""
    found = all_tables(drawn(1, 4, 5, 7), make_rubric({None: ("q",)}), baseline="north/0")["comparisons"]
    headline = found.filter(category="__macro__")
    assert headline["n_family"].unique().to_list() == [3]
    same = headline.filter(pl.col("checkpoint_a").is_in(["0", "1"]), pl.col("checkpoint_b").is_in(["0", "1"]))
    assert sorted(same["comparison"]) == ["baseline", "each_other", "predecessor"]
    assert same["p_adjusted"].n_unique() == 1
    assert headline["p_adjusted"].to_list() == [min(1.0, 3 * p) for p in headline["p"]]


def test_families_are_what_the_benchmark_file_declares(make_rubric, all_tables):
    asked = make_rubric({None: ("overall_score", "style")})
    rows = [
        row | {"scores": {"overall_score": row["scores"]["q"], "style": 5 + n % 3}} for n, row in enumerate(drawn(2, 4, 5, 7))
    ]
    rows += [row | {"judge": "second eye"} for row in rows]
    found = {
        family: {
            (row["family"], row["n_family"])
            for row in all_tables(rows, asked, family=family)["comparisons"].drop_nulls("family").iter_rows(named=True)
        }
        for family in ("benchmark", "table", "pair")
    }
    both = {
        (f"{word} | plain | {judge}", n) for judge in ("eye", "second eye") for word, n in (("aspects", 3), ("categories", 4))
    }
    assert found["benchmark"] == {("headline | nightly", 6), *both}
    assert found["table"] == {("headline | plain | eye", 3), ("headline | plain | second eye", 3), *both}
    assert {(name.split(" | ")[0], n) for name, n in found["pair"]} == {("headline", 1), ("aspects", 1), ("categories", 2)}
    assert len(found["pair"]) == 2 * (3 + 3 + 2)  # judges, and pairs; of the single cells those of predecessors


@pytest.mark.parametrize(
    ("primary", "expected"),
    [
        pytest.param([], {"overall_score"}, id="by default"),
        pytest.param(["style"], {"style"}, id="another"),
        pytest.param(["plain.style", "overall_score"], {"overall_score", "style"}, id="two, one of them of this rubric"),
        pytest.param(["other.style"], set(), id="none of this rubric"),
    ],
)
def test_claims_are_made_of_the_dimensions_that_are_declared(make_rubric, all_tables, primary, expected):
    asked = make_rubric({None: ("overall_score", "style")}, report_by="category")
    rows = [
        row | {"scores": {"overall_score": row["scores"]["q"], "style": 5 + n % 3}, "category": "xy"[n % 2]}
        for n, row in enumerate(drawn(2, 4, 5, 7))
    ]
    tables = all_tables(rows, asked, primary=primary)
    assert set(tables["standings"].filter("is_headline")["dimension"]) == expected
    tested = tables["comparisons"].drop_nulls("family")
    mine = tested.filter("is_primary")
    assert set(mine["dimension"]) == expected
    assert mine["family"].str.starts_with("headline").all()
    assert mine["n_family"].unique().to_list() == ([3 * len(expected)] if expected else [])
    assert set(mine["category"]) <= {"__macro__"}
    assert tested.filter(~pl.col("is_primary"))["family"].str.contains("^(aspects|categories)").all()


def test_where_no_total_exists_the_categories_are_the_ranking(make_rubric, all_tables):
    asked = make_rubric({"x": ("q",), "y": ("other",)})
    rows = [row | {"category": "x"} for row in drawn(3, 4, 7)]
    rows += [row | {"category": "y", "prompt": f"y{row['prompt']}", "sample": f"y{row['sample']}", "scores": {"other": 3 + n % 4}}
             for n, row in enumerate(rows)]  # fmt: skip
    tables = all_tables(rows, asked)
    assert set(tables["standings"].select("dimension", "category").rows()) == {("q", "x"), ("other", "y")}
    assert set(tables["comparisons"].drop_nulls("family")["family"]) == {"headline | nightly"}


@pytest.mark.parametrize(
    ("n_failed", "settings", "verdict"),
    [
        pytest.param(0, {}, "higher", id="nothing is missing"),
        pytest.param(1, {}, "higher", id="one missing reply cannot turn it"),
        pytest.param(9, {}, "failures_could_turn_it", id="nine can"),
        pytest.param(9, {"failures": "at_random"}, "higher", id="nine, taken as random"),
    ],
)
def test_a_difference_that_failures_could_turn_is_none(make_rubric, all_tables, one, n_failed, settings, verdict):
    new = [8 + n % 2 if n >= n_failed else FAILS for n in range(30)]
    rows = scored("2", new) + scored("1", [6 + n % 3 / 2 for n in range(30)])
    tables = all_tables(rows, make_rubric({None: ("q",)}), **settings)
    row = one(tables["comparisons"], comparison="predecessor", category="__macro__")
    assert row["p_adjusted"] < 1e-6
    assert row["verdict"] == verdict
    old = np.mean([6 + n % 3 / 2 for n in range(30)])
    ends = [(sum(s for s in new if s is not FAILS) + n_failed * end) / 30 - old for end in (0, 10)]
    assert (row["delta_bound_low"], row["delta_bound_high"]) == pytest.approx(ends)
    ranks = {r["checkpoint"]: (r["rank_low"], r["rank_high"]) for r in tables["standings"].iter_rows(named=True)}
    assert ranks == ({"2": (1, 1), "1": (2, 2)} if verdict == "higher" else {"2": (1, 2), "1": (1, 2)})


@pytest.mark.parametrize(
    ("least", "expected"),
    [
        ([], 1), ([0.01], 1), ([1.0] * 9, 1), ([0.01] * 3, 3), ([0.02] * 2, 2), ([0.001, 0.02, 0.5, 1.0], 2),
        ([0.001] * 4 + [1.0] * 6, 4), ([0.025] * 2, 2),
    ],
)  # fmt: skip
def test_exact_tests_that_can_never_be_found_are_not_counted(least, expected):
    assert n_attainable(least, 0.025) == expected


@pytest.mark.parametrize(
    ("delta", "low", "high", "turned"),
    [(1.0, 0.0, 2.0, True), (1.0, 0.1, 2.0, False), (-1.0, -2.0, 0.0, True), (-1.0, -2.0, -0.1, False)],
)
def test_failures_that_may_leave_no_difference_could_turn_it(delta, low, high, turned):
    assert could_be_turned({"delta": delta, "delta_bound_low": low, "delta_bound_high": high}) == turned


def test_bounds_have_the_sampling_error_of_scores_at_their_ends(make_rubric, all_tables, one):
    """The same rows with each failure replaced by the worst, or the best, score give the same ends."""
    old = [6 + n % 3 / 2 for n in range(30)]

    def published(failed):
        rows = scored("2", [failed if n < 4 else 8 + n % 2 for n in range(30)]) + scored("1", old)
        tables = all_tables(rows, make_rubric({None: ("q",)}))
        address = {"category": "__macro__", "checkpoint": "2", "estimand": "prompts_like_these"}
        return one(tables["benchmark_long"], **address), one(
            tables["comparisons"], comparison="predecessor", category="__macro__"
        )

    (cell, pair), (worst, below), (best, above) = (published(failed) for failed in (FAILS, 0, 10))
    assert (cell["bound_ci_low"], cell["bound_ci_high"]) == pytest.approx((worst["ci_low"], best["ci_high"]), abs=1e-12)
    ends = below["ci_low_adjusted"], above["ci_high_adjusted"]
    assert (pair["delta_bound_ci_low"], pair["delta_bound_ci_high"]) == pytest.approx(ends, abs=1e-12)
    assert (worst["bound_ci_low"], worst["bound_ci_high"]) == (worst["ci_low"], worst["ci_high"])  # nothing failed
    assert (below["delta_bound_ci_low"], below["delta_bound_ci_high"]) == (below["ci_low_adjusted"], below["ci_high_adjusted"])


@pytest.mark.parametrize("seen", [[0, 0, 0, 10], [10, 10, 10, 0]], ids=["low", "high"])
def test_what_failures_may_have_made_of_a_mean_is_no_surer_than_the_mean(make_rubric, all_tables, seen):
    """A failure taken for the score that most have is one prompt more: the interval of so many is the narrower one."""
    cells = all_tables(scored("1", [*seen, FAILS]), make_rubric({None: ("q",)}))["benchmark_long"]
    cells = cells.filter(estimand="prompts_like_these")
    assert not cells.is_empty()
    for low, high, *ends in cells.select("ci_low", "ci_high", "bound_ci_low", "bound_ci_high").iter_rows():
        assert ends[0] <= low < high <= ends[1]


def test_failures_that_dimensions_share_are_one_test(make_rubric, all_tables):
    """8 of 8 failing prompts in five dimensions: p = 2/256 is under 0.025 / 3, not under 0.025 / 5."""
    names = tuple("abcde")
    rows = scored("1", [5 + n % 3 for n in range(30)]) + scored("2", [FAILS] * 8 + [5 + n % 2 for n in range(22)])
    rows = [row | {"scores": dict.fromkeys(names, row["scores"]["q"])} for row in rows]
    found = all_tables(rows, make_rubric({None: names}))["standings"]
    assert set(found.filter(checkpoint="2")["has_unequal_failures"]) == {True}
    assert set(found.filter(checkpoint="1")["has_unequal_failures"]) == {False}


@pytest.mark.parametrize(("where", "flagged"), [("low", {"2"}), ("high", set()), ("anywhere", set())])
def test_failing_where_scores_are_low_is_found_though_rates_are_equal(make_rubric, all_tables, where, flagged):
    """Both fail on 7 of 28 prompts: the one at random, the other where the first one's scores are low, high, anywhere."""
    levels = [n / 5 for n in range(28)]
    first = [FAILS if n % 4 == 1 else level for n, level in enumerate(levels)]
    fails = {"low": range(7), "high": range(21, 28), "anywhere": range(2, 28, 4)}[where]
    second = [FAILS if n in fails else level + n % 2 for n, level in enumerate(levels)]
    tables = all_tables(scored("1", first) + scored("2", second), make_rubric({None: ("q",)}))
    rows = tables["standings"].filter("has_unequal_failures")
    assert set(rows["checkpoint"]) == flagged
    p = tables["comparisons"].filter(comparison="each_other")["p_failures_low"][0]
    assert (p < 0.02) == bool(flagged)


def test_unequal_failures_are_corrected_for_how_many_pairs_there_are(make_rubric, all_tables):
    """7 of 7 prompts fail more often: p = 2/128 alone is under 0.025, among two pairs that can be found it is not; 9 stay."""
    fine, half = [5] * 30, [5 + n % 2 for n in range(30)]
    found = []
    for rows in (
        scored("1", fine) + scored("2", [FAILS] * 7 + half[7:]),
        scored("1", fine) + scored("2", [FAILS] * 7 + half[7:]) + scored("3", half),
        scored("1", fine) + scored("2", [FAILS] * 9 + half[9:]) + scored("3", half),
    ):
        standings = all_tables(rows, make_rubric({None: ("q",)}))["standings"]
        found.append(dict(standings.select("checkpoint", "has_unequal_failures").iter_rows()))
    alone, three, nine = found
    assert stats.binomtest(0, 7).pvalue < 0.025 < 2 * stats.binomtest(0, 7).pvalue
    assert alone == {"1": False, "2": True}, "the one that fails is flagged, the other never"
    assert three == {"1": False, "2": False, "3": False}
    assert nine == {"1": False, "2": True, "3": False}


def flags(tables):
    names = ("standings", "benchmark_wide")
    return [dict(tables[name].select("checkpoint", "has_unequal_failures").iter_rows()) for name in names]


@pytest.mark.parametrize("max_ranked", [50, 2])
def test_who_fails_is_flagged_also_where_there_are_too_many_to_rank(make_rubric, all_tables, max_ranked):
    fine = [5 + n % 3 for n in range(30)]
    rows = scored("1", fine) + scored("2", fine[::-1]) + scored("3", [FAILS] * 12 + fine[12:]) + scored("4", fine[::-1])
    tables = all_tables(rows, make_rubric({None: ("q",)}), max_ranked=max_ranked)
    assert flags(tables) == [{"1": False, "2": False, "3": True, "4": False}] * 2
    of_pairs = tables["comparisons"].filter(comparison="predecessor", category="__macro__").sort("checkpoint_a")
    assert of_pairs["failing"].to_list() == [None, "a", "b"]


def test_of_a_checkpoint_that_is_compared_with_none_nobody_knows_whether_it_fails_unequally(make_rubric, all_tables):
    tables = all_tables(scored("1", [FAILS] * 3 + [5 + n % 3 for n in range(27)]), make_rubric({None: ("q",)}))
    assert flags(tables) == [{"1": None}] * 2


def test_the_flag_is_on_who_fails_on_more_prompts_though_the_other_loses_more_judgements(make_rubric, all_tables):
    """Of four pictures a prompt: the one loses one on 24 prompts, the other all four on 8."""
    rows = [
        {"checkpoint": name, "prompt": str(n), "sample": f"{n}-{i}", "scores": {"q": FAILS if has_failed else (3 * n + i) % 7}}
        for n in range(60) for i in range(4) for name, has_failed in (("1", n < 24 and i == 0), ("2", 50 <= n < 58))
    ]  # fmt: skip
    tables = all_tables(rows, make_rubric({None: ("q",)}))
    (row,) = tables["comparisons"].filter(comparison="predecessor", category="__macro__").iter_rows(named=True)
    assert (row["fail_rate_a"], row["fail_rate_b"]) == (32 / 240, 24 / 240)
    assert row["p_failures"] == pytest.approx(stats.binomtest(8, 32).pvalue)
    assert (row["p_failures_low"] > 0.025, row["failing"]) == (True, "b")
    assert flags(tables) == [{"1": True, "2": False}] * 2


def test_both_are_flagged_where_the_one_fails_on_more_prompts_and_the_other_on_low_ones(make_rubric, all_tables):
    levels = [n / 2 for n in range(30)]
    first = [FAILS if n % 3 else level / 2 for n, level in enumerate(levels)]
    second = [FAILS if n in {0, 3, 6, 9} else level / 2 for n, level in enumerate(levels)]
    tables = all_tables(scored("1", first) + scored("2", second), make_rubric({None: ("q",)}))
    assert tables["comparisons"].filter(comparison="predecessor", category="__macro__")["failing"].to_list() == ["both"]
