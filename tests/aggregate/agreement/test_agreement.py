"""The agreement table: who is compared over what, on which scale, and the reason where there is no figure."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from schemas.errors import InputError
from schemas.statuses.people import AgreementReason
from schemas.tables.agreement import AGREEMENT, RATINGS
from schemas.tables.table import conform
from tasks.aggregate.agreement.agreement import agreement_rows, rated_table
from tasks.aggregate.agreement.rated import rated_dimensions
from tasks.aggregate.tables import Settings

N = 24
CATEGORIES = ("colors", "counting")


@pytest.fixture
def tables(make_rubric: Callable[..., Any], make_frames: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Judgements, scores and ratings of 24 prompts by two models; `rated` is a function of (prompt, model, rater) to a rating."""

    def build(
        rated: Callable[..., float | None], raters: tuple[str, ...] = ("ann", "bob"), step: float | None = 1,
        scale: tuple[float, float, float] | None = (1, 5, 1), judged: Callable[..., Any] = lambda p, m: float((p + 2 * m) % 6),
        kind: str = "rater", dimensions: tuple[str, ...] = ("overall",),
    ) -> dict[str, Any]:  # fmt: skip
        rubric = make_rubric({None: dimensions}, scale=(0, 10))
        dims = {key: _with_step(variant, step) for key, variant in rubric.variants.items()}
        rubric = _replaced(rubric, variants=dims)
        rows = [
            {
                "model": f"m{m}", "category": CATEGORIES[p % 2], "prompt": f"p{p}", "sample": f"{p}/{m}",
                "scores": {} if judged(p, m) is None else dict.fromkeys(dimensions, judged(p, m)),
            }
            for p, m in product(range(N), range(2))
        ]  # fmt: skip
        judgements, scores = make_frames([row for row in rows if row["scores"]] or rows, rubric)
        by_sample = dict(zip([row["sample"] for row in rows], judgements["sample_id"], strict=False))
        cells = [
            {
                "rating_key": f"r#{p}/{m}:{rater}:{key}", "sample_id": by_sample[f"{p}/{m}"], "item_id": None, "dimension": key,
                "rater": rater, "kind": kind, "rating": rated(p, m, rater), "scale_low": scale and scale[0],
                "scale_high": scale and scale[1], "scale_step": scale and scale[2],
                "status": "missing" if rated(p, m, rater) is None else "ok", "detail": None,
            }
            for p, m in product(range(N), range(2)) for rater in raters for key in dimensions
        ]  # fmt: skip
        ratings = pl.DataFrame(conform(pl.DataFrame(cells, schema=RATINGS.empty().schema), RATINGS))
        return {"judgements": judgements, "scores": scores, "ratings": ratings, "rubrics": {rubric.id: rubric}}

    return build


def _with_step(variant: Any, step: float | None) -> Any:
    return _replaced(variant, dimensions=tuple(_replaced(one, step=step) for one in variant.dimensions))


def _replaced(record: Any, **changed: Any) -> Any:
    from dataclasses import replace

    return replace(record, **changed)


@pytest.fixture
def compare(run_arguments: dict[str, Any]) -> Callable[..., pl.DataFrame]:
    def compared(tables: dict[str, Any]) -> pl.DataFrame:
        found = rated_dimensions(tables["judgements"].lazy(), tables["scores"].lazy(), tables["ratings"], tables["rubrics"])
        return rated_table(AGREEMENT, found, Settings(**run_arguments, min_coverage=0.0), agreement_rows)

    return compared


def noisy(p: int, m: int, rater: str) -> float:
    """A rating on 1 to 5 that goes with the judge's score of (p + 2 m) mod 6, more or less."""
    return float(min(5, max(1, (p + 2 * m) % 6 + (p * 7 + len(rater) + ord(rater[0])) % 3 - 1)))


def pick(table: pl.DataFrame, **address: str | None) -> dict[str, Any]:
    wanted = {"model": "__all__", "category": "__micro__", "against_dimension": None} | address
    return table.row(by_predicate=pl.all_horizontal(pl.col(k).eq_missing(v) for k, v in wanted.items()), named=True)


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


def test_who_is_not_named_is_held_against_nobody_and_counts_in_means_and_alpha(
    tables: Callable[..., Any], compare: Callable[..., Any]
) -> None:
    slots = ("__unnamed_1__", "__unnamed_2__", "__unnamed_3__")

    def dealt(turn: int) -> dict[str, Any]:
        """The same three ratings of each sample, in another order under the three names."""
        return tables(
            lambda p, m, r: noisy(p, m, "abc"[(slots.index(r) + turn * p) % 3]), raters=slots, dimensions=("look", "text")
        )

    table, named = compare(dealt(0)), compare(tables(lambda p, m, r: noisy(p, m, r[0]), raters=("a", "b", "c")))
    assert set(table.select("subject", "against").iter_rows()) == {
        ("eye", "__raters_mean__"), ("__each_other__", "__each_other__"), ("__raters_mean__", "__raters_mean__"),
    }  # fmt: skip
    assert table.equals(compare(dealt(1))), "who stands under which number says nothing"
    for address in ({"subject": "eye", "metric": "bias"}, {"subject": "__each_other__", "metric": "krippendorff_alpha"}):
        of_all = {"against": "__raters_mean__"} if address["subject"] == "eye" else {}
        mine, theirs = (pick(one, **address, **of_all, **more) for one, more in ((table, {"dimension": "look"}), (named, {})))
        assert [mine[name] for name in ("estimate", "ci_low", "ci_high", "n_raters")] == [
            theirs[name] for name in ("estimate", "ci_low", "ci_high", "n_raters")
        ]
    alone = compare(tables(lambda p, m, r: noisy(p, m, r) - 1, raters=slots[:1], scale=(0, 5, 1)))
    assert pick(alone, subject="eye", against="__raters_mean__", metric="quadratic_kappa")["status"] == "ok"


def test_rare_labels_are_not_asked_of_each_unnamed_rater(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    """The third rating that some samples have is all of the commonest label: a person so sparing would forbid the interval."""

    def rated(p: int, m: int, rater: str) -> float | None:
        return (None if p % 4 else 1.0) if rater.endswith(("3__", "cy")) else float(1 + (p + m + p * (rater[-3] == "2")) % 3 % 2)

    for third, status in (("__unnamed_3__", "ok"), ("cy", "no_interval")):
        table = compare(
            tables(rated, raters=("__unnamed_1__", "__unnamed_2__", third) if third != "cy" else ("x1__", "x2__", "cy"))
        )
        assert pick(table, subject="__each_other__", metric="krippendorff_alpha")["status"] == status


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


def test_of_a_rater_who_names_the_rubric_and_does_not_the_named_rating_counts(tables: Callable[..., Any]) -> None:
    made = tables(noisy, raters=("ann",))
    (rubric,) = made["rubrics"].values()
    twin = _replaced(rubric, id="twin")
    named = made["ratings"].head(1).with_columns(dimension=pl.lit("twin.overall"), rating=pl.lit(5.0), rating_key=pl.lit("z"))
    ratings = pl.concat([named, made["ratings"].with_columns(rating=pl.lit(1.0))])
    frames = [made[name].with_columns(rubric_id=pl.lit("twin")) for name in ("judgements", "scores")]
    judgements, scores = (pl.concat([made[name], one]) for name, one in zip(("judgements", "scores"), frames, strict=True))
    rubrics = {one.id: one for one in (rubric, twin)}
    found = rated_dimensions(judgements.lazy(), scores.lazy(), ratings, rubrics)
    assert {one.id: sorted(set(rated.raters[0].values)) for one, (rated,) in found} == {"plain": [0.0], "twin": [0.0, 10.0]}
    lost = ratings.with_columns(dimension=pl.lit("x"))
    with pytest.raises(InputError, match=r"the dimensions are overall, plain\.overall, twin\.overall"):
        list(rated_dimensions(judgements.lazy(), scores.lazy(), lost, rubrics))


def test_ratings_of_an_unknown_dimension_are_refused(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    made = tables(noisy)
    made["ratings"] = made["ratings"].with_columns(dimension=pl.lit("charm"))
    with pytest.raises(InputError, match=r"dimension 'charm', which no rubric of the benchmark has; the dimensions are overall"):
        compare(made)
