"""Frozen anchors that are damaged or gone: no run writes them again, so a night and the doctor say what to restore."""

import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.flows.flow_support import Said, findings
from tests.support.night_world import MODEL, N_SAMPLES, World, n_billed, write_benchmark

N_ANCHORS = 6


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, judge_url: str) -> Path:
    """A folder in which a night without anchors and one with them are published."""
    from flows.cli import run

    folder = tmp_path_factory.mktemp("judged")
    World(folder).make(0)
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
    os.utime(folder / "made" / MODEL / "step-0", (noon, noon))
    file = str(write_benchmark(folder, judge_url))
    assert run(["nightly", file, "--run-date", "2026-03-01"]) == 0
    assert run(["anchors", "freeze", file, "--n", str(N_ANCHORS)]) == 0
    assert run(["nightly", file, "--run-date", "2026-03-02"]) == 0
    return folder


@pytest.fixture
def file(tmp_path: Path, judged: Path) -> Path:
    """The benchmark file of a copy of it."""
    shutil.copytree(judged, tmp_path, dirs_exist_ok=True)
    return tmp_path / "b.toml"


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _spoil_a_picture(path: Path) -> None:
    content = bytearray(path.read_bytes())
    ends = [found.start() for found in re.finditer(b"IEND", content)]
    content[ends[len(ends) // 2] - 20] ^= 0xFF  # the first and last are statistics, in the page's header and the footer
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damaged", "damage", "is_seen"),
    [
        ("complete/pictures/{key}.json", lambda path: path.write_bytes(b""), True),
        ("complete/pictures/{key}.json", Path.unlink, True),
        ("complete/samples/{key}.json", Path.unlink, True),
        ("samples/dataset_id={key}/part-00000.parquet", _cut, True),
        ("pictures/dataset_id={key}/part-00000.parquet", Path.unlink, True),
        ("pictures/dataset_id={key}", _spoil_a_picture, False),
    ],
    ids=["an empty marker", "no marker of pictures", "no marker of samples", "half a part", "no part", "another picture"],
)
def test_damaged_anchors_are_to_be_restored(
    salon: Callable[..., Said],
    file: Path,
    judge_url: str,
    damaged: str,
    damage: Callable[[Path], object],
    is_seen: bool,
) -> None:
    lake = file.parent / "lake"
    (record,) = (lake / "anchors" / "nights").iterdir()
    path = lake / damaged.format(key=record.stem)
    spoiled = path / "part-00000.parquet" if path.is_dir() else path
    whole = spoiled.read_bytes()
    assert findings(salon("doctor", file).out)["anchors"].startswith("ok: ")
    damage(spoiled)
    n = n_billed(judge_url)
    doctor = findings(salon("doctor", file).out)["anchors"]
    assert doctor.startswith("wrong: ") is is_seen
    assert (str(path) in doctor) is is_seen
    for _ in range(2):
        night = salon("nightly", file, "--run-date", "2026-03-03")
        told = " ".join(night.err.split())
        assert (night.code, n_billed(judge_url)) == (3, n)
        assert str(path) in told
        assert f"frozen anchors {record.stem[:12]}, which no run writes again: restore complete/*/{record.stem[:12]}*" in told
        assert "run again" not in told
    spoiled.write_bytes(whole)
    assert salon("nightly", file, "--run-date", "2026-03-03").code == 0
    assert n_billed(judge_url) == n + N_ANCHORS


def test_other_anchors_take_the_place_of_damaged_ones(salon: Callable[..., Said], file: Path, judge_url: str) -> None:
    lake = file.parent / "lake"
    (record,) = (lake / "anchors" / "nights").iterdir()
    (lake / "complete" / "pictures" / record.name).unlink()
    assert salon("anchors", "freeze", file, "--n", N_SAMPLES, "--anew").code == 0
    n = n_billed(judge_url)
    assert salon("nightly", file, "--run-date", "2026-03-03").code == 0
    assert n_billed(judge_url) == n + N_SAMPLES


def test_anchors_whose_record_is_gone_are_missed(salon: Callable[..., Said], file: Path) -> None:
    (record,) = (file.parent / "lake" / "anchors" / "nights").iterdir()
    told = f"the night of 2026-03-02 had anchors {record.stem[:12]}, which are gone"
    advice = f"restore anchors/nights/{record.name} of the lake from a backup"
    kept = record.rename(file.parent / record.name)
    doctor = salon("doctor", file)
    assert (doctor.code, findings(doctor.out)["anchors"]) == (3, f"wrong: {told}")
    assert f"-> {advice}" in doctor.out
    night = salon("nightly", file, "--run-date", "2026-03-03")
    for said in (night, salon("nightly", file, "--run-date", "2026-03-04", "--dry-run")):
        assert (said.code, "".join(f"{told}: {advice}".split()) in "".join(said.out.split())) == (0, True), said.out
    assert salon("gc", "--older-than", "0", "--yes").code == 0
    kept.rename(record)
    restored = salon("nightly", file, "--run-date", "2026-03-04")
    assert (restored.code, told in restored.out) == (0, False), restored.err
    assert findings(salon("doctor", file).out)["anchors"].startswith("ok: ")
