"""A night that failed finishes by itself until finish_by; a late one is about checkpoints of its date; stale ones say so."""

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from prefect.server.schemas.schedules import CronSchedule

import flows.nightly
from flows.night_opening import open_night
from flows.nightly import nightly, run_night
from flows.nights import finishing
from flows.nights.checkpoints import Checkpoint, made_until
from flows.nights.finishing import wait_until_due
from flows.nights.record import Night, forget_nights, mutex_name, note_file, note_night, notes, notes_mutex
from flows.observability.alerting import BLOCKED, JUDGE_CHANGED, NIGHT_FAILED, NIGHT_MISSED, PUBLISHED
from flows.observability.night_events import send_events
from flows.run.context import RunContext
from flows.withdrawing import withdraw
from schemas.benchmark.file import load_benchmark
from schemas.benchmark.judges import Judge
from schemas.benchmark.nightly import Nightly
from schemas.errors import (
    BatchCancelledError,
    BatchFailedError,
    BatchLostError,
    CorruptLakeError,
    InputError,
    ProviderError,
    RejectedError,
    StoppedError,
    StoreError,
)
from schemas.records import ModelChange
from schemas.statuses.rows import ReplyStatus
from tasks.judge.outcome import outage
from tasks.lake.notes import write_note
from tasks.ledger.mutex import mutex
from tasks.ledger.open_ledgers import opened
from tasks.publish.folders import PublicationName
from tasks.publish.publication import Draft, publish
from tasks.publish.withdrawn import taken_back
from tasks.stopping import STOP
from tests.flows.commands.test_gate import tables_that_pass
from tests.flows.flow_support import Said
from tests.support.night_world import MODEL, N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

pytestmark = pytest.mark.filterwarnings("error")
NO_CREDIT = Play(401, b'{"error": {"message": "no such key"}}')
"""What ends a run with exit code 3 at once; other outages are waited out for a minute first."""
GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.make(1)
    return world


def _due_and_over(minutes: int) -> str:
    """A schedule that was due some minutes ago, and the finish_by of the minute after it."""
    due = datetime.now(UTC) - timedelta(minutes=minutes)
    return f'schedule = "{due.minute} {due.hour} * * *"\nfinish_by = "{due + timedelta(minutes=1):%H:%M}"'


def _written(world: World, url: str, nightly: str) -> Path:
    file = write_benchmark(world.folder, url)
    file.write_text(file.read_text().replace('schedule = "0 2 * * *"', nightly))
    return file


def _good_after_a_pause(provider: Provider) -> None:
    """Let nothing be accepted until three seconds passed without a request: then there was a first try, and this is a second."""
    provider.then, last_s = NO_CREDIT, [time.monotonic()]

    def look() -> None:
        if provider.n and time.monotonic() - last_s[0] > 3:
            provider.then = GOOD
        last_s[0] = time.monotonic()

    provider.on_request = look


@pytest.mark.parametrize("outage", ["the whole try", "one reply"])
def test_a_night_that_failed_is_started_again_and_finishes(
    salon: Callable[..., Said], world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch, outage: str
) -> None:
    provider.then, provider.script = GOOD, deque([NO_CREDIT])
    if outage == "the whole try":
        _good_after_a_pause(provider)
    due = datetime.now(UTC) - timedelta(minutes=1)
    in_time = f"{datetime.now(UTC) + timedelta(hours=1):%H:%M}"
    file = _written(world, provider.url, f'schedule = "{due.minute} {due.hour} * * *"\nfinish_by = "{in_time}"')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    said = salon("nightly", file)
    assert said.code == 0, said.err
    told = " ".join(said.err.split())
    assert f"next try in 5 s, until {in_time} UTC" in told
    assert ("1 of 24 requests have no final reply" if outage == "one reply" else "does not accept the request") in told
    assert [note.is_whole for note in notes(world.folder / "lake", "nights").values()] == [True]
    assert provider.n > N_SAMPLES


def test_the_pause_that_a_provider_asks_for_is_waited_out_before_the_next_try() -> None:
    told, tries = list[str](), list[float]()

    def attempt() -> str:
        tries.append(time.monotonic())
        if len(tries) == 1:
            raise outage(Judge(model="judge"), "there", ReplyStatus.RATE_LIMITED, None, silent_s=0.0, pause_s=7.0)
        return "done"

    in_time = datetime.now(UTC) + timedelta(hours=1)
    assert finishing.until_finished(attempt, lambda _: None, in_time, told.append, lambda _: None) == "done"
    assert "next try in 7 s" in told[0]
    assert tries[1] - tries[0] >= 7


@pytest.mark.parametrize("error", [BatchCancelledError, BatchFailedError, BatchLostError, RejectedError])
def test_what_each_try_would_pay_for_is_tried_once(error: type[ProviderError]) -> None:
    """Neither the night nor the executor of its stages tries it again."""
    tries = list[float]()

    def attempt() -> str:
        tries.append(time.monotonic())
        raise error("batch after batch")

    in_time = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(error):
        finishing.until_finished(attempt, lambda _: None, in_time, lambda _: None, lambda _: None)
    assert (len(tries), error.may_pass) == (1, False)


def test_after_finish_by_there_is_one_try(
    salon: Callable[..., Said], world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.then = NO_CREDIT
    file = _written(world, provider.url, _due_and_over(5))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    said = salon("nightly", file)
    assert said.code == 3
    assert "started again" not in said.err
    n = provider.n
    with pytest.raises(StoreError, match=r"does not restart by itself: finish_by, \d\d:\d\d UTC, is over"):
        nightly(file, after_crash=True)
    assert provider.n == n


def test_a_late_night_is_about_the_checkpoints_of_its_date(salon: Callable[..., Said], world: World, judge_url: str) -> None:
    world.make(2)
    made = world.folder / "made" / MODEL
    for name, day in (("step-1", 1), ("step-2", 5)):
        noon = datetime(2026, 3, day, 12, tzinfo=UTC).timestamp()
        os.utime(made / name, (noon, noon))
    file = write_benchmark(world.folder, judge_url, nightly='on_no_fresh_checkpoint = "fail"')
    none_yet = salon("nightly", file, "--run-date", "2026-02-28")
    assert none_yet.code == 2
    assert f"the first, {MODEL}/step-1, is of 2026-03-01" in none_yet.err
    first = salon("nightly", file, "--run-date", "2026-03-03")
    assert (first.code, f"{MODEL}/step-1;" in first.out, "step-2" in first.out) == (0, True, False)
    assert "missed" not in first.out
    same = salon("nightly", file, "--run-date", "2026-03-04")
    assert same.code == 1
    assert "no fresh checkpoint since the night of 2026-03-03" in same.out
    fresh = salon("nightly", file, "--run-date", "2026-03-07")
    assert fresh.code == 0
    assert f"{MODEL}/step-2;" in fresh.out
    assert "2 nights were due but have no publication: 2026-03-05, 2026-03-06" in fresh.out
    assert "no fresh" not in fresh.out


def test_a_night_that_is_not_due_yet_is_refused(salon: Callable[..., Said], world: World, judge_url: str) -> None:
    """A mistyped year would be the current publication, and keep every night before it from being so."""
    file, tomorrow = write_benchmark(world.folder, judge_url), f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d}"
    for more in ((), ("--check",)):
        said = salon("nightly", file, "--run-date", tomorrow, *more)
        assert (said.code, f"--run-date {tomorrow} is not due yet; the latest night" in said.err) == (2, True), said
    assert not (world.folder / "lake" / "publish").exists()


@pytest.mark.parametrize("tries", ["of one start", "of two"])
def test_a_nights_alerts_are_sent_once_by_the_try_that_ends_it(
    world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch, sent: list[str], tries: str
) -> None:
    """The first try lacks a reply and publishes; the second, with all of them, is a new publication of the same night."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setattr(finishing, "FIRST_WAIT_S", 0.1)
    provider.then, due = GOOD, datetime.now(UTC) - timedelta(minutes=1)
    schedule = f'schedule = "{due.minute} {due.hour} * * *"'
    in_time = f'\nfinish_by = "{datetime.now(UTC) + timedelta(hours=1):%H:%M}"' if tries == "of one start" else ""
    file = _written(world, provider.url, schedule + in_time)
    earlier = open_night(file, due.date() - timedelta(days=3))
    run_night(RunContext.of(earlier))
    send_events(earlier, is_ended=True)
    sent.clear()
    world.make(2)
    provider.script = deque([NO_CREDIT])
    nightly(file)
    first = sorted(sent)
    once = [NIGHT_MISSED, PUBLISHED]
    assert first == sorted([*once, BLOCKED] if tries == "of two" else once)
    sent.clear()
    again = nightly(file)
    assert sent == ([PUBLISHED] if tries == "of two" else [])
    assert (again.run is None) == (tries == "of one start")
    (*_, note) = notes(world.folder / "lake", "nights").values()
    assert (note.is_whole, note.told) == (True, first)


def test_a_whole_night_that_was_interrupted_while_it_was_shown_is_told_of(
    world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch, sent: list[str]
) -> None:
    """The next start finds nothing to publish, and nothing left to tell."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then, due = GOOD, datetime.now(UTC) - timedelta(minutes=1)
    file = _written(world, provider.url, f'schedule = "{due.minute} {due.hour} * * *"')

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(flows.nightly, "show_artifacts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nightly(file)
    assert PUBLISHED in sent
    sent.clear()
    assert nightly(file).run is None
    assert sent == []


@pytest.mark.parametrize("fails", [Play(500, b"{}"), NO_CREDIT], ids=["a reply is lacking", "the whole try fails"])
def test_a_further_try_asks_no_rejected_request_again_and_a_page_that_cannot_be_written_fails_none(
    world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch, sent: list[str], fails: Play
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setattr(finishing, "FIRST_WAIT_S", 0.1)
    due, until = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (-1, 60))
    schedule = f'schedule = "{due.minute} {due.hour} * * *"\nfinish_by = "{until:%H:%M}"'
    file = _written(world, provider.url, schedule)
    file.write_text(file.read_text().replace("concurrency = 4", "concurrency = 1\nattempts_per_request = 1"))
    (world.folder / "lake/publish/v1/nights/partitions.html/in the way").mkdir(parents=True)
    rejected = {"message": "Invalid image", "code": "invalid_image", "type": "invalid_request_error"}
    provider.script = deque([*[Play(400, json.dumps({"error": rejected}).encode())] * 2, GOOD, fails])
    provider.then = GOOD
    nightly(file, retry="rejected")
    assert provider.n == N_SAMPLES + 1
    assert NIGHT_FAILED not in sent
    assert PUBLISHED in sent


def test_a_night_whose_try_failed_once_it_was_whole_is_not_run_again(
    world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setattr(finishing, "FIRST_WAIT_S", 0.1)
    due, until = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (-1, 60))
    provider.then = GOOD
    file = _written(world, provider.url, f'schedule = "{due.minute} {due.hour} * * *"\nfinish_by = "{until:%H:%M}"')
    shown = list[object]()

    def fails(*_: object) -> None:
        shown.append(None)
        raise pl.exceptions.ComputeError if len(shown) == 1 else StoppedError

    monkeypatch.setattr(flows.nightly, "show_artifacts", fails)
    assert (nightly(file, retry="rejected").run, len(shown)) == (None, 1)


def _noted(file: Path, day: date, publication: str, *, is_whole: bool) -> None:
    """A night of a start that ended before it told of it."""
    lake = file.parent / "lake"
    note_night(lake, "nights", Night({MODEL: "step-1"}), day, publication, is_whole=is_whole)
    note = replace(
        notes(lake, "nights")[day.isoformat()], untold=[{"name": f"salon.of.{day:%d}", "payload": {"says": publication}}]
    )
    write_note(lake, note_file(lake, "nights", day.isoformat()), note)


def test_what_was_not_sent_of_nights_is_sent_by_the_next_start_of_any(tmp_path: Path, sent: list[str]) -> None:
    """Once, and of no night that a start may be about to try again."""
    file = write_benchmark(tmp_path, "http://127.0.0.1:9/v1")
    run = open_night(file, date(2026, 3, 3), is_asking=False)
    whole = {1: True, 2: False, 3: False, 4: False, 5: True}
    for day, is_whole in whole.items():
        _noted(file, date(2026, 3, day), "a" * 64, is_whole=is_whole)
    send_events(run, is_ended=False)
    assert sent == []
    send_events(run, is_ended=True)
    assert sent == [f"salon.of.{day:02}" for day in (3, 5, 2, 1)]
    left = {day: (note.told, len(note.untold)) for day, note in notes(tmp_path / "lake", "nights").items()}
    told = {f"2026-03-0{day}": ([f"salon.of.0{day}"], 0) for day in whole}
    assert left == told | {"2026-03-04": ([], 1)}
    sent.clear()
    send_events(run, is_ended=True)
    assert sent == []


def test_nothing_is_sent_of_a_publication_that_another_start_replaced_or_that_was_taken_back(
    tmp_path: Path, sent: list[str]
) -> None:
    file, day = write_benchmark(tmp_path, "http://127.0.0.1:9/v1"), date(2026, 3, 3)
    run = open_night(file, day, is_asking=False)
    _noted(file, day, "a" * 64, is_whole=False)
    note_night(tmp_path / "lake", "nights", Night({MODEL: "step-1"}), day, "b" * 64, is_whole=True)
    send_events(run, is_ended=True)
    _noted(file, day, "c" * 64, is_whole=False)
    assert forget_nights(tmp_path / "lake", "nights", "c" * 64) == [day.isoformat()]
    send_events(run, is_ended=True)
    assert sent == []


def test_a_night_that_is_taken_back_while_its_events_are_sent_stays_so(tmp_path: Path, sent: list[str]) -> None:
    """Sending waits for no other night. What was sent is noted before the notes are read and taken away, or after."""
    file, day, lake = write_benchmark(tmp_path, "http://127.0.0.1:9/v1"), date(2026, 3, 3), tmp_path / "lake"
    run = open_night(file, day, is_asking=False)
    publish(lake, Draft(PublicationName("nights", "a" * 64, day), tables_that_pass(), {}, {"report.html": b""}))
    _noted(file, day, "a" * 64, is_whole=True)
    with ThreadPoolExecutor(2) as pool, opened(run.ledger_url) as ledger:
        with mutex(ledger, mutex_name(run.name_in_ledger)):
            pool.submit(send_events, run, is_ended=True).result(60)
        assert sent == ["salon.of.03"]
        _noted(file, day, "a" * 64, is_whole=True)
        (before,) = notes(lake, "nights").values()
        with mutex(ledger, notes_mutex(run.name_in_ledger)):
            both = (
                pool.submit(send_events, run, is_ended=True),
                pool.submit(withdraw, RunContext.of(run), "a" * 64, "it is wrong"),
            )
            while not (len(sent) == 2 and taken_back(lake)):
                assert not any(one.done() for one in both)
                time.sleep(0.05)
            assert not wait(both, 1).done
            assert [*notes(lake, "nights").values()] == [before]
        for one in both:
            one.result(60)
    assert notes(lake, "nights") == {}


def test_a_change_of_the_judge_is_told_though_the_try_that_found_it_failed(
    world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch, sent: list[str]
) -> None:
    """And a whole night that nobody was told of, since its start was killed, is told of by the next night's."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    due, table = datetime.now(UTC) - timedelta(minutes=1), world.folder / "ready.csv"
    file = _written(world, provider.url, f'schedule = "{due.minute} {due.hour} * * *"\ncheckpoints = "ready.csv"')
    table.write_text(f"model,checkpoint\n{MODEL},step-1\n")
    provider.then = GOOD
    run_night(RunContext.of(open_night(file, due.date() - timedelta(days=1))))
    assert sent == []
    world.make(2)
    table.write_text(listed := f"model,checkpoint\n{MODEL},step-1\n{MODEL},step-2\n")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 5", model="another-2026-02-02"))
    provider.on_request = lambda: table.unlink(missing_ok=True)
    with pytest.raises(InputError, match=r"ready.csv cannot be read"):
        nightly(file)
    assert sent == [NIGHT_FAILED, PUBLISHED]  # of the night before
    sent.clear()
    provider.on_request = lambda: None
    table.write_text(listed)
    found = nightly(file)
    assert [one.now for one in found.changes] == ["another-2026-02-02"]
    assert sorted(sent) == sorted([JUDGE_CHANGED, PUBLISHED])


def test_a_note_by_a_later_release_is_read(tmp_path: Path) -> None:
    note_night(tmp_path, "b", Night({"m": "c"}, None), date(2026, 3, 4), "f" * 64, is_whole=True)
    (path,) = (tmp_path / "nights" / "b").glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"what_came_later": 1}))
    assert notes(tmp_path, "b")["2026-03-04"].is_whole
    path.write_text(json.dumps(json.loads(path.read_text()) | {"changes": ["eye-2"]}))
    with pytest.raises(CorruptLakeError, match="is not a valid record of a night"):
        notes(tmp_path, "b")


def test_a_change_of_the_judge_that_a_later_release_noted_is_told(
    world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then, file, lake = GOOD, write_benchmark(world.folder, provider.url), world.folder / "lake"
    run_night(RunContext.of(open_night(file)))
    ((day, note),) = notes(lake, "nights").items()
    change = ModelChange("eye", "eye-1", "eye-2")
    write_note(lake, path := note_file(lake, "nights", day), replace(note, is_whole=False, changes=[change]))
    path.write_text(path.read_text().replace('"now"', '"what_came_later": 1, "now"'))
    assert run_night(RunContext.of(open_night(file))).changes == (change,)
    assert [note.changes for note in notes(lake, "nights").values()] == [(change,)]


def test_a_checkpoint_without_a_date_is_of_no_past_night() -> None:
    dateless = [Checkpoint("m", "a", date(2026, 3, 1)), Checkpoint("m", "b")]
    with pytest.raises(InputError, match=r"no date for m/b; list the dates in a table"):
        made_until(dateless, date(2026, 3, 2))


@pytest.mark.parametrize("schedule", ["0 2 * * *", "30 2 * * *", "59 2 * * *", "30 23 * * *", "15 1 * * *", "0 3 * * *"])
@pytest.mark.parametrize(
    ("timezone", "day"),
    [
        ("Europe/Berlin", "2026-10-25"), ("America/Santiago", "2026-04-05"), ("America/New_York", "2026-11-01"),
        ("Australia/Lord_Howe", "2026-04-05"), ("Europe/Berlin", "2026-03-29"), ("UTC", "2026-03-05"),
    ],
)  # fmt: skip
def test_the_night_that_is_due_never_goes_back(schedule: str, timezone: str, day: str) -> None:
    """Also on the days on which clocks do, and go through an hour twice."""
    section, start = Nightly(schedule=schedule, timezone=timezone), datetime.fromisoformat(f"{day}T00:00:00+00:00")
    moments = [start + timedelta(minutes=10 * step + 1) for step in range(-144, 288)]
    nights = [section.newest_due(moment) for moment in moments]
    assert [night.date() for night in nights] == sorted(night.date() for night in nights)
    assert all(night.timestamp() <= moment.timestamp() for night, moment in zip(nights, moments, strict=True))
    assert len({night.date() for night in nights}) >= 3, "one a day"


@pytest.mark.parametrize(
    "schedule",
    [
        "0 2 * * 1-7/2", "0 2 * * MON-fri", "0 2 15,L * *", "0 2 15 * 1", "0 2 */2 * *", "0 2 1/7 * *", "0 2 1,15,29 * *",
        "0 2 * jan-jun/2 *", "30 2 * * 1#2,3#4", "0 2 1-31 * 1", "0 2 1,31 4-12 *", "0 2 5,30 * sun", "0 2 29 2 *",
    ],
)  # fmt: skip
def test_nights_are_due_when_prefect_starts_them(schedule: str) -> None:
    """Over a year with a 29 February and the next: what the two read otherwise is refused."""
    section, due = Nightly(schedule=schedule), datetime(2028, 1, 1, tzinfo=UTC)
    nights = []
    while due.year < 2030:
        due = section.next_due(due)
        nights.append(due)
    starts = asyncio.run(
        CronSchedule(cron=schedule, timezone="UTC").get_dates(n=len(nights), start=datetime(2028, 1, 1, tzinfo=UTC))
    )
    assert [one.timestamp() for one in starts] == [one.timestamp() for one in nights]


@pytest.mark.parametrize("schedule", ["0 2 * * *", "59 2 * * *", "0 0 * * *", "30 0 * * *", "15 1 * * *", "0 3 * * *"])
@pytest.mark.parametrize(
    ("timezone", "day"),
    [
        ("Europe/Berlin", "2027-03-28"), ("America/New_York", "2026-03-08"), ("America/Havana", "2026-03-08"),
        ("Australia/Lord_Howe", "2026-10-04"), ("Africa/Cairo", "2026-04-24"), ("Europe/Berlin", "2026-10-25"),
        ("UTC", "2026-03-05"),
    ],
)  # fmt: skip
def test_each_start_that_prefect_schedules_is_of_a_night_of_its_own(schedule: str, timezone: str, day: str) -> None:
    """Also where clocks go forward: Prefect begins a night of the hour that is left out before it is due."""
    section, start = Nightly(schedule=schedule, timezone=timezone), datetime.fromisoformat(f"{day}T12:00:00+00:00")
    by_prefect = CronSchedule(cron=schedule, timezone=timezone)
    listed = asyncio.run(by_prefect.get_dates(n=5, start=start - timedelta(days=2)))
    starts = [datetime.fromtimestamp(one.timestamp(), UTC) for one in listed]
    dues = [section.newest_due(section.due_for(one)) for one in starts]
    assert [(due.date() - dues[0].date()).days for due in dues] == [*range(5)]
    assert [section.due_for(one).timestamp() >= due.timestamp() for one, due in zip(starts, dues, strict=True)] == [True] * 5
    for hour in (start + timedelta(minutes=7 * n) for n in range(-100, 100)):
        assert section.due_for(hour + timedelta(seconds=1)) == hour + timedelta(seconds=1), "begun by hand"


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ("2026-10-25T00:10:00+00:00", "2026-10-25T02:30:00+02:00"), ("2026-10-25T01:10:00+00:00", "2026-10-26T02:30:00+01:00"),
        ("2027-03-28T00:10:00+00:00", "2027-03-28T03:00:00+02:00"),
    ],
    ids=["the first pass of a repeated hour", "the second", "an hour that is left out"],
)  # fmt: skip
def test_the_next_night_is_to_come(now: str, then: str) -> None:
    due = Nightly(schedule="30 2 * * *", timezone="Europe/Berlin").next_due(datetime.fromisoformat(now))
    assert due.isoformat() == then


def test_a_night_begun_early_waits_until_it_is_due_unless_it_is_told_to_stop() -> None:
    due, told, began_s = datetime.now(UTC), list[str](), time.monotonic()
    wait_until_due(due, timedelta(seconds=1.2), told.append)
    assert (time.monotonic() - began_s > 1.2, len(told)) == (True, 1)
    STOP.set()
    try:
        with pytest.raises(StoppedError):
            wait_until_due(due, timedelta(hours=1), told.append)
    finally:
        STOP.clear()
    wait_until_due(due + timedelta(days=2), timedelta(), told.append)  # this machine's clock is behind: check_date() tells it
    assert len(told) == 2


@pytest.mark.parametrize(
    ("schedule", "timezone", "finish_by", "expected"),
    [
        ("0 2 * * *", "UTC", "08:00", "2026-03-05T08:00:00+00:00"),
        ("0 22 * * *", "UTC", "08:00", "2026-03-06T08:00:00+00:00"),
        ("0 2 * * *", "Asia/Tokyo", "08:00", "2026-03-05T08:00:00+09:00"),
        ("0 2 * * 1", "UTC", "01:00", "2026-03-05T01:00:00+00:00"),
        ("0 2 * * *", "UTC", None, None),
    ],
    ids=["the same day", "over midnight", "east", "a date without a night", "none"],
)
def test_until_when_a_night_is_tried(schedule: str, timezone: str, finish_by: str | None, expected: str | None) -> None:
    section = Nightly(schedule=schedule, timezone=timezone, finish_by=finish_by)
    found = section.gives_up_at(date(2026, 3, 5))
    assert (found and found.isoformat()) == expected


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('schedule = "at two"', "nightly.schedule: 'at two' is not a cron line"),
        (
            'schedule = "0 */6 * * *"',
            "due several times a day, but a night is named by its date. Write one minute and one hour",
        ),
        ('timezone = "Berlin"', "nightly.timezone: 'Berlin' is not a time zone"),
        ('finish_by = "8"', "nightly.finish_by"),
    ],
)
def test_a_calendar_that_is_none_is_refused_with_its_line(world: World, line: str, named: str) -> None:
    file = _written(world, "http://127.0.0.1:1/v1", line)
    with pytest.raises(InputError, match=r"b\.toml, line \d+: ") as refused:
        load_benchmark(file)
    assert named in str(refused.value)
