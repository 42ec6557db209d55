"""Reader `huggingface`: a Parquet file, or a folder of them, with an Image column (a struct of bytes and path).

Rows get a column `split`, where the file has none of that name: from `train-00000-of-00002.parquet`, from the folder
the file stands in, or from the file's own name.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from schemas.errors import SourceError
from tasks.ingest.paths import RefusedPath, locate
from tasks.ingest.readers.imagefolder import files_below
from tasks.ingest.readers.manifest import row_of
from tasks.ingest.readers.tables import records
from tasks.ingest.rows import DatasetReader, RawRow, columns_read
from tasks.ingest.sources import ResolvedSource

_SHARD_OF_SPLIT = re.compile(r"(.+)-\d+-of-\d+(?:-[0-9a-f]+)?")


def read_rows(source: ResolvedSource) -> Iterator[RawRow]:
    """Rows of every Parquet file, files in order of path, streamed in small batches."""
    wanted = columns_read(source) | {"split"}
    for place in _parquet_files(source):
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


def _parquet_files(source: ResolvedSource) -> list[str]:
    if source.path.is_file():
        return [source.path.name]
    found = [place for place in files_below(source.path) if place.endswith(".parquet")]
    if not found:
        raise SourceError(f"source {source.name!r}: {source.path} holds no .parquet file; name the folder that does")
    return found


READER = DatasetReader(read_rows)
