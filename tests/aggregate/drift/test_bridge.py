"""A replaced judge: the bridge's fit and error, and the joined series with its extra variance."""

import math
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from schemas.tables.nights import NIGHTS
from schemas.tables.table import conform
from tasks.aggregate.drift.bridge import bridges, joined
from tasks.aggregate.drift.drift import drift
from tasks.aggregate.intervals import t_quantile

FIRST = date(2026, 1, 1)


def scores(old, new, category=None):
    """scored() rows of two judges; `old` and `new` have shape (prompts, images)."""
    rows = []
    for judge, values in (("old", np.asarray(old, float)), ("new", np.asarray(new, float))):
        for (prompt, image), score in np.ndenumerate(values):
            rows.append({
                "rubric_id": "plain", "rubric_version": "1", "judge_model": judge, "model": "north", "checkpoint": "1",
                "dimension": "q", "category": category[prompt] if category else "x", "prompt_id": f"p{prompt:03d}",
                "sample_id": f"s{prompt:03d}-{image}", "repeat": 0, "score": float(score),
            })  # fmt: skip
    return pl.DataFrame(rows)


def draw(rng, n_prompts=40, n_images=4, offset=0.3, slope=1.0):
    truth = 6 + rng.normal(0, 1.5, (n_prompts, 1)) + rng.normal(0, 1, (n_prompts, n_images))
    wish = rng.normal(0, 0.3, (n_prompts, 1))  # what the new judge thinks of a prompt: its error is not independent over images
    old = truth + rng.normal(0, 0.3, truth.shape)
    return old, 6 + slope * (truth - 6) + offset + wish + rng.normal(0, 0.3, truth.shape)


def test_the_offset_is_the_mean_difference_and_its_error_the_prompts():
    old, new = draw(np.random.default_rng(1))
    row = bridges(scores(old, new), "old", "new").row(0, named=True)
    by_prompt = (new - old).mean(axis=1)
    assert row["offset"] == pytest.approx(by_prompt.mean(), abs=1e-12)
    assert row["offset_se"] == pytest.approx(by_prompt.std(ddof=1) / math.sqrt(40), abs=1e-12)
    assert row["centre_old"] == pytest.approx(old.mean(), abs=1e-12)
    assert (row["slope"], row["slope_se"], row["offset_slope_cov"]) == (1, 0, 0)
    assert (row["bridge_kind"], row["n_prompts"], row["n_images"], row["status"]) == ("offset", 40, 160, "ok")


def test_categories_weigh_alike():
    old, new = np.full((30, 1), 5.0), np.array([[6.0]] * 20 + [[5.0]] * 10) + np.linspace(0, 0.1, 30)[:, None]
    row = bridges(scores(old, new, ["x"] * 20 + ["y"] * 10), "old", "new").row(0, named=True)
    assert row["centre_old"] == pytest.approx(5, abs=1e-12)
    off = np.linspace(0, 0.1, 30)
    assert row["offset"] == pytest.approx((1 + off[:20].mean() + off[20:].mean()) / 2, abs=1e-12)
    assert row["offset_se"] == pytest.approx(math.sqrt(off[:20].var(ddof=1) / 20 + off[20:].var(ddof=1) / 10) / 2, abs=1e-12)


def test_a_sample_only_one_judge_scored_is_no_part_of_the_bridge():
    old, new = draw(np.random.default_rng(2))
    rows = scores(old, new)
    one_sided = rows.filter(~((pl.col("judge_model") == "new") & (pl.col("prompt_id") == "p000")))
    assert bridges(one_sided, "old", "new").equals(bridges(rows.filter(pl.col("prompt_id") != "p000"), "old", "new"))


@pytest.mark.parametrize("has_slope", [False, True])
def test_the_error_of_the_bridge_is_what_draws_show(has_slope):
    """Root mean square of (carried value - truth) over draws against the se the bridge states, away from the centre too."""
    rng, off, stated = np.random.default_rng(3), [], []
    slope = 0.8 if has_slope else 1.0
    for _ in range(300):
        row = bridges(scores(*draw(rng, slope=slope)), "old", "new", has_slope=has_slope).row(0, named=True)
        value = 7.0
        away = value - row["centre_old"]
        off.append(value + row["offset"] + (row["slope"] - 1) * away - (6 + slope * (value - 6) + 0.3))
        stated.append(row["offset_se"] ** 2 + away**2 * row["slope_se"] ** 2 + 2 * away * row["offset_slope_cov"])
    ratio = math.sqrt(np.mean(np.square(off)) / np.mean(stated))
    assert 0.85 < ratio < 1.15
    assert abs(np.mean(off)) < (
        0.035 if has_slope else 0.015
    )  # the line takes the judges to be equally noisy; here the new is noisier


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (np.ones((9, 2)), np.ones((9, 2)), "too_few_prompts"),
        (np.ones((12, 2)), np.arange(24).reshape(12, 2), "no_variation"),
        (np.arange(24).reshape(12, 2), -np.arange(24).reshape(12, 2), "no_variation"),
        (np.arange(20)[:, None] % 7, np.full((20, 1), 7), "no_variation"),
        (np.arange(20)[:, None] % 7, np.full((20, 1), 0.5), "no_variation"),
        (np.arange(20)[:, None] / 20, np.full((20, 1), 0.7), "no_variation"),
        (np.arange(24).reshape(12, 2) / 20, np.full((12, 2), 0.1), "no_variation"),
    ],
    ids=[
        "nine prompts",
        "the old judge has one opinion",
        "the judges contradict each other",
        "the new judge says 7",
        "the new judge says 0.5",
        "the new judge says 0.7",
        "the new judge says 0.1",
    ],
)
def test_no_line_where_none_can_be_fitted(old, new, reason):
    row = bridges(scores(old, new), "old", "new", has_slope=True).row(0, named=True)
    assert (row["status"], row["reason"], row["offset"], row["slope"]) == ("null", reason, None, None)


def series(values, judge, first=0, **named):
    rows = [
        {
            "benchmark": "b", "run_date": FIRST + timedelta(first + n), "rubric_id": "plain", "rubric_version": "1",
            "judge_model": judge, "measured_by": judge, "model": "north", "checkpoint": f"c{first + n}", "dimension": "q",
            "category": "__macro__", "n_judgements": 100, "scale_width": 10.0, "estimate": float(value), "se": 0.1,
            "bridge_se": 0.0, "anchor_set": "f" * 64, "anchor_estimate": float(value) - 2, "anchor_se": 0.1,
            "anchor_bridge_se": 0.0, "reason": None, "n_anchors_failed": 0,
        } | named
        for n, value in enumerate(values)
    ]  # fmt: skip
    return pl.DataFrame(conform(pl.DataFrame(rows, schema_overrides={"reason": pl.String}), NIGHTS))


OLD = (7.02, 6.99, 7.03, 6.97, 7.01, 6.98, 7.015, 6.985)


@pytest.fixture
def bridge():
    old, new = draw(np.random.default_rng(5))
    return bridges(scores(old, new), "old", "new")


def test_the_joined_series_shows_its_extra_variance(bridge):
    whole = joined(pl.concat([series(OLD, "old"), series([7.3, 7.3], "new", 8)]), bridge).sort("run_date")
    offset, error = bridge["offset"][0], bridge["offset_se"][0]
    assert whole["judge_model"].unique().to_list() == ["new"]
    assert whole["measured_by"].to_list() == ["old"] * 8 + ["new"] * 2
    assert whole["estimate"].to_list() == pytest.approx([value + offset for value in OLD] + [7.3, 7.3], abs=1e-12)
    assert whole["bridge_se"].to_list() == pytest.approx([error] * 8 + [0, 0], abs=1e-12)
    assert whole["se"].to_list() == pytest.approx([math.hypot(0.1, error)] * 8 + [0.1] * 2, abs=1e-12)
    assert whole["anchor_estimate"][0] == pytest.approx(OLD[0] - 2 + offset, abs=1e-12)


def test_the_bridges_error_widens_the_limits_of_the_new_judges_nights(bridge):
    anchors = pl.col("anchor_estimate") + 0.01 * pl.col("run_date").dt.day()  # so that model less anchors moves
    nights = joined(pl.concat([series(OLD, "old"), series([7.3] * 6, "new", 8)]).with_columns(anchors), bridge)
    wide = drift(nights, n_baseline=8).row(-1, named=True)
    plain = drift(nights.with_columns(bridge_se=0.0, anchor_bridge_se=0.0), n_baseline=8).row(-1, named=True)
    weight = 1 - 0.7**6
    half, narrow = (row["limit_high"] - row["baseline_mean"] for row in (wide, plain))
    assert half == pytest.approx(math.hypot(narrow, t_quantile(1 - wide["alpha"], 7) * weight * bridge["offset_se"][0]), rel=1e-9)
    assert wide["difference_p"] == pytest.approx(plain["difference_p"], abs=1e-9)  # one bridge under both: it falls out


def test_old_nights_alone_are_not_widened_by_a_bridge_they_share(bridge):
    whole = drift(joined(series([*OLD, 7.0], "old"), bridge), n_baseline=8).row(-1, named=True)
    alone = drift(series([*OLD, 7.0], "old"), n_baseline=8).row(-1, named=True)
    assert whole["limit_high"] - whole["limit_low"] == pytest.approx(alone["limit_high"] - alone["limit_low"], abs=1e-12)


def test_a_night_both_judges_scored_is_the_new_ones(bridge):
    whole = joined(pl.concat([series(OLD, "old"), series([7.3, 7.3], "new", 7)]), bridge).sort("run_date")
    assert whole.height == 9
    assert whole["measured_by"].to_list() == ["old"] * 7 + ["new"] * 2


def test_without_a_bridge_the_old_series_stays_apart(bridge):
    nights = pl.concat([series(OLD, "old"), series([7.3], "new", 8)])
    broken = bridge.with_columns(status=pl.lit("null"), offset=pl.lit(None, pl.Float64))
    assert joined(nights, broken).equals(nights.sort(NIGHTS.key))
    assert joined(nights, bridge.with_columns(dimension=pl.lit("another"))).equals(nights.sort(NIGHTS.key))


def test_two_bridges_add_up(bridge):
    further = bridge.with_columns(judge_old=pl.lit("new"), judge_new=pl.lit("newest"))
    twice = joined(joined(series(OLD, "old"), bridge), further)
    assert twice["judge_model"].unique().to_list() == ["newest"]
    assert twice["bridge_se"].to_list() == pytest.approx([math.sqrt(2) * bridge["offset_se"][0]] * 8, abs=1e-12)
    assert twice["estimate"].to_list() == pytest.approx([value + 2 * bridge["offset"][0] for value in OLD], abs=1e-12)


SHIFTS = {"ab": 1.0, "ba": -2.0, "bc": 4.0, "ca": -8.0, "ac": 16.0}


@pytest.mark.parametrize(
    ("made", "present", "crossed"),
    [
        ("ab bc", "c", {"a": ["ab", "bc"], "b": ["bc"], "c": []}),
        ("ab ba", "a", {"a": [], "b": ["ba"]}),
        ("ba ab", "b", {"a": ["ab"], "b": []}),
        ("ab bc ca", "a", {"a": [], "b": ["bc", "ca"], "c": ["ca"]}),
        ("ab bc ac", "c", {"a": ["ac"], "b": ["bc"], "c": []}),
    ],
    ids=["one after the other", "there and back", "and there again", "back from a third", "a shorter way"],
)
def test_nights_of_the_present_judge_are_as_measured_and_others_cross_the_fewest_bridges(bridge, made, present, crossed):
    """`made`: the judges of each bridge, in their order. Nights 3, 6, … are two judges', and the present one's count."""
    bridges_made = pl.concat([
        bridge.with_columns(judge_old=pl.lit(pair[0]), judge_new=pl.lit(pair[1]), offset=SHIFTS[pair], offset_se=0.03)
        for pair in made.split()
    ])  # fmt: skip
    nights = [series([7.0] * 4, judge, 3 * n) for n, judge in enumerate(sorted(crossed, key=lambda judge: judge == present))]
    found = joined(pl.concat(nights), bridges_made).sort("run_date")
    assert (found.height, found["judge_model"].unique().to_list()) == (3 * len(crossed) + 1, [present])
    assert found.filter(measured_by=present).height == 4
    for judge, over in crossed.items():
        own = found.filter(measured_by=judge).select("estimate", "anchor_estimate", "bridge_se", "anchor_bridge_se").unique()
        shift, error = sum(SHIFTS[pair] for pair in over), 0.03 * math.sqrt(len(over))
        assert own.row(0) == pytest.approx((7 + shift, 5 + shift, error, error), abs=1e-12)
        assert own.height == 1
