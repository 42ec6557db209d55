"""Series of nights: limits, alarms, verdicts, dates. Where series come from is test_series.py."""

import math
from datetime import date, timedelta
from itertools import pairwise
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.simulations import alarms as simulated_alarms
from benchmarks.simulations import nights as simulation
from benchmarks.simulations import one_series
from schemas.errors import InputError
from schemas.tables.nights import DRIFT, NIGHTS
from schemas.tables.table import conform
from tasks.aggregate.drift.charts import FAMILY_ALPHA, NIGHT_ALPHA, shared_alpha
from tasks.aggregate.drift.drift import change, drift
from tasks.aggregate.drift.ewma import bounded, charts, location_and_scale, sd_of_steps, variance_factor
from tasks.aggregate.intervals import t_quantile

pytestmark = pytest.mark.slow

FIRST = date(2026, 1, 1)
WOBBLE = (0.02, -0.01, 0.03, -0.03, 0.01, -0.02, 0.015, -0.015)  # a baseline with mean 0


def night(n: int, estimate: float | None, anchor: float | None = None, **named):
    return {
        "benchmark": "b", "run_date": FIRST + timedelta(n), "rubric_id": "plain", "rubric_version": "1", "judge_model": "eye",
        "measured_by": "eye", "model": "north", "checkpoint": f"c{n}", "dimension": "q", "category": "__macro__",
        "n_judgements": 100, "scale_width": 10.0, "estimate": estimate, "se": 0.1, "bridge_se": 0.0, "anchor_set": None if
        anchor is None else "f" * 64, "anchor_estimate": anchor, "anchor_se": 0.1, "anchor_bridge_se": 0.0, "reason": None,
    } | named  # fmt: skip


def table(rows) -> pl.DataFrame:
    return pl.DataFrame(conform(pl.DataFrame(rows, schema=NIGHTS.empty().schema), NIGHTS))


def nights(values, anchors=None, **named):
    anchors = anchors if anchors is not None else [None] * len(values)
    return [night(n, value, anchor, **named) for n, (value, anchor) in enumerate(zip(values, anchors, strict=True))]


def last(rows, **arguments):
    return drift(table(rows), n_baseline=8, **arguments).sort("run_date", "model").row(-1, named=True)


STEADY = (0.02, 0.03, -0.01, -0.02, 0.02, -0.03, -0.01, 0.0)  # with mean 0, and going neither with the night before nor against


def test_limits_worked_out_by_hand():
    """No night of STEADY is bounded; sd² is Σ x² / 7 for a dependence of 0.0625; the two nights behind weigh 0.3 and 0.21."""
    found = drift(table(nights([*(7 + w for w in STEADY), 7.02, 7.04])), n_baseline=8)
    row = found.row(-1, named=True)
    products, squares = sum(a * b for a, b in pairwise(STEADY)), sum(w * w for w in STEADY)
    assert (round(products * 1e4), round(squares * 1e4)) == (-2, 32)
    phi = -2 / 32 + 1 / 8
    of_mean = 8 + 2 * sum((8 - lag) * phi**lag for lag in range(1, 8))  # 64 times the variance of their mean
    sd = math.sqrt(squares / 7 / ((1 - of_mean / 64) / (1 - 1 / 8)))
    assert row["baseline_mean"] == pytest.approx(7, abs=1e-12)
    assert row["baseline_autocorrelation"] == pytest.approx(phi, abs=1e-12)
    assert row["baseline_sd"] == pytest.approx(sd, abs=1e-12)
    assert row["ewma"] == pytest.approx(7 + 0.3 * 0.04 + 0.7 * 0.3 * 0.02, abs=1e-12)
    spread = sd * math.sqrt(0.3**2 + 0.21**2 + 2 * 0.3 * 0.21 * phi + 0.51**2 * of_mean / 64) * (1.03 + 22 * 0.005)
    assert (row["alpha"], row["alpha_spent"]) == (0.0025, 0.005)
    assert row["limit_high"] - 7 == pytest.approx(stats.t.isf(0.00125, 7) * spread, abs=1e-9)
    assert row["limit_low"] + row["limit_high"] == pytest.approx(14, abs=1e-12)
    assert tuple(found.columns) == DRIFT.columns
    assert found["limit_low"].null_count() == 8  # the baseline's nights have none
    assert found["n_baseline"].to_list() == [*range(1, 9), 8, 8]


def test_what_is_spent_on_false_alarms_includes_the_anchors_part():
    """An alarm may be the anchors' alone: theirs is the others' share of the family, here a sixth of it."""
    anchors = [None, None, *(5 + w for w in WOBBLE), 5.0, 5.0]  # frozen two nights after the first
    found = drift(table(nights([*(7 + w for w in WOBBLE), 7.01, 7.02, 7.0, 7.03], anchors)), n_baseline=8)
    theirs = shared_alpha(1, 1, is_headline=False)
    assert theirs == pytest.approx(FAMILY_ALPHA / 6)
    assert found["alpha"].to_list()[8:] == [0.0025] * 4
    assert found["alpha_spent"].to_list()[8:] == pytest.approx([0.0025, 0.005, 0.0075 + theirs, 0.01 + 2 * theirs])
    assert found["alpha_spent"].to_list()[:8] == [None] * 8


def one_chart(values, n_baseline=8):
    nights_ = np.array([values], float)
    return charts(nights_, np.zeros(nights_.shape), n_baseline, np.zeros(1), NIGHT_ALPHA)


BOUNDED = {
    "inside": ([2.0, -2.0], [2.0, -2.0]),
    "one night far off": ([9.0, 0.5], [3.0, 0.5]),
    "a second on the same side": ([9.0, 8.0, 9.0], [3.0, 4.5, 4.5]),
    "a second on the other side": ([9.0, -8.0], [3.0, -3.0]),
    "after a night less far off": ([3.5, 9.0], [3.0, 3.5]),
    "the second nearer than the first": ([9.0, 4.0], [3.0, 4.0]),
}


@pytest.mark.parametrize(("values", "expected"), BOUNDED.values(), ids=BOUNDED)
def test_one_night_far_off_counts_so_much_and_no_more(values, expected):
    nights_ = np.array([values])
    before = np.array([[np.nan, *values[:-1]]])
    assert bounded(nights_, before, np.zeros(1), np.ones(1)).tolist() == [expected]
    assert bounded(7 + 2 * nights_, 7 + 2 * before, np.full(1, 7.0), np.full(1, 2.0)) == pytest.approx(
        7 + 2 * np.array([expected])
    )


def test_centre_and_scale_are_those_of_normal_nights_and_not_carried_away():
    draws = np.random.default_rng(3).standard_normal((4000, 30))
    centre, scale = location_and_scale(draws, np.zeros(4000))
    assert (centre.mean(), scale.mean()) == pytest.approx((0, 1), abs=0.02)
    draws[:, 7] = 1e6
    centre, scale = location_and_scale(draws, np.zeros(4000))
    assert centre.mean() < 0.2
    assert scale.mean() < 1.4


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("n_since", [1, 4, 20])
def test_the_averages_variance_is_that_of_dependent_nights(phi, n_since):
    """Against the quadratic form of an AR(1) covariance, summed out; the covariance with the baseline is left out."""
    apart = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    weights = 0.3 * 0.7 ** np.arange(n_since)
    average = weights @ (phi ** apart[:n_since, :n_since]) @ weights
    base = np.full(30, 1 / 30) @ phi**apart @ np.full(30, 1 / 30)
    found = variance_factor(n_since, np.array([30]), np.array([phi]))
    assert found[0] == pytest.approx(average + (1 - 0.7**n_since) ** 2 * base, rel=1e-12)


def test_the_baseline_grows_with_quiet_nights_that_are_old_enough_and_stops_at_an_alarm():
    draw = np.random.default_rng(4)
    quiet = 7 + 0.02 * draw.standard_normal(75)
    grown = one_chart(quiet, 30)
    assert grown.n[0].tolist()[28:] == [0] + [30] * 10 + list(range(31, 61)) + [60] * 6
    dropped = np.concatenate([quiet[:40], quiet[40:] - 0.2])
    frozen = one_chart(dropped, 30)
    first = int(np.flatnonzero(frozen.deviation[0] < -t_quantile(1 - NIGHT_ALPHA, 29) * frozen.se[0])[0])
    assert 40 < first < 44
    assert set(frozen.n[0, first:].tolist()) == {frozen.n[0, first]}  # a new level joins no baseline: the alarm stays
    assert (frozen.deviation[0, first + 1 :] < -t_quantile(1 - NIGHT_ALPHA, 29) * frozen.se[0, first + 1 :]).all()


def test_series_are_charted_each_for_itself():
    draw = np.random.default_rng(5)
    long, short = draw.standard_normal(40), draw.standard_normal(20)
    both = np.array([long, np.concatenate([short, np.full(20, np.nan)])])
    found = charts(both, np.zeros(both.shape), 8, np.zeros(2), NIGHT_ALPHA)
    for row, alone in enumerate((one_chart(long), one_chart(short))):
        for name in ("n", "mean", "sd", "autocorrelation", "deviation", "se"):
            mine = getattr(alone, name)[0]
            assert np.array_equal(getattr(found, name)[row, : len(mine)], mine, equal_nan=True)
    assert np.isnan(found.deviation[1, 20:]).all()


STEP = 0.5
VERDICTS = {
    "nothing moves": (0, 0, True, "quiet", None),
    "the model drops": (-STEP, 0, True, "model", None),
    "the model rises": (STEP, 0, True, "model", None),
    "the judge grows harder": (-STEP, -STEP, True, "judge", None),
    "the judge grows milder": (STEP, STEP, True, "judge", None),
    "both move": (-3 * STEP, -STEP, True, "both", None),
    "the judge hides a drop": (0, STEP, True, "both", None),
    "no anchors": (-STEP, 0, False, "unknown", "no_anchor"),
    "no anchors, quiet": (0, 0, False, "quiet", None),
}


@pytest.mark.parametrize(("model", "judge", "has_anchors", "verdict", "reason"), VERDICTS.values(), ids=VERDICTS)
def test_verdicts(model, judge, has_anchors, verdict, reason):
    scores = [7 + w for w in WOBBLE] + [7 + model] * 4
    anchors = [5 - w / 2 for w in WOBBLE] + [5 + judge] * 4 if has_anchors else None
    row = last(nights(scores, anchors))
    assert (row["verdict"], row["reason"]) == (verdict, reason)
    assert row["is_alarm"] == (verdict != "quiet")
    if verdict == "quiet":
        assert (row["changed_on"], row["shift"], row["shift_se"]) == (None, None, None)
    elif model:
        assert row["changed_on"] == FIRST + timedelta(8)
        assert row["shift"] == pytest.approx(judge if verdict == "judge" else model, abs=1e-9)
    else:
        assert abs(row["shift"]) < 0.05, "the scores' own, which did not move"


def test_a_model_that_falls_when_the_judge_recovers_is_blamed_from_then_on():
    """The judge takes a point off for four nights; on the night on which it is as before, the model has lost two.

    One night that is as before may be chance: from the second on the judge is not blamed.
    """
    judge, model = [-1.0] * 4 + [0.0] * 6, [0.0] * 4 + [-2.0] * 6
    scores = [7 + w for w in WOBBLE] + [7 + a + b for a, b in zip(judge, model, strict=True)]
    found = drift(table(nights(scores, [5 - w / 2 for w in WOBBLE] + [5 + a for a in judge])), n_baseline=8)
    alarms = found.filter("is_alarm", pl.col("run_date") > FIRST + timedelta(11)).sort("run_date")
    verdicts = alarms["verdict"].to_list()
    assert (verdicts[0], set(verdicts[1:4]), verdicts[4:]) == ("judge", {"unknown", "model"}, ["model"] * 2)
    told = alarms.filter(verdict="model")
    assert told["changed_on"].unique().to_list() == [FIRST + timedelta(12)]
    assert told["shift"].to_list() == pytest.approx([-2.0] * told.height, abs=0.01)
    by_judge = found.filter("is_alarm", verdict="judge")
    assert (by_judge["changed_on"].unique().to_list(), by_judge["shift"].unique().to_list()[:1]) == (
        [FIRST + timedelta(8)], pytest.approx([-1.0], abs=1e-9)
    )  # fmt: skip


def test_anchors_too_coarse_to_tell_give_no_verdict():
    scores, anchors = [7 + w for w in WOBBLE] + [6.9] * 3, [5 + 20 * w for w in WOBBLE[::-1]] + [4.95] * 3
    row = last(nights(scores, anchors))
    assert (row["is_alarm"], row["verdict"], row["reason"]) == (True, "unknown", "cannot_separate")


def test_anchors_frozen_anew_start_a_baseline_of_their_own():
    rows = nights([7 + w for w in WOBBLE] + [6.0] * 3, [5 - w for w in WOBBLE] + [2.0] * 3)
    rows = [row | {"anchor_set": "e" * 64} if n >= 8 else row for n, row in enumerate(rows)]
    row = last(rows)
    assert (row["verdict"], row["reason"], row["anchor_p"]) == ("unknown", "anchor_baseline_incomplete", None)


def test_a_judge_that_never_varies_and_then_shifts_is_found():
    scores, anchors = [7 + w for w in WOBBLE] + [6.8] * 3, [5.0] * 8 + [4.8] * 3
    row = last(nights(scores, anchors))
    assert (row["verdict"], row["changed_on"]) == ("judge", FIRST + timedelta(8))
    assert row["anchor_limit_low"] < 5 < row["anchor_limit_high"]  # not of width 0: a last digit is no alarm


def test_a_night_with_nothing_new_is_no_observation():
    """The same checkpoint is not asked again: its cached night would make the baseline look quieter than nights are."""
    fresh = nights([7 + w for w in WOBBLE])
    again = [row | {"run_date": FIRST + timedelta(20 + n)} for n, row in enumerate([fresh[-1]] * 5)]
    found = drift(table([*fresh, *again]), n_baseline=8)
    assert found["reason"].to_list() == ["baseline_incomplete"] * 8 + ["nothing_new"] * 5
    assert found["limit_low"].null_count() == 13
    asked_anew = drift(table([*fresh, fresh[-1] | {"run_date": FIRST + timedelta(20), "se": 0.2}]), n_baseline=8)
    assert asked_anew["reason"].to_list()[-1] is None, "the same mean of other replies"
    more = last([*fresh, *again, night(30, 7.0)])
    plain = last([*fresh, night(30, 7.0)])
    assert more == plain


A, B = {"checkpoint": "A"}, {"checkpoint": "B"}
BLOCKED = {"se": None, "reason": "refusal"}


@pytest.mark.parametrize(
    ("later", "reasons"),
    [
        ([(7.5, A), (None, B | BLOCKED), (7.5, A)], [None, "refusal", "nothing_new"]),
        ([(7.5, A), (None, A | BLOCKED), (7.5, A)], [None, "refusal", "nothing_new"]),
        ([(7.5, A), (7.4, B), (7.5, A), (7.4, B)], [None, None, "nothing_new", "nothing_new"]),
        ([(7.5, A | {"se": None}), (7.5, A | {"se": None})], [None, "nothing_new"]),
        ([(7.5, A), (7.5, A | {"se": None})], [None, None]),
        ([(7.02, A), (7.02, B), (7.0, A)], [None, None, None]),
    ],
    ids=["another was blocked", "itself was blocked", "two in turn", "without an interval", "another interval", "all new"],
)
def test_a_stored_number_counts_once_whatever_came_between(later, reasons):
    rows = [night(8 + n, value, **named) for n, (value, named) in enumerate(later)]
    found = drift(table([*nights([7 + w for w in STEADY]), *rows]), n_baseline=8).sort("run_date")
    assert found["reason"].to_list()[8:] == reasons
    once = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
    assert found["ewma"].drop_nulls()[-1] == last([*nights([7 + w for w in STEADY]), *once])["ewma"]


def test_a_night_joins_the_baseline_when_it_is_nine_nights_old():
    found = drift(table(nights([7 + WOBBLE[n % 8] for n in range(41)])), n_baseline=30).sort("run_date")
    assert found["n_baseline"].to_list()[37:] == [30, 30, 31, 32]


def test_a_blocked_night_keeps_its_reason_and_leaves_the_average_alone():
    rows = [*nights([7 + w for w in WOBBLE]), night(8, None, se=None, reason="refusal"), night(9, 7.0)]
    found = drift(table(rows), n_baseline=8).sort("run_date")
    assert (found["verdict"][8], found["reason"][8], found["ewma"][8]) == ("unknown", "refusal", None)
    assert found["ewma"][9] == pytest.approx(7.0, abs=1e-12)
    assert (found["verdict"][9], found["reason"][9]) == ("quiet", None)


def test_a_dataset_of_another_size_is_another_series():
    rows = nights([7 + w for w in WOBBLE]) + [night(8 + n, 3.0 + w, n_judgements=90) for n, w in enumerate(WOBBLE)]
    found = drift(table(rows), n_baseline=8)
    assert not found["is_alarm"].any()
    assert found["reason"].unique().to_list() == ["baseline_incomplete"]


def test_false_alarms_are_shared_by_the_family_of_the_night():
    models = [f"m{n:02d}" for n in range(9)]
    rows = [row for model in models for row in nights([7 + w for w in WOBBLE] + [7.0] * 2, model=model)]
    rows += nights([7 + w for w in WOBBLE] + [7.0] * 2, model="m09", dimension="overall")
    rows = [row for row in rows if not (row["model"] == "m00" and row["run_date"] == FIRST + timedelta(9))]
    anchored = drift(table([row | {"anchor_set": "f" * 64, "anchor_estimate": 5.0} for row in rows]), n_baseline=8)
    assert anchored.filter(pl.col("run_date") == FIRST + timedelta(8))["n_family"].unique().to_list() == [12]
    plain = drift(table(rows), n_baseline=8).filter(pl.col("alpha").is_not_null()).sort("run_date")
    assert plain.group_by("run_date", maintain_order=True).first()["n_family"].to_list() == [10, 9]
    assert plain["alpha"].unique().sort().to_list() == [pytest.approx(0.0009), pytest.approx(0.001)]
    begun = drift(table([*rows, *(night(n, 7.0 + n / 100, model="young") for n in (8, 9))]), n_baseline=8)
    assert begun.filter(pl.col("alpha").is_not_null(), model="m09")["n_family"].to_list() == [10, 9], (
        "without limits there is no alarm"
    )
    led = drift(table([row | {"dimension": row["dimension"].replace("overall", "overall_score")} for row in rows]), n_baseline=8)
    of_night = led.filter(pl.col("run_date") == FIRST + timedelta(8)).select("dimension", "alpha").unique()
    assert dict(of_night.iter_rows()) == {"overall_score": 0.0025, "q": pytest.approx(0.0015 / 9)}


@given(st.integers(0, 300), st.integers(0, 300))
def test_a_family_never_spends_more_than_it_has(n_headline, n_other):
    spent = sum(
        n * shared_alpha(n_headline, n_other, is_headline=leads) for n, leads in ((n_headline, True), (n_other, False)) if n
    )
    assert spent <= FAMILY_ALPHA * (1 + 1e-9)


@example([-0.5] * 5, 11, Random(1))  # an alarm in the middle
@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=8), st.integers(9, 15), st.randoms(use_true_random=False))
def test_a_row_looks_at_no_later_night_and_row_order_changes_nothing(steps, cut, random):
    values = [7 + w for w in WOBBLE] + [7 + step for step in steps]
    rows = nights(values, [5 - w for w in WOBBLE] + [5 + step / 2 for step in steps])
    rows += nights([value + 1 for value in values], model="south")[::2]
    whole = drift(table(rows), n_baseline=8)
    until = FIRST + timedelta(cut)
    part = drift(table([row for row in rows if row["run_date"] <= until]), n_baseline=8)
    assert part.equals(whole.filter(pl.col("run_date") <= until))
    random.shuffle(rows)
    assert drift(table(rows), n_baseline=8).equals(whole)


def test_a_step_is_dated_to_its_night():
    values = np.array([*WOBBLE, 0.01, -0.02, 0.0, -0.3, -0.28, -0.33])
    found = change(values, 8, 0.02)
    assert found.index == 11
    assert found.shift == pytest.approx(values[11:].mean() - values[:11].mean(), abs=1e-12)
    assert found.shift_se == pytest.approx(0.02 * math.sqrt(1 / 3 + 1 / 11), abs=1e-12)
    assert change(np.array([*WOBBLE, 0.01, -0.3, -0.3, -0.5]), 8, 0.02).index == 9  # the last night alone is further off


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InputError, match="baseline of 7 nights is too short for control limits; give 8 or more"):
        drift(table(nights([7.0])), n_baseline=7)
    with pytest.raises(ValueError, match="the night 2026-01-01 of north q occurs twice"):
        drift(table([night(0, 7.0), night(0, 7.1)]))
    assert drift(table([])).height == 0


def test_simulated_quiet_nights_and_finds():
    """The short form of benchmarks/simulations/nights.py: the numbers asked for, less three standard errors."""
    calm = simulation.quiet(200, 21, simulation.HEADLINE)
    assert calm["windows"][0] <= 0.06 + 3 * calm["windows"][1]
    assert calm["nights"][0] <= 0.01 + 3 * calm["nights"][1]
    assert calm["windows"][0] > 0.003  # limits so wide that nothing alarms would pass all of the above
    for drop, within, share in ((0.05, 10, 0.85), (0.07, 5, 0.90)):
        found, error = simulation.finds(drop, within, 200, 22)
        assert found >= share - 3 * error


@pytest.mark.parametrize("world", simulated_alarms.ASKED)
def test_quiet_windows_without_an_alarm_in_the_world_as_it_is(world):
    """The short form of benchmarks/simulations/alarms.py. Limits for independent normal nights alarm in 12 to 25 % of them."""
    for share in simulated_alarms.quiet(one_series.against_limits, world, 2500, 23):
        assert share <= 0.06 + 3 * math.sqrt(0.06 * 0.94 / 2500)
    textbook = simulated_alarms.quiet(simulated_alarms.textbook, world, 2500, 23)
    assert min(textbook) > (0.10 if world != "independent" else 0.03)


@pytest.mark.parametrize("world", ["400 yes/no, 0.9998", "100 yes/no, 0.998", "means of 20, 50 and 200 yes/no, 0.997"])
def test_quiet_windows_of_nights_near_the_end_of_their_scale(world):
    """Most nights are alike and few a step off. A scale made of those that are alike alarms in 11 to 24 % of windows."""
    for share in simulated_alarms.quiet(one_series.COARSE_CHART, world, 2500, 25):
        assert share <= 0.06 + 3 * math.sqrt(0.06 * 0.94 / 2500)


def test_a_fall_from_near_the_end_of_the_scale_is_found_soon():
    _, in_two, in_three, _, in_ten = one_series.falls(*one_series.FALLS[0], 1000, 26)
    assert in_two > 0.7
    assert in_three > 0.93
    assert in_ten > 0.99


def test_coarse_nights_are_as_wide_as_their_steps_and_fine_ones_as_their_noise():
    """A step of which the baseline shows none is looked at on the night it comes, never before."""
    still = [7.0] * 12
    first = one_chart([*still, 6.99, 7.0])
    assert first.sd[0, 11] == 0
    assert first.sd[0, 12:] == pytest.approx(0.01 * math.sqrt(1 / 20), rel=1e-9)
    draw = np.random.default_rng(27).standard_normal((500, 30))
    steps = np.abs(draw - np.median(draw, axis=1)[:, None]).min(axis=1)
    assert (sd_of_steps(draw, steps) < 0.9 * draw.std(axis=1)).mean() > 0.9


def test_simulated_verdicts():
    judge = simulation.first_verdicts(simulation.World(120, judge_shift=-0.07), 23)
    assert judge["judge"] >= 0.93
    assert judge.get("model", 0) <= 0.02
    model = simulation.first_verdicts(simulation.World(120, model_shift=-0.2), 24)
    assert model["model"] >= 0.93
    assert model.get("judge", 0) <= 0.03
