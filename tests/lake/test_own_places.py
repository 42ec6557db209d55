"""Lakes into which somebody put links: nothing behind one is swept, emptied or removed; tables behind one are used."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.errors import CorruptLakeError
from schemas.tables.stored import CHECKS, SAMPLES
from tasks.lake.atomic_files import locked
from tasks.lake.own_places import linked_at, remove, sweep
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tests.support.small_lake import table_of

LONG_AGO = 1_700_000_000
NO_PARTS = b'{"parts": []}'


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    root.mkdir()
    return root


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """A folder of somebody else's, beside the lake and old."""
    folder = tmp_path / "others"
    (folder / "below").mkdir(parents=True)
    for name in ("thesis.txt", "below/thesis.txt", "a.lock"):
        (folder / name).write_text("years of work")
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (LONG_AGO, LONG_AGO))
    return folder


def _take_lock(root: Path) -> None:
    with locked(root, "a"):
        pass


def _is_whole(folder: Path) -> bool:
    held = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    return held == dict.fromkeys(("thesis.txt", "below/thesis.txt", "a.lock"), "years of work")


def _link(place: str, to: str) -> Callable[[Path, Path], None]:
    def put(lake: Path, others: Path) -> None:
        (lake / place).parent.mkdir(exist_ok=True)
        (lake / place).symlink_to(others / to)

    return put


def _pipe(lake: Path, _: Path) -> None:
    (lake / "locks").mkdir()
    os.mkfifo(lake / "locks" / "a.lock")


@pytest.mark.parametrize(
    ("put", "act", "said"),
    [
        pytest.param(_link("staging", "."), sweep, "lake/staging is a link", id="staging is a link: swept"),
        pytest.param(_link("staging", "."), lambda root: stage(Lake(root), CHECKS), "is a link", id="staging is a link: staged"),
        pytest.param(_link("locks", "."), _take_lock, "lake/locks is a link", id="locks is a link"),
        pytest.param(_link("locks", "gone"), _take_lock, "lake/locks is a link", id="locks is a link to nothing"),
        pytest.param(_link("locks/a.lock", "thesis.txt"), _take_lock, "a.lock is a link", id="a lock is a link to a file"),
        pytest.param(_link("locks/a.lock", "gone"), _take_lock, "a.lock is a link", id="a lock is a link to nothing"),
        pytest.param(_pipe, _take_lock, "not a regular file", id="a lock is a pipe"),
    ],
)
def test_what_is_no_place_of_the_lake_is_refused_and_whole(
    lake: Path, others: Path, put: Callable[[Path, Path], None], act: Callable[[Path], object], said: str
) -> None:
    put(lake, others)
    with pytest.raises(CorruptLakeError, match=said):
        act(lake)
    assert _is_whole(others)
    assert not (others / "gone").exists()


def test_a_lock_that_is_a_second_name_of_a_file_empties_nothing(lake: Path, others: Path) -> None:
    (lake / "locks").mkdir()
    (lake / "locks" / "a.lock").hardlink_to(others / "thesis.txt")
    _take_lock(lake)
    assert _is_whole(others)


def test_what_killed_runs_left_is_swept_and_links_among_it_are_let_be(lake: Path, others: Path) -> None:
    (lake / "staging" / "part" / "unfinished").mkdir(parents=True)
    (lake / "staging" / "part" / "linked").symlink_to(others)
    (lake / "staging" / "a.tmp").write_text("half")
    (lake / "staging" / "linked").symlink_to(others)
    for path in (lake / "staging").iterdir():
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    (lake / "staging" / "of-a-run").mkdir()
    sweep(lake)
    assert sorted(path.name for path in (lake / "staging").iterdir()) == ["linked", "of-a-run"]
    assert _is_whole(others)


def test_a_lake_behind_a_link_is_swept_and_locked_as_any(lake: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    linked.symlink_to(lake)
    (lake / "staging").mkdir()
    (lake / "staging" / "a.tmp").write_text("half")
    os.utime(lake / "staging" / "a.tmp", (LONG_AGO, LONG_AGO))
    sweep(linked)
    _take_lock(linked)
    assert not (lake / "staging" / "a.tmp").exists()
    assert (lake / "locks" / "a.lock").is_file()


def test_a_table_behind_a_link_is_read_and_written(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (lake / CHECKS.name).symlink_to(tmp_path / "disk")
    staging = stage(Lake(lake), CHECKS)
    staging.write_part(0, table_of(CHECKS, []))
    staging.commit("k")
    assert Lake(lake).scan(CHECKS, "k").collect().height == 0
    assert (tmp_path / "disk" / "check_id=k").is_dir()


@pytest.mark.parametrize("place", ["tiles", "publish/v1"])
def test_nothing_is_removed_through_a_link(lake: Path, others: Path, place: str) -> None:
    (lake / place).parent.mkdir(exist_ok=True)
    (lake / place).symlink_to(others)
    for path in (lake / place / "thesis.txt", lake / place / "below", lake / place):
        assert linked_at(lake, path) == lake / place
        remove(lake, path)
    assert _is_whole(others)
    assert (lake / place).is_symlink()


def test_what_is_the_lakes_own_is_removed(lake: Path) -> None:
    (lake / "tiles" / "below").mkdir(parents=True)
    (lake / "tiles" / "a.parquet").write_text("")
    assert linked_at(lake, lake / "tiles" / "a.parquet") is None
    for name in ("a.parquet", "below", "gone"):
        remove(lake, lake / "tiles" / name)
    assert not any((lake / "tiles").iterdir())
    shutil.rmtree(lake / "tiles")
    remove(lake, lake / "tiles" / "a.parquet")


def test_what_is_kept_of_an_older_bucket_behind_a_link_is_named(tmp_path: Path) -> None:
    lake, elsewhere = Lake(tmp_path / "lake"), tmp_path / "elsewhere"
    lake.root.mkdir()
    elsewhere.mkdir()
    (lake.root / SAMPLES.name).symlink_to(elsewhere)
    lake.keep_marker(SAMPLES, "first", NO_PARTS)
    kept = elsewhere / "dataset_id=second" / "part-00000.parquet"
    kept.parent.mkdir()
    kept.touch()
    with pytest.raises(CorruptLakeError, match="samples is a link"):
        lake.keep_marker(SAMPLES, "second", NO_PARTS)
    assert kept.exists()
