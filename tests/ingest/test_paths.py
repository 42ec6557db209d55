"""Paths out of data stay below their root, whatever they hold."""

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.ingest.opened_files import own_path
from tasks.ingest.paths import RefusedPath, is_inside, locate, quote, read_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a picture, links in and out, and a secret beside it."""
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.png").write_bytes(b"inside")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (folder / "in.png").symlink_to("sub/a.png")
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "out").symlink_to(tmp_path)
    (folder / "loop.png").symlink_to("loop.png")
    (folder / "dangling.png").symlink_to("nowhere.png")
    os.mkfifo(folder / "pipe.png")
    return folder


@pytest.mark.parametrize("name", ["sub/a.png", "./sub/a.png", "sub//a.png", "in.png", "sub\\a.png"])
def test_files_below_the_root_are_read(root, name):
    assert read_file(root, name) == b"inside"


REFUSED = {
    "../secret.png": "outside_root",
    "sub/../../secret.png": "outside_root",
    "..\\secret.png": "outside_root",
    "sub/..": "outside_root",
    "/etc/passwd": "outside_root",
    "\\\\server\\share\\a.png": "outside_root",
    "C:\\pictures\\a.png": "outside_root",
    "c:/pictures/a.png": "outside_root",
    "out.png": "outside_root",
    "out/secret.png": "outside_root",
    "sub/a.png\0.txt": "outside_root",
    "http://example.com/a.png": "remote_refused",
    "HTTPS://example.com/a.png": "remote_refused",
    "s3://bucket/a.png": "remote_refused",
    "https://me:password@[bad/a.png#password": "remote_refused",
    "file:///etc/passwd": "remote_refused",
    " https://example.com/a.png": "remote_refused",
    "data:image/png;base64,AAAA": "remote_refused",
    "sub": "not_a_file",
    "pipe.png": "not_a_file",
    "loop.png": "missing_file",
    "dangling.png": "missing_file",
    "absent.png": "missing_file",
    "sub/a.png/more": "missing_file",
    "x" * 5000: "missing_file",
    "\ud800.png": "missing_file",
    "~/a.png": "missing_file",
    "$HOME/a.png": "missing_file",
    " ": "missing_value",
}


@pytest.mark.parametrize(("name", "status"), REFUSED.items(), ids=[ascii(name)[:40] for name in REFUSED])
def test_other_paths_are_refused_with_a_status(root, name, status):
    refused = read_file(root, name)
    assert isinstance(refused, RefusedPath), refused
    assert refused.status == status
    assert "password" not in refused.detail
    assert "secret" not in refused.detail or "secret" in name
    assert "\n" not in refused.detail
    refused.detail.encode()


def test_a_file_over_the_cap_is_refused_unread(root):
    refused = read_file(root, "sub/a.png", max_bytes=5)
    assert isinstance(refused, RefusedPath)
    assert refused.status == "file_too_large"
    assert read_file(root, "sub/a.png", max_bytes=6) == b"inside"


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
@pytest.mark.parametrize("written", ["NFC", "NFD"])
def test_a_name_is_found_in_either_unicode_form(root, stored, written):
    name = "Über Café 東京.png"
    (root / unicodedata.normalize(stored, name)).write_bytes(b"found")
    assert read_file(root, unicodedata.normalize(written, name)) == b"found"


def test_the_name_as_written_comes_first(root):
    (root / "sub\\a.png").write_bytes(b"a backslash is a character here")
    assert read_file(root, "sub\\a.png") == b"a backslash is a character here"


def test_the_root_itself_may_be_a_link(root, tmp_path):
    (tmp_path / "link").symlink_to(root)
    assert read_file(tmp_path / "link", "sub/a.png") == b"inside"


PARTS = ["..", ".", "/", "\\", "out", "sub", "a.png", "secret.png", "\0", "C:", "%2e%2e", "．．", " "]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=7))
def test_no_name_leaves_the_root(tmp_path_factory, parts):
    base = tmp_path_factory.getbasetemp() / "law"
    if not base.exists():
        (base / "data" / "sub").mkdir(parents=True)
        (base / "data" / "out").symlink_to(base)
        (base / "secret.png").write_bytes(b"secret")
        (base / "data" / "sub" / "a.png").write_bytes(b"inside")
    for separator in ("", "/", "\\"):
        found = read_file(base / "data", separator.join(parts))
        assert isinstance(found, RefusedPath) or found == b"inside"


def test_naughty_strings_neither_escape_nor_raise(needs_salon_data, root):
    import json

    for name in json.loads((needs_salon_data / "naughty_text" / "blns.json").read_text(encoding="utf-8")):
        found = locate(root, name)
        assert isinstance(found, RefusedPath), name
        assert found.detail.isprintable()


def test_is_inside_is_the_rule_by_name_alone():
    assert is_inside("a/b.png")
    assert not any(is_inside(name) for name in ("../a", "/a", "a/../../b", "a\\..\\..\\b", "http://a/b", "", "a\0b"))


def test_quoted_data_is_one_short_printable_line():
    assert quote("a\nb\x1b[31m") == r"'a\nb\x1b[31m'"
    assert len(quote("x" * 10_000)) < 130
    quote("\ud800").encode()


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (None, None), ("", None), (".", None), ("./", None), (".//.", None), ("./a/b.png", "a/b.png"), ("a\\b.png", "a/b.png"),
        ("/home/someone/b.png", "b.png"), ("C:\\Users\\someone\\b.png", "b.png"), ("../b.png", "b.png"), ("..", ".."), ("/", ""),
    ],
)  # fmt: skip
def test_the_path_a_picture_is_known_by_is_of_no_machine(said: str | None, kept: str | None) -> None:
    assert own_path(said) == kept


@given(st.text())
def test_whatever_a_row_calls_its_picture_it_has_a_path_or_none(said: str) -> None:
    found = own_path(said)
    assert found is None or not found.startswith("/")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no file here says that it has no bytes, and has")
@pytest.mark.parametrize("max_bytes", [0, 9])
def test_a_file_with_more_bytes_than_it_says_is_read_no_further_than_is_told(max_bytes: int) -> None:
    found = read_file(Path("/proc/self"), "status", max_bytes)
    assert isinstance(found, bytes)
    assert len(found) <= max_bytes + 1
