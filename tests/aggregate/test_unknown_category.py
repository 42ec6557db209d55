"""Failed judgements whose category nobody could read: they count in totals, open no category, and stand in its worst case."""

import itertools

import polars as pl
import pytest

from tasks.aggregate.unknown_category import with_worst

UNREAD = {"prompt": "none", "status": "unusable_sample", "reason": "bad_value"}
SIZES = {"a": (1, 2, 3), "b": (8, 9, 9, 10, 9)}


@pytest.fixture
def plain(make_rubric):
    return make_rubric({None: ("q",)}, report_by="category")


def judged(checkpoint, sizes=None, shift=0):
    return [
        {"checkpoint": checkpoint, "category": c, "prompt": f"{c}{n}", "sample": f"{c}{n}", "scores": {"q": score - shift}}
        for c, scores in (sizes or SIZES).items() for n, score in enumerate(scores)
    ]  # fmt: skip


def test_an_unreadable_row_is_one_failure_of_its_checkpoint_and_takes_no_mean_away(plain, all_tables, one):
    rows = judged("1") + judged("2", shift=1)
    whole = all_tables(rows, plain, min_paired_prompts=2)
    tables = all_tables([*rows, UNREAD | {"checkpoint": "2", "sample": "x"}], plain, min_paired_prompts=2)
    cells = tables["benchmark_long"].filter(estimand="prompts_like_these")
    assert set(cells["category"]) == {"a", "b", "__macro__", "__micro__"}
    for checkpoint in "12":
        macro = one(cells, category="__macro__", checkpoint=checkpoint)
        micro = one(cells, category="__micro__", checkpoint=checkpoint)
        was = one(whole["benchmark_long"].filter(estimand="prompts_like_these"), category="__macro__", checkpoint=checkpoint)
        assert (macro["estimate"], macro["ci_low"], macro["ci_high"]) == (was["estimate"], was["ci_low"], was["ci_high"])
        n_failed = int(checkpoint == "2")
        assert (
            (macro["n_failed"], macro["n_judgements"]) == (micro["n_failed"], micro["n_judgements"]) == (n_failed, 8 + n_failed)
        )
    failed = one(cells, category="__macro__", checkpoint="2")
    assert failed["coverage"] == 8 / 9
    assert tables["failures"].filter(category="__macro__").select("reason", "n_failed").rows() == [("bad_value", 1)]
    # at its worst it is of b, which it lowers from 8 to 40/6; at its best of a, which it raises from 1 to 13/4
    assert (failed["bound_low"], failed["bound_high"]) == pytest.approx(((1 + 40 / 6) / 2, (13 / 4 + 8) / 2))
    assert failed["bound_ci_low"] < one(cells, category="__macro__", checkpoint="1")["ci_low"]
    assert set(tables["standings"]["state"]) == set(whole["standings"]["state"]) != {"not_compared"}


def test_the_worst_case_of_a_difference_holds_whichever_category_and_prompt_the_row_was_of(plain, all_tables):
    rows, lost = judged("1") + judged("2", shift=1), UNREAD | {"checkpoint": "2", "sample": "x"}
    [found] = (
        all_tables([*rows, lost], plain, min_paired_prompts=2)["comparisons"]
        .filter(category="__macro__", comparison="predecessor")
        .to_dicts()
    )
    truths = []
    for category, score in itertools.product(SIZES, (0, 10)):
        for prompt in [f"{category}{n}" for n in range(len(SIZES[category]))]:
            known = {"checkpoint": "2", "category": category, "prompt": prompt, "sample": "x", "scores": {"q": score}}
            compared = all_tables([*rows, known], plain, min_paired_prompts=2)["comparisons"]
            truths += compared.filter(category="__macro__", comparison="predecessor")["delta"].to_list()
    assert found["delta_bound_low"] <= min(truths) < found["delta"] < max(truths) <= found["delta_bound_high"]


def test_where_readable_rows_have_no_category_the_unreadable_one_is_of_theirs(plain, aggregate, one):
    rows = judged("1") + [{"checkpoint": "1", "prompt": f"n{n}", "sample": f"n{n}", "scores": {"q": 4}} for n in range(3)]
    table = aggregate([*rows, UNREAD | {"checkpoint": "1", "sample": "x"}], plain)
    assert one(table, category="__unnamed__")["n_failed"] == one(table, category="__macro__")["n_failed"] == 1


def test_a_checkpoint_of_unreadable_rows_alone_is_blocked(plain, aggregate, one):
    table = aggregate(
        [*judged("1"), UNREAD | {"checkpoint": "2", "sample": "x"}, UNREAD | {"checkpoint": "2", "sample": "y"}], plain
    )
    for total in ("__macro__", "__micro__"):  # not "judge it in a category that others have": it may have been
        cell = one(table, category=total, checkpoint="2")
        assert (cell["status"], cell["reason"], cell["n_failed"], cell["estimate"]) == ("blocked", "bad_value", 2, None)
    assert one(table, category="__macro__", checkpoint="1")["status"] == "ok"


def test_a_dispatching_rubric_counts_a_row_that_nobody_could_read(make_rubric, aggregate, one):
    asked = make_rubric({"a": ("q",), "b": ("q",)})
    table = aggregate([*judged("1"), UNREAD | {"checkpoint": "1", "sample": "x"}], asked)
    macro = one(table, category="__macro__")
    assert (macro["n_failed"], macro["status"]) == (1, "ok")


def test_with_looks_an_unreadable_row_is_no_category_to_come(plain, all_tables):
    rows = [row | {"look": 1 + n % 2} for n, row in enumerate(judged("1", {"a": range(10), "b": range(10)}))]
    lost = UNREAD | {"checkpoint": "1", "sample": "x", "look": 1}
    cells = all_tables([*rows, lost], plain)["benchmark_long"]
    assert set(cells.filter(pl.col("category") == "__macro__")["reason"]) <= {None, "one_image_per_prompt", "too_few_prompts"}


def test_several_unknown_failures_stand_where_together_they_are_worst():
    import numpy as np

    columns = [(np.array([float(sum(scores))]), np.array([len(scores)])) for scores in ((4, 5, 9), (9,), (8, 8, 8, 2))]
    for is_low, score, worst in ((True, 0.0, min), (False, 10.0, max)):
        found = np.mean([sums.sum() / n.sum() for sums, n in with_worst(columns, 5, score, is_low=is_low)])
        every = [
            np.mean([(sums[0] + k * score) / (n[0] + k) for (sums, n), k in zip(columns, given, strict=True)])
            for given in itertools.product(range(6), repeat=3) if sum(given) == 5
        ]  # fmt: skip
        assert found == pytest.approx(worst(every))
