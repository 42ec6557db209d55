"""Bundles that are refused: names that lead out, links, bombs, what is cut. Nothing is written beside the folder given."""

import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import InputError
from schemas.input_budget import BUNDLE_BYTES, BUNDLE_JSON_BYTES
from tasks.verify.bundle_opening import open_bundle


def _packed(target: Path, files: dict[str, bytes], **options: int) -> None:
    with zipfile.ZipFile(target, "w", options.get("compression", zipfile.ZIP_STORED)) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = options.get("attributes", 0o644 << 16)
            entry.compress_type = options.get("compression", zipfile.ZIP_STORED)
            archive.writestr(entry, content)


def _bomb(target: Path) -> None:
    """Zeros: a thousand times its size."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("bundle.json", "w") as file:
        for _ in range(BUNDLE_BYTES // 2**20 + 1):
            file.write(bytes(2**20))


def _twice(target: Path) -> None:
    _packed(target, {"bundle.json": b"{}", "bundle.jsoN": b"{}"})
    target.write_bytes(target.read_bytes().replace(b"jsoN", b"json"))


def _zero_byte(target: Path) -> None:
    _packed(target, {"bundle.json#/x": b"{}"})
    target.write_bytes(target.read_bytes().replace(b"#/x", b"\0/x"))


def _long_listing(target: Path) -> None:
    """An end record that says that the list of files has 4 GB less one byte, which the library would read at once."""
    _packed(target, {"bundle.json": b"{}"})
    content = bytearray(target.read_bytes())
    at = content.rindex(b"PK\x05\x06")
    content[at + 12 : at + 16] = (2**31).to_bytes(4, "little")
    target.write_bytes(bytes(2**26) + content)


def _cut(target: Path) -> None:
    _packed(target, {"bundle.json": b"{}" * 500})
    target.write_bytes(target.read_bytes()[:200])


def _damaged(target: Path) -> None:
    _packed(target, {"bundle.json": b"{}" * 500})
    content = bytearray(target.read_bytes())
    content[100] ^= 1
    target.write_bytes(content)


def _rows_without_end(target: Path) -> None:
    """Two hundred million rows in a few kilobytes."""
    rows = pa.table({"a": pa.DictionaryArray.from_arrays(pa.nulls(2 * 10**6, pa.int8()), pa.array(["x"]))})
    path = target.with_name("rows.parquet")
    with pq.ParquetWriter(path, rows.schema, compression="zstd") as writer:
        for _ in range(100):
            writer.write_table(rows)
    _packed(target, {f"replies/snapshot_id={'0' * 64}/part-00000.parquet": path.read_bytes()})


def _folder_with(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def made(target: Path) -> None:
        target.mkdir()
        (target / "bundle.json").write_text("{}")
        make(target)

    return made


def _link_out(folder: Path) -> None:
    (folder / "rubrics").mkdir()
    (folder / "rubrics" / "mine").symlink_to("/etc")


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a name that leads out": (lambda path: _packed(path, {"rubrics/a/../../../x": b""}), "no bundle has a file of that name"),
    "an absolute name": (lambda path: _packed(path, {"/etc/x": b""}), "no bundle has a file of that name"),
    "a backslash": (lambda path: _packed(path, {"rubrics\\..\\x": b""}), "no bundle has a file of that name"),
    "a drive": (lambda path: _packed(path, {"C:/x": b""}), "no bundle has a file of that name"),
    "a name cut by a zero byte": (_zero_byte, "no bundle has a file of that name"),
    "a hidden file": (lambda path: _packed(path, {"rubrics/a/.x": b""}), "no bundle has a file of that name"),
    "a program beside the rubric": (lambda path: _packed(path, {"tasks/__init__.py": b""}), "no bundle has a file of that name"),
    "a link": (lambda path: _packed(path, {"bundle.json": b"/etc/passwd"}, attributes=(stat.S_IFLNK | 0o777) << 16), "is a link"),
    "a file twice": (_twice, "occurs twice"),
    "a file where a folder is named": (
        lambda path: _packed(path, {"rubrics/a/rubric.toml": b"", "rubrics/a/rubric.toml/x": b""}),
        "rubric.toml.*, with one part of the path both a file and a folder",
    ),
    "a folder where a file is named": (
        lambda path: _packed(path, {"rubrics/a/rubric.toml/x": b"", "rubrics/a/rubric.toml": b""}),
        "rubric.toml.*, with one part of the path both a file and a folder",
    ),
    "a bomb": (_bomb, "times its size"),
    "a listing of two gigabytes": (_long_listing, "list of files|not a complete zip file"),
    "cut": (_cut, "not a complete zip file"),
    "damaged": (_damaged, "not a complete zip file"),
    "no zip": (lambda path: path.write_bytes(b"PK\x03\x04 not at all"), "not a complete zip file"),
    "nothing": (Path.touch, "not a complete zip file"),
    "rows without end": (_rows_without_end, "rows, more than it has bytes"),
    "JSON of 64 MiB": (
        lambda path: _packed(path, {"bundle.json": b" " * (BUNDLE_JSON_BYTES + 1)}, compression=zipfile.ZIP_DEFLATED),
        "allowed for JSON",
    ),
    "no declaration": (lambda path: _packed(path, {"rubrics/a/rubric.toml": b""}), "not a bundle that this Salon reads"),
    "another form": (lambda path: _packed(path, {"bundle.json": b'{"format": 2}'}), "says format 2"),
    "a folder that leads out": (
        lambda path: _packed(path, {"bundle.json": b'{"format": 1, "folder": "../../etc"}'}), "is not in it",
    ),
    "a folder with a link": (_folder_with(_link_out), "neither a file nor a folder"),
    "a folder with a pipe": (_folder_with(lambda folder: os.mkfifo(folder / "x")), "neither a file nor a folder"),
    "a folder with something else": (_folder_with(lambda folder: (folder / "x.py").touch()), "no bundle has a file of that name"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "said"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_bundle_is_refused_and_nothing_stands_beside(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    make(tmp_path / "b.zip")
    before = {path for path in tmp_path.rglob("*") if "unpacked" not in path.parts}
    with pytest.raises(InputError, match=said):
        open_bundle(tmp_path / "b.zip", tmp_path / "unpacked" / "here")
    assert {path for path in tmp_path.rglob("*") if "unpacked" not in path.parts} == before
    assert {path.name for path in (tmp_path / "unpacked").glob("*")} <= {"here"}
