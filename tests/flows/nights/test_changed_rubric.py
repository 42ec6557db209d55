"""A rubric changed under its name: told of by the night that stands, the past nights' anchors, partitions as on their page."""

import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from tests.flows.flow_support import Said
from tests.support.night_world import MODEL, World, write_benchmark

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


def _change_the_rubric(file: Path, line: str = r'(title = ".*)"', to: str = r'\1, changed"') -> None:
    own = file.parent / "mine" / "matching" / "rubric.toml"
    said = own.read_text()
    own.write_text(re.sub(f"^{line}$", to, said, count=1, flags=re.MULTILINE))
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


def test_the_anchors_of_past_nights_stay_when_the_rubric_changes(salon: Salon, file: Path) -> None:
    """Another title is the same question, and a raised version another series; another scale under one version is neither."""
    nights = iter(range(1, 7))

    def anchors() -> dict[tuple[str, str], float | None]:
        """By date and version, of all nights, after a night of a new checkpoint."""
        number = next(nights)
        if number > 1:  # `file` made the first
            World(file.parent).make(number)
        noon = datetime(2026, 3, number, 12, tzinfo=UTC).timestamp()
        os.utime(file.parent / "made" / MODEL / f"step-{number}", (noon, noon))
        assert salon("nightly", file, "--run-date", f"2026-03-0{number}").code == 0
        with duckdb.connect(file.parent / "lake" / "publish" / "v1" / "nights" / "salon.duckdb", read_only=True) as found:
            rows = found.execute("SELECT run_date, rubric_version, anchor_estimate FROM drift").fetchall()
        return {(day.isoformat()[-2:], version): estimate for day, version, estimate in rows}

    assert anchors() == {}
    assert salon("anchors", "freeze", file, "--n", "4").code == 0
    before = anchors()
    assert (before["01", "1"], before["02", "1"] is None) == (None, False)
    _change_the_rubric(file)
    retitled = anchors()
    assert (before.items() <= retitled.items(), retitled["03", "1"] is None) == (True, False), retitled
    shutil.rmtree(file.parent / "lake" / "series")  # which can be derived again
    _change_the_rubric(file, 'version = "1"', 'version = "2"')
    raised = anchors()
    assert (retitled.items() <= raised.items(), raised["04", "2"] is None) == (True, False), raised
    shutil.rmtree(file.parent / "mine" / "matching" / "golden")
    _change_the_rubric(file, "scale = .*", "scale = { min = 1, max = 5 }")
    other = anchors()
    assert (retitled.items() <= other.items(), other["04", "2"], other["05", "2"] is None) == (True, None, False), other


def test_a_night_that_stands_says_that_a_rubric_was_added_or_dropped(salon: Salon, file: Path) -> None:
    assert salon("nightly", file).code == 0
    said = file.read_text()
    file.write_text(said.replace('id = "matching"', 'id = "alignment"', 1))
    night, dry = salon("nightly", file), salon("nightly", file, "--dry-run")
    told = "rubric alignment (added), rubric matching (dropped): the file now asks something other than the night of"
    assert told in _one_line(night.err)
    assert told in _one_line(dry.out)


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
