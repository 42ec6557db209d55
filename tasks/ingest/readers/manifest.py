"""Reader `manifest`: a JSON Lines, CSV, TSV or Parquet file of rows; image paths are relative to the file's folder."""

from collections.abc import Iterator

from schemas.errors import SourceError
from schemas.statuses import SampleStatus
from tasks.ingest.readers.tables import SUFFIXES, Record, records
from tasks.ingest.rows import DatasetReader, RawRow, columns_read
from tasks.ingest.sources import ResolvedSource


def read_rows(source: ResolvedSource) -> Iterator[RawRow]:
    """The manifest's rows. A folder stands for the one `manifest.*` in it."""
    path = source.path
    if path.is_dir():
        there = sorted(path / f"manifest{suffix}" for suffix in SUFFIXES if (path / f"manifest{suffix}").is_file())
        if len(there) != 1:
            found = ", ".join(one.name for one in there) or "none"
            raise SourceError(f"source {source.name!r}: {path} should hold one manifest ({', '.join(SUFFIXES)}); found {found}")
        path = there[0]
    for record in records(path, source.key(path.name), columns_read(source)):
        yield row_of(record, path.name)


def row_of(record: Record, file: str, folder: str = "") -> RawRow:
    """A record of the file `file` (below the source's root), whose image paths are relative to `folder` there."""
    number, values, columns = record
    key = f"{file}#{number}"
    if isinstance(values, str):
        return RawRow({}, file, number, key, folder, columns, SampleStatus.BAD_VALUE, f"the row {values}")
    return RawRow(values, file, number, key, folder, columns)


READER = DatasetReader(read_rows)
