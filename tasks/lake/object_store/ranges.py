"""Some of a part's bytes: its columns without pictures, or one row group's pictures. Whole parts: partitions.py.

What is read so is held against the length that the marker says and against Parquet's own structure, not against the sha256.
"""

import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import CorruptLakeError
from schemas.tables.stored import PICTURES, SAMPLES
from schemas.tables.table import Table
from tasks.lake.atomic_files import write_parquet
from tasks.lake.object_store.client import Bucket, each
from tasks.lake.object_store.partitions import STAGING, object_name

SLIM = "without_pictures"
PICTURE = "image"
_BYTES = f"{PICTURE}.bytes"  # as Parquet names the column inside


class RangedObject(io.RawIOBase):
    """An object as a file that can be read here and there; each read is a request."""

    def __init__(self, bucket: Bucket, path: str, n_bytes: int) -> None:
        self._bucket, self._path, self._n_bytes, self._at = bucket, path, n_bytes, 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Begin the next read elsewhere."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._n_bytes}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the object goes."""
        into = memoryview(buffer)
        n = max(0, min(len(into), self._n_bytes - self._at))
        if n:
            into[:n] = self._bucket.get_range(self._path, self._at, n)
        self._at += n
        return n


def has_pictures(table: Table) -> bool:
    """Whether rows of this table hold pictures, as those of `samples` did in older lakes: most of its bytes."""
    return table.name in {PICTURES.name, SAMPLES.name}


def opened(bucket: Bucket, root: Path, folder: Path, entry: Mapping[str, Any]) -> pq.ParquetFile:
    """A part to read some of, whether it was fetched or not. Raises CorruptLakeError where it is cut, StoreError where gone."""
    path = folder / entry["name"]
    if path.is_file() and path.stat().st_size == entry["n_bytes"]:
        return pq.ParquetFile(path)
    name = f"{folder.relative_to(root).as_posix()}/{object_name(entry)}"
    try:
        # Columns that stand beside one another are read with one request.
        return pq.ParquetFile(RangedObject(bucket, name, entry["n_bytes"]), pre_buffer=True)
    except pa.ArrowException as error:
        raise _cut(bucket, name, error) from error


def bring_slim(bucket: Bucket, root: Path, folder: Path, entries: Iterable[Mapping[str, Any]]) -> list[Path]:
    """Files of the same rows without the bytes of pictures, made of ranges of the parts where they are not here yet."""

    def bring(entry: Mapping[str, Any]) -> Path:
        path: Path = root / SLIM / folder.relative_to(root) / entry["sha256"][:16] / entry["name"]
        if not path.is_file():
            with opened(bucket, root, folder, entry) as file:
                schema = file.schema_arrow  # `metadata.schema` would make a circle with its footer, a megabyte
                of_picture = [f"{PICTURE}.{field.name}" for field in schema.field(PICTURE).type]
                columns = [*(name for name in schema.names if name != PICTURE), *of_picture]
                try:
                    table = file.read([name for name in columns if name != _BYTES])
                except pa.ArrowException as error:
                    raise _cut(bucket, f"{folder.name}/{entry['name']}", error) from error
            write_parquet(table, path, root / STAGING)
        return path

    return each(bring, entries)


def _cut(bucket: Bucket, name: str, error: Exception) -> CorruptLakeError:
    return CorruptLakeError(
        f"{bucket.url}/{name} is not the file its marker says ({str(error)[:200]}); restore it, or delete its partition and its "
        "marker in the bucket and run again"
    )
