"""Both estimands, shares of scores of k or more, and distributions: against formulas written out and against one another."""

import random

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tasks.aggregate.scales import score_steps

LIKE, THESE = "prompts_like_these", "these_prompts"


def rows_of(prompts, category=None):
    return [
        {"prompt": f"{category}{p}", "sample": f"{category}{p}/{n}", "category": category, "scores": {"q": score}}
        for p, scores in enumerate(prompts) for n, score in enumerate(scores)
    ]  # fmt: skip


def cell(tables, one, estimand, category="__micro__", metric="mean"):
    return one(tables["benchmark_long"], estimand=estimand, category=category, metric=metric)


def test_these_prompts_by_hand(make_rubric, all_tables, one):
    """Prompts 8, 6 and 4, 4, 1 and 5: variances within 2 and 3; pooled (2 + 6)/(1 + 2) for the prompt with one picture."""
    tables = all_tables(rows_of([[8, 6], [4, 4, 1], [5]]), make_rubric({None: ("q",)}))
    these, like = (cell(tables, one, estimand) for estimand in (THESE, LIKE))
    assert these["estimate"] == like["estimate"] == pytest.approx(28 / 6)
    parts = [2 * 2 / 36, 3 * 3 / 36]
    assert these["se"] == pytest.approx(np.sqrt(sum(parts) + 1 * (8 / 3) / 36), abs=1e-12)
    assert these["df"] == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 1 + parts[1] ** 2 / 2), abs=1e-9)
    assert these["ci_method"] == "wilson_t_within_prompts"
    assert these["cell_id"] != like["cell_id"]


def test_with_one_prompt_these_prompts_is_the_textbook_standard_error(make_rubric, all_tables, one):
    scores = [3, 5, 8, 8, 9, 2]
    tables = all_tables(rows_of([scores]), make_rubric({None: ("q",)}))
    these = cell(tables, one, THESE)
    assert these["se"] == pytest.approx(stats.sem(scores), abs=1e-9)
    assert cell(tables, one, LIKE)["reason"] == "too_few_prompts"


def test_one_picture_a_prompt_shows_no_variance_within(make_rubric, all_tables, one):
    these = cell(all_tables(rows_of([[3], [5], [9]]), make_rubric({None: ("q",)})), one, THESE)
    assert (these["status"], these["reason"], these["se"]) == ("no_interval", "one_image_per_prompt", None)


def test_the_share_of_scores_of_k_or_more_is_a_cell_of_its_own(make_rubric, all_tables, one):
    prompts = [[8, 6, "empty"], [4, 7.0], [7.5, 6.999]]
    tables = all_tables(rows_of(prompts), make_rubric({None: ("q",)}), at_least={"q": 7})
    share = cell(tables, one, LIKE, metric="share_at_least_7")
    assert share["estimate"] == pytest.approx(3 / 6)
    assert (share["scale_low"], share["scale_high"]) == (0, 1)
    assert (share["bound_low"], share["bound_high"]) == (pytest.approx(3 / 7), pytest.approx(4 / 7))
    assert (share["n_failed"], share["n_scored"]) == (1, 6)
    only = all_tables(rows_of(prompts), make_rubric({None: ("q",)}), at_least={"plain.q": 5, "q": 7, "other.q": 1})
    assert set(only["benchmark_long"]["metric"]) == {"mean", "share_at_least_5"}


def test_repeats_are_averaged_before_a_share_is_taken_of_pictures(make_rubric, all_tables, one):
    rows = [{"prompt": "p", "sample": "a", "repeat": r, "scores": {"q": score}} for r, score in enumerate([9, 9, 1, 9])]
    rows += [{"prompt": "r", "sample": "b", "repeat": 0, "scores": {"q": 2}}]
    tables = all_tables(rows, make_rubric({None: ("q",)}), at_least={"q": 7})
    assert cell(tables, one, LIKE, metric="share_at_least_7")["estimate"] == pytest.approx(0.375)
    top = one(tables["distributions"].filter(pl.col("score_from") == 7), category="__macro__")
    assert top["share_at_least"] == pytest.approx(0.375)


@pytest.mark.parametrize("seed", range(4))
def test_a_distribution_adds_up_and_agrees_with_the_mean_and_the_share(make_rubric, all_tables, one, seed):
    draw = random.Random(seed)
    prompts = {c: [[draw.choice([*range(11), "refusal"]) for _ in range(3)] for _ in range(9)] for c in "xy"}
    rows = [row for c, found in prompts.items() for row in rows_of(found, c)]
    tables = all_tables(rows, make_rubric({None: ("q",)}, report_by="category"), at_least={"q": 6})
    for category in ("x", "y", "__macro__"):
        steps = tables["distributions"].filter(category=category)
        mean, share = (cell(tables, one, LIKE, category, metric) for metric in ("mean", "share_at_least_6"))
        assert steps["score_from"].to_list() == list(range(11))
        assert steps["share"].sum() == pytest.approx(1, abs=1e-12)
        assert steps["n_scores"].sum() == mean["n_scored"]
        assert (steps["share"] * steps["score_from"]).sum() == pytest.approx(mean["estimate"], abs=1e-12)
        at_six = one(steps.filter(pl.col("score_from") == 6), category=category)
        for name, wanted in (("share_at_least", "estimate"), ("ci_low", "ci_low"), ("ci_high", "ci_high")):
            assert at_six[name] == pytest.approx(share[wanted], abs=1e-9)


def test_decimal_scores_fall_in_steps_of_one(make_rubric, all_tables, one):
    tables = all_tables(rows_of([[0.2, 9.99], [10, 3.0]]), make_rubric({None: ("q",)}))
    steps = tables["distributions"].filter(category="__macro__")
    filled = {(r["score_from"], r["score_below"]): r["n_scores"] for r in steps.iter_rows(named=True) if r["n_scores"]}
    assert filled == {(0, 1): 1, (3, 4): 1, (9, 10): 1, (10, None): 1}


def test_steps_of_a_scale(make_rubric):
    assert score_steps(make_rubric({None: ("q",)}, scale=(1, 5)), "q") == [1, 2, 3, 4, 5]
    assert score_steps(make_rubric({None: ("q",)}, scale=(0, 1000)), "q") == list(range(0, 1001, 50))
    assert score_steps(make_rubric({None: ("q",)}, scale=(0, 1)), "q") == [n / 10 for n in range(11)]


def test_a_blocked_cell_has_no_distribution(make_rubric, all_tables):
    tables = all_tables(rows_of([[3, "empty"], ["empty", "empty"]]), make_rubric({None: ("q",)}), min_coverage=0.5)
    assert tables["distributions"].is_empty()
