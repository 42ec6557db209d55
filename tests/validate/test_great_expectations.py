"""Data Docs of many runs: the library's own files are on the disk once, and each folder still holds them all."""

from pathlib import Path

import pytest

from schemas.errors import StoreError
from tasks.validate.great_expectations import put_in_place, share_static

FILES = {"fonts/bold.otf": b"font", "images/a.gif": b"moving", "styles/a.css": b"css"}


@pytest.fixture
def docs(tmp_path: Path):
    def write(run: str, **changed: bytes) -> Path:
        for name, content in ({f"static/{name}": content for name, content in FILES.items()} | {"index.html": b"page"}).items():
            path = tmp_path / run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(changed.get(path.stem, content))
        share_static(tmp_path / run, tmp_path / "static")
        return tmp_path / run

    return write


def _inodes(folder: Path) -> dict[str, int]:
    return {path.relative_to(folder).as_posix(): path.stat().st_ino for path in folder.rglob("*") if path.is_file()}


def test_the_librarys_files_are_there_once(docs):
    first, second = docs("one"), docs("two")
    shared = _inodes(first / "static")
    assert shared == _inodes(second / "static") == _inodes(first.parent / "static")
    assert {path.relative_to(second / "static").as_posix(): path.read_bytes() for path in second.rglob("static/*/*")} == FILES
    assert (first / "index.html").stat().st_ino != (second / "index.html").stat().st_ino
    assert not list(first.parent.rglob("*.tmp"))
    share_static(second, first.parent / "static")
    assert _inodes(second / "static") == shared


def test_files_of_another_version_stay_what_they_are(docs):
    first, second = docs("one"), docs("two", bold=b"tnof")
    assert (second / "static/fonts/bold.otf").read_bytes() == b"tnof"
    assert (first / "static/fonts/bold.otf").read_bytes() == b"font"
    assert _inodes(first / "static/images") == _inodes(second / "static/images")


def test_a_run_that_goes_leaves_the_others_whole(docs):
    first, second = docs("one"), docs("two")
    for path in sorted(first.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert (second / "static/images/a.gif").read_bytes() == b"moving"


def test_without_links_each_keeps_its_own(docs):
    """A file in the place of the shared folder stands for a file system that refuses."""
    first = docs("one").parent
    for path in (first / "static/fonts/bold.otf", first / "static/fonts"):
        path.rmdir() if path.is_dir() else path.unlink()
    (first / "static/fonts").write_bytes(b"")
    assert (docs("two") / "static/fonts/bold.otf").read_bytes() == b"font"


def test_pages_written_by_two_at_once_are_those_of_one_of_them(tmp_path: Path):
    folder = tmp_path / "data_docs" / "run"
    for slow, quick in (("a", "b"), ("c", "d")):  # the second time over pages that are there
        with put_in_place(folder, tmp_path) as one:
            _page(one, slow)
            with put_in_place(folder, tmp_path) as other:
                _page(other, quick)
            assert [path.name for path in folder.iterdir()] == [quick]
            _page(one, slow * 2)
        assert sorted(path.name for path in folder.iterdir()) == [slow, slow * 2]
    assert not list((tmp_path / "staging").iterdir())


def test_pages_that_cannot_be_written_leave_those_that_were(tmp_path: Path):
    folder = tmp_path / "data_docs" / "run"
    with put_in_place(folder, tmp_path) as written:
        _page(written, "a")
    with pytest.raises(StoreError, match="No space left"), put_in_place(folder, tmp_path) as written:
        _full(_page(written, "b"))
    assert [path.name for path in folder.iterdir()] == ["a"]
    assert not list((tmp_path / "staging").iterdir())


def _full(_: Path) -> None:
    raise OSError(28, "No space left on device")


def _page(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(name)
    return folder / name
