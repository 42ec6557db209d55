"""Runs and nights of a file have one calendar, that of its time zone, which may change; a night that is shut out is told of."""

import json
import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from html import unescape
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from flows.nights.record import Night, note_night, notes
from flows.observability.alerting import NIGHT_SHUT_OUT
from schemas.errors import CorruptLakeError
from tasks.publish.reading import current
from tests.flows.flow_support import Said, findings
from tests.support.night_world import MODEL, World, write_benchmark

Salon = Callable[..., Said]
NOW = datetime.now(UTC)
# In the far west the day before until noon UTC, in the far east the day after from ten o'clock on.
ZONE = "Etc/GMT+12" if NOW.hour < 12 else "Pacific/Kiritimati"


def _today() -> date:
    return datetime.now(ZoneInfo(ZONE)).date()


def _one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def file(tmp_path: Path, judge_url: str) -> Path:
    """A benchmark in a place where the date is not that of UTC."""
    World(tmp_path).make(1)
    return write_benchmark(tmp_path, judge_url, nightly=f'timezone = "{ZONE}"')


@pytest.mark.parametrize("command", [("run",), ("backfill", "--all")], ids=["run", "backfill"])
def test_a_run_is_of_the_day_in_the_time_zone_of_the_nights(salon: Salon, file: Path, command: tuple[str, ...]) -> None:
    name, *options = command
    said = salon(name, file, *options)
    assert said.code == 0, said.err
    assert current(file.parent / "lake").run_date == f"{_today()}" != f"{datetime.now(UTC).date()}"


@pytest.fixture
def late(tmp_path: Path, judge_url: str) -> Path:
    """A benchmark where it is noon, and the night that is due is yesterday's; somebody looked at an old checkpoint today."""
    zone = NOW.hour - 12
    World(tmp_path).make(1)
    return write_benchmark(tmp_path, judge_url, nightly=f'timezone = "Etc/GMT{zone:+d}"').rename(tmp_path / "late.toml")


def test_a_night_that_a_run_of_the_next_day_shut_out_is_told_of(salon: Salon, late: Path, sent: list[str]) -> None:
    late.write_text(late.read_text().replace("0 2 * * *", "0 20 * * *"))
    lake = late.parent / "lake"
    assert salon("run", late).code == 0
    looked = current(lake)
    World(late.parent).make(2)
    due = f"{date.fromisoformat(looked.run_date) - timedelta(days=1)}"
    night = salon("nightly", late)
    (id_,) = (note.publication_id for note in notes(lake, "nights").values())
    said = (
        f"the night of {due} is published ({id_[:12]}) and did not become current: its run date, {due}, is before the current "
        f"one's, {looked.run_date}; {looked.publication_id[:12]} of {looked.run_date} stays current"
    )
    assert (night.code, said in _one_line(night.out)) == (1, True), night
    assert NIGHT_SHUT_OUT in sent
    sent.clear()
    again, check, doctor = salon("nightly", late), salon("nightly", late, "--check"), salon("doctor", late)
    assert sent == [], "it is sent once"
    assert (again.code, said in _one_line(again.out)) == (1, True), again
    advice = f'salon withdraw FILE {looked.publication_id[:12]} --because "…" lets it become current; salon table --publication'
    assert (check.code, f"{said}. Next: {advice}" in check.err) == (1, True), check
    assert (doctor.code, findings(doctor.out)["last night"]) == (3, f"wrong: {said}")
    assert said in _one_line(salon("table", "--lake", lake).out)
    index = lake / "publish/v1/index.html"
    assert _one_line(unescape(index.read_text())).count(said) == 1

    assert salon("run", late).code == 0, "of all checkpoints"
    assert current(lake).publication_id not in (id_, looked.publication_id)
    took_its_place = salon("nightly", late, "--check")
    assert (took_its_place.code, took_its_place.err) == (0, "")
    assert "did not become current" not in index.read_text()


def test_an_earlier_night_is_caught_up_behind_a_later_one(salon: Salon, late: Path, sent: list[str]) -> None:
    assert salon("nightly", late).code == 0
    latest = current(late.parent / "lake")
    before = date.fromisoformat(latest.run_date) - timedelta(days=1)
    for path in (late.parent / "made").rglob("*"):
        os.utime(path, 2 * ((NOW - timedelta(days=3)).timestamp(),))
    assert salon("nightly", late, "--run-date", f"{before}").code == 0
    assert current(late.parent / "lake").publication_id == latest.publication_id
    assert NIGHT_SHUT_OUT not in sent


@pytest.mark.parametrize("has_it", [True, False], ids=["", "noted by a release that noted no schedule"])
def test_no_night_is_missed_that_the_schedule_of_before_did_not_have(
    salon: Salon, tmp_path: Path, judge_url: str, *, has_it: bool
) -> None:
    """Nights of a Monday; then the file says daily: of a Thursday and, two nights later, of a Sunday."""
    made = tmp_path / "made" / MODEL / World(tmp_path).make(1)
    os.utime(made, (datetime(2026, 3, 1, tzinfo=UTC).timestamp(),) * 2)
    file = write_benchmark(tmp_path, judge_url)
    daily = file.read_text()
    file.write_text(daily.replace("0 2 * * *", "0 2 * * 1"))
    assert salon("nightly", file, "--run-date", "2026-03-02").code == 0
    note = tmp_path / "lake" / "nights" / "nights" / "2026-03-02.json"
    said = json.loads(note.read_text())
    assert (said["schedule"], said["timezone"]) == ("0 2 * * 1", "UTC")
    if not has_it:
        note.write_text(json.dumps({name: value for name, value in said.items() if name not in ("schedule", "timezone")}))
    file.write_text(daily)
    told = [_one_line(salon("nightly", file, "--run-date", day).out) for day in ("2026-03-05", "2026-03-08")]
    missed = "2 nights were due but have no publication: "
    assert f"{missed}2026-03-06, 2026-03-07; they are not run later" in told[1]
    assert (f"{missed}2026-03-03, 2026-03-04" in told[0], "no publication" in told[0]) == (not has_it, not has_it)


def test_a_night_stays_due_by_what_it_was_first_noted_with_and_a_damaged_note_is_named(tmp_path: Path) -> None:
    for schedule in ("0 2 * * 1", "0 2 * * *"):
        night = Night({"m": "c"}, None, schedule, "UTC")
        note_night(tmp_path, "b", night, date(2026, 3, 2), "f" * 64, is_whole=schedule == "0 2 * * *")
    (noted,) = notes(tmp_path, "b").values()
    assert (noted.schedule, noted.is_whole) == ("0 2 * * 1", True)
    (path,) = (tmp_path / "nights" / "b").glob("*.json")
    for older in ("0 2 */3 * *", "0 0 2 * * *"):  # no file may say so any more
        path.write_text(path.read_text().replace(json.loads(path.read_text())["schedule"], older))
        assert [note.schedule for note in notes(tmp_path, "b").values()] == [older]
    path.write_text(path.read_text().replace("0 0 2 * * *", "0 2 * * x"))
    with pytest.raises(CorruptLakeError, match=r"2026-03-02\.json is not a valid record of a night"):
        notes(tmp_path, "b")
