"""The agreement table: who is compared over what, on which scale, and the reason where there is no figure."""

from collections.abc import Callable
from itertools import product
from time import process_time
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from schemas.errors import InputError
from schemas.statuses.people import MAX_NAMED_RATERS, AgreementMetric, AgreementReason, Assessor
from schemas.tables.agreement import AGREEMENT
from tasks.aggregate.agreement.agreement import Figure, _together
from tasks.aggregate.agreement.pairs import Assessment, Rated, Scope
from tests.aggregate.agreement.noisy_raters import N, noisy, pick


def test_figures_are_scipys_on_the_rubrics_scale(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    table = compare(tables(noisy))
    samples = list(product(range(N), range(2)))
    judge = np.array([float((p + 2 * m) % 6) for p, m in samples])
    people = np.array([[noisy(p, m, rater) for rater in ("ann", "bob")] for p, m in samples])
    mean = people.mean(axis=1)
    expected = {
        "spearman": stats.spearmanr(judge, mean).statistic, "kendall_tau_b": stats.kendalltau(judge, mean).statistic,
        "pearson": stats.pearsonr(judge, mean).statistic, "bias": (judge - (mean - 1) * 2.5).mean(),
    }  # fmt: skip
    for metric, value in expected.items():
        found = pick(table, subject="eye", against="__raters_mean__", metric=metric)
        assert found["estimate"] == pytest.approx(value, abs=1e-9)
        assert found["ci_low"] < value < found["ci_high"]
        assert (found["n_items"], found["n_prompts"], found["n_raters"], found["status"]) == (48, N, 2, "ok")
    bias = pick(table, subject="eye", against="ann", metric="bias")
    assert (bias["scale_low"], bias["scale_high"]) == (0, 10)


def test_everybody_is_compared_once(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    table = compare(tables(noisy, raters=("ann", "bob", "cy")))
    pairs = set(table.select("subject_kind", "subject", "against").iter_rows())
    assert pairs == {
        ("judge", "eye", "__raters_mean__"), ("judge", "eye", "ann"), ("judge", "eye", "bob"), ("judge", "eye", "cy"),
        ("rater", "ann", "bob"), ("rater", "ann", "cy"), ("rater", "bob", "cy"),
        ("rater", "ann", "__other_raters_mean__"), ("rater", "bob", "__other_raters_mean__"),
        ("rater", "cy", "__other_raters_mean__"), ("raters", "__each_other__", "__each_other__"),
    }  # fmt: skip
    assert not table.select(AGREEMENT.key).is_duplicated().any()


@pytest.mark.parametrize(("n_more", "is_by_name"), [(0, True), (1, False)], ids=["as many as are", "one more"])
def test_of_very_many_raters_none_is_compared_by_name(
    tables: Callable[..., Any], compare: Callable[..., Any], n_more: int, is_by_name: bool
) -> None:
    """They count in the mean and in alpha as before; of two dimensions too, the means alone are compared."""
    raters = tuple(f"r{k:02d}" for k in range(MAX_NAMED_RATERS + n_more))

    def rated(p: int, m: int, rater: str) -> float | None:
        return noisy(p, m, rater) if p + m == 0 else None

    table = compare(tables(rated, raters=raters, dimensions=("overall", "count")))
    together = {("eye", "__raters_mean__"), ("__each_other__", "__each_other__"), ("__raters_mean__", "__raters_mean__")}
    pairs = set(table.select("subject", "against").iter_rows())
    assert pairs == together if not is_by_name else pairs > together
    assert set(table.filter(subject="eye", against="__raters_mean__")["n_raters"]) == {len(raters)}


def test_categories_and_models_have_rows_of_their_own(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    table = compare(tables(noisy))
    for address in ({"category": "colors"}, {"category": "counting"}, {"model": "m0"}, {"model": "m1"}):
        found = pick(table, subject="eye", against="ann", metric="spearman", **address)
        assert found["n_items"] == 24
    both = pick(table, subject="eye", against="ann", metric="bias")["estimate"]
    parts = [pick(table, subject="eye", against="ann", metric="bias", model=name)["estimate"] for name in ("m0", "m1")]
    assert both == pytest.approx(sum(parts) / 2)


def test_missing_cells_are_left_out_of_pairs_and_kept_in_alpha(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    def rated(p: int, m: int, rater: str) -> float | None:
        return None if (p + len(rater) + ord(rater[0])) % 4 == 0 else noisy(p, m, rater)

    table = compare(tables(rated, raters=("ann", "bob", "cy")))
    ann = sum(rated(p, m, "ann") is not None for p, m in product(range(N), range(2)))
    assert pick(table, subject="eye", against="ann", metric="spearman")["n_items"] == ann < 48
    together = pick(table, subject="__each_other__", metric="krippendorff_alpha")
    assert together["status"] == "ok"
    pairable = [sum(rated(p, m, rater) is not None for rater in ("ann", "bob", "cy")) > 1 for p, m in product(range(N), range(2))]
    assert together["n_items"] == sum(pairable) < 48
    assert together["n_raters"] == 3


def test_rated_samples_that_a_judge_failed_on_are_counted_and_held_against_the_others(
    tables: Callable[..., Any], compare: Callable[..., Any]
) -> None:
    """It refuses what is worst of the second model; what it was never asked about, or does not apply, is no failure."""
    aside = {(0, 0): ("not_applicable", None, None, 0.0, 10.0), (1, 0): ("no_reply", "not_asked", None, 0.0, 10.0)}

    def judged(p: int, m: int) -> Any:
        return "refusal" if m == 1 and p < 6 else aside.get((p, m), float((p + 2 * m) % 6))

    table = compare(tables(lambda p, m, _: 1.0 if judged(p, m) == "refusal" else 3.0, judged=judged))
    share = table.filter(metric="unscored", category="__micro__").sort("model")
    assert share.select("model", "estimate", "n_items").rows() == [("__all__", pytest.approx(6 / 46), 46), ("m1", 0.25, 24)]
    assert set(share["against"]) == {"__raters_mean__"}
    assert pick(table, subject="eye", metric="unscored_bias")["estimate"] == (1 - 3) * 2.5


KAPPA = {"subject": "eye", "against": "ann", "metric": "quadratic_kappa"}
SPEARMAN = {"subject": "eye", "against": "ann", "metric": "spearman"}


@pytest.mark.parametrize(
    ("how", "address", "reason"),
    [
        pytest.param({"judged": lambda _p, _m: None}, SPEARMAN | {"against": "__raters_mean__"}, "no_scores", id="no judge"),
        pytest.param({"judged": lambda _p, _m: "refusal"}, SPEARMAN, "no_scores", id="a judge that only refuses"),
        pytest.param({"rated": lambda *_: None}, SPEARMAN | {"against": "__raters_mean__"}, "no_ratings", id="no ratings"),
        pytest.param({"rated": lambda *_: 3.0}, SPEARMAN, "no_variation", id="a rater who says the same"),
        pytest.param(
            {"rated": lambda p, m, r: noisy(p, m, r) if p + m == 0 else None}, SPEARMAN, "too_few_items", id="one rating"
        ),
        pytest.param({"scale": None}, KAPPA, "scale_not_declared", id="kappa without a scale"),
        pytest.param({"scale": None}, SPEARMAN | {"metric": "bias"}, "scale_not_declared", id="bias without a scale"),
        pytest.param({"step": None}, KAPPA, "not_on_labels", id="a rubric that allows decimals"),
        pytest.param({}, KAPPA, "not_on_labels", id="2 on 1 to 5 is 2.5 on 0 to 10"),
        pytest.param({}, KAPPA | {"against": "__raters_mean__"}, "not_on_labels", id="a mean is no label"),
    ],
)
def test_what_does_not_exist_is_null_and_says_why(
    tables: Callable[..., Any], compare: Callable[..., Any], how: dict[str, Any], address: dict[str, str], reason: str
) -> None:
    found = pick(compare(tables(**({"rated": noisy} | how))), **address)
    assert (found["status"], found["reason"], found["estimate"], found["ci_low"]) == ("null", reason, None, None)
    assert reason in set(AgreementReason)


def test_the_alpha_of_labels_is_not_computed_of_numbers_that_are_none(make_rubric: Callable[..., Any]) -> None:
    """Three raters with sliders: a pass for each of 24,000 different numbers took 13 seconds, and was thrown away."""
    values, n = np.random.default_rng(0).random((8_000, 3)), 8_000
    raters = tuple(Assessment(Assessor.RATER, f"r{k}", values[:, k], None, has_scale=True) for k in range(3))
    rated = Rated(make_rubric({None: ("overall",)}), "overall_score", 0.0, 1.0, pl.DataFrame(), (), (), raters)
    scope = Scope("m", "c", "x", np.ones(n, bool), tuple(map(str, range(n))), np.arange(n))
    start = process_time()
    assert _together(AgreementMetric.KRIPPENDORFF_ALPHA_NOMINAL, rated, values, scope) == Figure(
        reason=AgreementReason.NOT_ON_LABELS
    )
    assert process_time() - start < 3


def test_ranks_need_no_scale(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    with_scale, without = (pick(compare(tables(noisy, scale=scale)), **SPEARMAN) for scale in ((1, 5, 1), None))
    assert without["estimate"] == with_scale["estimate"]
    assert without["ci_low"] == with_scale["ci_low"]


def test_kappa_where_the_raters_labels_fall_on_the_judges(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    found = pick(compare(tables(lambda p, m, r: noisy(p, m, r) - 1, scale=(0, 5, 1))), **KAPPA)
    assert found["status"] == "ok"
    assert 0 < found["estimate"] < 1


def test_few_prompts_give_a_figure_without_an_interval(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    found = pick(compare(tables(lambda p, m, r: noisy(p, m, r) if p < 9 else None)), **SPEARMAN)
    assert (found["status"], found["reason"], found["n_prompts"]) == ("no_interval", "too_few_prompts", 9)
    assert found["estimate"] is not None


def test_metrics_stand_beside_raters_and_are_none(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    made, metric = tables(noisy), tables(lambda p, m, _r: p * 1.5 + m, raters=("clip",), scale=None, kind="metric")
    made["ratings"] = pl.concat([made["ratings"], metric["ratings"]])
    table = compare(made)
    assert pick(table, subject="clip", against="__raters_mean__", metric="spearman")["n_raters"] == 2
    assert pick(table, subject="__each_other__", metric="krippendorff_alpha")["n_raters"] == 2
    assert "clip" not in set(table["against"])


def test_two_dimensions_of_one_rater_are_held_against_each_other(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    table = compare(tables(noisy, raters=("ann",), dimensions=("look", "text")))
    found = pick(table, dimension="look", subject="ann", against_dimension="text", metric="spearman")
    assert found["estimate"] == 1
    assert found["reason"] == "no_variation"  # of the interval: every replicate is 1


def test_row_order_changes_nothing(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    made = tables(noisy, raters=("ann", "bob", "cy"))
    turned = {name: f.sample(fraction=1, shuffle=True, seed=5) if isinstance(f, pl.DataFrame) else f for name, f in made.items()}
    assert compare(made).equals(compare(turned))


def test_ratings_of_an_unknown_dimension_are_refused(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    made = tables(noisy)
    made["ratings"] = made["ratings"].with_columns(dimension=pl.lit("charm"))
    with pytest.raises(InputError, match=r"dimension 'charm', which no rubric of the benchmark has; available: overall"):
        compare(made)
