"""Opening a bundle that a stranger sent: a zip or a folder, of which nothing is believed. What is in one is bundle.py.

Nothing is written but files of the names that bundles have, below the folder that is given; nothing is followed; what unpacks
to more than the budget is refused before it is read (schemas/input_budget.py).
"""

import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from errno import EEXIST, EISDIR, ENOTDIR
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import InputError, SourceError
from schemas.input_budget import BUNDLE_BYTES, BUNDLE_JSON_BYTES, BUNDLE_LISTING_BYTES, BUNDLE_UNPACKED
from tasks.lake.row_groups import rows_at_once
from tasks.publish.folders import LAYOUT
from tasks.verify.bundle import DECLARATION, FORMAT, NAMES, PUBLISHED, RUBRICS, BundleName
from tasks.verify.publication import read_json

_FOUND_BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, ValueError, OverflowError)
"""What the library raises for a file that is no zip, is cut, is encrypted, or is packed in a way that it does not know."""


@dataclass(frozen=True, slots=True)
class OpenedBundle:
    """A bundle as a lake of its own: its root, what it says it is, and the published folder in it."""

    root: Path
    name: BundleName

    @property
    def folder(self) -> Path:
        """The published folder."""
        return self.root / "publish" / LAYOUT / self.name.folder

    @property
    def rubrics(self) -> Path:
        """The folder of its rubrics."""
        return self.root / RUBRICS


def is_bundle(place: Path) -> bool:
    """Whether it is a file, or a folder with a bundle's declaration in it."""
    return place.is_file() or (place / DECLARATION).is_file()


def open_bundle(place: Path, scratch: Path) -> OpenedBundle:
    """A bundle's files, a zip's written below `scratch`. Raises InputError that says what in it is not as a bundle has it."""
    if place.is_file():
        _unpack(place, scratch)
        root = scratch
    else:
        root = place.resolve()
        for name in _below(root):
            _check_name(place, name)
    for path in sorted(root.rglob("*")):
        if path.is_file():
            _check_file(path, f"{place}: {path.relative_to(root).as_posix()}")
    return OpenedBundle(root, _declared(root, place))


def _declared(root: Path, place: Path) -> BundleName:
    said = read_json(root / DECLARATION) or {}
    if said.get("format") != FORMAT:
        raise InputError(
            f"{place} is not a bundle that this Salon reads: {DECLARATION} says format {str(said.get('format'))[:20]}, but "
            f"format {FORMAT} is needed; write one with salon export --to bundle"
        )
    folder = str(said.get("folder"))
    if not re.fullmatch(PUBLISHED, folder) or not (root / "publish" / LAYOUT / folder).is_dir():
        raise InputError(f"{place}: {DECLARATION} names the published folder {folder[:200]!r}, which is not in it")
    code, release = (str(said.get(key))[:100] for key in ("code_version", "release"))
    return BundleName(folder, said.get("has_pictures") is True, code, release)


def _check_name(place: Path, name: str) -> None:
    if not NAMES.fullmatch(name):
        raise InputError(f"{place} holds {name[:200]!r}, but no bundle has a file of that name; nothing of it was read")


def _below(root: Path) -> Iterator[str]:
    """Every file's name below a folder. A link, a pipe, a device is refused: none is followed."""
    for folder, inside, files in os.walk(root):
        for one in [*inside, *files]:
            path = Path(folder, one)
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise InputError(f"{path} is neither a file nor a folder; links are not allowed in a bundle")
        yield from (Path(folder, one).relative_to(root).as_posix() for one in files)


class _Bounded(io.FileIO):
    """A zip of which nothing is read at once that is larger than its list of files may be."""

    def read(self, size: int | None = -1) -> bytes:
        """As the library asks for it."""
        if size is not None and size > BUNDLE_LISTING_BYTES:
            raise InputError(f"{self.name!s}: its list of files has {size:,} bytes; at most {BUNDLE_LISTING_BYTES:,} are allowed")
        return super().read(-1 if size is None else size) or b""


def _unpack(place: Path, scratch: Path) -> None:
    """Each file of a zip below `scratch`, counted as it comes: what a header says of its size is not believed."""
    left = max(BUNDLE_BYTES, place.stat().st_size * BUNDLE_UNPACKED)
    seen: set[str] = set()
    try:
        with _Bounded(place) as file, zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if entry.filename.endswith("/") and entry.file_size == 0:
                    continue  # a folder, as other programs write them
                _check_name(place, entry.orig_filename)
                if kind not in (0, stat.S_IFREG) or entry.filename != entry.orig_filename or entry.filename in seen:
                    raise InputError(f"{place}: {entry.filename} is a link, or occurs twice; a bundle holds each file once")
                seen.add(entry.filename)
                with archive.open(entry) as packed:
                    left -= _write(packed, scratch / entry.filename, left, place)
    except _FOUND_BROKEN as error:
        raise InputError(
            f"{place} is not a complete zip file: {' '.join(str(error).split())[:200]}; download it again"
        ) from error


def _write(packed: IO[bytes], target: Path, left: int, place: Path) -> int:
    n_bytes = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        opened = target.open("xb")
    except OSError as error:
        if error.errno not in (EEXIST, ENOTDIR, EISDIR):
            raise
        said = f"{place} holds {str(packed.name)[:200]!r}, with one part of the path both a file and a folder: {error.strerror}"
        raise InputError(f"{said}; no bundle does, and nothing of it was read") from error
    with opened as file:
        while block := packed.read(1 << 20):
            n_bytes += len(block)
            if n_bytes > left:
                raise InputError(
                    f"{place} unpacks to more than {BUNDLE_UNPACKED} times its size, and more than {BUNDLE_BYTES:,} bytes; no "
                    "bundle does, and nothing of it was read"
                )
            file.write(block)
    return n_bytes


def _check_file(path: Path, name: str) -> None:
    """Raise InputError where a file asks for more than is read: JSON by its size, Parquet by what its footer says."""
    if path.suffix == ".json" and path.stat().st_size > BUNDLE_JSON_BYTES:
        raise InputError(f"{name} has {path.stat().st_size:,} bytes; at most {BUNDLE_JSON_BYTES:,} are allowed for JSON")
    if path.suffix != ".parquet":
        return
    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows > path.stat().st_size:
                raise InputError(f"{name} claims {file.metadata.num_rows:,} rows, more than it has bytes")
            for _ in rows_at_once(path, file.metadata, None, name):  # it raises where one unpacks to too much
                pass
    except SourceError as error:
        raise InputError(str(error)) from error
    except (pa.ArrowException, OSError):
        return  # no Parquet at all: verifying says which table cannot be read
