"""Rows of recorded replies as they stand in JSONL, CSV or Parquet files, and the template that rebuilds a reply from columns."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import InputError, SourceError
from schemas.input_budget import JSON_FILE_BYTES, ROW_BYTES, object_of
from schemas.json_text import RepeatedKeyError, loads, refuse_repeated_keys
from schemas.pointers import MISSING, look_up
from tasks.delimited import delimited, separated_otherwise
from tasks.lake.row_groups import rows_at_once
from tasks.regular_files import content_of, opened

_ROWS_PER_BATCH = 5_000
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.\[\]-]*)(\|text)?\}")
_SUFFIXES = {".jsonl": "JSONL", ".ndjson": "JSONL", ".json": "JSON", ".csv": "CSV", ".parquet": "Parquet"}
_Rows = Iterator[tuple[int, Mapping[str, Any] | str]]
"""(number from 1, the row or what is wrong with it)."""


class CannotRebuildError(Exception):
    """A row lacks what the template needs; the text says what."""


def read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any] | str]]:
    """(where it stands, the row, or what is wrong with it) for every row of a file, or of the files of a folder.

    Raises SourceError where a file as a whole cannot be read.
    """
    for file in _files(path):
        kind = _SUFFIXES.get(file.suffix.lower())
        if kind is None:
            raise SourceError(
                f"{file}: recorded replies must be in a file of type {', '.join(sorted(_SUFFIXES))}; convert the file"
            )
        reader = {"JSONL": _jsonl, "JSON": _json, "CSV": _csv, "Parquet": _parquet}[kind]
        try:
            for number, row in reader(file):
                yield f"{file.name}, row {number}", row
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"{file} cannot be read as {kind}: {error}") from error


def separators(path: Path) -> list[str]:
    """What is said of those of the files whose cells no comma separates."""
    return [said for file in _files(path) if (said := separated_otherwise(file, file.name))]


def parquet_columns(path: Path) -> list[str]:
    """Column names of a Parquet file or of the first one of a folder; empty for other files."""
    first = _files(path)[0]
    if first.suffix.lower() != ".parquet":
        return []
    try:
        return list(pq.read_schema(first).names)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{first} cannot be read as Parquet: {error}") from error


def check_template(template: str) -> None:
    """Raise InputError where a template has no placeholder, so that every reply would be the same."""
    if not _PLACEHOLDER.search(template):
        raise InputError(
            f"recorded.template = {template[:80]!r} names no column; write {{column}} for a value as JSON, "
            "{column|text} for bare text"
        )


def rebuild(template: str, row: Mapping[str, Any], columns: Mapping[str, str]) -> str:
    """The reply a row stands for, in one pass: what a value holds is never looked at again.

    `{column}` is the value as JSON (text quoted and escaped), `{column|text}` the text as it is; a column is a name of
    `columns` or a path in the row. Raises CannotRebuildError.
    """

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        value = look_up(row, columns.get(name, name))
        if value is MISSING:
            raise CannotRebuildError(f"has no {name}")
        if match[2]:
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                raise CannotRebuildError(f"holds no text in {name}")
            return value if isinstance(value, str) else as_json(value, name)
        return as_json(value, name)

    return _PLACEHOLDER.sub(fill, template)


def as_json(value: object, name: str) -> str:
    """A value as JSON text. Raises CannotRebuildError where JSON has no such value (NaN, a date)."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise CannotRebuildError(f"holds a value in {name} that JSON cannot represent") from error


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in _SUFFIXES)
        if not files:
            raise SourceError(f"{path}: no file of recorded replies ({', '.join(sorted(_SUFFIXES))}) in this folder")
        return files
    if not path.is_file():
        raise SourceError(f"{path}: no such file of recorded replies; check the path")
    return [path]


def _jsonl(file: Path) -> _Rows:
    with opened(file) as lines:
        for number, line in enumerate(iter(lambda: lines.readline(ROW_BYTES + 1), b""), 1):
            if len(line) > ROW_BYTES:
                yield number, f"is longer than {ROW_BYTES:,} bytes"
                while not line.endswith(b"\n") and (line := lines.readline(ROW_BYTES)):
                    pass
            elif text := (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip():
                yield number, _object(text)


def _object(text: bytes) -> Mapping[str, Any] | str:
    try:
        return object_of(_loads(text))
    except RepeatedKeyError as error:
        return f"is ambiguous: {error}"
    except ValueError as error:
        return f"is not a JSON object on one line: {error}"


def _loads(text: bytes) -> Any:
    """JSON, and NaN or Infinity where Python's own writer has put one. Raises ValueError, RepeatedKeyError among them."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        if b"NaN" not in text and b"Infinity" not in text:
            raise
    else:
        refuse_repeated_keys(text)
        return found
    try:
        found = loads(text.decode())
        orjson.dumps(found)  # what JSON cannot say but for these: half a surrogate pair, a number of many digits
    except (RecursionError, TypeError) as error:
        raise ValueError(str(error)) from error
    return found


def _json(file: Path) -> _Rows:
    """A list of objects, which is read whole; or objects line by line, whatever the file is called."""
    is_list = content_of(file, ROW_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["
    if not is_list:
        yield from _jsonl(file)
        return
    content = content_of(file, JSON_FILE_BYTES + 1)
    if len(content) > JSON_FILE_BYTES:
        raise SourceError(
            f"{file}: a JSON list of more than {JSON_FILE_BYTES:,} bytes; write it as JSON Lines, one object per line"
        )
    try:
        rows = _loads(content.removeprefix(b"\xef\xbb\xbf"))
    except RepeatedKeyError as error:
        raise SourceError(f"{file}: ambiguous: {error} in one object; keep one of them") from error
    except ValueError as error:
        raise SourceError(f"{file}: not a JSON list: {error}") from error
    for number, row in enumerate(rows, 1):
        yield number, object_of(row)


def _csv(file: Path) -> _Rows:
    return ((number, row) for number, row, _ in delimited(file, str(file), empty=""))


def _parquet(file: Path) -> _Rows:
    number = 0
    opened(file).close()  # what follows opens it by its name, several times
    with pq.ParquetFile(file) as parquet:
        for group, n_rows in enumerate(rows_at_once(file, parquet.metadata, None, str(file), _ROWS_PER_BATCH)):
            for batch in parquet.iter_batches(n_rows, row_groups=[group]):
                for row in _values(batch):
                    number += 1
                    yield number, row


def _values(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The batch's rows. A value that Python cannot hold (a year 10000, a duration of 2^62 s) is missing in its row alone."""
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except Exception:  # noqa: BLE001  types of Parquet raise what Python's raise: ValueError, OverflowError, KeyError
        return [_row(batch, index) for index in range(batch.num_rows)]
    return rows


def _row(batch: pa.RecordBatch, index: int) -> dict[str, Any]:
    row = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        with suppress(Exception):
            row[name] = column[index].as_py()
    return row
