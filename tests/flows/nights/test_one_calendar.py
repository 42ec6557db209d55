"""Runs and nights of a file have one calendar, that of its time zone; a night shut out by a later date is told of."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tasks.publish.reading import current
from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark

Salon = Callable[..., Said]
# In the far west the day before until noon UTC, in the far east the day after from ten o'clock on.
ZONE = "Etc/GMT+12" if datetime.now(UTC).hour < 12 else "Pacific/Kiritimati"


def _today() -> date:
    return datetime.now(ZoneInfo(ZONE)).date()


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
