"""Checkpoints held against each other: the paired test, what is compared with what, and why there is none."""

import random
import string

import numpy as np
import polars as pl
import pytest
from scipy import stats

from schemas.metrics import natural_key
from tasks.aggregate.comparisons.comparison_tests import Paired, exact_interval, exact_p, mean_of_paired, subset_means

PROMPTS = string.ascii_lowercase[:24]


def rows_of(checkpoint, scores, category=None, model="north", **more):
    """One row per prompt, or per picture where a prompt's scores are a list."""
    listed = [found if isinstance(found, list) else [found] for found in scores]
    where = {"model": model, "checkpoint": checkpoint, "category": category, **more}
    return [
        where | {"prompt": f"{category}{prompt}", "sample": f"{category}{prompt}{n}", "scores": {"q": score}}
        for prompt, found in zip(PROMPTS, listed, strict=False)
        for n, score in enumerate(found)
    ]


def compared(tables, one, **address):
    return one(tables["comparisons"], **({"comparison": "predecessor", "category": "__micro__"} | address))


def test_one_picture_a_prompt_gives_the_paired_t_test(make_rubric, all_tables, one):
    new = [5, 7, 9, 3, 8, 4, 6, 6, 2, 5, 7, 8, 1, 7, 7, 2, 9, 4, 5, 6, 3]
    old = [4, 7, 6, 2, 9, 1, 6, 5, 3, 5, 4, 9, 0, 5, 7, 3, 6, 4, 5, 5, 1]
    row = compared(all_tables(rows_of("2", new) + rows_of("1", old), make_rubric({None: ("q",)})), one)
    expected = stats.ttest_rel(new, old)
    low, high = expected.confidence_interval(0.95)
    assert (row["checkpoint_a"], row["checkpoint_b"], row["delta"]) == ("2", "1", pytest.approx(17 / 21, abs=1e-12))
    assert row["p"] == pytest.approx(expected.pvalue, abs=1e-9)
    assert (row["ci_low"], row["ci_high"], row["df"]) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9), 20)
    assert (row["win"], row["tie"], row["loss"], row["n_prompts_paired"]) == (11, 6, 4, 21)
    se = np.std(np.subtract(new, old), ddof=1) / np.sqrt(21)
    assert row["mde80"] == pytest.approx((stats.t.ppf(0.975, 20) + stats.t.ppf(0.8, 20)) * se, abs=1e-9)


FEW = {
    "all higher": ([5, 7, 9, 3, 8, 4], [4, 5, 6, 2, 7, 1]),
    "mixed": ([5, 7, 9, 3, 8, 4], [4, 7, 6, 2, 9, 1]),
    "ties": ([5, 7, 9, 3, 8], [5, 7, 9, 3, 6]),
    "fourteen": ([5, 7, 9, 3, 8, 4, 2, 6, 7, 9, 5, 3, 8, 6], [4, 7, 6, 2, 9, 1, 1, 5, 7, 7, 6, 0, 7, 4]),
    "lower, twelve of them": ([1, 2, 0, 4, 3, 1, 2, 2, 5, 0, 1, 3], [4, 7, 6, 2, 9, 1, 8, 3, 6, 7, 2, 9]),
}


@pytest.mark.parametrize(("new", "old"), FEW.values(), ids=FEW)
def test_of_few_prompts_all_signs_are_flipped(make_rubric, all_tables, one, new, old):
    """p against scipy's permutation test; the interval is of the differences that the same test would keep."""
    row = compared(all_tables(rows_of("2", new) + rows_of("1", old), make_rubric({None: ("q",)})), one)

    def p_of(apart):
        return stats.permutation_test((apart,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue

    apart = np.subtract(new, old).astype(float)
    assert (row["test"], row["status"]) == ("sign_flip", "ok")
    assert row["p"] == pytest.approx(p_of(apart), abs=1e-9)
    ends = row["ci_low"], row["ci_high"]
    assert (row["mde80"] is None) == (len(apart) <= 5), "no difference of five prompts is found"
    if p_of(np.full(len(apart), 1.0)) > 0.05:  # so few prompts can leave nothing out: the scale's width stands
        assert ends == (-10, 10)
        return
    for end, out in zip(ends, (-1, 1), strict=True):
        assert p_of(apart - (end + out * 1e-6)) < 0.05 <= p_of(apart - (end - out * 1e-6))


def test_the_sign_flip_test_weighs_categories_alike():
    """Three prompts in one category and two in another: parts weigh 1/6 and 1/4, and delta is their sum."""
    one, other = (
        Paired(delta, 1.0, 1.0, n, n, 0, 0, np.full(n, delta / n), np.full(n, 1 / n), n) for delta, n in ((1.0, 3), (3.0, 2))
    )
    joint = mean_of_paired([one, other])
    assert joint.delta == pytest.approx(joint.parts.sum()) == pytest.approx(2.0)
    assert joint.weights.tolist() == pytest.approx([1 / 6] * 3 + [1 / 4] * 2)
    means = np.sort(subset_means(joint.parts, joint.weights))
    assert len(means) == 31
    assert (means[0], means[-1]) == (pytest.approx(1.0), pytest.approx(3.0))
    assert exact_p(means, 10.0) == 2 / 32


@pytest.mark.parametrize("n_prompts", [11, 13, 15, 16])
def test_the_exact_interval_leaves_nothing_out_exactly_where_p_is_under_its_level(n_prompts):
    """Whole and unequal differences, some of them 0; levels of one comparison, of a family, and of the gate."""
    draw = np.random.default_rng(n_prompts)
    for shift in (0.0, 0.5, 1.0):
        parts, weights = draw.integers(-2, 3, n_prompts) + np.rint(draw.random(n_prompts) < shift), draw.integers(1, 5, n_prompts)
        means = subset_means(parts * weights / weights.sum(), weights / weights.sum())
        p = exact_p(means, 10.0)
        for level in (0.95, 0.995, 0.9994):
            low, high = exact_interval(means, level, 10.0)
            assert (low > 1e-8 or high < -1e-8) == (p < 1 - level)


@pytest.mark.parametrize("n_prompts", [13, 16])
def test_answers_that_always_differ_are_no_oftener_told_apart_than_said(n_prompts):
    """Where each prompt differs by 1, one way or the other: t finds a difference in 3.4 of 1,000 cases of 13 at 0.0006."""
    for n_higher in range(n_prompts + 1):
        parts = np.where(np.arange(n_prompts) < n_higher, 1.0, -1.0) / n_prompts
        p = exact_p(subset_means(parts, np.full(n_prompts, 1 / n_prompts)), 2.0)
        assert p == pytest.approx(stats.binomtest(n_higher, n_prompts).pvalue, abs=1e-9)


def test_unequal_pictures_by_hand(make_rubric, all_tables, one):
    """a: 8, 6 | 4 | 2: mean 5, residuals 4, -1, -3. b: 5 | 3 | 1: mean 3, residuals 2, 0, -2."""
    rows = rows_of("2", [[8, 6], 4, 2]) + rows_of("1", [5, 3, 1])
    row = compared(all_tables(rows, make_rubric({None: ("q",)}), min_paired_prompts=3), one)
    changes = [4 / 2 - 2 / 2, -1 / 3 - 0, -3 / 3 + 2 / 2]
    weights = [(2 / 4 + 1 / 3) / 2, (1 / 4 + 1 / 3) / 2, (1 / 4 + 1 / 3) / 2]
    assert row["delta"] == pytest.approx(2.0, abs=1e-12)
    assert row["se"] == pytest.approx(np.sqrt(sum(c**2 for c in changes) * 2 / 3), abs=1e-12)
    assert row["df"] == pytest.approx(1 / sum(w**2 for w in weights) - 1, abs=1e-9)


def test_macro_is_the_mean_of_the_categories_with_satterthwaites_df(make_rubric, all_tables, one):
    draw = random.Random(3)
    scores = {(step, c): [draw.randint(0, 10) for _ in PROMPTS] for step in "12" for c in "xy"}
    rows = [row for (step, c), found in scores.items() for row in rows_of(step, found, c)]
    tables = all_tables(rows, make_rubric({None: ("q",)}, report_by="category"))
    macro, x, y = (compared(tables, one, category=c) for c in ("__macro__", "x", "y"))
    assert macro["delta"] == pytest.approx((x["delta"] + y["delta"]) / 2, abs=1e-12)
    v = [x["se"] ** 2 / 4, y["se"] ** 2 / 4]
    assert macro["se"] == pytest.approx(np.sqrt(sum(v)), abs=1e-12)
    assert macro["df"] == pytest.approx(sum(v) ** 2 / sum(part**2 / 23 for part in v), abs=1e-9)
    assert (macro["win"], macro["tie"], macro["loss"]) == tuple(x[w] + y[w] for w in ("win", "tie", "loss"))
    assert set(tables["comparisons"].filter(pl.col("comparison") == "each_other")["category"]) == {"__macro__"}


@pytest.mark.parametrize("seed", range(6))
def test_the_delta_is_the_difference_of_the_published_means(make_rubric, all_tables, one, seed):
    draw = random.Random(seed)
    pairs = [([draw.randint(0, 10) for _ in range(draw.randint(1, 4))], draw.randint(0, 10)) for _ in PROMPTS]
    rows = rows_of("2", [a for a, _ in pairs]) + rows_of("1", [b for _, b in pairs])
    tables = all_tables(rows, make_rubric({None: ("q",)}))
    means = [
        one(tables["benchmark_long"], checkpoint=c, category="__micro__", estimand="prompts_like_these")["estimate"] for c in "21"
    ]
    row = compared(tables, one)
    assert row["delta"] == pytest.approx(means[0] - means[1], abs=1e-12)
    assert row["p_adjusted"] is None or row["p_adjusted"] >= row["p"]
    assert row["win"] + row["tie"] + row["loss"] == len(pairs)


def test_only_prompts_scored_for_both_are_paired(make_rubric, all_tables, one):
    new = [5, 7, "refusal", 3, 8, 4, 9, 2, 6, 5, 7, 3, 1, 4, 8, 6, 6, 2, 9, 5, 4, 7, 8]
    old = [4, 7, 6, "empty", 9, 1, 2, 2, 5, 6, 3, 3, 2, 1, 8, 6, 4, 3, 8, 2, 4, 6, 7]
    row = compared(all_tables(rows_of("2", new) + rows_of("1", old), make_rubric({None: ("q",)})), one)
    kept = [(a, b) for a, b in zip(new, old, strict=True) if not isinstance(a, str) and not isinstance(b, str)]
    assert row["n_prompts_paired"] == len(kept) == 21
    assert row["p"] == pytest.approx(stats.ttest_rel(*zip(*kept, strict=True)).pvalue, abs=1e-9)


@pytest.mark.parametrize(
    ("new", "old", "p", "reason"),
    [
        ([5, 7, 9, 3, 8], [5, 7, 9, 3, 8], 1.0, "no_variation"),
        ([6, 8, 10, 4, 9], [5, 7, 9, 3, 8], 2.0**-4, "no_variation"),
        ([10] * 8, [0] * 8, 2.0**-7, "no_variation"),
    ],
    ids=["the same", "one more each", "end to end"],
)
def test_without_variation_the_exact_test_speaks(make_rubric, all_tables, one, new, old, p, reason):
    row = compared(all_tables(rows_of("2", new) + rows_of("1", old), make_rubric({None: ("q",)})), one)
    assert (row["p"], row["test"], row["status"], row["reason"], row["ci_low"]) == (p, "sign_flip", "no_interval", reason, None)
    assert row["delta"] == pytest.approx(np.mean(new) - np.mean(old))


def test_categories_that_differ_in_sign_without_variation_have_no_p(make_rubric, all_tables, one):
    rows = [
        row for step, c, score in (("1", "x", 3), ("2", "x", 4), ("1", "y", 6), ("2", "y", 4))
        for row in rows_of(step, [score] * 5, c)
    ]  # fmt: skip
    row = compared(all_tables(rows, make_rubric({None: ("q",)}, report_by="category")), one, category="__macro__")
    assert (row["delta"], row["p"], row["p_adjusted"], row["family"], row["reason"]) == (-0.5, None, None, None, "no_variation")


GOOD = [5, 7, 9, 3, 8]
NULLS = {
    "too few": (rows_of("2", [1, 2, 3, 4]) + rows_of("1", [2, 2, 3, 5]), "too_few_paired_prompts"),
    "blocked": (rows_of("2", GOOD) + rows_of("1", [5, 7, "empty", "empty", "empty"]), "blocked"),
    "no prompt in common": (
        rows_of("2", GOOD) + [row | {"prompt": f"other {row['prompt']}"} for row in rows_of("1", [1, 2, 3, 4, 5])],
        "dataset_differs",
    ),
    "another rubric version": (rows_of("2", GOOD) + rows_of("1", GOOD, version="0"), "rubric_differs"),
}


@pytest.mark.parametrize(("rows", "reason"), NULLS.values(), ids=NULLS.keys())
def test_a_comparison_that_cannot_be_made_says_why(make_rubric, all_tables, one, rows, reason):
    row = compared(all_tables(rows, make_rubric({None: ("q",)}), min_coverage=0.5), one)
    assert (row["status"], row["reason"], row["delta"], row["p"], row["p_adjusted"]) == ("null", reason, None, None, None)


def test_a_category_only_one_has_is_another_dataset_and_a_null_total_says_so(make_rubric, all_tables, one):
    rows = rows_of("2", GOOD, "x") + rows_of("2", GOOD, "y") + rows_of("1", GOOD[::-1], "x")
    tables = all_tables(rows, make_rubric({None: ("q",)}, report_by="category"))
    found = {c: compared(tables, one, category=c)["reason"] for c in ("x", "y", "__macro__")}
    assert found == {"x": None, "y": "dataset_differs", "__macro__": "no_such_total"}


def test_each_category_of_a_mean_needs_its_prompts(make_rubric, all_tables, one):
    rows = [row for c, n in (("x", 5), ("y", 4)) for row in rows_of("2", GOOD[:n], c) + rows_of("1", GOOD[::-1][:n], c)]
    tables = all_tables(rows, make_rubric({None: ("q",)}, report_by="category"))
    found = {c: compared(tables, one, category=c)["reason"] for c in ("x", "y", "__macro__")}
    assert found == {"x": None, "y": "too_few_paired_prompts", "__macro__": "too_few_paired_prompts"}


def test_the_baseline_is_of_any_model_and_null_where_nobody_or_another_judge_saw_it(make_rubric, all_tables, one):
    rows = rows_of("1", GOOD) + rows_of("2", [6, 6, 9, 4, 9]) + rows_of("base", [1, 5, 4, 3, 2], model="sdxl")
    rows += rows_of("2", GOOD, judge="second eye")
    asked = make_rubric({None: ("q",)})
    found = all_tables(rows, asked, baseline="sdxl/base")["comparisons"].filter(comparison="baseline", category="__micro__")
    seen = {
        (r["judge_model"], r["checkpoint_a"]): (r["model_b"], r["checkpoint_b"], r["reason"]) for r in found.iter_rows(named=True)
    }
    assert seen == {
        ("eye", "1"): ("sdxl", "base", None), ("eye", "2"): ("sdxl", "base", None),
        ("second eye", "2"): ("sdxl", "base", "judge_differs"),
    }  # fmt: skip
    missing = all_tables(rows, asked, baseline="sdxl/gone")["comparisons"].filter(comparison="baseline", category="__micro__")
    assert missing["reason"].to_list() == ["baseline_missing"] * 4
    assert all_tables(rows, asked)["comparisons"].filter(comparison="baseline").is_empty()


def test_the_predecessor_is_the_one_before_in_natural_order(make_rubric, all_tables):
    rows = [
        row for name in ("step-1000", "step-900", "step-20") for row in rows_of(name, [random.randint(0, 10) for _ in PROMPTS])
    ]
    rows += rows_of("step-950", GOOD, model="south")
    found = all_tables(rows, make_rubric({None: ("q",)}))["comparisons"]
    pairs = found.filter(comparison="predecessor").select("checkpoint_a", "checkpoint_b").unique().sort("checkpoint_a").rows()
    assert pairs == [("step-1000", "step-900"), ("step-900", "step-20")]
    others = found.filter(comparison="each_other").select("model_a", "checkpoint_a", "model_b", "checkpoint_b")
    assert others.unique().height == 6


@pytest.mark.parametrize(
    "ordered",
    [
        ["1", "2", "10"],
        ["step-9", "step-10"],
        ["v1.2", "v1.10", "v2.0"],
        ["10", "zero"],
        ["a", "a1", "a02", "a10"],
        ["007", "8"],
        ["0", "00", "01", "01a", "1", "1b"],
        ["base", "1", "step-1000", "final"],
        ["pretrained", "epoch-3", "epoch-10", "epoch-last", "Final"],
        ["basement", "final-from-base", "latest", "step-1"],
        ["final-2", "step-1"],
        ["step-9", "step-" + "1" * 5000, "step-" + "2" * 5000, "step-1" + "0" * 5000],
    ],
    ids=lambda ordered: " ".join(name[:12] for name in ordered),
)
def test_natural_order(ordered):
    assert sorted({*ordered}, key=natural_key) == ordered


def test_failure_rates_are_tested_by_prompt_and_flagged(make_rubric, all_tables, one):
    """Of eight prompts six fail more often in the new one, one in the old: the sign test over seven."""
    new = [["empty", 5], ["empty", 5], ["empty", 5], ["empty", 5], ["empty", "empty"], ["empty", 5], [4, 5], [6, 5]]
    old = [[3, 5], [5, 5], [4, 5], [5, 5], ["empty", 5], [5, 5], ["empty", 5], [6, 6]]
    asked = make_rubric({None: ("q",)})
    row = compared(all_tables(rows_of("2", new) + rows_of("1", old), asked), one)
    assert row["p_failures"] == pytest.approx(stats.binomtest(1, 7).pvalue, abs=1e-9)
    assert (row["fail_rate_a"], row["fail_rate_b"], row["has_unequal_failures"]) == (7 / 16, 2 / 16, False)
    all_fail = compared(all_tables(rows_of("2", ["empty"] * 8) + rows_of("1", [3, 5, 4, 6, 7, 3, 5, 4]), asked), one)
    assert all_fail["p_failures"] == pytest.approx(2 * 0.5**8)
    assert (all_fail["has_unequal_failures"], all_fail["reason"]) == (True, "blocked")  # the flag stands where the delta cannot
    none = compared(all_tables(rows_of("2", GOOD) + rows_of("1", GOOD[::-1]), asked), one)
    assert (none["p_failures"], none["has_unequal_failures"]) == (1.0, False)


def test_the_wide_table_holds_ranks_and_deltas_beside_the_mean(make_rubric, all_tables, one):
    rows = [
        row for name, level in (("1", 2), ("2", 3), ("3", 9)) for c in "xy"
        for row in rows_of(name, [level, level + 1, level, level + 1, level, level - 1, level, level], c)
    ]  # fmt: skip
    tables = all_tables(rows, make_rubric({None: ("q",)}, report_by="category"), baseline="north/1")
    wide = tables["benchmark_wide"]
    assert wide.height == 3
    last = one(wide, checkpoint="3")
    macro = one(tables["benchmark_long"], checkpoint="3", category="__macro__", estimand="prompts_like_these")
    assert (last["estimate"], last["ci_low"], last["cell_id"]) == (macro["estimate"], macro["ci_low"], macro["cell_id"])
    assert (last["rank_low"], last["rank_high"], last["n_ranked"]) == (1, 1, 3)
    assert last["delta_predecessor"] == pytest.approx(6.0)
    assert last["delta_baseline"] == pytest.approx(7.0)
    assert last["categories_json"] == '{"x":9.125,"y":9.125}'
    for max_ranked, ranks in ((2, (None, None)), (3, (1, 1))):  # of just as many as are ranked all are
        found = all_tables(rows, make_rubric({None: ("q",)}, report_by="category"), max_ranked=max_ranked)["benchmark_wide"]
        assert found.filter(checkpoint="3").select("rank_low", "rank_high").row(0) == ranks
        assert found["rank_low"].null_count() == (3 if max_ranked == 2 else 0)
