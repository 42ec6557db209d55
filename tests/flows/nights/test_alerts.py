"""Which events a run gives occasion for, by tables of cases; and that one arrives at a Prefect server with payload and run."""

import time
from datetime import date
from typing import Any

import polars as pl
import pytest
from prefect import flow
from prefect.client.orchestration import get_client

from benchmarks.simulations import nights as simulation
from flows.observability import alerting
from flows.observability.alerting import Alert, blocked_cells, budget_reached, drifts, missed, missed_nights, regressions
from flows.observability.events import send
from schemas.tables.nights import DRIFT
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS
from schemas.tables.table import Table
from tasks.aggregate.drift.drift import drift
from tasks.judge.outcome import Outcome
from tasks.publish.standings.placed_cells import placed

pytestmark = pytest.mark.usefixtures("prefect_api")

NIGHT = date(2026, 11, 5)


def frame(table: Table, rows: list[dict[str, Any]], **common: Any) -> pl.DataFrame:
    """Rows of a table, with a value for every column that is not named."""
    schema = table.empty().schema
    filled = [dict.fromkeys(table.columns) | common | row for row in rows]
    return pl.DataFrame(filled, schema=schema)


def compared(*rows: dict[str, Any]) -> pl.DataFrame:
    common = {
        "comparison": "predecessor", "rubric_id": "r", "judge_model": "eye", "dimension": "score", "category": "__macro__",
        "model_a": "m", "model_b": "m", "checkpoint_a": "2", "checkpoint_b": "1", "delta": -0.3, "verdict": "lower",
    }  # fmt: skip
    return frame(COMPARISONS, list(rows), **common)


@pytest.mark.parametrize(
    ("rows", "n"),
    [
        ([{}], 1),
        ([{"verdict": "higher"}], 0),
        ([{"verdict": "open"}], 0),
        ([{"verdict": "failures_could_turn_it"}], 0),
        ([{"verdict": None, "delta": None}], 0),
        ([{"comparison": "baseline"}], 1),
        ([{"comparison": "each_other"}], 0),
        ([{"category": "colors"}], 0),
        ([{}, {"checkpoint_a": "3", "checkpoint_b": "2", "verdict": "higher"}], 0),
        ([{}, {"checkpoint_a": "3", "checkpoint_b": "2", "delta": -0.5}], 1),
        ([{}, {"dimension": "other"}], 2),
        ([{"is_primary": False}], 0),
        ([{"is_primary": True}, {"is_primary": False, "dimension": "other"}], 1),
        ([], 0),
    ],
    ids=[
        "lower", "higher", "cannot tell", "failures could turn it", "not known",
        "than the baseline", "each other", "one category", "of an older one",
        "of the newest of two", "two dimensions", "exploratory", "one of two is exploratory", "nothing",
    ],
)  # fmt: skip
def test_regressions(rows: list[dict[str, Any]], n: int) -> None:
    found = regressions(compared(*rows), {"m": max((row.get("checkpoint_a", "2") for row in rows), default="2")})
    assert [alert.payload["n_all"] for alert in found] == ([n] if n else [])
    assert all(alert.name == "salon.score.regression" for alert in found)
    assert all(alert.payload["alpha"] == 0.05 for alert in found)


def test_a_payload_lists_the_worst_and_counts_all() -> None:
    (found,) = regressions(compared(*({"dimension": f"d{n:02}", "delta": -n / 10} for n in range(1, 31))), {"m": "2", "{n}": "2"})
    assert found.payload["n_all"] == 30
    assert len(found.payload["rows"]) == 20
    assert found.payload["rows"][0]["dimension"] == "d30"
    assert found.payload["says"].endswith("; and 27 more")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{}], "m/2 is worse than 1: -0.30 [-0.41, -0.19], r, score"),
        (
            [{}, {"comparison": "baseline", "model_b": "base", "checkpoint_b": "0", "delta": -0.5}],
            "m/2 is worse than base/0: -0.50 [-0.41, -0.19], r, score; m/2 is worse than 1: -0.30 [-0.41, -0.19], r, score",
        ),
        (
            [{"delta": -0.004, "ci_low_adjusted": -0.007, "ci_high_adjusted": -0.001}],
            "m/2 is worse than 1: -0.004 [-0.01, -0.001], r, score",
        ),
        ([{"ci_low_adjusted": None}], "m/2 is worse than 1: -0.30, r, score"),
        (
            [{}, {"judge_model": "ear"}],
            "m/2 is worse than 1: -0.30 [-0.41, -0.19], r, score, ear; m/2 is worse than 1: -0.30 [-0.41, -0.19], r, score, eye",
        ),
        ([{"model_a": "{n}", "model_b": "{n}"}], "{n}/2 is worse than 1: -0.30 [-0.41, -0.19], r, score"),
    ],
    ids=["one", "the baseline too", "a small one", "no interval", "two judges", "a name is no template"],
)
def test_a_regression_is_said_by_name(rows: list[dict[str, Any]], says: str) -> None:
    interval = {"ci_low_adjusted": -0.41, "ci_high_adjusted": -0.19}
    (found,) = regressions(compared(*(interval | row for row in rows)), {"m": "2", "{n}": "2"})
    assert found.payload["says"] == says


@pytest.mark.parametrize(
    ("verdict", "name"),
    [
        ("judge", alerting.JUDGE_DRIFT), ("both", alerting.JUDGE_DRIFT), ("unknown", alerting.JUDGE_DRIFT),
        ("model", alerting.SCORE_DRIFT),
    ],
)  # fmt: skip
def test_a_drift_alarm_is_named_by_whom_it_blames(verdict: str, name: str) -> None:
    rows = [
        {"is_alarm": True, "verdict": verdict, "changed_on": date(2026, 11, 1)},
        {"is_alarm": False, "verdict": "none"},
        {"is_alarm": True, "verdict": verdict, "run_date": date(2026, 11, 4)},
    ]
    found = frame(DRIFT, rows, run_date=NIGHT, rubric_id="r", model="m", dimension="d").with_columns(changed_under=None)
    (found,) = drifts(found, NIGHT)
    assert (found.name, found.payload["n_all"]) == (name, 1)
    assert found.payload["rows"][0]["changed_on"] == "2026-11-01"
    assert found.payload["says"].startswith("1 series is beyond its limits, ")


def test_blocked_cells() -> None:
    rows = [{"status": "blocked", "reason": "refusal", "cell_id": "a"}, {"status": "ok"}, {"status": "null"}]
    (found,) = blocked_cells(placed({BENCHMARK_LONG: frame(BENCHMARK_LONG, rows)}))
    assert (found.name, [row["reason"] for row in found.payload["rows"]]) == ("salon.table.blocked", ["refusal"])
    assert found.payload["says"] == "1 cell is blocked: too few of its judgements have a score"
    assert blocked_cells(placed({BENCHMARK_LONG: frame(BENCHMARK_LONG, rows[1:])})) == []


def test_quiet_nights_give_no_alerts_and_a_drop_does() -> None:
    """The short form of benchmarks/simulations/nights.py, through the alerts: 1,000 quiet nights of a family of 24; a drop."""
    share, _ = simulation.told_in_quiet(1000, seed=11)
    assert share <= 0.01
    found, error = simulation.told_of_drops(0.07, 5, n_families=60, seed=12)
    assert found >= 0.90 - 2 * error


def test_what_the_chart_finds_is_told() -> None:
    """On the same nights: an alert is never later than the chart, whatever else it says."""
    world = simulation.World(60, model_shift=-0.07, n_nights=simulation.N_BASELINE + simulation.N_QUIET + 5)
    found = simulation.watched(drift(world.nights(13))).filter(pl.col("since") >= 0)
    told = simulation.alerts(found).explode("models").drop_nulls("models").rename({"models": "model"})
    by_chart = found.filter(pl.col("ewma") < pl.col("limit_low")).select("benchmark", "model", "since")
    assert by_chart.height > 60
    assert by_chart.join(told, on=["benchmark", "model", "since"], how="anti").height == 0


@pytest.mark.parametrize(
    ("dimensions", "alphas"),
    [
        (("overall_score", "a", "b"), {"overall_score": 0.0025, "a": 0.0015 / 9, "b": 0.0015 / 9}),
        (("score",), {"score": 0.0025}),
        (("a", "b"), {"a": 0.009 / 8, "b": 0.009 / 8}),
    ],
    ids=["an overall score", "one dimension", "none leads"],
)
def test_what_a_leaderboard_shows_is_watched_most_closely(dimensions: tuple[str, ...], alphas: dict[str, float]) -> None:
    nights = simulation.World(1, dimensions=dimensions, n_nights=simulation.N_BASELINE + 1).nights(1)
    watched = drift(nights).filter(pl.col("alpha").is_not_null())
    assert dict(watched.select("dimension", "alpha").unique().iter_rows()) == pytest.approx(alphas)


def _days(*days: int) -> list[date]:
    return [date(2026, 11, day) for day in days]


@pytest.mark.parametrize(
    ("schedule", "timezone", "nights", "run", "expected"),
    [
        ("0 2 * * *", "UTC", (3, 4), 5, ()),
        ("0 2 * * *", "UTC", (2,), 5, (3, 4)),
        ("0 2 * * *", "UTC", (), 5, ()),
        ("0 2 * * *", "UTC", (5,), 5, ()),
        ("0 2 * * *", "UTC", (1, 9), 5, ()),
        ("0 2 * * 1", "UTC", (2,), 9, ()),
        ("0 2 * * 1", "UTC", (2,), 16, (9,)),
        ("0 0 * * *", "Pacific/Auckland", (3,), 5, (4,)),
        ("30 1 * * *", "America/New_York", (1,), 3, (2,)),
    ],
    ids=["none", "two", "first", "again", "backfill", "weekly", "weekly, one", "far east", "clocks change"],
)  # fmt: skip
def test_missed_nights(schedule: str, timezone: str, nights: tuple[int, ...], run: int, expected: tuple[int, ...]) -> None:
    (day,) = _days(run)
    assert missed_nights([(schedule, timezone)], _days(*nights), day, day) == _days(*expected)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("0 2 * * 1", "0 2 * * *", (9,)),
        ("0 2 * * *", "0 2 * * 1", (9,)),
        ("0 2 * * 1", "0 2 * * 2", ()),
        ("0 2 * * *", "30 5 * * *", tuple(range(3, 12))),
    ],
    ids=["weekly, now daily", "daily, now weekly", "another weekday", "another hour"],
)
def test_only_a_night_that_was_due_by_the_schedule_of_before_too_is_missed(
    before: str, now: str, expected: tuple[int, ...]
) -> None:
    """The last night was on Monday the second; this one is of Thursday the twelfth."""
    (day,) = _days(12)
    assert missed_nights({(before, "UTC"), (now, "UTC")}, _days(2), day, day) == _days(*expected)


def test_a_night_is_missed_once_the_next_one_is_due() -> None:
    """A run of the fifth at one o'clock: the night of the fourth, due at eight in the evening, may still be asking."""
    run, yesterday = _days(5, 4)
    assert missed_nights([("0 20 * * *", "UTC")], _days(2), run, newest_due=yesterday) == _days(3)
    assert missed_nights([("0 20 * * *", "UTC")], _days(3), run, newest_due=yesterday) == []


def test_missed_nights_are_one_event() -> None:
    assert missed([]) == []
    assert missed(_days(3))[0].payload["says"] == "1 night was due but has no publication: 2026-11-03"
    (found,) = missed(_days(3, 4))
    assert found.payload["dates"] == ["2026-11-03", "2026-11-04"]


def test_what_was_spent_may_be_more_than_is_known() -> None:
    asked = Outcome(cost_usd=4.9, n_asked=9, n_in_doubt=1)
    (said, exact) = (budget_reached(5.0, one, 7).payload["says"] for one in (asked, Outcome(cost_usd=4.9)))
    assert said == "the budget of $5.00 is reached: this run spent at least $4.90, 7 requests not sent"
    assert exact == said.replace("at least ", "")


def test_an_event_arrives_with_its_payload_and_its_run() -> None:
    @flow(name="sends an alert")
    def sends() -> list[str]:
        return send("nightly", NIGHT, [Alert(alerting.REGRESSION, {"says": "lower <b>&</b>", "n_all": 1, "rows": []})])

    assert sends() == [alerting.REGRESSION]
    arrived = _first_event(alerting.REGRESSION)
    assert arrived["payload"] == {
        "says": "lower <b>&</b>",
        "n_all": 1,
        "rows": [],
        "benchmark": "nightly",
        "run_date": "2026-11-05",
    }
    assert arrived["resource"]["prefect.resource.id"] == "salon.benchmark.nightly"
    assert "flow-run" in {related["prefect.resource.role"] for related in arrived["related"]}


def _first_event(name: str) -> dict[str, Any]:
    """The event about the benchmark `nightly`, as the server gives it back: some seconds after it arrived there."""
    query = {"filter": {"event": {"name": [name]}, "resource": {"id": ["salon.benchmark.nightly"]}}, "limit": 1}
    with get_client(sync_client=True) as client:
        for _ in range(240):
            events: list[dict[str, Any]] = client.request("POST", "/events/filter", json=query).json()["events"]
            if events:
                return events[0]
            time.sleep(0.25)
    raise AssertionError(f"{name} did not arrive")
