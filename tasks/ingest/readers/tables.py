"""Files of rows: JSON Lines, CSV, TSV and Parquet, streamed, and JSON; and reader `manifest`, which reads one such file.

Which column is which is decided elsewhere.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from schemas.errors import SourceError
from schemas.input_budget import JSON_FILE_BYTES, LINE_BYTES, ROW_BYTES, object_of
from schemas.json_text import RepeatedKeyError, loads
from schemas.statuses.rows import SampleStatus
from tasks.delimited import delimited, separated_otherwise
from tasks.ingest.left_out import LeftOut
from tasks.ingest.paths import RefusedPath, locate, quote
from tasks.ingest.readers.parquet_rows import parquet_rows
from tasks.ingest.rows import DatasetReader, RawRow, Record, columns_read
from tasks.ingest.sources import ResolvedSource
from tasks.regular_files import content_of, opened

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


def records(path: Path, name: str, columns: set[str]) -> Iterator[Record]:
    """The file's rows in order. `name` is what messages call it; of Parquet only `columns` are read.

    Raises SourceError where the file, or its first row, cannot be read as what its suffix says.
    """
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            return _json_lines(path, name)
        case ".json":
            return _json(path, name)
        case ".csv" | ".tsv":
            return delimited(path, name)  # CSV has no null: an empty cell is one
        case ".parquet":
            return parquet_rows(path, name, columns)
        case suffix:
            allowed = ", ".join(SUFFIXES)
            raise SourceError(f"{name}: the name of a table must end in {allowed}, not in {suffix!r}; rename or convert the file")


def _json_lines(path: Path, name: str) -> Iterator[Record]:
    number, has_rows = 0, False
    try:
        with opened(path) as file:
            while line := file.readline(LINE_BYTES):
                if len(line) == LINE_BYTES:  # the rest of it is passed over
                    while (rest := file.readline(ROW_BYTES)) and not rest.endswith(b"\n"):
                        pass
                # A bare CR cannot stand inside a JSON text, so where there is one, a line ends.
                for piece in line.rstrip(b"\r\n").split(b"\r"):
                    number += 1
                    text = piece.removeprefix(b"\xef\xbb\xbf") if number == 1 else piece
                    if text.strip():
                        try:
                            values = _json_object(text)
                        except RepeatedKeyError as error:
                            values, has_rows = f"is ambiguous: {error}", True
                        if isinstance(values, str) and not has_rows:
                            raise SourceError(f"{name}, row {number} {values}; a .jsonl file holds one JSON object per line")
                        has_rows = True
                        yield number, values, ()
    except OSError as error:
        raise _unreadable(name, error) from error


def _json_object(line: bytes) -> dict[str, Any] | str:
    """The row, or what is wrong with the line. Raises RepeatedKeyError."""
    if len(line) > ROW_BYTES:
        return f"is longer than {ROW_BYTES} bytes"
    try:
        found = loads(line.decode("utf-8"))
    except RepeatedKeyError:
        raise
    except (ValueError, RecursionError) as error:
        return f"is not valid JSON ({quote(str(error))})"
    return object_of(found)


def _json(path: Path, name: str) -> Iterator[Record]:
    """A list of objects, or an object of objects whose keys become the column `__key__`."""
    try:
        content = content_of(path, JSON_FILE_BYTES + 1)
        if len(content) > JSON_FILE_BYTES:
            raise SourceError(f"{name} is longer than {JSON_FILE_BYTES} bytes; write it as .jsonl, one object per line")
        found = loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise _unreadable(name, error) from error
    except RepeatedKeyError as error:
        raise SourceError(f"{name} is ambiguous: {error} in one object; keep one of them") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{name} is not valid JSON ({quote(str(error))})") from error
    if isinstance(found, dict) and found and all(isinstance(row, dict) for row in found.values()):
        found = [{"__key__": key} | row for key, row in found.items()]
    if not isinstance(found, list):
        raise SourceError(f"{name} holds neither a list of objects nor an object of objects; write one object for each row")
    for number, row in enumerate(found, 1):
        yield number, object_of(row), ()


def _unreadable(name: str, error: OSError) -> SourceError:
    return SourceError(f"{name} cannot be read: {error.strerror or error}")


def _manifest_rows(source: ResolvedSource) -> Iterator[RawRow]:
    """The manifest's rows, image paths relative to its folder. A folder stands for the one `manifest.*` in it."""
    path = _manifest_of(source)
    for record in records(path, source.key(path.name), columns_read(source)):
        yield row_of(record, path.name)


def _manifest_of(source: ResolvedSource) -> Path:
    path = source.path
    if path.is_dir():
        names = sorted(f"manifest{suffix}" for suffix in SUFFIXES)
        there = [name for name in names if (path / name).exists() and not (path / name).is_dir()]
        if len(there) != 1:
            found = ", ".join(there) or "none"
            raise SourceError(f"source {source.name!r}: {path} should hold one manifest ({', '.join(names)}); found {found}")
        found_at = locate(path, there[0])
        if isinstance(found_at, RefusedPath):
            raise SourceError(f"source {source.name!r}: {found_at.detail}; name the manifest itself in path, or put it there")
        path = path / there[0]
    return path


def separators(source: ResolvedSource, places: Iterable[str]) -> list[str]:
    """What is said of those of the files below the root whose cells no comma separates."""
    return [said for one in places if (said := separated_otherwise(source.root / one, quote(source.key(one), 60)))]


def _noted(source: ResolvedSource) -> LeftOut:
    return LeftOut(source.name, separators=separators(source, [_manifest_of(source).name]))


def row_of(record: Record, file: str, folder: str = "") -> RawRow:
    """A record of the file `file` (below the source's root), whose image paths are relative to `folder` there."""
    number, values, columns = record
    key = f"{file}#{number}"
    if isinstance(values, str):
        return RawRow({}, file, number, key, folder, columns, SampleStatus.BAD_VALUE, f"the row {values}")
    return RawRow(values, file, number, key, folder, columns)


MANIFEST = DatasetReader(_manifest_rows, left_out=_noted)
