"""Nights on a moved clock: each once, whatever is missed, killed, started twice or changed; and which night is due."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import Table, func, select
from sqlalchemy.engine import Connection

from demo.running import running_judge
from flows.bridging import make_bridge, plan_bridge
from flows.night_opening import open_night
from flows.nightly import NightSummary, run_night
from flows.nights.anchors import freeze
from flows.nights.drift import bridges_of, nightly_publications, series_of
from flows.nights.record import notes
from flows.observability.alerting import NIGHT_MISSED, REGRESSION
from flows.observability.events import alerts_after_run, missed_nights
from flows.partitions.table import read_partitions
from flows.run.context import RunContext, open_run
from schemas.benchmark.file import load_benchmark
from schemas.tables.nights import DRIFT
from schemas.tables.stored import SAMPLES
from tasks.aggregate.drift.drift import drift
from tasks.context import StageContext
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import ATTEMPTS, REPLIES
from tests.support.night_world import MODEL, N_SAMPLES, World, n_billed, write_benchmark

FIRST = date(2026, 3, 1)
N_NIGHTS = int(os.environ.get("SALON_NIGHTS", "5"))
"""30 take about two minutes: SALON_NIGHTS=30 pytest tests/flows/nights/test_nightly.py."""
MISSED = {2, 9, 10} & set(range(N_NIGHTS))
CRASHED, STARTED_TWICE_AT_ONCE, STARTED_AGAIN = 3, 1, 1
JUDGE_FROM, RUBRIC_FROM = (14, 20) if N_NIGHTS >= 30 else (4, 4)
"""The first night by the new judge, and the first one that has the new rubric too."""
N_ANCHORS = 24
OLD, NEW = "eye-1", "eye-2"
PRICE = "usd_per_million_input_tokens = 2\nusd_per_million_output_tokens = 8\n"
SCENARIO = "".join(f'[[models]]\nid = "{name}"\n{PRICE}' for name in (OLD, NEW))

KILLED = """\
import sys
from datetime import date
from pathlib import Path
from flows.run.context import RunContext
from flows.nightly import run_night
from flows.night_opening import open_night
from flows.observability.progress import Reporter
run_night(RunContext.of(open_night(Path(sys.argv[1]), date.fromisoformat(sys.argv[2]))))
"""


def _night(file: Path, day: date) -> NightSummary:
    return run_night(RunContext.of(open_night(file, now=datetime(day.year, day.month, day.day, 2, 0, 7, tzinfo=UTC))))


def _kill_in_mid_night(file: Path, day: date, url: str) -> None:
    """Start the night in a process of its own and kill it while it asks."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    before = n_billed(url)
    killed = subprocess.Popen([sys.executable, "-c", KILLED, str(file), day.isoformat()], env=environment)
    while n_billed(url) < before + 5:
        assert killed.poll() is None, "the night ended before it could be killed"
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()


@pytest.fixture(scope="module")
def two_judges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of two models, which see alike."""
    scenario = tmp_path_factory.mktemp("judges") / "two.toml"
    scenario.write_text(SCENARIO)
    with running_judge(scenario) as url:
        yield url


def _rubrics(number: int) -> tuple[str, ...]:
    return ("alignment", "image_aspects") if number >= RUBRIC_FROM else ("alignment",)


def _write(folder: Path, url: str, number: int, models: Sequence[str] = (), name: str = "b.toml", limits: str = "") -> Path:
    """The benchmark file as it is on a night."""
    judges = models or ((NEW,) if number >= JUDGE_FROM else (OLD,))
    return write_benchmark(folder, url, name, rubrics=_rubrics(number), models=judges, limits=limits)


def _make_bridge(folder: Path, url: str, day: date) -> pl.DataFrame:
    """What the user does on the day the judge is replaced: list both, bridge, take the old one out."""
    run = open_run(_write(folder, url, JUDGE_FROM - 1, (OLD, NEW), "both.toml"), day)
    planned = plan_bridge(RunContext.of(run), OLD, NEW)
    assert planned.n_to_ask == 2 * run.lake.scan(SAMPLES, planned.anchor_set).collect().height
    assert all(row.forecast.online_usd for row in planned.rubrics)
    return make_bridge(planned)


def _told(summary: NightSummary, run: StageContext) -> list[str]:
    assert summary.run is not None
    return sorted(alert.name for alert in alerts_after_run(run, summary.run.published, summary.run.cells))


def test_nights_come_once(tmp_path: Path, two_judges: str) -> None:
    world, before = World(tmp_path), n_billed(two_judges)
    frozen, bridge, told, missed = None, None, dict[int, list[str]](), dict[int, list[date]]()
    for number in range(N_NIGHTS):
        day = FIRST + timedelta(days=number)
        world.make(number)
        if number in MISSED:
            continue
        if number == JUDGE_FROM:
            bridge = _make_bridge(tmp_path, two_judges, day)
        file = _write(tmp_path, two_judges, number)
        if number == CRASHED:
            slow = _write(tmp_path, two_judges, number, name="slow.toml", limits="requests_per_minute = 600")
            _kill_in_mid_night(slow, day, two_judges)
            assert day.isoformat() not in notes(tmp_path / "lake", "nights")
        if number == STARTED_TWICE_AT_ONCE:
            with ThreadPoolExecutor(2) as both:
                found = list(both.map(_night, [file] * 2, [day] * 2))
            assert sum(one.run is None for one in found) == 1  # the second one found it done
            (summary,) = (one for one in found if one.run is not None)
        else:
            summary = _night(file, day)
        if number == STARTED_AGAIN:
            n = n_billed(two_judges)
            assert _night(file, day).run is None
            assert n_billed(two_judges) == n
        assert summary.checkpoints == {MODEL: f"step-{number}"}
        run = open_night(file, day)
        assert day.isoformat() in notes(run.lake.root, run.benchmark.name)
        told[number] = _told(summary, run)
        missed[number] = missed_nights(run.lake.root, run.benchmark, day)
        if frozen is None:
            frozen = freeze(run, N_ANCHORS)

    assert frozen is not None
    assert bridge is not None
    nights = [number for number in range(N_NIGHTS) if number not in MISSED]
    days = [(FIRST + timedelta(days=number)).isoformat() for number in nights]
    assert list(notes(run.lake.root, "nights")) == days
    assert [publication.run_date for publication in nightly_publications(run.lake.root, "nights")] == days
    _check_alarms(told, missed, nights)
    _check_partitions(run, nights)
    asked = [(N_SAMPLES + (number > 0) * frozen.n_samples) * len(_rubrics(number)) for number in nights]
    _check_bill(run, sum(asked) + frozen.n_samples, n_billed(two_judges) - before)  # the old judge's part of the bridge
    _check_series(run, nights, bridge)


def _check_alarms(told: dict[int, list[str]], missed: dict[int, list[date]], nights: list[int]) -> None:
    """Each missed night is told of once, on the night that follows it; a fall where the pictures got worse, and nothing else."""
    assert sorted(day for dates in missed.values() for day in dates) == [
        FIRST + timedelta(days=number) for number in sorted(MISSED)
    ]
    assert {number for number, names in told.items() if NIGHT_MISSED in names} == {
        number for number, dates in missed.items() if dates
    }
    worse = {number for before, number in pairwise(nights) if number % 3 < before % 3}  # as World makes them
    assert {number for number, names in told.items() if REGRESSION in names} <= worse
    assert {name for names in told.values() for name in names} <= {NIGHT_MISSED, REGRESSION}


def _check_partitions(run: StageContext, nights: list[int]) -> None:
    """One for each night and rubric, all asked to the end; those by the judge of before are stale."""
    found = read_partitions(run).select("checkpoint", "rubric_id", "judge_model", "state", "n_requests", "n_left")
    assert sorted(found.rows()) == sorted(
        (
            f"step-{number}",
            rubric,
            NEW if number >= JUDGE_FROM else OLD,
            "done" if number >= JUDGE_FROM else "stale",
            N_SAMPLES,
            0,
        )
        for number in nights
        for rubric in _rubrics(number)
    )


def _n_rows(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _check_bill(run: StageContext, n_asked: int, n_paid: int) -> None:
    """Each question was stored once, and bought once, but for what was in flight when a night was killed."""
    with Ledger(run.ledger_url) as ledger:
        n_replies, n_attempts = (ledger.read(partial(_n_rows, table=table)) for table in (REPLIES, ATTEMPTS))
    assert n_replies == n_asked
    assert 0 <= n_paid - n_replies <= 4
    assert n_attempts - n_replies == pytest.approx(n_paid - n_replies, abs=4)


def _check_series(run: StageContext, nights: list[int], bridge: pl.DataFrame) -> None:
    """No row twice; each night's own checkpoint; the old judge's nights carried over to the new one's series."""
    assert bridge.select("judge_old", "judge_new", "status", "n_images").rows() == [(OLD, NEW, "ok", N_ANCHORS)]
    assert bridge["offset"].item() == 0  # the two see alike
    published = nightly_publications(run.lake.root, "nights")
    bare = drift(series_of(run.lake.root, published, run.rubrics))
    whole = drift(series_of(run.lake.root, published, run.rubrics, bridges_of(run.lake.root, "nights")))
    for series in (bare, whole):
        assert not series.select(pl.struct(DRIFT.key).is_duplicated().any()).item()
        assert series["estimate"].null_count() == 0
    one = whole.filter(rubric_id="alignment").sort("run_date")
    assert one["judge_model"].unique().to_list() == [NEW]
    assert one["measured_by"].to_list() == [NEW if number >= JUDGE_FROM else OLD for number in nights]
    assert one["checkpoint"].to_list() == [f"step-{number}" for number in nights]  # not the earlier one that stands beside it
    assert one["estimate"].to_list() == bare.filter(rubric_id="alignment").sort("run_date")["estimate"].to_list()
    assert one["n_baseline"].to_list() == list(range(1, len(nights) + 1))  # one baseline under both judges
    assert one["anchor_set"].null_count() == 1  # the night before they were frozen
    assert one["anchor_set"].drop_nulls().n_unique() == 1
    aspects = whole.filter(rubric_id="image_aspects")
    assert aspects["run_date"].min() == FIRST + timedelta(days=min(number for number in nights if number >= RUBRIC_FROM))
    assert whole["n_judgements"].unique().to_list() == [N_SAMPLES]


@pytest.mark.parametrize(
    ("schedule", "timezone", "now", "due"),
    [
        ("0 2 * * *", "UTC", "2026-03-05T02:00:00+00:00", "2026-03-05"),
        ("0 2 * * *", "UTC", "2026-03-05T01:59:59+00:00", "2026-03-04"),
        ("0 2 * * *", "UTC", "2026-03-09T14:00:00+00:00", "2026-03-09"),
        ("0 2 * * *", "Asia/Tokyo", "2026-03-04T17:30:00+00:00", "2026-03-05"),
        ("0 2 * * *", "America/New_York", "2026-03-05T02:00:00+00:00", "2026-03-04"),
        ("0 2 * * 1", "UTC", "2026-03-05T02:00:00+00:00", "2026-03-02"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T12:00:00+00:00", "2026-03-29"),
    ],
    ids=["at its minute", "a second before", "long after", "east", "west", "weekly", "the hour the clock leaves out"],
)
def test_which_night_is_due(tmp_path: Path, schedule: str, timezone: str, now: str, due: str) -> None:
    file = write_benchmark(tmp_path, "http://127.0.0.1:1/v1", nightly=f'timezone = "{timezone}"')
    file.write_text(file.read_text().replace("0 2 * * *", schedule))
    assert load_benchmark(file).nightly.newest_due(datetime.fromisoformat(now)).date().isoformat() == due
