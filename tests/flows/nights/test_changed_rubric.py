"""A rubric changed under its name and version: told of by the night that stands; partitions listed as on their page."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark

ALIGNMENT = Path(__file__).parents[3] / "rubrics" / "alignment"
Salon = Callable[..., Said]


@pytest.fixture
def file(tmp_path: Path, judge_url: str) -> Path:
    """A benchmark of two checkpoints with a rubric of its own."""
    for number in range(2):
        World(tmp_path).make(number)
    shutil.copytree(ALIGNMENT, tmp_path / "mine" / "matching")
    own = tmp_path / "mine" / "matching" / "rubric.toml"
    own.write_text(own.read_text().replace('id = "alignment"', 'id = "matching"'))
    file = write_benchmark(tmp_path, judge_url, rubrics=("matching",))
    file.write_text('rubric_folders = ["mine"]\n' + file.read_text())
    return file


def _change_the_rubric(file: Path) -> None:
    own = file.parent / "mine" / "matching" / "rubric.toml"
    said = own.read_text()
    own.write_text(re.sub(r'^(title = ".*)"$', r'\1, changed"', said, count=1, flags=re.MULTILINE))
    assert own.read_text() != said


def _one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_night_that_stands_says_that_the_file_asks_otherwise_now(salon: Salon, file: Path) -> None:
    told = "rubric matching (same version; its text or rules changed): the file now asks something other than the night of"
    assert salon("nightly", file).code == 0
    same = [salon("nightly", file), salon("nightly", file, "--dry-run")]
    assert all(told not in _one_line(said.out + said.err) for said in same)
    _change_the_rubric(file)
    night, dry = salon("nightly", file), salon("nightly", file, "--dry-run")
    assert (night.code, dry.code) == (0, 0)
    assert "nothing was sent" in night.out
    assert told in _one_line(night.err)
    assert told in _one_line(dry.out)
    found = re.search(r"salon withdraw FILE ([0-9a-f]{12})", _one_line(night.err))
    assert found is not None
    assert salon("withdraw", file, found[1], "--because", "the rubric is another").code == 0
    assert "is published" not in salon("nightly", file).out, "asked anew"
    assert told not in _one_line(salon("nightly", file).err)


def test_the_list_counts_as_the_page_does_and_says_what_is_left(salon: Salon, file: Path) -> None:
    page = file.parent / "lake" / "publish" / "v1" / "nights" / "partitions.html"
    assert salon("backfill", file, "--all").code == 0
    assert " 2 done $" in _one_line(salon("backfill", file, "--list").out)
    _change_the_rubric(file)
    listed = _one_line(salon("backfill", file, "--list").out)
    assert listed.count("the rubric changed since") == 2, listed
    assert " 2 stale $" in listed
    assert salon("backfill", file, "--all").code == 0
    listed = _one_line(salon("backfill", file, "--list").out)
    assert "2 done 2 not shown: of earlier rubrics, judges or samples that later ones replaced" in listed
    assert "stale" not in listed
    assert "2 done" in page.read_text()
    assert "stale" not in re.sub(r"<style.*?</style>", "", page.read_text(), flags=re.DOTALL)
