"""One damaged file of an earlier night: the next night comes all the same, what it goes without is told, by the doctor too."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.cli import run
from flows.night_opening import open_night
from flows.nightly import run_night
from flows.nights.drift import write_drift
from flows.run.context import RunContext
from schemas.tables.nights import DRIFT
from tasks.publish.living_tables import living_table
from tests.flows.flow_support import Said, findings
from tests.support.night_world import World, n_billed, write_benchmark

NOW = datetime.now(UTC)
THIRD = (NOW if NOW.hour >= 2 else NOW - timedelta(days=1)).date()  # the world's nights come at two
pytestmark = pytest.mark.slow
FIRST, SECOND = THIRD - timedelta(days=2), THIRD - timedelta(days=1)
Spoil = Callable[[Path], Path]


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory: pytest.TempPathFactory, judge_url: str) -> Path:
    world = World(tmp_path_factory.mktemp("two-nights"))
    file = write_benchmark(world.folder, judge_url)
    for number, day in ((1, FIRST), (2, SECOND)):
        world.make(number)
        run_night(RunContext.of(open_night(file, day)))
    world.make(3)
    return world.folder


@pytest.fixture
def file(two_nights: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(two_nights, tmp_path / "home")
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        yield tmp_path / "home/b.toml"


def _folder(lake: Path, day: date) -> Path:
    """The folder of a night's publication."""
    home = lake / "publish/v1/nights"
    return next(path.parent for path in home.glob("*/manifest.json") if f'"run_date": "{day}"' in path.read_text())


def _cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def _flipped(path: Path) -> Path:
    """All bytes of the footer's beginning are others: DuckDB raises another error than of a file that was cut."""
    content = bytearray(path.read_bytes())
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[start : start + 64] = bytes(255 - byte for byte in content[start : start + 64])
    path.write_bytes(content)
    return path


def _copy(lake: Path, day: date = FIRST) -> Path:
    tables = lake / "publish/v1/tables/benchmark_long/benchmark_name=nights"
    return tables / f"publication={_folder(lake, day).name}/part-00000.parquet"


def _run_record(lake: Path) -> Path:
    return min((lake / "publish/v1/tables/runs/benchmark_name=nights").glob("*.parquet"))


def _provenance(lake: Path) -> Path:
    path = _folder(lake, SECOND) / "provenance.json"
    path.write_bytes(b"")
    return path


def _gone(lake: Path) -> Path:
    folder = _folder(lake, FIRST)
    shutil.rmtree(folder)
    return folder


def _both(lake: Path) -> Path:
    _cut(_folder(lake, FIRST) / "benchmark_long.parquet")
    shutil.rmtree(lake / "series")  # each night's cells are derived anew, as after an upgrade
    return _cut(_copy(lake))


def _record_alone(lake: Path) -> Path:
    record = _cut(_run_record(lake))
    (lake / "runs" / record.name).unlink()
    return record


SERIES, ALL, BOTH = "the series of nights", "the series of nights and of salon.duckdb", "salon.duckdb"


@pytest.mark.parametrize(
    ("spoil", "said", "shown"),
    [
        pytest.param(_provenance, f"left out of {SERIES}: {{}} is not", [FIRST, SECOND, THIRD], id="its provenance"),
        pytest.param(_gone, f"left out of {ALL}: {{}}, the night of {FIRST}, is gone", [SECOND, THIRD], id="its folder gone"),
        pytest.param(
            lambda lake: _cut(_copy(lake)), "{} was damaged, and is made again", [FIRST, SECOND, THIRD], id="a table cut"
        ),
        pytest.param(
            lambda lake: _flipped(_copy(lake)), "{} was damaged, and is made again", [FIRST, SECOND, THIRD], id="a table flipped"
        ),
        pytest.param(_both, f"left out of {BOTH}: {{}} is not", [SECOND, THIRD], id="a table, here and in its folder"),
        pytest.param(
            lambda lake: _cut(_run_record(lake)), "{} was damaged, and is made again", [FIRST, SECOND, THIRD], id="a run's record"
        ),
        pytest.param(_record_alone, f"left out of {BOTH}: {{}} is not", [SECOND, THIRD], id="a run's only record"),
    ],
)
def test_the_next_night_comes_and_says_what_it_goes_without(
    file: Path, salon: Callable[..., Said], spoil: Spoil, said: str, shown: list[date]
) -> None:
    """`shown`: the nights of the view `trend`."""
    spoiled = spoil(file.parent / "lake")
    doctor = salon("doctor", file)
    assert findings(doctor.out)["publications"].startswith("wrong: ")
    assert str(spoiled) in doctor.out
    night = salon("nightly", file, "--run-date", THIRD)
    assert night.code == 0, night.err
    assert said.format(spoiled).replace(" ", "") in "".join(night.err.split())
    with duckdb.connect(str(file.parent / "lake/publish/v1/nights/salon.duckdb"), read_only=True) as database:
        assert database.execute("SELECT DISTINCT run_date FROM trend ORDER BY run_date").fetchall() == [(day,) for day in shown]
    is_mended = "made again" in said
    assert (str(spoiled) in salon("doctor", file).out) is not is_mended


@pytest.mark.parametrize("spoil", [_gone, lambda lake: _flipped(_folder(lake, SECOND) / "benchmark_long.parquet")])
def test_of_two_nights_one_of_which_is_left_out_the_series_holds_neither(file: Path, spoil: Spoil) -> None:
    lake = file.parent / "lake"
    before = living_table(lake, DRIFT, "nights")
    assert before is not None
    assert pl.read_parquet(before).height
    spoil(lake)
    left_out: list[str] = []
    write_drift(lake, "nights", {}, left_out.append)
    after = living_table(lake, DRIFT, "nights")
    assert after is not None
    assert (pl.read_parquet(after).height, left_out[0].startswith(f"left out of {SERIES}")) == (0, True), left_out


def _junk(lake: Path, name: str) -> Path:
    path = lake / "publish/v1/nights" / name
    path.write_text("[1, 2]")
    return path


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        pytest.param(lambda lake: _junk(lake, "latest.json"), "publications", id="latest.json"),
        pytest.param(lambda lake: _junk(lake, "latest_good.json"), "publications", id="latest_good.json"),
        pytest.param(lambda lake: _cut(min((lake / "partitions/nights").glob("*"))), "records", id="a partition's record"),
        pytest.param(lambda lake: _cut(min((lake / "runs").glob("*"))), "records", id="a run's record"),
    ],
)
def test_a_file_that_ends_the_next_night_ends_it_before_it_pays_and_the_doctor_names_it(
    file: Path, salon: Callable[..., Said], judge_url: str, spoil: Spoil, line: str
) -> None:
    spoiled, n_before = spoil(file.parent / "lake"), n_billed(judge_url)
    doctor = salon("doctor", file)
    assert doctor.code == 3
    assert findings(doctor.out)[line].startswith(f"wrong: {spoiled}")
    assert run(["nightly", str(file), "--run-date", str(THIRD)]) == 3
    assert run(["backfill", str(file), "--all", "--run-date", str(THIRD)]) == 3
    assert n_billed(judge_url) == n_before
