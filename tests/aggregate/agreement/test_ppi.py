"""Prediction-powered means: their algebra, their laws, the short form of their simulation, and the `corrected` table."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulations.corrected import mean_outcome
from benchmarks.simulations.few_labels import world
from schemas.tables.agreement import RATINGS
from schemas.tables.table import conform
from tasks.aggregate.agreement.blocked import Blocked
from tasks.aggregate.agreement.corrected import corrected
from tasks.aggregate.agreement.powered import mean_of_prompts, powered_mean
from tasks.aggregate.agreement.rated import rated_dimensions
from tasks.aggregate.intervals import ClusteredMean, interval
from tasks.aggregate.tables import Settings


def _draw(seed: int, n: int = 40, rest: int = 200, taste: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    quality = rng.normal(5, 1.5, n + rest)
    judged = quality + rng.normal(0, taste, n + rest) + 0.7
    return quality[:n] + rng.normal(0, 0.5, n), judged[:n], judged[n:], np.zeros(n, dtype=np.int64)


def test_in_one_category_it_is_the_papers_variance() -> None:
    """var(Y - λF)/n + λ² var F/N of the paper, where all variances are taken as the same numbers; λ is the paper's, shrunk."""
    labels, judged, rest, categories = _draw(1, n=400, rest=4000)
    found = powered_mean(labels, judged, rest, categories)
    variance = np.concatenate([judged, rest]).var(ddof=1)
    papers = np.cov(labels, judged)[0, 1] / ((1 + 400 / 4000) * variance)
    tuning = papers * 400 / 420
    assert found.tuning == pytest.approx(tuning, rel=1e-12)
    assert found.mean == pytest.approx(labels.mean() + tuning * (rest.mean() - judged.mean()), rel=1e-12)
    error = np.sqrt((labels - tuning * judged).var(ddof=1) / 400 + tuning**2 * variance / 4000)
    assert found.se == pytest.approx(error, rel=0.02)  # judged's variance among the labelled is not exactly that of all


def test_of_many_labels_it_is_the_papers_mean() -> None:
    """λ nears the paper's as 20/n; the standard error, smallest there, as its square."""
    labels, judged, rest, categories = _draw(9, n=20_000, rest=60_000)
    found = powered_mean(labels, judged, rest, categories)
    variance = np.concatenate([judged, rest]).var(ddof=1)
    papers = np.cov(labels, judged)[0, 1] / ((1 + 1 / 3) * variance)
    assert 0 < 1 - found.tuning / papers < 0.0011
    smallest = np.sqrt((labels - papers * judged).var(ddof=1) / 20_000 + papers**2 * variance / 60_000)
    assert found.se == pytest.approx(smallest, rel=0.01)


def test_few_labels_near_an_end_push_the_mean_half_as_far() -> None:
    """80 % yes, 15 of 80 labelled: the paper's λ is off by +0.034 here, a standard error of 1,500 draws 0.0025."""
    rng = np.random.default_rng(11)
    made = [
        powered_mean(y[:15], f[:15], f[15:], np.zeros(15, dtype=np.int64)) for y, f in (world(rng, 0.8, 80) for _ in range(1500))
    ]
    means = np.array([one.mean for one in made if one is not None])
    assert means.mean() - 0.8 < 0.024
    assert np.mean(means > 1) < 0.01  # was 3 %


@given(st.floats(-50, 50), st.floats(0.1, 20))
def test_the_judges_own_scale_does_not_matter(shift: float, stretch: float) -> None:
    labels, judged, rest, categories = _draw(2)
    one = powered_mean(labels, judged, rest, categories)
    other = powered_mean(labels, judged * stretch + shift, rest * stretch + shift, categories)
    assert other.mean == pytest.approx(one.mean, rel=1e-8)
    assert other.se == pytest.approx(one.se, rel=1e-8)


def test_a_judge_that_ranks_against_people_is_not_used() -> None:
    labels, judged, rest, categories = _draw(3)
    found = powered_mean(labels, -judged, -rest, categories)
    assert found.tuning == 0
    assert found.mean == labels.mean()


def test_a_biased_judge_is_corrected_and_a_good_one_narrows() -> None:
    labels, judged, rest, categories = _draw(4, taste=0.3)
    found = powered_mean(labels, judged + 3, rest + 3, categories)
    assert abs(found.mean - labels.mean()) < 0.5
    assert found.se < 0.6 * mean_of_prompts(labels).se


@pytest.mark.parametrize(("n", "rest"), [(9, 100), (40, 1)], ids=["nine labelled", "one unlabelled"])
def test_too_little_to_correct_with(n: int, rest: int) -> None:
    assert powered_mean(*_draw(5, n=n, rest=rest)) is None


@pytest.mark.parametrize("score", [7, 0.5, 0.7, 0.1, 1 / 3])
def test_a_judge_that_never_varies_corrects_nothing(score: float) -> None:
    labels, judged, rest, categories = _draw(6)
    assert powered_mean(labels, np.full_like(judged, score), np.full_like(rest, score), categories) is None


@pytest.mark.parametrize("correlation", [0.8, 0.0])
def test_simulated_coverage_and_width(correlation: float) -> None:
    """800 draws: 0.95 is met within 4 standard errors of 0.0077; benchmarks/simulations/corrected.py is the long form."""
    found = mean_outcome(800, correlation, seed=20261103)
    assert found.correlation == pytest.approx(correlation, abs=0.01)
    assert abs(found.covered[0] - 0.95) < 0.031
    assert found.covered[2] < 0.2  # the judge alone is biased: the correction has something to do
    assert found.width_ratio <= (0.75 if correlation == 0.8 else 1.02)


@pytest.fixture
def table(
    make_rubric: Callable[..., Any], make_frames: Callable[..., Any], run_arguments: dict[str, Any]
) -> Callable[..., pl.DataFrame]:
    """The corrected table of 60 prompts, of which the first `n_rated` have ratings on 1 to 5."""

    def build(n_rated: int, scale: tuple[float, float] | None = (1, 5)) -> pl.DataFrame:
        rng = np.random.default_rng(8)
        quality = rng.uniform(0, 10, 60)
        rubric = make_rubric({None: ("overall",)})
        rows = [{"prompt": p, "sample": p, "scores": {"overall": min(10.0, quality[p] * 0.8 + 2)}} for p in range(60)]
        judgements, scores = make_frames(rows, rubric)
        cells = [
            {
                "rating_key": f"r#{p}", "sample_id": judgements["sample_id"][p], "item_id": None, "dimension": "overall",
                "rater": "ann", "kind": "rater", "rating": 1 + quality[p] * 0.4, "scale_low": scale and scale[0],
                "scale_high": scale and scale[1], "scale_step": None, "status": "ok", "detail": None,
            }
            for p in range(n_rated)
        ]  # fmt: skip
        ratings = pl.DataFrame(conform(pl.DataFrame(cells, schema=RATINGS.empty().schema), RATINGS))
        found = rated_dimensions(judgements.lazy(), scores.lazy(), ratings, {rubric.id: rubric})
        return corrected(found, Settings(**run_arguments, min_coverage=0.0), Blocked())

    return build


def _by_estimator(table: pl.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["estimator"]: row for row in table.filter(model="__all__").iter_rows(named=True)}


def test_three_means_side_by_side(table: Callable[..., pl.DataFrame]) -> None:
    rows = _by_estimator(table(20))
    truth = np.random.default_rng(8).uniform(0, 10, 60).mean()
    assert rows["judge"]["ci_low"] > truth  # too kind by about 1
    powered = rows["prediction_powered"]
    assert powered["ci_low"] < truth < powered["ci_high"]
    assert powered["ci_high"] - powered["ci_low"] < rows["labels"]["ci_high"] - rows["labels"]["ci_low"]
    assert (powered["n_prompts"], powered["n_prompts_labelled"]) == (60, 20)
    assert (rows["labels"]["judge_model"], powered["judge_model"]) == (None, "eye")


@pytest.mark.parametrize(
    ("n_rated", "scale", "reason"),
    [(5, (1, 5), "too_few_prompts"), (60, (1, 5), "all_labelled"), (20, None, "scale_not_declared")],
)
def test_why_there_is_no_corrected_mean(
    table: Callable[..., pl.DataFrame], n_rated: int, scale: tuple[float, float] | None, reason: str
) -> None:
    powered = _by_estimator(table(n_rated, scale))["prediction_powered"]
    assert (powered["estimate"], powered["status"], powered["reason"]) == (None, "null", reason)


def test_intervals_allow_for_skew_as_the_leaderboards_do(table: Callable[..., pl.DataFrame]) -> None:
    differs = set()
    for name, row in _by_estimator(table(20)).items():
        n = row["n_prompts" if name == "judge" else "n_prompts_labelled"]
        mean = ClusteredMean(row["estimate"], row["se"], row["df"], n, None)
        skewed, plain = (interval(mean, row["scale_low"], row["scale_high"], allows_for_skew=allows) for allows in (True, False))
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((skewed.low, skewed.high), rel=1e-9)
        differs |= {name} if skewed != plain else set()
    assert "prediction_powered" in differs
