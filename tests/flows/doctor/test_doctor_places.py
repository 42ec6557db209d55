"""What `salon doctor` says of the places that a night reads and writes: sources in which there is nothing, little room."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.doctor.stores import check_disk
from tests.flows.flow_support import Said, findings
from tests.support.night_world import World, write_benchmark

pytestmark = pytest.mark.usefixtures("_no_server")

FURTHER = """[[sources]]
name = "{name}"
reader = "imagefolder"
path = "{path}"
"""


@pytest.fixture
def _no_server() -> Iterator[None]:
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        yield


@pytest.mark.slow
def test_each_source_in_which_there_is_nothing_to_read(salon: Callable[..., Said], tmp_path: Path) -> None:
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, "http://127.0.0.1:9/v1")
    assert findings(salon("doctor", file).out)["sources"] == "ok: 1 source: there is something to read in each"
    (tmp_path / "empty").mkdir()
    further = [FURTHER.format(name=name, path=path) for name, path in (("b", "gone/{model}"), ("c", "away"), ("d", "empty"))]
    file.write_text(file.read_text().replace("[limits]", "".join([*further, "[limits]"])))
    said = salon("doctor", file)
    told = [line for line in said.out.splitlines() if line.startswith("wrong")]
    assert (said.code, [line[8:23].strip() for line in told]) == (3, ["sources"] * 3), said.out
    assert "source 'b': nothing matches its path; looked in" in told[0]
    assert told[0].endswith("fix path = 'gone/{model}' in the benchmark file, or mount its disk")
    assert told[1].endswith("away does not exist; fix path = 'away' in the benchmark file, or mount its disk")
    assert "source 'd' is empty: reader imagefolder finds no rows" in told[2]
    assert "-> fix its path in the benchmark file, or mount its disk" in said.out


def test_little_room_is_not_told_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=32_000_000))
    (told,) = check_disk(tmp_path)
    assert told.found.startswith("32 MB free at ")
