"""Which cells exist, which are null and why: totals, categories, coverage, repeats, anchors, identities."""

import json
from collections import Counter, defaultdict

import polars as pl
import pytest

from rubrics.loading import SHIPPED, find_rubrics
from schemas.errors import CorruptLakeError, RubricError, SourceError
from schemas.metrics import cell_id
from tasks.aggregate.tables import Settings, cells
from tasks.aggregate.tallies import commonest

TOTALS = ["__macro__", "__micro__"]


def composition_rows(categories, model="north"):
    shipped = find_rubrics(["composition"], [SHIPPED])["composition"]
    return shipped, [
        {
            "model": model, "prompt": f"{category} {n}", "sample": f"{category} {n}", "category": category,
            "scores": dict.fromkeys(shipped.variants[category].keys, 5 + n),
        }
        for category in categories for n in range(3)
    ]  # fmt: skip


def test_in_composition_exactly_overall_score_has_totals(aggregate):
    shipped, rows = composition_rows(["single_object", "two_object", "counting", "colors", "position", "color_attr"])
    table = aggregate(rows, shipped)
    totals = table.filter(pl.col("category").is_in(TOTALS))
    assert set(totals.filter(pl.col("estimate").is_not_null())["dimension"]) == {"overall_score"}
    others = totals.filter(pl.col("dimension") != "overall_score")
    assert set(others["dimension"]) == {d.key for d in shipped.dimensions} - {"overall_score"}
    assert set(others["status"]) == {"null"}
    assert set(others["reason"]) == {"not_in_all_categories"}
    assert others["bound_low"].null_count() == others.height
    # a category's cells are those of its own prompt
    assert set(table.filter(pl.col("category") == "counting")["dimension"]) == set(shipped.variants["counting"].keys)


def test_no_total_even_where_the_data_has_one_category(aggregate, one):
    shipped, rows = composition_rows(["counting"])
    assert one(aggregate(rows, shipped), dimension="count_accuracy", category="__micro__")["reason"] == "not_in_all_categories"


def test_samples_without_a_category_are_not_judged_by_a_dispatching_rubric(make_rubric, aggregate):
    rows = [
        {"prompt": "p", "sample": "a", "category": "x", "scores": {"q": 3}},
        {"prompt": "q", "sample": "b", "status": "no_prompt", "reason": "no_prompt"},
        {"prompt": "r", "sample": "c", "status": "unusable_sample", "reason": "broken_image"},
    ]
    table = aggregate(rows, make_rubric({"x": ("q",), "y": ("q",)}))
    assert table["n_judgements"].unique().to_list() == [1]
    assert table["category"].to_list() == ["__macro__", "__micro__", "x"]


def test_a_category_without_a_prompt_is_a_failure_seen_and_no_part_of_the_macro_mean(make_rubric, aggregate, one):
    rows = [
        {"prompt": c + p, "sample": c + p, "category": c, "scores": {"q": s, c: 1}} for c, s in (("x", 2), ("y", 4)) for p in "12"
    ]
    rows += [
        {"prompt": "t", "sample": "t", "category": "typo", "status": "no_prompt", "reason": "no_prompt"},
        {"prompt": "u", "sample": "u", "category": "typo", "status": "unusable_sample", "reason": "broken_image"},
    ]
    table = aggregate(rows, make_rubric({"x": ("q", "x"), "y": ("q", "y")}))
    macro, micro, typo = (one(table, dimension="q", category=c) for c in (*TOTALS, "typo"))
    assert macro["estimate"] == 3.0
    assert macro["n_failed"] == micro["n_failed"] == typo["n_failed"] == 2
    assert (typo["status"], typo["reason"]) == ("blocked", "broken_image")
    assert (micro["bound_low"], micro["bound_high"]) == (pytest.approx(12 / 6), pytest.approx(32 / 6))
    assert table.filter(pl.col("category") == "typo")["dimension"].to_list() == ["q"]


@pytest.mark.parametrize("is_dispatching", [False, True])
def test_a_word_the_rubric_does_not_know_is_a_failure_seen_and_no_part_of_the_macro_mean(
    make_rubric, aggregate, one, is_dispatching
):
    rows = [{"prompt": c + p, "sample": c + p, "category": c, "scores": {"q": s}} for c, s in (("x", 2), ("y", 4)) for p in "12"]
    rows.append({"prompt": "t", "sample": "t", "status": "unknown_value", "reason": "unknown_value:kind"})
    table = aggregate(rows, make_rubric({"x": ("q",), "y": ("q",)} if is_dispatching else {None: ("q",)}))
    macro, micro, unnamed = (one(table, dimension="q", category=c) for c in (*TOTALS, "__unnamed__"))
    assert macro["estimate"] == 3.0
    assert macro["n_failed"] == micro["n_failed"] == unnamed["n_failed"] == 1
    assert unnamed["reason"] == "unknown_value:kind"
    assert set(table["category"]) == {*TOTALS, "x", "y", "__unnamed__"}


def test_a_broken_sample_counts_in_every_dimension_of_its_category(make_rubric, aggregate):
    rows = [
        {"prompt": "p", "sample": "a", "category": "x", "scores": {"q": 3, "x": 3}},
        {"prompt": "p", "sample": "b", "category": "x", "status": "unusable_sample", "reason": "missing_file"},
    ]
    table = aggregate(rows, make_rubric({"x": ("q", "x"), "y": ("q", "y")}))
    counted = {(r["dimension"], r["category"]): r["n_failed"] for r in table.iter_rows(named=True)}
    expected = [("q", "x"), ("q", "__macro__"), ("q", "__micro__"), ("x", "x"), ("x", "__macro__"), ("x", "__micro__")]
    assert counted == dict.fromkeys(expected, 1)


def test_without_categories_both_totals_stand_over_the_unnamed_one(make_rubric, aggregate):
    rows = [{"prompt": p, "sample": p, "scores": {"q": s}} for p, s in (("a", 2), ("b", 5), ("c", 8))]
    table = aggregate(rows, make_rubric({None: ("q",)}))
    assert table["category"].to_list() == TOTALS
    macro, micro = (table.drop("cell_id", "category").row(i, named=True) for i in (0, 1))
    assert macro == micro
    assert micro["status"] == "ok"


def test_where_some_samples_have_a_category_the_others_are_shown_as_unnamed(make_rubric, aggregate, one):
    rows = [
        {"prompt": c + p, "sample": c + p, "category": c or None, "scores": {"q": s}}
        for c, s in (("", 9), ("x", 3)) for p in ("1", "2")
    ]  # fmt: skip
    table = aggregate(rows, make_rubric({None: ("q",)}, report_by="category"))
    assert table["category"].to_list() == ["__macro__", "__micro__", "__unnamed__", "x"]
    assert one(table, category="__macro__")["estimate"] == 6.0


def test_a_category_may_not_bear_the_name_of_a_total(make_rubric, aggregate):
    rows = [{"prompt": "p", "sample": "a", "category": "__macro__", "scores": {"q": 3}}]
    with pytest.raises(SourceError, match=r"'__macro__' of sample .* rename it"):
        aggregate(rows, make_rubric({None: ("q",)}, report_by="category"))


def test_under_the_floor_the_estimate_is_null_and_the_commonest_reason_is_named(make_rubric, aggregate, one):
    rows = [{"prompt": f"p{n}", "sample": f"s{n}", "scores": {"q": 5 + n % 2}} for n in range(95)]
    rows += [
        {"prompt": f"f{n}", "sample": f"f{n}", "scores": {"q": r}} for n, r in enumerate(["refusal", "refusal", "empty", "empty"])
    ]
    rows += [{"prompt": "f9", "sample": "f9", "scores": {"q": "malformed"}}]
    asked = make_rubric({None: ("q",)})
    blocked = one(aggregate(rows, asked, min_coverage=0.96), category="__micro__")
    assert (blocked["status"], blocked["reason"]) == ("blocked", "empty")  # two of each: the first in the alphabet
    nothing = [blocked[name] for name in ("estimate", "se", "ci_low", "ci_high", "ci_method", "df", "design_effect")]
    assert nothing == [None] * 7
    assert blocked["bound_low"] < blocked["bound_high"]
    assert one(aggregate(rows, asked, min_coverage=0.95), category="__micro__")["status"] == "ok"  # on the floor is not under it


def test_of_reasons_as_common_the_first_in_the_alphabet_is_named_whichever_category_comes_first():
    assert commonest(Counter({"refusal": 2, "empty": 2, "malformed": 1})) == "empty"


def test_a_cell_without_any_score_is_blocked_whatever_the_floor(make_rubric, aggregate):
    table = aggregate([{"prompt": "p", "sample": "a", "scores": {"q": "refusal"}}], make_rubric({None: ("q",)}), min_coverage=0.0)
    assert set(zip(table["status"], table["reason"], table["bound_low"], table["bound_high"], strict=True)) == {
        ("blocked", "refusal", 0.0, 10.0)
    }


def test_a_macro_mean_needs_a_score_in_every_category(make_rubric, aggregate, one):
    rows = [{"prompt": p, "sample": p, "category": "x", "scores": {"q": 4}} for p in "abc"]
    rows += [{"prompt": "d", "sample": "d", "category": "y", "scores": {"q": "truncated"}}]
    table = aggregate(rows, make_rubric({None: ("q",)}, report_by="category"))
    macro = one(table, category="__macro__")
    assert (macro["estimate"], macro["status"], macro["reason"]) == (None, "blocked", "truncated")
    assert one(table, category="__micro__")["estimate"] == 4.0


def test_a_model_without_a_category_others_have_gets_no_macro_mean(make_rubric, aggregate, one):
    rows = [{"model": "full", "prompt": c + p, "sample": c + p, "category": c, "scores": {"q": 4}} for c in "xy" for p in "12"]
    rows += [{"model": "half", "prompt": "x" + p, "sample": "x" + p, "category": "x", "scores": {"q": 4}} for p in "12"]
    table = aggregate(rows, make_rubric({None: ("q",)}, report_by="category"))
    half = one(table, model="half", category="__macro__")
    assert (half["estimate"], half["status"], half["reason"]) == (None, "null", "category_missing")
    assert one(table, model="full", category="__macro__")["estimate"] == 4.0
    assert one(table, model="half", category="__micro__")["estimate"] == 4.0


def test_what_lacks_scores_is_blocked_before_it_lacks_a_category(make_rubric, aggregate, one):
    """Two checkpoints of which neither has a category of the other's: not one reply could be read."""
    rows = [
        {"model": c, "prompt": c + p, "sample": c + p, "category": c, "scores": {"q": "not_found"}} for c in "xy" for p in "12"
    ]
    macro = one(aggregate(rows, make_rubric({None: ("q",)}, report_by="category")), model="x", category="__macro__")
    assert (macro["status"], macro["reason"], macro["coverage"], macro["bound_low"]) == ("blocked", "not_found", 0.0, None)


def test_an_estimate_without_interval_says_why(make_rubric, aggregate, one):
    asked = make_rubric({None: ("q",)})
    single = aggregate([{"prompt": "p", "sample": s, "scores": {"q": v}} for s, v in (("a", 3), ("b", 4))], asked)
    same = aggregate([{"prompt": p, "sample": p, "scores": {"q": 0.1}} for p in "abc"], asked)
    for table, reason, estimate in ((single, "too_few_prompts", 3.5), (same, "no_variation", 0.1)):
        cell = one(table, category="__macro__")
        assert (cell["status"], cell["reason"], cell["ci_low"], cell["ci_high"]) == ("no_interval", reason, None, None)
        assert cell["estimate"] == pytest.approx(estimate, abs=1e-15)


def test_repeats_are_averaged_before_anything_else(make_rubric, aggregate, one):
    rows = [{"prompt": "p", "sample": "a", "repeat": r, "scores": {"q": v}} for r, v in enumerate([0, 10, 5, 5, 5])]
    rows += [
        {"prompt": "q", "sample": "b", "repeat": 0, "scores": {"q": 9}},
        {"prompt": "q", "sample": "b", "repeat": 1, "scores": {"q": "empty"}},
    ]
    cell = one(aggregate(rows, make_rubric({None: ("q",)})), category="__micro__")
    assert cell["estimate"] == 7.0  # not 34 / 6
    assert (cell["n_images"], cell["n_scored"], cell["n_judgements"]) == (2, 6, 7)
    assert (cell["bound_low"], cell["bound_high"]) == (pytest.approx((5 + 4.5) / 2), pytest.approx((5 + 9.5) / 2))


def test_anchors_are_in_no_cell(make_rubric, aggregate):
    rows = [
        {"prompt": "p", "sample": "a", "scores": {"q": 3}},
        {"prompt": "p", "sample": "b", "occasion": "2026-11-03", "scores": {"q": 9}},
    ]
    assert aggregate(rows, make_rubric({None: ("q",)}))["n_judgements"].unique().to_list() == [1]


def test_two_judges_are_never_mixed(make_rubric, aggregate, one):
    rows = [{"judge": j, "prompt": p, "sample": p, "scores": {"q": v}} for j, v in (("eye", 2), ("owl", 8)) for p in "ab"]
    table = aggregate(rows, make_rubric({None: ("q",)}))
    assert [one(table, judge_model=j, category="__micro__")["estimate"] for j in ("eye", "owl")] == [2.0, 8.0]


def test_a_prompt_in_two_categories_is_one_cluster_of_the_micro_mean(make_rubric, aggregate, one):
    rows = [{"prompt": p, "sample": c + p, "category": c, "scores": {"q": v}} for c in "xy" for p, v in (("a", 2), ("b", 8))]
    split = aggregate(rows, make_rubric({None: ("q",)}, report_by="category"))
    joined = aggregate([row | {"category": None} for row in rows], make_rubric({None: ("q",)}, report_by="category"))
    left, right = one(split, category="__micro__"), one(joined, category="__micro__")
    for name in ("estimate", "se", "df", "ci_low", "ci_high", "design_effect", "n_prompts"):
        assert left[name] == pytest.approx(right[name], abs=1e-12), name
    assert left["n_prompts"] == 2


def test_means_equal_plain_arithmetic(make_rubric, aggregate):
    values = [(n * 7919 % 1001) / 100 for n in range(600)]
    rows = [
        {"prompt": f"p{n % 150}", "sample": str(n), "category": f"c{n % 3}", "scores": {"q": v}} for n, v in enumerate(values)
    ]
    table = aggregate(rows, make_rubric({None: ("q",)}, report_by="category"))
    by_category = defaultdict(list)
    for row, value in zip(rows, values, strict=True):
        by_category[row["category"]].append(value)
    means = {c: sum(v) / len(v) for c, v in by_category.items()} | {"__micro__": sum(values) / 600}
    means["__macro__"] = sum(means[c] for c in by_category) / 3
    found = dict(zip(table["category"], table["estimate"], strict=True))
    assert found == {c: pytest.approx(mean, abs=1e-12) for c, mean in means.items()}
    assert table["bound_low"].to_list() == table["estimate"].to_list() == table["bound_high"].to_list()


def test_the_cell_id_is_the_address_alone(make_rubric, make_frames, aggregate, one, run_arguments):
    rows = [{"prompt": p, "sample": p, "scores": {"q": 3}} for p in "ab"]
    asked = make_rubric({None: ("q",)})
    other_night = run_arguments | {"dataset_id": "0" * 64, "publication_id": "1" * 64}
    table = cells(*make_frames(rows, asked), {"plain": asked}, Settings(**other_night, min_coverage=0.5))
    assert table["cell_id"].to_list() == aggregate(rows, asked)["cell_id"].to_list()
    assert table["cell_id"][0] == cell_id("nightly", one(table, category="__macro__"))
    assert json.dumps(table["publication_id"].unique().to_list()) == json.dumps(["1" * 64])


def test_a_plan_whose_replies_were_not_read_is_refused(make_rubric, make_frames, run_arguments):
    asked = make_rubric({None: ("q",)})
    judgements, scores = make_frames([{"prompt": "p", "sample": "a", "scores": {"q": 3}}], asked)
    with pytest.raises(CorruptLakeError, match="1 planned judgements of rubric plain have no row in scores"):
        cells(judgements, scores.clear(), {"plain": asked}, Settings(**run_arguments, min_coverage=0.5))
    with pytest.raises(RubricError, match="'plain' has judgements but was not given; given: none"):
        cells(judgements, scores, {}, Settings(**run_arguments, min_coverage=0.5))


def test_no_judgements_make_an_empty_table(make_rubric, aggregate):
    assert aggregate([], make_rubric({None: ("q",)})).height == 0
