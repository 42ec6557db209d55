"""Readers of Hugging Face's two layouts: `huggingface`, Parquet files with an Image column, and `imagefolder`.

`huggingface` reads a file, or a folder of them; the column is a struct of bytes and path. Rows get a column `split`, where the
file has none of that name: from `train-00000-of-00002.parquet`, from the folder the file stands in, or from the file's own name.

`imagefolder` reads the folder whose metadata.jsonl, .csv or .parquet files name the images beside them. One without any
metadata file is read image by image; a row then has the columns `file_name`, `folder`, and `stem` with its parts `stem_text` and
`stem_number`.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from schemas.errors import SourceError
from schemas.records import IMAGE
from tasks.ingest.left_out import LeftOut, RealPlaces, left_out_of, number_of
from tasks.ingest.paths import RefusedPath, locate
from tasks.ingest.readers.tables import records, row_of, separators
from tasks.ingest.rows import DatasetReader, RawRow, columns_read, paths_in, pointers
from tasks.ingest.source_files import IMAGE_SUFFIXES, files_below, files_of
from tasks.ingest.sources import ResolvedSource
from tasks.ingest.values import numbered

_SHARD_OF_SPLIT = re.compile(r"(.+)-\d+-of-\d+(?:-[0-9a-f]+)?")

METADATA = ("metadata.jsonl", "metadata.csv", "metadata.parquet")


def _parquet_rows(source: ResolvedSource) -> Iterator[RawRow]:
    """Rows of every Parquet file, files in order of path, streamed in small batches."""
    wanted = columns_read(source) | {"split"}
    for place in files_of(source, ".parquet", "; name the folder that does"):
        path = locate(source.root, place)
        if isinstance(path, RefusedPath):
            raise SourceError(f"source {source.name!r}: {path.detail}")
        split = split_of(place)
        for number, values, columns in records(path, source.key(place), wanted):
            named = values if isinstance(values, str) else {"split": split} | values
            yield row_of((number, named, columns), place)


def split_of(place: str) -> str:
    """The split a file's place names."""
    path = Path(place)
    shard = _SHARD_OF_SPLIT.fullmatch(path.stem)
    if shard:
        return shard[1]
    folder = path.parent.name
    return folder if folder not in {"", "data"} else path.stem


def _folder_rows(source: ResolvedSource) -> Iterator[RawRow]:
    """Rows of every metadata file below the folder, folders in order of name; else every image below it."""
    if not source.path.is_dir():
        raise SourceError(f"source {source.name!r}: {source.path} is not a folder; the manifest reader reads a single file")
    metadata = _metadata_of(source)
    if not metadata:
        yield from _bare_images(source)
    _refuse_two_in_a_folder(source, metadata)
    yield from _listed_images(source, metadata)


def _metadata_of(source: ResolvedSource) -> list[str]:
    return [place for place in files_below(source.path) if place.rpartition("/")[2] in METADATA]


def _listed_images(source: ResolvedSource, metadata: Sequence[str]) -> Iterator[RawRow]:
    wanted = columns_read(source) | {"file_name"}
    for place in metadata:
        path = locate(source.path, place)
        if isinstance(path, RefusedPath):
            raise SourceError(f"source {source.name!r}: {path.detail}")
        folder = Path(place).parent.as_posix()
        for record in records(path, source.key(place), wanted):
            yield row_of(record, place, "" if folder == "." else folder)


def _bare_images(source: ResolvedSource) -> Iterator[RawRow]:
    images = (place for place in files_below(source.path) if Path(place).suffix.lower() in IMAGE_SUFFIXES)
    for number, place in enumerate(images, 1):
        path = PurePosixPath(place)
        text, number_behind = numbered(path.stem)
        values = {
            "file_name": place, "stem": path.stem, "stem_text": text, "stem_number": number_behind,
            "folder": path.parent.name or None,
        }  # fmt: skip
        yield RawRow(values, file=place, number=number, key=place)


def _left_out(source: ResolvedSource) -> LeftOut:
    """Files of another kind, and pictures that no metadata file names; nothing where the benchmark file wants no picture."""
    metadata = _metadata_of(source)
    if not metadata:
        return left_out_of(source, None)
    said = separators(source, metadata)
    image = pointers(source, _COLUMNS).get(IMAGE)
    places = [*([image] if image else []), *(at for _, at in source.pictures)]
    if not places:
        return LeftOut(source.name, separators=said)
    named, real = array("q"), RealPlaces(source.root)
    for row in _listed_images(source, metadata):
        named.extend(number_of(real.of(row.folder, path)) for path in paths_in(row, source, places))
    return replace(left_out_of(source, named, metadata), separators=said)


def _refuse_two_in_a_folder(source: ResolvedSource, metadata: list[str]) -> None:
    folders = [Path(place).parent for place in metadata]
    for folder in folders:
        if folders.count(folder) > 1:
            names = ", ".join(Path(place).name for place in metadata if Path(place).parent == folder)
            raise SourceError(f"source {source.name!r}: {source.path / folder} holds {names}; keep only one of them")


_COLUMNS = {IMAGE: "file_name"}
IMAGEFOLDER = DatasetReader(_folder_rows, _COLUMNS, _left_out)
HUGGINGFACE = DatasetReader(_parquet_rows)
