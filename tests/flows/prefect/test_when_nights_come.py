"""`salon deploy` says when nights come, and how to end them where the file does not say."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.flows.flow_support import Said
from tests.support.night_world import write_benchmark

pytestmark = pytest.mark.usefixtures("prefect_api", "no_deployment_stays")

BERLIN = ZoneInfo("Europe/Berlin")


def test_the_schedule_that_is_set_is_printed_also_where_the_file_has_none(salon: Callable[..., Said], tmp_path: Path) -> None:
    file = write_benchmark(tmp_path, "http://127.0.0.1:9/v1", nightly='timezone = "Europe/Berlin"')
    file.write_text(file.read_text().replace("0 2 * * *", "30 3 * * *"))
    due = datetime.now(BERLIN).replace(hour=3, minute=30)
    due += timedelta(days=due <= datetime.now(BERLIN))
    said = salon("deploy", file).out
    assert f"nights:              30 3 * * * (Europe/Berlin), the next at {due:%Y-%m-%d %H:%M %Z}\n" in said
    assert "is not set" not in said
    file.write_text(file.read_text().partition("[nightly]")[0])
    said = salon("deploy", file).out
    assert "nights:              0 2 * * * (UTC), the next at " in said
    assert "[nightly] schedule is not set: this is the default, every night at 02:00. To end the nights:" in said
    assert "prefect deployment delete 'nightly/nights-nightly'" in said
