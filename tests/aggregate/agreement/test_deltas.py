"""The tables corrected_comparisons and corrected_standings: a judge that is kind to one family, and who has no row or no rank."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from schemas.benchmark.file import Statistics
from schemas.tables.agreement import CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS, RATINGS
from schemas.tables.published import COMPARISONS, STANDINGS
from schemas.tables.stored import REPLIES
from schemas.tables.table import conform
from tasks.aggregate.agreement.blocked import Blocked
from tasks.aggregate.agreement.corrected import as_published, corrected
from tasks.aggregate.agreement.deltas import corrected_deltas
from tasks.aggregate.agreement.rated import rated_dimensions
from tasks.aggregate.tables import Settings, aggregated
from tasks.publish.standings.corrected_ranks import rankings

MODELS = ("dear", "plain", "poor")
KINDNESS, BETTER = {"dear": 2.0}, {"plain": 1.0, "poor": -1.5}
N = 120
Tables = dict[str, pl.DataFrame]


@pytest.fixture
def tables(
    make_rubric: Callable[..., Any], make_frames: Callable[..., Any], run_arguments: dict[str, Any]
) -> Callable[..., Tables]:
    """Three models of N prompts in two categories: people like `plain` best, the judge is 2 kinder to `dear`."""

    def build(
        is_rated: Callable[[int, str, float], bool] = lambda p, _m, _q: p % 2 == 0,
        scale: tuple[float, float] | None = (0, 10),
        dimensions: tuple[str, ...] = ("overall",),
        models: tuple[str, ...] = MODELS,
        raters: tuple[str, ...] = ("ann",),
        primary: list[str] | None = None,
        reference: str | None = None,
        everywhere: float | dict[str, float] | None = None,
        has_categories: bool = True,
        twice: tuple[str, int] | None = None,
        is_lost: Callable[[str, str, int], bool] = lambda _judge, _model, _p: False,
        min_coverage: float = 0.0,
    ) -> Tables:
        rng = np.random.default_rng(7)
        quality = rng.normal(5, 1, N) - 1.5 * (np.arange(N) >= N // 2)
        rubric = make_rubric({None: dimensions})
        rows, cells = [], []
        for model in models:
            people = np.clip(quality + BETTER.get(model, 0) + rng.normal(0, 0.4, N), 0, 10)
            judged = np.clip(people + KINDNESS.get(model, 0) + rng.normal(0, 0.4, N), 0, 10)
            if isinstance(everywhere, float):
                people = judged = np.full(N, everywhere)
            elif everywhere is not None:
                people, judged = quality, quality + everywhere[model]
            for p in range(N):
                scores = dict.fromkeys(dimensions, "refusal" if is_lost("eye", model, p) else float(judged[p]))
                category = f"c{p // 60}" if has_categories else None
                where = {"model": model, "checkpoint": "1", "category": category, "prompt": p, "sample": p}
                rows.append(where | {"scores": scores, "rated": is_rated(p, model, float(quality[p])), "people": people[p]})
                if twice == (model, p):
                    rows.append(rows[-1] | {"sample": N, "rated": False})
                if reference and rows[-1]["rated"]:
                    said = "refusal" if is_lost(reference, model, p) else float(people[p])
                    by_them = {"scores": dict.fromkeys(dimensions, said), "judge": reference, "rated": False}
                    rows.append(where | by_them)
        judgements, scores = make_frames(rows, rubric)
        for row, sample in zip(rows, judgements["sample_id"], strict=True):
            for rater in raters if row["rated"] else ():
                cells += [
                    {
                        "rating_key": f"{sample}{rater}{key}", "sample_id": sample, "item_id": None, "dimension": key,
                        "rater": rater, "kind": "rater", "rating": row["people"], "scale_low": scale and scale[0],
                        "scale_high": scale and scale[1], "scale_step": None, "status": "ok", "detail": None,
                    }
                    for key in dimensions
                ]  # fmt: skip
        ratings = pl.DataFrame(conform(pl.DataFrame(cells, schema=RATINGS.empty().schema), RATINGS))
        rated = RATINGS.empty() if reference else ratings
        found = list(rated_dimensions(judgements.lazy(), scores.lazy(), rated, {rubric.id: rubric}, reference))
        statistics = Statistics(primary=primary or [])
        settings = Settings(**run_arguments, min_coverage=min_coverage, statistics=statistics, baseline="plain/1")
        board = aggregated(judgements.lazy(), scores.lazy(), REPLIES.empty().lazy(), {rubric.id: rubric}, settings)
        blocked = Blocked.of(board, reference)
        made = {CORRECTED: corrected(found, settings, blocked)} | corrected_deltas(found, settings, blocked)
        return {table.name: frame for table, frame in made.items()}

    return build


def between(found: Tables, estimator: str, a: str = "dear", b: str = "plain", **where: Any) -> dict[str, Any]:
    address = {"comparison": "each_other", "estimator": estimator, "model_a": a, "model_b": b, "category": "__macro__"} | where
    return found["corrected_comparisons"].filter(**address).row(0, named=True)


def ranks(found: Tables, estimator: str) -> dict[str, tuple[int | None, int | None]]:
    rows = found["corrected_standings"].filter(estimator=estimator, category="__macro__")
    return {row["model"]: (row["rank_low"], row["rank_high"]) for row in rows.iter_rows(named=True)}


def test_a_judge_that_is_kind_to_one_family_shows(tables: Callable[..., Tables]) -> None:
    found = tables()
    assert between(found, "judge")["verdict"] == "higher"
    corrected = between(found, "prediction_powered")
    assert corrected["verdict"] == between(found, "labels")["verdict"] == "lower"
    assert corrected["ci_low"] < -1 < corrected["ci_high"]
    assert corrected["ci_high"] - corrected["ci_low"] < between(found, "labels")["ci_high"] - between(found, "labels")["ci_low"]
    error = between(found, "judge_error")
    assert error["verdict"] == "higher"
    assert error["ci_low"] < 2 < error["ci_high"]
    assert between(found, "judge_error", "plain", "poor")["verdict"] == "open"
    assert (corrected["n_prompts"], corrected["n_prompts_labelled"], corrected["n_family"]) == (N, 60, 3)
    assert (corrected["judge_model"], between(found, "labels")["judge_model"]) == ("eye", None)


def test_ranks_follow_the_verdicts_of_each_estimator(tables: Callable[..., Tables]) -> None:
    found = tables()
    assert ranks(found, "judge") == {"dear": (1, 1), "plain": (2, 2), "poor": (3, 3)}
    assert ranks(found, "prediction_powered") == {"plain": (1, 1), "dear": (2, 2), "poor": (3, 3)}
    assert ranks(found, "labels") == ranks(found, "prediction_powered")


def test_comparisons_are_those_of_the_leaderboard(tables: Callable[..., Tables]) -> None:
    """The baseline in every category and the total; every two in the total alone, where the dimension is ranked."""
    kinds = tables()["corrected_comparisons"].select("comparison", "category").unique()
    assert set(kinds.iter_rows()) == {
        ("baseline", "__macro__"), ("baseline", "c0"), ("baseline", "c1"), ("each_other", "__macro__"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("is_rated", "verdict"),
    [
        pytest.param(lambda p, _m, _q: p % 2 == 0, "random", id="every other prompt"),
        pytest.param(lambda p, _m, _q: p < 50 or p % 10 == 0, "random", id="more of one category"),
        pytest.param(lambda _p, _m, q: q > 5.2, "chosen_by_score", id="the good ones"),
        pytest.param(lambda _p, _m, _q: True, "cannot_tell", id="all"),
    ],
)
def test_the_label_check_stands_beside(tables: Callable[..., Tables], is_rated: Callable[..., bool], verdict: str) -> None:
    found = tables(is_rated)
    for name in ("corrected_comparisons", "corrected_standings"):
        rows = found[name].filter(pl.col("judge_model").is_not_null())
        assert rows["label_check"].unique().to_list() == [verdict]


def test_more_labels_of_a_good_category_speak_against_the_mean_over_all_prompts_alone(tables: Callable[..., Tables]) -> None:
    """The judge scores the first category 1.5 higher: many labels of it are a choice over all prompts, within categories none."""
    rows = tables(lambda p, _m, _q: p < 50 or p % 10 == 0)["corrected"].filter(model="__all__", estimator="prediction_powered")
    verdicts = dict(rows.select("category", "label_check").iter_rows())
    assert verdicts == {"__micro__": "chosen_by_score", "c0": "random", "c1": "random"}


@pytest.mark.parametrize(
    ("is_rated", "reason"),
    [
        pytest.param(lambda p, _m, _q: p % 60 < 4, "too_few_prompts", id="eight prompts"),
        pytest.param(lambda p, _m, _q: p < 30, "too_few_prompts", id="a category without labels"),
        pytest.param(lambda _p, _m, _q: True, "all_labelled", id="all labelled"),
    ],
)
def test_why_nothing_is_corrected(tables: Callable[..., Tables], is_rated: Callable[..., bool], reason: str) -> None:
    found = tables(is_rated)
    row = between(found, "prediction_powered")
    assert (row["delta"], row["p_adjusted"], row["status"], row["reason"]) == (None, None, "null", reason)
    standing = found["corrected_standings"].filter(estimator="prediction_powered")
    assert standing["rank_low"].null_count() == standing.height
    assert set(standing["state"]) == {"not_compared"}


def test_without_a_score_nothing_is_said_of_too_few_labels(tables: Callable[..., Tables]) -> None:
    found = tables(is_lost=lambda _judge, _model, _p: True)
    of_judge = found["corrected_standings"].filter(pl.col("estimator").is_in(["judge", "prediction_powered"]))
    assert set(of_judge.select("reason", "n_prompts", "n_prompts_labelled").iter_rows()) == {("no_scores", 0, 60)}
    assert set(found["corrected_comparisons"].filter(pl.col("estimator") != "labels")["reason"]) == {"no_scores"}
    ranked = rankings(found["corrected_standings"], found["corrected_comparisons"])
    assert not any("too_few_prompts" in said for one in ranked for said in one.sentences)


def test_what_unnamed_raters_lean_to_is_not_known(tables: Callable[..., Tables]) -> None:
    named, unnamed = (tables(raters=raters) for raters in (("ann", "bob"), ("__unnamed_1__", "__unnamed_2__")))
    for name in ("corrected", "corrected_standings", "corrected_comparisons"):
        known, unknown = (one[name].filter(estimator="labels") for one in (named, unnamed))
        assert (known["rater_se"].null_count(), unknown["rater_se"].null_count()) == (0, unknown.height)


def test_what_named_raters_lean_to_is_known_beside_unnamed_ones(tables: Callable[..., Tables]) -> None:
    found = tables(raters=("ann", "bob", "__unnamed_1__"))
    for name in ("corrected", "corrected_standings", "corrected_comparisons"):
        assert found[name].filter(estimator="labels")["rater_se"].null_count() == 0


def test_where_no_score_differs_the_prompts_are_not_said_to_be_too_few(tables: Callable[..., Tables]) -> None:
    found = tables(everywhere=5.0)
    of_both = found["corrected_standings"].filter(estimator="prediction_powered")
    assert set(of_both.select("state", "reason").iter_rows()) == {("not_compared", "no_variation")}
    assert set(ranks(found, "labels").values()) == {(1, 3)}
    assert between(found, "labels")["p"] == 1


def test_a_mean_without_an_interval_says_why_also_where_its_rank_is_the_leaderboards(tables: Callable[..., Tables]) -> None:
    """The interval is the agreement's own, the rank and its reason the leaderboard's, which has none to give."""
    found = tables(everywhere=5.0)
    mine = {table: found[table.name] for table in (CORRECTED_COMPARISONS, CORRECTED_STANDINGS)}
    of_judge = mine[CORRECTED_STANDINGS].filter(estimator="judge").with_columns(reason=pl.lit(None, pl.String))
    ranked = of_judge.select(pl.col(name) for name in STANDINGS.columns if name in of_judge.columns)
    board = {COMPARISONS: COMPARISONS.empty(), STANDINGS: pl.concat([STANDINGS.empty(), ranked], how="diagonal_relaxed")}
    for standings in (mine[CORRECTED_STANDINGS], as_published(mine, board)[CORRECTED_STANDINGS]):
        of_one = standings.filter(pl.col("estimator").is_in(["judge", "labels"]))
        assert set(of_one.select("state", "ci_low", "reason").iter_rows()) == {("ranked", None, "no_variation")}


def test_where_every_prompt_differs_by_the_same_amount_the_sign_flip_test_tells(tables: Callable[..., Tables]) -> None:
    found = tables(lambda p, _m, _q: p % 10 == 0, everywhere={"dear": 2.0, "plain": 0.0, "poor": 0.0})
    row = between(found, "judge_error")
    assert (row["p"], row["verdict"], row["status"], row["reason"]) == (2.0**-11, "higher", "no_interval", "no_variation")
    assert (row["ci_low"], row["ci_low_adjusted"]) == (None, None)
    assert between(found, "judge_error", "plain", "poor")["p"] == 1
    said = next(rankings(found["corrected_standings"], found["corrected_comparisons"])).sentences
    assert [one for one in said if "kinder" in one] == [
        f"The judge is kinder to dear/1 than to {other}/1 by 2.00 (12 labelled prompts, no variation within a category)."
        for other in ("plain", "poor")
    ]


def test_one_that_shares_too_few_labelled_prompts_has_no_rank_and_leaves_the_others_theirs(tables: Callable[..., Tables]) -> None:
    found = tables(lambda p, model, _q: p % 2 == (model == "poor"))
    assert ranks(found, "prediction_powered") == {"plain": (1, 1), "dear": (2, 2), "poor": (None, None)}
    assert ranks(found, "judge")["poor"] == (3, 3)
    lines = next(rankings(found["corrected_standings"], found["corrected_comparisons"])).lines
    (line,) = (line for line in lines if line[0] == "poor/1")
    assert line[4::2] == ["no rank (too few prompts)"] * 2


@pytest.mark.parametrize("how", [{"scale": None}, {"models": ("dear",)}], ids=["no scale", "one checkpoint"])
def test_what_cannot_be_compared_has_no_rows(tables: Callable[..., Tables], how: dict[str, Any]) -> None:
    found = tables(**how)
    assert found["corrected_comparisons"].is_empty()
    assert found["corrected_standings"].is_empty()


def test_without_categories_there_is_the_total_alone(tables: Callable[..., Tables]) -> None:
    found = tables(has_categories=False)
    assert set(found["corrected_comparisons"]["category"]) == {"__macro__"}


def test_two_raters_who_say_the_same_add_nothing(tables: Callable[..., Tables]) -> None:
    one, two = between(tables(), "prediction_powered"), between(tables(raters=("ann", "bob")), "prediction_powered")
    assert (one["rater_se"], two["rater_se"]) == (None, 0)
    assert (two["se"], two["df"], two["n_raters"]) == (one["se"], one["df"], 2)


def test_a_judge_in_peoples_place_makes_the_figures_that_a_rater_of_the_same_numbers_makes(tables: Callable[..., Tables]) -> None:
    of_rater, of_judge = tables(), tables(reference="sharp")
    assert of_judge.keys() == of_rater.keys()
    for name, table in of_rater.items():
        assert table.height > 0
        assert_frame_equal(of_judge[name], table)


def test_keys_are_unique(tables: Callable[..., Tables]) -> None:
    found = tables(dimensions=("look", "overall_score"))
    for table in (CORRECTED_COMPARISONS, CORRECTED_STANDINGS):
        assert not found[table.name].select(table.key).is_duplicated().any()
    headline = (
        found["corrected_comparisons"].filter(dimension="overall_score", category="__macro__")["family"].drop_nulls().unique()
    )
    apart = ("judge", "judge_error", "labels", "prediction_powered")  # what is corrected apart has another name
    assert sorted(headline) == [f"headline | nightly | {estimator}" for estimator in apart]


def test_what_the_benchmark_declares_primary_is_one_family(tables: Callable[..., Tables]) -> None:
    found = tables(dimensions=("look", "overall_score"), primary=["look"])["corrected_comparisons"]
    mine = found.filter(category="__macro__", estimator="judge").drop_nulls("family")
    families = {row["dimension"]: row["family"] for row in mine.iter_rows(named=True)}
    assert families["look"] == "headline | nightly | judge"
    assert families["overall_score"] == "aspects | plain | eye | judge"


@pytest.mark.parametrize(
    ("twice", "uneven"),
    [(None, set()), (("dear", 0), {("dear", "__macro__")}), (("poor", N - 1), {("poor", "__macro__")})],
    ids=["one picture each", "a second picture", "a second picture in the last category"],
)
def test_whose_prompts_have_unequal_numbers_of_pictures(
    tables: Callable[..., Tables], twice: tuple[str, int] | None, uneven: set[tuple[str, str]]
) -> None:
    found = tables(twice=twice)["corrected_standings"]
    of_judge = found.filter(estimator="judge")
    marked = of_judge.filter("has_uneven_prompts").select("model", "category").rows()
    assert set(marked) == uneven
    assert of_judge["has_uneven_prompts"].null_count() == 0
    assert found.filter(estimator="labels")["has_uneven_prompts"].null_count() == found.filter(estimator="labels").height


POOR = {"model": "poor", "checkpoint": "1"}


def two_fifths_of_poor(_judge: str, model: str, prompt: int) -> bool:
    return model == "poor" and prompt % 5 < 2


def test_a_blocked_cell_has_no_mean_beside_people_and_nothing_is_made_of_its_scores(tables: Callable[..., Tables]) -> None:
    """The leaderboard withholds it under the floor: its mean, its correction and its differences rest on the same scores."""
    found = tables(is_lost=two_fifths_of_poor, min_coverage=0.8)
    for name, kind in (("corrected", "status"), ("corrected_standings", "state")):
        rows = found[name].filter(**POOR).select("estimator", kind, "reason", pl.col("estimate", "ci_low", "se").is_null())
        for estimator, *said in rows.iter_rows():
            if estimator == "labels":
                assert said[2:] == [False, False, False]
            else:
                assert said == ["blocked", "refusal", True, True, True]
    assert set(found["corrected"].filter(model="__all__", category="__micro__")["status"]) == {"ok"}
    assert ranks(found, "labels")["poor"] == (3, 3)
    assert ranks(found, "prediction_powered") == {"plain": (1, 1), "dear": (2, 2), "poor": (None, None)}
    for estimator in ("judge", "prediction_powered", "judge_error"):
        row = between(found, estimator, "plain", "poor")
        assert (row["delta"], row["p"], row["status"], row["reason"]) == (None, None, "null", "blocked")
        assert between(found, estimator)["n_family"] == 1
    assert between(found, "labels", "plain", "poor")["verdict"] == "higher"
    (told,) = rankings(found["corrected_standings"], found["corrected_comparisons"])
    (line,) = (one for one in told.lines if one[0] == "poor/1")
    assert [line[1], line[2], *line[5:]] == ["blocked (refusal)", "", "blocked (refusal)", ""]
    assert any(sentence.startswith("blocked: fewer of the judgements have a score") for sentence in told.sentences)
    assert any(sentence.endswith(": the mean of one of the two is blocked.") for sentence in told.sentences)


def test_above_the_floor_nothing_is_withheld(tables: Callable[..., Tables]) -> None:
    found = tables(is_lost=two_fifths_of_poor, min_coverage=0.1)
    assert "blocked" not in {*found["corrected"]["status"], *found["corrected_standings"]["state"]}
    assert between(found, "judge_error", "plain", "poor")["p"] is not None


def test_all_checkpoints_together_are_blocked_by_the_same_floor(tables: Callable[..., Tables]) -> None:
    of_all = tables(is_lost=lambda _, model, p: model == "poor" and p < 30, min_coverage=0.92)["corrected"].filter(
        model="__all__", estimator="judge"
    )
    assert dict(of_all.select("category", "status").iter_rows()) == {"__micro__": "blocked", "c0": "blocked", "c1": "ok"}


def test_a_reference_judges_blocked_cell_is_blocked_in_peoples_place(tables: Callable[..., Tables]) -> None:
    found = tables(
        reference="sharp", is_lost=lambda judge, model, p: (judge, model) == ("sharp", "poor") and p < 30, min_coverage=0.8
    )["corrected_standings"].filter(**POOR)
    assert dict(found.select("estimator", "state").iter_rows()) == {
        "judge": "ranked", "labels": "blocked", "prediction_powered": "blocked",
    }  # fmt: skip
