"""Reader `imagefolder`: the Hugging Face folder whose metadata.jsonl, .csv or .parquet files name the images beside them.

A folder without any metadata file is read image by image; a row then has the columns `file_name` and `folder` alone.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from schemas.errors import SourceError
from tasks.ingest.paths import RefusedPath, locate
from tasks.ingest.readers.manifest import row_of
from tasks.ingest.readers.tables import records
from tasks.ingest.rows import DatasetReader, RawRow, columns_read
from tasks.ingest.sources import ResolvedSource

METADATA = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


def read_rows(source: ResolvedSource) -> Iterator[RawRow]:
    """Rows of every metadata file below the folder, folders in order of name; else every image below it."""
    if not source.path.is_dir():
        raise SourceError(f"source {source.name!r}: {source.path} is not a folder; the manifest reader reads a single file")
    metadata = [place for place in files_below(source.path) if Path(place).name in METADATA]
    if not metadata:
        yield from _bare_images(source)
    _refuse_two_in_a_folder(source, metadata)
    wanted = columns_read(source) | {"file_name"}
    for place in metadata:
        path = locate(source.path, place)
        if isinstance(path, RefusedPath):
            raise SourceError(f"source {source.name!r}: {path.detail}")
        folder = Path(place).parent.as_posix()
        for record in records(path, source.key(place), wanted):
            yield row_of(record, place, "" if folder == "." else folder)


def files_below(root: Path) -> Iterator[str]:
    """Every file below the root as a path relative to it, in order; hidden files and folders are left out."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        place = Path(folder).relative_to(root).as_posix()
        for name in sorted(files):
            if not name.startswith("."):
                yield name if place == "." else f"{place}/{name}"


def _bare_images(source: ResolvedSource) -> Iterator[RawRow]:
    images = (place for place in files_below(source.path) if Path(place).suffix.lower() in IMAGE_SUFFIXES)
    for number, place in enumerate(images, 1):
        folder = Path(place).parent.name
        yield RawRow({"file_name": place, "folder": folder or None}, file=place, number=number, key=place)


def _refuse_two_in_a_folder(source: ResolvedSource, metadata: list[str]) -> None:
    folders = [Path(place).parent for place in metadata]
    for folder in folders:
        if folders.count(folder) > 1:
            names = ", ".join(Path(place).name for place in metadata if Path(place).parent == folder)
            raise SourceError(f"source {source.name!r}: {source.path / folder} holds {names}; which one counts? Keep one")


READER = DatasetReader(read_rows, columns={"image": "file_name"})
