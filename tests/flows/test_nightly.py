"""Nights on a moved clock: each once, whatever is missed, killed or started twice; and which night is due."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from night_world import MODEL, N_SAMPLES, World, n_billed, write_benchmark
from sqlalchemy import func, select

from flows.nightly import NightSummary, is_fresh, newest_due, open_night, run_night
from flows.nights.anchors import freeze
from flows.nights.drift import nightly_publications
from flows.nights.notes import notes
from flows.partitions.table import read_partitions
from flows.run.fan_out import in_this_process
from flows.telling.events import missed_nights
from flows.telling.progress import Reporter
from schemas.benchmark import load_benchmark
from schemas.errors import InputError
from tasks.judge.ledger import Ledger
from tasks.judge.ledger_tables import ATTEMPTS, REPLIES

FIRST = date(2026, 3, 1)
N_NIGHTS = int(os.environ.get("SALON_NIGHTS", "5"))
"""30 take about two minutes: SALON_NIGHTS=30 pytest tests/flows/test_nightly.py."""
MISSED = {2, 9, 10} & set(range(N_NIGHTS))
CRASHED, STARTED_TWICE_AT_ONCE, STARTED_AGAIN = 3, 1, 4
N_ANCHORS = 6

KILLED = """\
import sys
from datetime import date
from pathlib import Path
from flows.run.fan_out import in_this_process
from flows.nightly import open_night, run_night
from flows.telling.progress import Reporter
run_night(open_night(Path(sys.argv[1]), date.fromisoformat(sys.argv[2])), in_this_process, Reporter())
"""


def _night(file: Path, day: date) -> NightSummary:
    return run_night(
        open_night(file, now=datetime(day.year, day.month, day.day, 2, 0, 7, tzinfo=UTC)), in_this_process, Reporter()
    )


def _kill_in_mid_night(file: Path, day: date, url: str) -> None:
    """Start the night in a process of its own and kill it while it asks."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    before = n_billed(url)
    killed = subprocess.Popen([sys.executable, "-c", KILLED, str(file), day.isoformat()], env=environment)
    while n_billed(url) < before + 5:
        assert killed.poll() is None, "the night ended before it could be killed"
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()


def test_nights_come_once(tmp_path: Path, judge_url: str) -> None:
    world, before = World(tmp_path), n_billed(judge_url)
    file = write_benchmark(tmp_path, judge_url)
    slow = write_benchmark(tmp_path, judge_url, "slow.toml", limits="requests_per_minute = 600")
    frozen, missed = None, dict[int, list[date]]()
    for number in range(N_NIGHTS):
        day = FIRST + timedelta(days=number)
        world.make(number)
        if number in MISSED:
            continue
        if number == CRASHED:
            _kill_in_mid_night(slow, day, judge_url)
            assert not is_fresh(open_night(file, day))
        if number == STARTED_TWICE_AT_ONCE:
            with ThreadPoolExecutor(2) as both:
                found = list(both.map(_night, [file] * 2, [day] * 2))
            assert sum(one.run is None for one in found) == 1  # the second one found it done
        summary = _night(file, day)
        assert (summary.run is None) == (number == STARTED_TWICE_AT_ONCE)
        if number == STARTED_AGAIN:
            n = n_billed(judge_url)
            assert _night(file, day).run is None
            assert n_billed(judge_url) == n
        assert summary.checkpoints == {MODEL: f"step-{number}"}
        assert is_fresh(open_night(file, day))
        run = open_night(file, day)
        missed[number] = missed_nights(run.lake.root, run.benchmark, day)
        if frozen is None:
            frozen = freeze(run, N_ANCHORS)

    run = open_night(file, FIRST + timedelta(days=N_NIGHTS - 1))
    nights = [number for number in range(N_NIGHTS) if number not in MISSED]
    days = [(FIRST + timedelta(days=number)).isoformat() for number in nights]
    assert list(notes(run.lake.root, "nights")) == days
    assert [publication.run_date for publication in nightly_publications(run.lake.root, "nights")] == days
    told = {FIRST + timedelta(days=number) for number in MISSED}
    assert {day for dates in missed.values() for day in dates} == told
    assert sum(len(dates) for dates in missed.values()) == len(told)  # each once, on the night that follows it

    partitions = read_partitions(run)
    assert partitions.select("checkpoint", "state", "n_requests", "n_left").sort("checkpoint").rows() == sorted(
        (f"step-{number}", "done", N_SAMPLES, 0) for number in nights
    )
    with Ledger(run.ledger_url) as ledger:
        n_replies = ledger.read(lambda connection: connection.execute(select(func.count()).select_from(REPLIES)).scalar_one())
        n_attempts = ledger.read(lambda connection: connection.execute(select(func.count()).select_from(ATTEMPTS)).scalar_one())
    assert frozen is not None
    assert n_replies == N_SAMPLES * len(nights) + frozen.n_samples * (len(nights) - 1)
    n_twice = n_billed(judge_url) - before - n_replies
    assert 0 <= n_twice <= 4  # what was in flight when the night was killed, and nothing else
    assert n_attempts - n_replies == pytest.approx(n_twice, abs=4)

    drift = pl.read_parquet(run.lake.root / "publish" / "v1" / "nights" / "drift.parquet").sort("run_date")
    assert drift["run_date"].cast(pl.String).to_list() == days
    assert drift["checkpoint"].to_list() == [f"step-{number}" for number in nights]  # not the earlier one that stands beside it
    assert drift["estimate"].null_count() == 0
    assert drift["anchor_set"].null_count() == 1  # the night before they were frozen
    assert drift["anchor_set"].drop_nulls().n_unique() == 1
    assert drift["n_judgements"].unique().to_list() == [N_SAMPLES]


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
    assert newest_due(load_benchmark(file), datetime.fromisoformat(now)).date().isoformat() == due


@pytest.mark.parametrize(
    ("line", "named"), [('schedule = "at two"', "nightly.schedule"), ('timezone = "Berlin"', "nightly.timezone")]
)
def test_a_schedule_that_is_none(tmp_path: Path, line: str, named: str) -> None:
    file = write_benchmark(tmp_path, "http://127.0.0.1:1/v1", nightly=line if "timezone" in line else "")
    if "schedule" in line:
        file.write_text(file.read_text().replace('schedule = "0 2 * * *"', line))
    with pytest.raises(InputError, match=named):
        newest_due(load_benchmark(file), datetime(2026, 3, 5, tzinfo=UTC))
