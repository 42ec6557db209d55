"""A rubric changed under its name: told of by the night that stands, the past nights' anchors, partitions as on their page."""

import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import duckdb
import polars as pl
import pytest

from flows.night_opening import open_night
from flows.nightly import run_night
from flows.nights.own_rubrics import asks_the_same, keep_rubrics, kept_rubric
from flows.run.context import RunContext
from rubrics.loading import load_rubric
from schemas.errors import ProviderError
from tasks.publish.reading import publications
from tests.flows.flow_support import Said
from tests.support.night_world import MODEL, World, n_billed, write_benchmark
from tests.support.servers.provider import Play, Provider

ALIGNMENT = Path(__file__).parents[3] / "rubrics" / "alignment"
Salon = Callable[..., Said]


@pytest.fixture
def file(tmp_path: Path, judge_url: str) -> Path:
    """A benchmark of two checkpoints with a rubric of its own."""
    for number in range(2):
        World(tmp_path).make(number)
    # without golden requests, which a changed prompt would have to match
    shutil.copytree(ALIGNMENT, tmp_path / "mine" / "matching", ignore=shutil.ignore_patterns("golden"))
    own = tmp_path / "mine" / "matching" / "rubric.toml"
    own.write_text(own.read_text().replace('id = "alignment"', 'id = "matching"'))
    file = write_benchmark(tmp_path, judge_url, rubrics=("matching",))
    file.write_text('rubric_folders = ["mine"]\n' + file.read_text())
    return file


def _change_the_prompt(file: Path) -> None:
    prompt = file.parent / "mine" / "matching" / "prompt.txt"
    said = prompt.read_text()
    prompt.write_text(said.replace("maximum 20 words", "at most 20 words"))
    assert prompt.read_text() != said


def _retitle(file: Path) -> None:
    """What the judge never sees: title, source and a comment."""
    _change_the_rubric(file, r'(title = ".*)"\n(source = ".*)"', r'\1, changed"\n\2, changed"\n# changed')


def _change_the_rubric(file: Path, line: str, to: str) -> None:
    own = file.parent / "mine" / "matching" / "rubric.toml"
    said = own.read_text()
    own.write_text(re.sub(f"^{line}$", to, said, count=1, flags=re.MULTILINE))
    assert own.read_text() != said


def _one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("change", "is_same", "is_same_but_for_version"),
    [
        (_retitle, True, True),
        (partial(_change_the_rubric, line='version = ".*"', to='version = "9"'), False, True),
        (_change_the_prompt, False, False),
    ],
    ids=["another title", "a raised version", "another prompt"],
)
def test_a_raised_version_is_told_from_another_text(
    file: Path, change: Callable[[Path], None], is_same: bool, is_same_but_for_version: bool
) -> None:
    lake, folder = file.parent / "lake", file.parent / "mine" / "matching"
    old = load_rubric(folder)
    keep_rubrics(lake, {"matching": old}, pytest.fail)
    change(file)
    new = load_rubric(folder)
    digests = ("matching", old.digest, new.digest)
    assert old.digest != new.digest
    assert asks_the_same(lake, {"matching": new}, *digests) is is_same
    assert asks_the_same(lake, {"matching": new}, *digests, but_for_version=True) is is_same_but_for_version


def test_a_rubric_edited_since_it_was_loaded_is_not_kept_as_what_it_was_and_said_to_be_lacking(file: Path) -> None:
    """As while a night waits for another process."""
    said = list[str]()
    old = load_rubric(file.parent / "mine" / "matching")
    _retitle(file)
    keep_rubrics(file.parent / "lake", {"matching": old}, said.append)
    assert not (file.parent / "lake").exists()
    (told,) = said
    assert told.startswith("the files of rubric matching were edited since they were read: this command goes by what it read")


def test_a_rubric_is_kept_before_anything_is_asked_by_it(file: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    old = load_rubric(file.parent / "mine" / "matching")
    provider.then = Play(401, b'{"error": {"message": "no such key"}}')
    provider.on_request = lambda: _retitle(file) if provider.n == 1 else None
    file.write_text(re.sub(r'base_url = ".*"', f'base_url = "{provider.url}"', file.read_text()))
    with pytest.raises(ProviderError):
        run_night(RunContext.of(open_night(file)))
    assert kept_rubric(file.parent / "lake", "matching", old.digest) is not None


def test_a_night_that_stands_says_that_the_file_asks_otherwise_now(salon: Salon, file: Path) -> None:
    told = "rubric matching (same version; its text or rules changed): the file now asks something other than the night of"
    assert salon("nightly", file).code == 0
    _retitle(file)
    same = [salon("nightly", file), salon("nightly", file, "--dry-run")]
    assert all(told not in _one_line(said.out + said.err) for said in same)
    _change_the_prompt(file)
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


def test_a_night_after_another_title_is_compared_and_one_after_another_prompt_is_not(
    salon: Salon, file: Path, judge_url: str
) -> None:
    lake, n_samples = file.parent / "lake", 24

    def night(number: int) -> tuple[str, int, list[tuple[str, str | None]]]:
        """What is said on it and by `salon plan` before, how much is asked, and with which checkpoint the newest is compared."""
        World(file.parent).make(number) if number > 1 else None  # `file` made the first
        noon = datetime(2026, 3, number, 12, tzinfo=UTC).timestamp()
        os.utime(file.parent / "made" / MODEL / f"step-{number}", (noon, noon))
        planned, before = salon("plan", file).out, n_billed(judge_url)
        said = salon("nightly", file, "--run-date", f"2026-03-0{number}")
        assert said.code == 0, said.err
        (found,) = [one for one in publications(lake) if one.run_date == f"2026-03-0{number}"]
        compared = pl.read_parquet(found.folder / "comparisons.parquet")
        rows = compared.filter(comparison="predecessor", category="__macro__").select("checkpoint_b", "reason").rows()
        return _one_line(planned + said.out + said.err), n_billed(judge_url) - before, rows

    assert night(1)[1:] == (n_samples, [])
    _retitle(file)
    said, n_asked, compared = night(2)
    assert (n_asked, compared) == (n_samples, [("step-1", "too_few_paired_prompts")]), said
    assert "changed" not in said
    assert "stale" not in said
    _change_the_prompt(file)
    said, n_asked, compared = night(3)
    assert (n_asked, compared) == (n_samples, [("step-2", "predecessor_missing")])
    told = "rubric matching (same version; its text or rules changed): "
    assert f"{told}changed requests are paid for again" in said
    assert f"{told}the numbers are not comparable with those of the previously current publication" in said
    assert "the rubric changed since it was asked under matching by salon-demo-judge" in said


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
    _retitle(file)
    retitled = anchors()
    assert (before.items() <= retitled.items(), retitled["03", "1"] is None) == (True, False), retitled
    shutil.rmtree(file.parent / "lake" / "series")  # which can be derived again
    _change_the_rubric(file, 'version = "1"', 'version = "2"')
    raised = anchors()
    assert (retitled.items() <= raised.items(), raised["04", "2"] is None) == (True, False), raised
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
    _change_the_prompt(file)
    listed = _one_line(salon("backfill", file, "--list").out)
    assert listed.count("the rubric changed since") == 2, listed
    assert " 2 stale what a stale one lacks now, and what was never asked, counts salon backfill FILE --all --dry-run $" in listed
    assert salon("backfill", file, "--all").code == 0
    listed = _one_line(salon("backfill", file, "--list").out)
    assert "2 done 2 not shown: of earlier rubrics, judges or samples that later ones replaced" in listed
    assert "stale" not in listed
    assert "2 done" in page.read_text()
    assert "stale" not in re.sub(r"<style.*?</style>", "", page.read_text(), flags=re.DOTALL)


def test_another_title_leaves_the_partitions_as_they_are(salon: Salon, file: Path) -> None:
    """Also those of a backfill that ended before it published anything."""
    assert salon("backfill", file, "--all", "--max-usd", "0.000001").code == 3
    listed = _one_line(salon("backfill", file, "--list").out)
    _retitle(file)
    assert _one_line(salon("backfill", file, "--list").out) == listed
    for is_first in (True, False):
        assert salon("backfill", file, "--all").code == 0
        listed = _one_line(salon("backfill", file, "--list").out)
        assert " 2 done $" in listed, (is_first, listed)
        assert "planned" not in listed
        assert "not shown" not in listed
        _retitle(file)
