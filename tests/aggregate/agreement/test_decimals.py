"""Decimals are no binary fractions: equal labels and means are equal all the same, and one number said of all does not vary."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from schemas.statuses.people import Against, AgreementMetric, Assessor
from tasks.aggregate.agreement.blocked import Blocked
from tasks.aggregate.agreement.corrected import corrected
from tasks.aggregate.agreement.grid import Grid
from tasks.aggregate.agreement.label_check import label_check
from tasks.aggregate.agreement.metrics import pair_metric
from tasks.aggregate.agreement.pairs import Assessment, Rated, pairs, rated_dimension
from tasks.aggregate.tables import Settings

N = 120
NAN = np.nan
ITEMS = pl.DataFrame({
    "sample_id": [f"s{n:03}" for n in range(N)], "prompt_id": [f"p{n:03}" for n in range(N)],
    "category": pl.Series([None] * N, dtype=pl.String), "model": ["m"] * N, "checkpoint": [f"{n % 3}" for n in range(N)],
})  # fmt: skip
Scale = tuple[float, float, float]


@pytest.fixture
def rated(make_rubric: Callable[..., Any]) -> Callable[..., Rated]:
    """One judge's scores on a rubric's scale, and people's ratings on theirs (low, high, step), a column each."""

    def build(ends: tuple[float, float], judged: np.ndarray, theirs: Scale, ratings: np.ndarray) -> Rated:
        rubric = make_rubric({None: ("overall",)}, scale=ends)
        scores = pl.DataFrame({"judge_model": "eye", "sample_id": ITEMS["sample_id"], "dimension": "overall", "score": judged})
        low, high, step = (float(one) for one in theirs)
        made = [
            pl.DataFrame({"sample_id": ITEMS["sample_id"], "rating": mine}).with_columns(
                rater=pl.lit(f"r{place}"), kind=pl.lit("rater"), dimension=pl.lit("overall"),
                scale_low=pl.lit(low), scale_high=pl.lit(high), scale_step=pl.lit(step),
            )
            for place, mine in enumerate(ratings.T)
        ]  # fmt: skip
        return rated_dimension(ITEMS, scores, pl.concat(made), rubric, "overall", ["eye"])

    return build


def on(scale: Scale, places: np.ndarray) -> np.ndarray:
    """The labels of a scale as they are written."""
    return np.round(scale[0] + places * scale[2], 10)


@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        pytest.param((0, 10, 0.5), (0, 1, 0.05), id="halves"),
        pytest.param((0, 10, 0.1), (0, 1, 0.01), id="0 to 10 in tenths, 0 to 1"),
        pytest.param((-1, 1, 0.1), (-1, 1, 0.1), id="-1 to 1 on both sides"),
        pytest.param((0, 1, 0.1), (1, 5, 0.4), id="0 to 1, 1 to 5"),
        pytest.param((0, 100, 1), (0, 10, 0.1), id="0 to 100, tenths"),
        pytest.param((0, 3, 0.3), (0.2, 1, 0.08), id="a top that the map misses"),
    ],
)
def test_a_judge_and_a_rater_of_the_same_labels_agree_in_each(rated: Callable[..., Rated], own: Scale, theirs: Scale) -> None:
    places = np.random.default_rng(1).integers(0, round((own[1] - own[0]) / own[2]) + 1, N)
    one = rated(own[:2], on(own, places), theirs, on(theirs, places)[:, None])
    for metric in (AgreementMetric.COHEN_KAPPA, AgreementMetric.KRIPPENDORFF_ALPHA_NOMINAL, AgreementMetric.KRIPPENDORFF_ALPHA):
        assert pair_metric(metric, one.judges[0].values, one.raters[0].values) == 1, metric
    assert max(one.raters[0].values) <= own[1]


@pytest.mark.parametrize(
    ("ends", "theirs"),
    [
        pytest.param((0, 10), (0, 10, 0.5), id="halves"),
        pytest.param((0, 1), (0, 1, 0.1), id="tenths"),
        pytest.param((0, 10), (1, 7, 1), id="1 to 7 on 0 to 10"),
    ],
)
def test_equal_means_of_raters_are_ties(rated: Callable[..., Rated], ends: tuple[float, float], theirs: Scale) -> None:
    """A judge who says the raters' mean agrees with it of every pair; the order of the raters changes nothing."""
    n_steps = round((theirs[1] - theirs[0]) / theirs[2])
    places = np.random.default_rng(0).integers(0, n_steps + 1, (N, 3))
    perfect = ends[0] + (ends[1] - ends[0]) * places.sum(axis=1) / (3 * n_steps)
    for columns in ([0, 1, 2], [2, 0, 1]):
        one = rated(ends, perfect, theirs, on(theirs, places[:, columns]))
        (beside,) = [pair for pair in pairs(one) if pair.against == Against.RATERS_MEAN and pair.subject.kind is Assessor.JUDGE]
        for metric in (AgreementMetric.PAIRWISE_ACCURACY, AgreementMetric.KRIPPENDORFF_ALPHA):
            assert pair_metric(metric, beside.subject.values, beside.other.values) == 1, metric
    alike = rated(ends, perfect, theirs, on(theirs, places[:, [0, 0, 0]]))
    for pair in pairs(alike):
        if pair.against == Against.OTHER_RATERS_MEAN:
            assert np.array_equal(pair.subject.values, pair.other.values)


@pytest.mark.parametrize("score", [0.5, 0.7, 0.1, 4.6, 1 / 3])
@pytest.mark.parametrize("metric", [m for m in AgreementMetric if "kappa" in m or "alpha" in m], ids=str)
def test_where_all_say_one_number_there_is_no_kappa_and_no_alpha(metric: AgreementMetric, score: float) -> None:
    assert pair_metric(metric, np.full(60, score), np.full(60, score)) is None


def test_the_order_of_checkpoints_does_not_move_the_label_check(make_rubric: Callable[..., Any]) -> None:
    """A prompt's value is a mean over checkpoints, less each one's own mean: sums in other orders, and the same ties."""
    places = np.random.default_rng(2).integers(1, 6, (3, 20)).astype(float)
    is_labelled = np.random.default_rng(52).permutation(20) < 6
    items = ITEMS[:60].with_columns(prompt_id=pl.Series([f"p{n // 3:02}" for n in range(60)]))
    found = set()
    for order in ([0, 1, 2], [1, 2, 0], [2, 1, 0]):
        judge, ann = places[order].T.ravel(), np.where(np.repeat(is_labelled, 3), 3.0, NAN)
        sides = (
            (Assessment(Assessor.JUDGE, "eye", judge, 1.0, has_scale=True),),
            (Assessment(Assessor.RATER, "ann", ann, 1.0, has_scale=True),),
        )
        one = Rated(make_rubric({None: ("overall",)}), "overall", 0, 10, items, sides[0], (), sides[1])
        found.add(label_check(Grid(one), one.judges[0], is_within=True).p)
    assert len(found) == 1


@pytest.mark.parametrize("said", [0.5, 0.7])
def test_checkpoints_of_one_number_each_tell_nothing_of_the_labels(make_rubric: Callable[..., Any], said: float) -> None:
    """One failed on the prompts that are labelled: what is left of each prompt's value is the rounding of a mean."""
    items = ITEMS[:48].with_columns(
        prompt_id=pl.Series([f"p{n // 2:02}" for n in range(48)]), checkpoint=pl.Series(["a", "b"] * 24)
    )
    judge, ann = np.array([said, 0.25] * 24), np.array([0.5, NAN] * 8 + [NAN] * 32)
    judge[1:16:2] = NAN
    sides = [
        (Assessment(kind, name, values, None, has_scale=True),)
        for kind, name, values in ((Assessor.JUDGE, "eye", judge), (Assessor.RATER, "ann", ann))
    ]
    one = Rated(make_rubric({None: ("overall",)}), "overall", 0, 1, items, sides[0], (), sides[1])
    assert label_check(Grid(one), one.judges[0], is_within=True).p is None


@pytest.mark.parametrize(("ends", "theirs"), [((0, 3), (0.2, 1, 0.2)), ((0, 0.7), (0, 0.7, 0.1))], ids=["0.2 to 1", "0 to 0.7"])
def test_labels_that_are_all_the_top_are_on_the_scale(
    rated: Callable[..., Rated], run_arguments: dict[str, Any], ends: tuple[float, float], theirs: Scale
) -> None:
    one = rated(ends, np.full(N, ends[1]), theirs, np.full((N, 3), theirs[1]))
    table = corrected([(one.rubric, [one])], Settings(**run_arguments, min_coverage=0.0), Blocked())
    labels = table.filter(pl.col("estimator") == "labels", pl.col("model") == "__all__").row(0, named=True)
    assert (labels["estimate"], labels["status"]) == (ends[1], "ok")
