"""The judge itself: variance components, reliability, designs. Jury agreement is test_jury.py."""

import math

import numpy as np
import polars as pl
import pytest

from tasks.aggregate.reliability.components import components, image_means, leave_one_out, prompt_sums, scored, stratum_sums
from tasks.aggregate.reliability.reliability import Design, designs, predicted, reliability


def rows_of(values, categories=None):
    """scored() rows of nested lists prompt -> image -> repeats."""
    return pl.DataFrame([
        {
            "rubric_id": "plain", "rubric_version": "1", "judge_model": "eye", "model": "north", "checkpoint": "1",
            "dimension": "q", "category": categories[p] if categories else "x",
            "prompt_id": f"p{p:03d}", "sample_id": f"s{p:03d}-{i}",
            "repeat": r, "score": float(score),
        }
        for p, images in enumerate(values) for i, repeats in enumerate(images) for r, score in enumerate(repeats)
    ])  # fmt: skip


def draw(rng, n_prompts=60, n_images=4, n_repeats=3, sds=(1.0, 1.0, 1.0)):
    shape = (n_prompts, n_images, n_repeats)
    parts = (rng.normal(0, sd, (*shape[: n + 1], *[1] * (2 - n))) for n, sd in enumerate(sds))
    return sum(parts) + np.zeros(shape)


def test_balanced_components_worked_out_by_hand():
    """Two prompts × two images × two repeats: MS repeats 0.5, MS images 4.5, MS prompts 32 (sums in the comments)."""
    values = [[[1, 2], [3, 4]], [[5, 6], [9, 8]]]
    # image means 1.5 3.5 5.5 8.5, prompt means 2.5 7, mean 4.75
    # within images 4 × 0.5 / 4 = 0.5; images 2 (1 + 1 + 2.25 + 2.25) / 2 = 6.5; prompts 4 (2.25² + 2.25²) / 1 = 40.5
    row = reliability(rows_of(values)).row(0, named=True)
    assert row["var_judge"] == pytest.approx(0.5, abs=1e-12)
    assert row["var_image"] == pytest.approx((6.5 - 0.5) / 2, abs=1e-12)
    assert row["var_prompt"] == pytest.approx((40.5 - 6.5) / 4, abs=1e-12)
    between = 3 + 8.5
    assert row["icc"] == pytest.approx(between / (between + 0.5), abs=1e-12)
    assert row["reliability"] == pytest.approx(between / (between + 0.25), abs=1e-12)
    assert (row["n_prompts"], row["n_images"], row["n_scores"], row["n_repeats_mean"]) == (2, 4, 8, 2.0)
    assert (row["status"], row["reason"], row["n_truncated"]) == ("ok", None, 0)


def unbalanced():
    """Prompt, image and category of every score of a lopsided design."""
    image_repeats = [[1, 2], [3], [2, 2, 1], [1, 4], [2, 1, 1, 1], [5, 2]]
    categories = [0, 0, 0, 1, 1, 1]
    prompt = np.repeat(np.arange(6), [sum(repeats) for repeats in image_repeats])
    flat = [n for repeats in image_repeats for n in repeats]
    return prompt, np.repeat(np.arange(len(flat)), flat), np.array(categories)


def fitted(scores, prompt, image, strata):
    sums = prompt_sums(scores, image, prompt)
    return components(*(part[None] for part in stratum_sums(sums, strata)))


@pytest.mark.parametrize("effect", ["prompt", "image", "judge", "category"])
def test_unbalanced_components_are_unbiased_exactly(effect):
    """A quadratic form q has, where one effect gives the covariance ZZ', the expectation: sum of q over the columns of Z."""
    prompt, image, strata = unbalanced()
    levels = {"prompt": prompt, "image": image, "judge": np.arange(len(prompt)), "category": strata[prompt]}[effect]
    columns = [(levels == level).astype(float) for level in np.unique(levels)]
    found = [fitted(column, prompt, image, strata) for column in columns]
    sums = {name: sum(float(getattr(one, name)[0]) for one in found) for name in ("prompt", "image", "judge")}
    assert sums == {name: pytest.approx(float(name == effect), abs=1e-9) for name in sums}


def test_leaving_a_prompt_out_is_fitting_without_it():
    rng = np.random.default_rng(4)
    prompt, image, strata = unbalanced()
    scores = rng.normal(5, 2, len(prompt))
    left = components(*leave_one_out(prompt_sums(scores, image, prompt), strata))
    for out in range(6):
        kept = prompt != out
        numbers = np.unique(image[kept], return_inverse=True)[1], np.unique(prompt[kept], return_inverse=True)[1]
        sums = prompt_sums(scores[kept], *numbers)
        alone = components(*(part[None] for part in stratum_sums(sums, np.delete(strata, out))))
        for name in ("prompt", "image", "judge"):
            assert getattr(left, name)[out] == pytest.approx(getattr(alone, name)[0], abs=1e-9)


def test_level_and_categories_are_no_noise():
    values = draw(np.random.default_rng(6))
    plain = reliability(rows_of(values.tolist(), ["x"] * 30 + ["y"] * 30)).row(0, named=True)
    values[30:] += 100
    moved = reliability(rows_of((values + 1000).tolist(), ["x"] * 30 + ["y"] * 30)).row(0, named=True)
    for name in ("var_prompt", "var_image", "var_judge", "icc", "icc_low", "icc_high", "reliability"):
        assert moved[name] == pytest.approx(plain[name], abs=1e-7), name


REASONS = {
    "no repeats": ([[[1], [2]], [[5], [7]], [[3], [3]]], "null", "no_repeats", ("var_prompt", "var_image_judge")),
    "one image a prompt": ([[[1, 2]], [[5, 7]], [[3, 4]]], "ok", "one_image_per_prompt", ("var_judge", "icc", "reliability")),
    "one score a prompt": ([[[1]], [[5]], [[3]]], "null", "no_repeats", ()),
    "one prompt": ([[[1, 2], [5, 7]]], "null", "too_few_prompts", ("var_image", "var_judge")),
    "one image": ([[[1, 2, 6]]], "null", "too_few_prompts", ("var_judge",)),
    "one image asked once": ([[[1]]], "null", "too_few_prompts", ()),
    "the same score everywhere": ([[[4, 4], [4, 4]]] * 3, "null", "no_variation", ("var_prompt", "var_image", "var_judge")),
}


@pytest.mark.parametrize(("values", "status", "reason", "known"), REASONS.values(), ids=REASONS)
def test_what_a_design_cannot_tell_is_null_with_its_reason(values, status, reason, known):
    row = reliability(rows_of(values)).row(0, named=True)
    assert (row["status"], row["reason"]) == (status, reason)
    figures = ("var_prompt", "var_image", "var_judge", "icc", "reliability")
    assert {name for name in (*figures, "var_image_judge") if row[name] is not None} >= set(known)
    assert all(row[name] is None for name in figures if name not in known)


def test_one_image_asked_again_gives_the_judges_own_variance():
    row = reliability(rows_of([[[1, 2, 6]]])).row(0, named=True)
    assert row["var_judge"] == pytest.approx(np.var([1, 2, 6], ddof=1), abs=1e-12)


def test_a_negative_estimate_is_shown_as_0_and_counted():
    values = [[[1, 9], [9, 1]], [[1, 9], [1, 9]], [[9, 1], [9, 1]]]
    row = reliability(rows_of(values)).row(0, named=True)
    assert (row["var_prompt"], row["var_image"], row["icc"]) == (0.0, 0.0, 0.0)
    assert row["n_truncated"] >= 1


@pytest.mark.parametrize(("n_repeats", "step"), [(2, 1), (3, 1), (3, 0.5), (3, 0.1)])
def test_a_judge_without_noise_is_wholly_reliable(n_repeats, step):
    """No interval: nothing says how much it may yet vary."""
    values = [[[1] * n_repeats, [2] * n_repeats], [[5] * n_repeats, [7] * n_repeats], [[3] * n_repeats, [4] * n_repeats]]
    row = reliability(rows_of(np.multiply(values, step))).row(0, named=True)
    assert (row["var_judge"], row["icc"], row["reliability"], row["icc_low"]) == (0.0, 1.0, 1.0, None)


def test_the_interval_covers():
    """300 draws of 60 prompts × 4 images × 3 repeats; the true ICC is 2/3."""
    rng = np.random.default_rng(9)
    found = [reliability(rows_of(draw(rng, sds=(1.4, 0.2, 1.0)).tolist())).row(0, named=True) for _ in range(300)]
    truth = 2.0 / 3.0
    covered = np.mean([row["icc_low"] <= truth <= row["icc_high"] for row in found])
    assert 0.91 <= covered <= 0.985
    assert np.mean([row["icc"] for row in found]) == pytest.approx(truth, abs=0.01)


def test_designs_foretell_what_other_designs_give():
    """The standard error foretold from one sample against that of 400 samples of the other design."""
    rng, sds = np.random.default_rng(10), (0.8, 0.6, 1.0)
    table = designs(rows_of(draw(rng, 400, 4, 2, sds).tolist()))
    for n_prompts, n_images, n_repeats in ((400, 4, 2), (400, 8, 1), (800, 4, 2)):
        wanted = {"n_prompts": n_prompts, "n_images_per_prompt": n_images, "n_repeats": n_repeats}
        row = table.row(by_predicate=pl.all_horizontal(pl.col(name) == n for name, n in wanted.items()), named=True)
        truth = math.sqrt(sds[0] ** 2 + sds[1] ** 2 / n_images + sds[2] ** 2 / n_images / n_repeats) / math.sqrt(n_prompts)
        means = [draw(rng, n_prompts, n_images, n_repeats, sds).mean() for _ in range(400)]
        assert row["se_prompts_like_these"] == pytest.approx(truth, rel=0.12)
        assert np.std(means) == pytest.approx(truth, rel=0.12)
        assert row["is_at_hand"] == ((n_prompts, n_images, n_repeats) == (400, 4, 2))
        assert row["cost_ratio"] == pytest.approx(n_prompts * n_images * n_repeats / 3200)
    assert table["is_at_hand"].sum() == 1
    assert table.filter(pl.col("cost_ratio") < 1.5)["cost_ratio"].is_between(0.99, 1.01).all()


def test_of_scores_in_no_whole_design_their_own_number_is_what_they_cost():
    """100 prompts, 23 with three pictures and the others with one, every other picture asked twice."""
    rng = np.random.default_rng(14)
    values = [[rng.normal(size=1 + n % 2).tolist() for _ in range(3 if n < 23 else 1)] for n in range(100)]
    table, row = designs(rows_of(values)), reliability(rows_of(values)).row(0, named=True)
    own = table.row(by_predicate=pl.col("is_at_hand"), named=True)
    assert (own["n_judgements"], own["cost_ratio"], row["n_images"]) == (row["n_scores"], 1.0, 146)
    parts = tuple(row[name] for name in ("var_prompt", "var_image", "var_judge"))
    assert own["se_prompts_like_these"] == pytest.approx(predicted(Design(100, 1.46, row["n_repeats_mean"]), parts)[0])
    others = table.filter(~pl.col("is_at_hand"))
    is_double = others["cost_ratio"] > 1.5
    assert others.filter(is_double)["cost_ratio"].is_between(1.8, 2.2).all()
    assert is_double.sum() == 3
    assert others.filter(~is_double)["cost_ratio"].is_between(0.95, 1.05).all()


def test_categories_of_unequal_size_cost_precision():
    values = draw(np.random.default_rng(12), 40, 2, 2).tolist()
    even = designs(rows_of(values, ["x"] * 20 + ["y"] * 20)).filter("is_at_hand")
    uneven = designs(rows_of(values, ["x"] * 30 + ["y"] * 10)).filter("is_at_hand")
    variances = reliability(rows_of(values, ["x"] * 30 + ["y"] * 10)).row(0, named=True)
    parts = tuple(variances[name] for name in ("var_prompt", "var_image", "var_judge"))
    by_hand = math.sqrt(sum(predicted(Design(n, 2, 2), parts)[0] ** 2 for n in (30, 10)) / 4)
    assert uneven["se_prompts_like_these"][0] == pytest.approx(by_hand, abs=1e-12)
    assert uneven["se_these_prompts"][0] > even["se_these_prompts"][0]


def test_without_repeats_no_design_with_repeats_is_foretold():
    table = designs(rows_of(draw(np.random.default_rng(13), 30, 4, 1).tolist()))
    assert table["n_repeats"].unique().to_list() == [1]
    assert designs(rows_of([[[1]], [[5]], [[3]]])).height == 0


def test_only_scores_that_count_are_looked_at(make_rubric, make_frames):
    rows = [
        {"prompt": "p", "sample": "a", "repeat": 0, "scores": {"q": 3}},
        {"prompt": "p", "sample": "a", "repeat": 1, "scores": {"q": 4}},
        {"prompt": "p", "sample": "b", "scores": {"q": "refusal"}},
        {"prompt": "p", "sample": "c", "scores": {"q": ("rule_violation", "rule_violation", 9.0, 0.0, 1.0)}},
        {"prompt": "p", "sample": "d", "status": "unusable_sample", "reason": "broken_image"},
        {"prompt": "p", "sample": "e", "occasion": "2026-11-03", "scores": {"q": 9}},
    ]
    judgements, scores = make_frames(rows, make_rubric({None: ("q",)}))
    found = scored(judgements, scores)
    assert found["score"].to_list() == [3.0, 4.0]
    assert found["category"].to_list() == ["__unnamed__"] * 2
    assert image_means(found)["score"].to_list() == [3.5]
    assert scored(judgements, scores, "2026-11-03")["score"].to_list() == [9.0]
    assert reliability(scored(judgements.clear(), scores)).height == 0


def test_row_order_changes_nothing():
    rows = rows_of(draw(np.random.default_rng(14), 20, 3, 2).tolist())
    shuffled = rows.sample(fraction=1.0, shuffle=True, seed=3)
    assert reliability(shuffled).equals(reliability(rows))
    assert designs(shuffled).equals(designs(rows))
