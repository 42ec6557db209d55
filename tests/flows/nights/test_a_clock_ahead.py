"""A host whose clock is off: told and refused by the ledger's clock; without one, what it left is told of and taken back."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest

from flows.night_opening import open_night
from flows.nightly import run_night
from flows.nights.drift import standing_publications
from flows.nights.record import mutex_name, notes
from flows.run.context import RunContext, open_run
from flows.withdrawing import withdraw
from schemas.tables.nights import DRIFT
from tasks.ledger.mutex import mutex
from tasks.ledger.open_ledgers import opened
from tasks.publish.living_tables import living_table
from tasks.publish.reading import current
from tests.flows.flow_support import Said, findings, runs_of
from tests.support.night_world import World, n_billed, write_benchmark
from tests.support.servers.postgres import running_postgres, why_not
from tests.torture.harness import COMPILER, build

ROOT = Path(__file__).parents[3]
Salon = Callable[..., Said]
NOW = datetime.now(UTC)
DUE = (NOW if NOW.hour >= 2 else NOW - timedelta(days=1)).date()  # the world's nights come at two


@pytest.fixture(scope="module")
def ledger_url() -> Iterator[str]:
    missing = why_not() or (None if COMPILER else "no C compiler is installed")
    if missing is not None:
        pytest.skip(missing)
    with running_postgres() as server:
        yield server.new_database()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, ledger_url: str, judge_url: str) -> Path:
    """A benchmark whose ledger is on a server, and a library by which a program's clock is off."""
    folder = tmp_path_factory.mktemp("world")
    build(ROOT / "tests" / "torture" / "clock.c", folder / "clock.so")
    World(folder).make(1)
    yesterday_s = (NOW - timedelta(days=1)).timestamp()
    for path in (folder / "made").rglob("*"):  # before two o'clock the night that is due is yesterday's
        os.utime(path, (yesterday_s, yesterday_s))
    file = write_benchmark(folder, judge_url)
    file.write_text(f'ledger = "{ledger_url}"\n' + file.read_text())
    return folder


def _salon(world: Path, ahead: timedelta, *arguments: str) -> Said:
    """The command on a machine whose clock is so far ahead of the server's."""
    (world / "clock").write_bytes(int(ahead.total_seconds()).to_bytes(8, sys.byteorder, signed=True))
    clock = {"LD_PRELOAD": str(world / "clock.so"), "SALON_CLOCK": str(world / "clock"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "flows", *arguments]
    done = subprocess.run(command, cwd=world, env=os.environ | clock, capture_output=True, text=True, timeout=300, check=False)
    return Said(done.returncode, done.stdout, " ".join(done.stderr.split()))


@pytest.mark.parametrize(
    ("days", "command"),
    [(2, ["nightly"]), (-2, ["nightly"]), (2, ["run"]), (-2, ["run"]), (2, ["backfill", "--all"])],
    ids=["night ahead", "night behind", "run ahead", "run behind", "backfill ahead"],
)
def test_no_date_is_taken_from_a_clock_that_is_days_off(world: Path, judge_url: str, days: int, command: list[str]) -> None:
    n_before = n_billed(judge_url)
    name, *options = command
    said = _salon(world, timedelta(days=days), name, "b.toml", *options)
    there = DUE if name == "nightly" else NOW.date()
    assert said.code == 2, said
    assert f"this machine's clock is 2.0 days {'ahead of' if days > 0 else 'behind'} the clock of the ledger's server" in said.err
    assert f"there the date is {there}" in said.err
    is_allowed = name != "nightly" or days > 0  # a night that is not due by this machine's clock is refused
    assert (f"--run-date {there}" in said.err) == is_allowed
    assert n_billed(judge_url) == n_before
    assert not (world / "lake" / "publish").exists()


def test_a_clock_that_is_off_by_minutes_is_told_and_a_date_may_be_named(world: Path) -> None:
    minutes = timedelta(minutes=10 if NOW.hour != 1 else -10)  # not over the hour at which the night is due
    found = findings(_salon(world, minutes, "doctor", "b.toml").out)
    assert found["ledger's clock"].startswith("wrong: this machine's clock is 10.0 min "), found
    assert findings(_salon(world, timedelta(seconds=60), "doctor", "b.toml").out)["ledger's clock"].startswith("ok: ")
    named = _salon(world, timedelta(days=2), "nightly", "b.toml", "--run-date", f"{DUE}")
    assert named.code == 0, named
    assert "ahead of the clock of the ledger's server, which decides; set it by a time server (NTP)" in named.err
    assert (world / "lake" / "nights" / "nights" / f"{DUE}.json").is_file()


def test_a_night_begun_by_a_clock_that_is_minutes_ahead_waits_until_it_is_due_there(world: Path) -> None:
    due = datetime.now(UTC) + timedelta(seconds=75)  # the command is there in less, and the schedule knows minutes
    file = world / "b.toml"
    late = file.read_text().replace('name = "nights"', 'name = "late"').replace("0 2 * * *", f"{due.minute} {due.hour} * * *")
    (world / "late.toml").write_text(late)
    said = _salon(world, timedelta(minutes=5), "nightly", "late.toml")
    assert said.code == 0, said
    assert f"{due.date()} begins there within that time; waiting for it" in said.err
    begun = datetime.fromtimestamp((world / "lake" / "nights" / "late" / f"{due.date()}.json").stat().st_mtime, UTC)
    assert begun >= due.replace(second=0, microsecond=0)


@pytest.fixture
def shut_out(tmp_path: Path, judge_url: str) -> Path:
    """A benchmark whose ledger is a file, and of whose nights a machine two days ahead has done one that has not come."""
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, judge_url)
    run_night(RunContext.of(open_night(file, DUE - timedelta(days=1))))
    run_night(RunContext.of(open_night(file, now=NOW + timedelta(days=2))))
    return file


def test_a_night_behind_one_of_the_future_says_so_until_that_is_taken_back(salon: Salon, shut_out: Path) -> None:
    lake, future = shut_out.parent / "lake", f"{DUE + timedelta(days=2)}"
    ahead = current(lake).publication_id
    assert list(notes(lake, "nights")) == [f"{DUE - timedelta(days=1)}", future]
    said = f"the current publication, {ahead[:12]}, is of {future}, a date in the future"
    for _ in ("published", "found published"):
        night = salon("nightly", shut_out)
        assert (night.code, said in " ".join(night.out.split())) == (1, True), night.out
    check = salon("nightly", shut_out, "--check")
    assert (check.code, said in check.err) == (1, True)
    doctor = salon("doctor", shut_out)
    assert (doctor.code, findings(doctor.out)["last night"].startswith(f"wrong: {said}")) == (3, True)
    advice = " ".join(doctor.out.partition("can become current")[2].split())
    first = f"-> Is this machine's clock right, which says {datetime.now(UTC):%Y-%m-%d} "
    assert (advice.startswith(first), f"salon withdraw FILE {ahead[:12]}" in advice) == (True, True), advice
    assert "If it is behind, set it and withdraw nothing." in advice

    back = salon("withdraw", shut_out, ahead[:12], "--because", "a clock was ahead")
    tonight = notes(lake, "nights")[f"{DUE}"].publication_id
    assert back.code == 0, back.err
    assert f"withdrawn: {ahead[:12]}, of {future}: a clock was ahead" in back.out
    assert f"no longer a night: {future}" in back.out
    assert f"current: {tonight[:12]}, of {DUE}" in back.out
    assert current(lake).publication_id == current(lake, pointer="latest_good.json").publication_id == tonight
    assert (lake / "publish" / "v1" / "nights" / ahead).is_dir(), "what was published stays readable"
    assert '"because": "a clock was ahead"' in (lake / "withdrawn" / f"{ahead}.json").read_text()
    _is_taken_back_where_nights_are_shown(lake, ahead, future)
    n_runs = runs_of(lake).height
    assert salon("nightly", shut_out).code == salon("nightly", shut_out, "--check").code == 0
    assert runs_of(lake).height == n_runs, "tonight's stands, and nothing is asked"

    comes = run_night(RunContext.of(open_night(shut_out, now=NOW + timedelta(days=2))))
    assert comes.run is not None, "the night that was taken back is run when it comes"
    assert current(lake).run_date == future


def _is_taken_back_where_nights_are_shown(lake: Path, publication_id: str, run_date: str) -> None:
    with duckdb.connect(str(lake / "publish" / "v1" / "nights" / "salon.duckdb"), read_only=True) as database:
        gone = database.execute("SELECT publication_id FROM publications WHERE is_withdrawn").fetchall()
        nights = database.execute("SELECT run_date::VARCHAR FROM nightly_publications").fetchall()
    assert gone == [(publication_id,)]
    assert (run_date,) not in nights, "no trend has it"
    (row,) = (line for line in (lake / "publish" / "v1" / "index.html").read_text().splitlines() if publication_id[:16] in line)
    assert "taken back" in row.partition(publication_id[:16])[2].partition("</tr>")[0]


@pytest.mark.parametrize(
    ("prefix", "because", "words"),
    [("{id}", " ", "--because is empty"), ("ffff0000", "why", "no publication begins with 'ffff0000'")],
    ids=["no reason", "no such publication"],
)
def test_what_is_no_reason_to_take_anything_back(salon: Salon, shut_out: Path, prefix: str, because: str, words: str) -> None:
    lake = shut_out.parent / "lake"
    ahead = current(lake).publication_id
    said = salon("withdraw", shut_out, prefix.format(id=ahead), "--because", because)
    assert (said.code, words in said.err) == (2, True), said.err
    assert current(lake).publication_id == ahead
    assert not (lake / "withdrawn").exists()


def test_a_file_takes_back_its_own_benchmarks_publications_alone_once_a_night_under_way_has_ended(
    salon: Salon, tmp_path: Path, judge_url: str
) -> None:
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, judge_url)
    assert salon("run", file).code == 0
    mine, run = current(tmp_path / "lake").publication_id, RunContext.of(open_run(file))
    other = tmp_path / "other.toml"
    other.write_text(file.read_text().replace('name = "nights"', 'name = "others"'))
    refused = salon("withdraw", other, mine, "--because", "mistyped")
    assert (refused.code, "is of 'nights', but the file's benchmark is 'others'" in refused.err) == (2, True), refused.err

    taking_back = threading.Thread(target=withdraw, args=(run, mine, "mistyped"))
    with opened(run.ledger_url) as ledger, mutex(ledger, mutex_name(run.name_in_ledger)):
        taking_back.start()
        taking_back.join(1.5)
        assert (taking_back.is_alive(), (tmp_path / "lake" / "withdrawn").exists()) == (True, False)
    taking_back.join(60)
    assert [path.stem for path in (tmp_path / "lake" / "withdrawn").iterdir()] == [mine]


def test_of_a_lake_without_notes_what_was_taken_back_is_in_no_series_and_the_first_alone_leaves_nothing_current(
    salon: Salon, tmp_path: Path, judge_url: str
) -> None:
    World(tmp_path).make(1)
    file, day = write_benchmark(tmp_path, judge_url), NOW.date() + timedelta(days=2)
    assert salon("run", file, "--run-date", f"{day}").code == 0
    ahead = current(tmp_path / "lake").publication_id
    back = salon("withdraw", file, ahead, "--because", "mistyped")
    assert (back.code, "current: nothing" in back.out) == (0, True), back.err
    assert salon("run", file).code == 0
    assert current(tmp_path / "lake").run_date == f"{datetime.now(UTC):%Y-%m-%d}"
    assert not list((tmp_path / "lake" / "publish").rglob("drift*.parquet")), "one night alone has no series"


def test_of_two_nights_the_one_that_is_left_has_no_series(salon: Salon, tmp_path: Path, judge_url: str) -> None:
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, judge_url)
    for days in (2, 1):
        assert salon("run", file, "--run-date", f"{NOW.date() - timedelta(days=days)}").code == 0
    last, lake = current(tmp_path / "lake").publication_id, tmp_path / "lake"
    before = living_table(lake, DRIFT, "nights")
    assert before
    assert pl.read_parquet(before).height
    pointer = lake / "publish" / "v1" / "nights" / "latest.json"
    named_last = pointer.read_bytes()
    assert salon("withdraw", file, last, "--because", "mistyped").code == 0
    pointer.write_bytes(named_last)  # as where it was killed after it was written down
    assert "mistyped, and is still current" in findings(salon("doctor", file).out)["publications"]
    assert salon("withdraw", file, last, "--because", "mistyped").code == 0
    assert "publications" not in findings(salon("doctor", file).out)
    assert current(lake).publication_id != last
    after = living_table(lake, DRIFT, "nights")
    assert after
    assert pl.read_parquet(after).schema == pl.read_parquet(before).schema
    assert pl.read_parquet(after).is_empty()


@pytest.mark.skipif(not COMPILER, reason="no C compiler is installed")
def test_what_a_clock_ahead_dated_is_taken_back_by_a_machine_whose_clock_is_right(tmp_path: Path, judge_url: str) -> None:
    """By that clock the run that made it ended two days after it was taken back."""
    build(ROOT / "tests" / "torture" / "clock.c", tmp_path / "clock.so")
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, judge_url)
    for days in (1, 0):
        run_night(RunContext.of(open_night(file, DUE - timedelta(days=days))))
    assert _salon(tmp_path, timedelta(days=2), "nightly", "b.toml").code == 0
    ahead = current(tmp_path / "lake")
    assert ahead.run_date == f"{DUE + timedelta(days=2)}"
    assert _salon(tmp_path, timedelta(0), "withdraw", "b.toml", ahead.publication_id, "--because", "a clock was ahead").code == 0
    standing = standing_publications(tmp_path / "lake", "nights")
    assert [one.run_date for one in standing] == [f"{DUE - timedelta(days=days)}" for days in (1, 0)]
    assert _salon(tmp_path, timedelta(days=2), "nightly", "b.toml").code == 0, "it comes"
    assert standing_publications(tmp_path / "lake", "nights")[-1].publication_id == ahead.publication_id
