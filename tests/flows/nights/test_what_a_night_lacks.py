"""A checkpoint that is gone, or listed and not there, and pictures that are others under its name: the night says so."""

import os
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.night_opening import open_night
from flows.nightly import nightly, run_night
from flows.nights.missing import night_before
from flows.nights.record import NightNote, notes
from flows.observability.alerting import CHECKPOINT_MISSING, NIGHT_STALE, checkpoint_missing
from flows.run.context import RunContext
from tests.flows.flow_support import Said, findings
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Play, Provider, completion

pytestmark = pytest.mark.filterwarnings("error")
NOW = datetime.now(UTC)
DUE = (NOW if NOW.hour >= 2 else NOW - timedelta(days=1)).date()  # the file's nights come at two
BEFORE = DUE - timedelta(days=1)
K_IS_GONE = f"checkpoint k/s200, in the night of {BEFORE}, is not in the sources any more, and no other of k is"
STEP_BACK = f"checkpoint m/s200, in the night of {BEFORE}, is not in the sources any more: the newest of m is now m/s100"


@pytest.fixture
def file(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A benchmark of m's checkpoints s100 and s200 and k's s200, and its night of BEFORE."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    make_folder(tmp_path, "s100")
    shutil.copytree(make_folder(tmp_path, "s200"), tmp_path / "out" / "k" / "s200")
    file = write_file(tmp_path, provider.url)
    run_night(RunContext.of(open_night(file, BEFORE)))
    return file


def _add(file: Path, line: str) -> None:
    file.write_text(file.read_text() + line + "\n")


def _previewed(salon: Callable[..., Said], file: Path) -> str:
    return " ".join(salon("nightly", file, "--dry-run").out.split())


def _watched(salon: Callable[..., Said], file: Path) -> tuple[Said, str]:
    """What `--check` says, and the doctor of the last night."""
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        return salon("nightly", file, "--check"), findings(salon("doctor", file).out)["last night"]


@pytest.mark.parametrize(("day", "before"), [(1, None), (2, 1), (3, 2), (5, 3)], ids=["the first", "noted", "the last", "new"])
def test_the_night_before_is_never_the_night_itself(day: int, before: int | None) -> None:
    """Also where it is begun again and is noted by then: held against itself nothing is gone, and no checkpoint is fresh."""
    noted = {f"2026-01-0{n}": NightNote("f" * 64, {}, None, is_whole=False) for n in (1, 2, 3)}
    assert night_before(noted, date(2026, 1, day)) == (before and f"2026-01-0{before}")


@pytest.mark.parametrize(("gone", "said"), [("k", K_IS_GONE), ("m/s200", STEP_BACK)], ids=["a model", "the newest"])
@pytest.mark.parametrize("is_failing", [False, True])
def test_a_checkpoint_of_the_night_before_that_is_gone_is_told_of(
    salon: Callable[..., Said], file: Path, gone: str, said: str, *, is_failing: bool
) -> None:
    shutil.rmtree(file.parent / "out" / gone)
    if is_failing:
        _add(file, 'on_no_fresh_checkpoint = "fail"')
    assert said in _previewed(salon, file)
    night = salon("nightly", file)
    assert (night.code, said in night.out) == (int(is_failing), True), night.out
    check, doctor = _watched(salon, file)
    assert (check.code, said in check.err) == (int(is_failing), True)
    assert doctor == f"{'wrong' if is_failing else 'ok'}: the night of {DUE} is published; {said}"
    assert said in " ".join(salon("table", "--lake", file.parent / "lake").out.split())
    assert said in (file.parent / "lake/publish/v1/index.html").read_text()
    assert said in salon("nightly", file).out, "also of a night that stands"


def test_a_checkpoint_that_a_newer_one_replaced_is_no_alarm(salon: Callable[..., Said], file: Path) -> None:
    shutil.rmtree(file.parent / "out" / "m" / "s200")
    make_folder(file.parent, "s300")
    preview, night = salon("nightly", file, "--dry-run"), salon("nightly", file)
    told = " ".join(night.err.split())
    replaced = f"m/s200, in the night of {BEFORE}, is not in the sources any more: m/s300 is not compared with it"
    assert (night.code, replaced in told, replaced in " ".join(preview.err.split())) == (0, True, True), night.err
    assert _watched(salon, file)[1] == f"ok: the night of {DUE} is published"


def test_a_checkpoint_that_is_newer_by_the_table_replaces_one_that_is_gone(salon: Callable[..., Said], file: Path) -> None:
    """By its name it would be older."""
    rows = ["m,s100,2026-03-01", "k,s200,2026-03-01", "m,s200,2026-03-02", "m,rc1,2026-03-03", "m,s900,2999-01-01"]
    (file.parent / "ready.csv").write_text("\n".join(["model,checkpoint,date", *rows]))
    _add(file, 'checkpoints = "ready.csv"\non_no_fresh_checkpoint = "fail"')
    shutil.rmtree(file.parent / "out" / "m" / "s200")
    make_folder(file.parent, "rc1")
    night = salon("nightly", file)
    told = " ".join((night.out + night.err).split())
    assert "m/rc1 is not compared with it" in told
    assert (night.code, "no fresh checkpoint" in told, "the newest of m is now" in told) == (0, False, False), told
    assert "s900" not in told, "its day is to come"


def test_a_baseline_that_no_source_has_is_told_of(salon: Callable[..., Said], file: Path) -> None:
    """Regressions from it would be told of no more."""
    _add(file, 'baseline = "m/zzz"')
    said = "baseline m/zzz is in no source: nothing is compared with it"
    assert said in _previewed(salon, file)
    night = salon("nightly", file)
    assert (night.code, said in night.out) == (0, True), night.out
    assert said in _watched(salon, file)[1]
    ran = " ".join(salon("run", file).err.split())
    assert "nightly.baseline: 'm/zzz' has no samples; write it as model/checkpoint; available: k/s200" in ran


def test_a_baseline_that_the_table_does_not_list_is_there(salon: Callable[..., Said], file: Path) -> None:
    (file.parent / "ready.csv").write_text("model,checkpoint\nm,s200\nk,s200\n")
    _add(file, 'checkpoints = "ready.csv"\nbaseline = "m/s100"')
    assert "in no source" not in _previewed(salon, file)


def test_a_folder_in_which_nothing_is_drawn_yet_is_no_checkpoint_of_the_night(salon: Callable[..., Said], file: Path) -> None:
    (file.parent / "out" / "m" / "s900").mkdir()
    shutil.rmtree(file.parent / "out" / "k")
    night = salon("nightly", file)
    assert (night.code, f"the night of {DUE}: m/s200;" in night.out) == (0, True), night.out + night.err
    make_folder(file.parent / "drawn", "s900").rename(file.parent / "out" / "m" / "s900")
    assert notes(file.parent / "lake", "folders")[DUE.isoformat()].checkpoints == {"m": "s200"}


def test_a_night_one_of_whose_checkpoints_has_no_row_is_not_whole(salon: Callable[..., Said], file: Path) -> None:
    manifest = make_folder(file.parent, "s900") / "manifest.csv"
    manifest.write_text(manifest.read_text().replace("things", "others"))
    file.write_text(file.read_text().replace('path = "out', 'where = { category = "things" }\npath = "out'))
    assert salon("nightly", file).code == 0
    assert not notes(file.parent / "lake", "folders")[DUE.isoformat()].is_whole, "another start looks again"


def test_a_checkpoint_whose_files_changed_after_its_night_is_told_of_when_that_is_run_again(
    salon: Callable[..., Said], file: Path
) -> None:
    """As a copy that was half there, and was completed the day after."""
    night, copied = BEFORE - timedelta(days=1), file.parent / "out" / "m" / "s200"
    late = sorted(copied.glob("*.png"))[1:]
    for path in late:
        path.rename(path.with_suffix(".part"))
    moment = datetime(night.year, night.month, night.day, 1, tzinfo=UTC).timestamp()
    for path in file.parent.joinpath("out").rglob("*"):
        os.utime(path, (moment, moment))
    assert salon("nightly", file, "--run-date", night.isoformat()).code == 1, "s200 lacks too many pictures"
    for path in late:
        path.with_suffix(".part").rename(path)
        os.utime(path)
    said = f"checkpoint m/s200, which this night was about before, is of {NOW.date()}, after the night, and left out"
    assert said in " ".join(salon("nightly", file, "--run-date", night.isoformat(), "--dry-run").out.split())
    again = salon("nightly", file, "--run-date", night.isoformat())
    assert (again.code, said in again.out) == (0, True), again.out + again.err
    assert said in salon("nightly", file, "--run-date", night.isoformat()).out, "also of the night that stands"


def test_a_listed_checkpoint_that_no_source_has_is_a_note(salon: Callable[..., Said], file: Path) -> None:
    """It may be late: older ones than those that are there are missed by no night, nor is a line without a name one."""
    rows = [
        "m,s050,",
        "m,s100,2026-03-01",
        "k,s200,2026-03-01",
        ",",
        "m,s200,2026-03-02",
        "m,s300,2026-03-03",
        "m,s400,2026-03-04",
    ]
    (file.parent / "ready.csv").write_text("\n".join(["model,checkpoint,date", *rows]))
    _add(file, 'checkpoints = "ready.csv"\non_no_fresh_checkpoint = "fail"')
    make_folder(file.parent, "s300")
    said = "row 7 of ready.csv lists m/s400, which no source has"
    assert said in _previewed(salon, file)
    night = salon("nightly", file)
    assert (night.code, said in night.out, "s050" in night.out) == (0, True, False), night.out
    check, doctor = _watched(salon, file)
    assert (check.code, check.err, doctor) == (0, f"{said}\n", f"ok: the night of {DUE} is published; {said}")


@pytest.mark.parametrize(("day", "is_missed"), [("2026-03-02", True), ("2026-03-03", False), ("", False)])
def test_what_is_listed_of_a_later_day_or_of_none_is_missed_by_no_past_night(
    salon: Callable[..., Said], file: Path, day: str, *, is_missed: bool
) -> None:
    rows = ["m,s100,2026-03-01", "k,s200,2026-03-01", "m,s200,2026-03-02", f"z,s100,{day}"]
    (file.parent / "ready.csv").write_text("\n".join(["model,checkpoint,date", *rows]))
    _add(file, 'checkpoints = "ready.csv"')
    previewed = salon("nightly", file, "--run-date", "2026-03-02", "--dry-run")
    said = "row 4 of ready.csv lists z/s100, which no source has"
    assert (previewed.code, said in " ".join(previewed.out.split())) == (0, is_missed), previewed.out + previewed.err


def test_a_checkpoint_that_the_list_lost_is_told_of_as_such(salon: Callable[..., Said], file: Path) -> None:
    (file.parent / "ready.csv").write_text("model,checkpoint\nm,s100\nm,s200\nm,s300\nm,s400\n")
    _add(file, 'checkpoints = "ready.csv"')
    out = _previewed(salon, file)
    assert f"checkpoint k/s200, in the night of {BEFORE}, is not listed in ready.csv any more, and no other of k is" in out
    assert "row 4 of ready.csv lists m/s400, which no source has, nor 1 listed before it" in out


def test_what_a_night_lacks_is_an_event_of_its_own(file: Path, sent: list[str]) -> None:
    shutil.rmtree(file.parent / "out" / "k")
    make_folder(file.parent, "s300")
    summary = nightly(file)
    assert (CHECKPOINT_MISSING in sent, NIGHT_STALE in sent, summary.gone) == (True, False, (K_IS_GONE,))
    assert CHECKPOINT_MISSING in (notes(file.parent / "lake", "folders")[DUE.isoformat()].told or ())
    assert checkpoint_missing([K_IS_GONE]).payload == {"says": K_IS_GONE, "n_all": 1, "missing": [K_IS_GONE]}


@pytest.mark.parametrize("command", ["nightly", "run"])
def test_other_pictures_under_a_checkpoints_name_are_told_of(salon: Callable[..., Said], file: Path, command: str) -> None:
    """Its numbers are others then, and a night of them is not stale."""
    shutil.rmtree(file.parent / "out" / "m" / "s200")
    make_folder(file.parent, "s200", seed=1)
    said = salon(command, file)
    told = " ".join((said.out + said.err).replace("note: ", "").split())
    since = f"the night of {BEFORE}" if command == "nightly" else "the previously current publication"
    changed = f"{N_PROMPTS} of {N_PROMPTS} samples of m/s200 changed since {since}"
    assert f"{changed}: numbers from before and after this are not comparable" in told
    assert (said.code, "no fresh checkpoint" in told) == (0, False)


def test_other_pictures_of_an_older_checkpoint_make_no_fresh_night(salon: Callable[..., Said], file: Path) -> None:
    _add(file, 'baseline = "m/s100"')
    run_night(RunContext.of(open_night(file, BEFORE)), retried=set())
    manifest = file.parent / "out" / "m" / "s100" / "manifest.csv"
    manifest.write_text("".join(line for line in manifest.read_text().splitlines(keepends=True) if not line.startswith("3.png")))
    out = " ".join(salon("nightly", file).out.split())
    assert f"1 of {N_PROMPTS} samples of m/s100 changed (now {N_PROMPTS - 1}) since the night of {BEFORE}" in out
    assert f"no fresh checkpoint since the night of {BEFORE}" in out


def test_a_night_that_is_not_due_any_more_as_it_ends_is_told_of_as_any(
    salon: Callable[..., Said], file: Path, provider: Provider
) -> None:
    """As where the clock is set back while it runs; here the schedule changes."""
    make_folder(file.parent, "s300")
    other_day = (DUE.isoweekday() + 2) % 7

    def change() -> None:
        file.write_text(file.read_text().replace('"0 2 * * *"', f'"0 2 * * {other_day}"'))

    provider.on_request = change
    night = salon("nightly", file)
    assert night.code == 0, night.err
    assert f"the night of {DUE}: " in night.out
    assert open_night(file).run_date < DUE
