"""What to label next: how many of each category, which pictures, whatever the judge says of them; and what is refused."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from schemas.errors import InputError
from schemas.lineage import Lineage
from schemas.tables.agreement import RATINGS
from schemas.tables.table import conform
from tasks.aggregate.agreement.label_next import LabelPlan, Wanted, _half, _spread, _within, label_plan
from tasks.aggregate.agreement.powered import stratified_powered
from tasks.aggregate.intervals import t_quantile

SIZES = {"calm": 80, "wild": 80}
CHECKPOINTS = ("step-900", "step-1000", "base")


@pytest.fixture
def plan(make_rubric: Callable[..., Any], make_frames: Callable[..., Any]) -> Callable[..., tuple[LabelPlan, pl.DataFrame]]:
    """The plan and the samples it chose. In `wild` the judge's differences, and what it leaves open, vary four times as far."""

    def build(
        wanted: Wanted, labelled: Callable[[str, int], bool] = lambda _c, _p: False, baseline: str | None = "north/base",
        dimensions: tuple[str, ...] = ("overall_score", "look"), models: tuple[str, ...] = ("north",), seed: int = 1,
    ) -> tuple[LabelPlan, pl.DataFrame]:  # fmt: skip
        rng = np.random.default_rng(seed)
        rubric = make_rubric({None: dimensions})
        rows = [
            {
                "model": model, "checkpoint": checkpoint, "category": category, "prompt": f"{category}{p}",
                "sample": f"{category}{p}/{picture}", "number": p,
                "scores": dict.fromkeys(dimensions, float(np.clip(5 + rng.normal(0, 0.4 if category == "calm" else 1.6), 0, 10))),
            }
            for model in models for checkpoint in CHECKPOINTS for category, n in SIZES.items()
            for p in range(n) for picture in (0, 1)
        ]  # fmt: skip
        judgements, scores = make_frames(rows, rubric)
        cells = [
            {
                "rating_key": sample, "sample_id": sample, "item_id": None, "dimension": "overall_score", "rater": "ann",
                "kind": "rater", "scale_low": 0, "scale_high": 10, "scale_step": None, "status": "ok", "detail": None,
                "rating": row["scores"]["overall_score"] + rng.normal(0, 0.3 if row["category"] == "calm" else 1.2),
            }
            for row, sample in zip(rows, judgements["sample_id"], strict=True) if labelled(row["category"], row["number"])
        ]  # fmt: skip
        ratings = pl.DataFrame(conform(pl.DataFrame(cells, schema=RATINGS.empty().schema), RATINGS))
        found = label_plan(judgements.lazy(), scores.lazy(), ratings, {rubric.id: rubric}, baseline, Lineage(), wanted)
        chosen = judgements.filter(pl.col("sample_id").is_in(found.sample_ids)).unique("sample_id")
        return found, chosen

    return build


def test_a_prompt_gives_one_picture_of_each_and_the_wild_category_gets_more(plan: Callable[..., Any]) -> None:
    found, chosen = plan(Wanted(60))
    assert (found.a, found.b, found.dimension) == ("north/step-1000", "north/base", "overall_score")
    assert (len(found.sample_ids), found.n_prompts, found.half_now) == (60, 30, None)
    by_prompt = chosen.group_by("prompt_id").agg(pl.col("checkpoint").sort())
    assert set(map(tuple, by_prompt["checkpoint"])) == {("base", "step-1000")}
    n = Counter(chosen["category"])
    assert n["wild"] > 2.5 * n["calm"]  # in proportion to the spreads: 4 to 1, less what the prior takes off


def test_which_prompts_does_not_depend_on_scores(plan: Callable[..., Any]) -> None:
    one, other = (set(plan(Wanted(60), seed=seed)[1].filter(category="wild")["prompt_id"]) for seed in (1, 2))
    assert len(one & other) >= min(len(one), len(other)) - 1


def test_the_next_round_goes_on_and_says_what_it_would_bring(plan: Callable[..., Any]) -> None:
    def labelled(_category: str, number: int) -> bool:
        return number < 10

    found, chosen = plan(Wanted(80), labelled)
    assert found.half_then < 0.75 * found.half_now
    assert found.n_prompts == 40
    assert set(chosen["category"]) == {"calm", "wild"}
    more, _ = plan(Wanted(200), labelled)
    assert more.half_then < found.half_then
    assert more.half_now == found.half_now


def test_labelled_prompts_are_not_asked_for_again(plan: Callable[..., Any]) -> None:
    found, chosen = plan(Wanted(1000), lambda _c, p: p < 70)
    assert found.n_prompts == 20
    assert chosen.height == 40


@pytest.mark.parametrize(
    ("how", "says"),
    [
        pytest.param(
            {"models": ("north", "south")}, "name the two checkpoints .* of north/base, north/step-1000", id="two models"
        ),
        pytest.param({"wanted": Wanted(9, ("north/base",))}, "names 1 checkpoints, but a difference needs two", id="one end"),
        pytest.param(
            {"wanted": Wanted(9, ("north/base", "north/x"))}, "'north/x' is not a checkpoint of the run", id="another end"
        ),
        pytest.param(
            {"wanted": Wanted(9, dimension="charm")}, "'charm' matches no dimension; available: plain.overall", id="dimension"
        ),
        pytest.param({"dimensions": ("look", "sense")}, "has 2 headline dimensions; say which", id="two headlines"),
        pytest.param({"wanted": Wanted(1)}, "1 ratings cannot cover", id="one rating"),
        pytest.param({"labelled": lambda _c, _p: True}, "every prompt with a score of both .* is labelled", id="all labelled"),
    ],
)
def test_what_is_refused(plan: Callable[..., Any], how: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        plan(**({"wanted": Wanted(20)} | how))


def test_without_a_baseline_the_newest_is_held_against_the_one_before(plan: Callable[..., Any]) -> None:
    found, _ = plan(Wanted(20), baseline=None)
    assert (found.a, found.b) == ("north/step-1000", "north/step-900")


def test_between_names_the_ends_in_their_order(plan: Callable[..., Any]) -> None:
    found, _ = plan(Wanted(20, ("north/base", "north/step-900"), "plain.look"))
    assert (found.a, found.b, found.dimension) == ("north/base", "north/step-900", "look")


@pytest.mark.parametrize("gap", [0.0, 1.0, 4.0])
def test_the_interval_told_is_the_one_that_is_published_however_far_categories_lie_apart(gap: float) -> None:
    rng, strata = np.random.default_rng(0), np.repeat(np.arange(4), 60)
    scored = strata * gap + rng.normal(0, 1, 240)
    labels = np.where(np.arange(240) % 60 < 10, scored + rng.normal(0, 0.5, 240), np.nan)
    published = stratified_powered(labels, scored, strata)
    assert published is not None
    n_each, n_all = np.bincount(strata[~np.isnan(labels)]), np.bincount(strata)
    told = _half(_spread(labels, scored, strata), n_each, n_all, _within(labels, strata))
    assert told == pytest.approx(t_quantile(0.95, published.df) * published.se, rel=0.05)
