"""Delimited text, CSV and TSV, into cells by column: one reading for manifests, ratings, votes, sheets and recorded replies.

What separates the cells of a CSV is seen in its header. Which column is which is decided elsewhere; what is said where one is
not there stands here too.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from schemas.errors import SourceError
from schemas.input_budget import CSV_COLUMNS, CSV_ROW_CHARACTERS, ROW_BYTES
from tasks.regular_files import opened

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
_QUOTED = re.compile(r'(?<![^,;\t\r\n])"(?:[^"]|"")*"?')
_STATED = re.compile(r'"?sep=([,;\t])"?(?=[\r\n])')  # the line by which Excel is told the separator, before the header
_HEADER_CHARACTERS = 65_536
_ALIKE = 0.75  # "promt" and "prompt" are

csv.field_size_limit(CSV_ROW_CHARACTERS)  # the library's 128 KB is less than a long conversation


def delimited(path: Path, name: str, empty: str | None = None) -> Iterator[tuple[int, dict[str, Any] | str, tuple[str, ...]]]:
    """(number from 1, the row by column or what is wrong with it, the columns) of every row. `empty`: what an empty cell is.

    `name` is what messages call the file. Raises SourceError where it, or its header, cannot be read.
    """
    number = 0
    try:
        with _opened(path) as file:
            separator = separator_of(file, path, name)
            rows = _rows(file, separator)
            header = _checked(next(rows, None), name)
            for cells in rows:
                if cells:
                    number += 1
                    problem = _problem(header, cells, separator)
                    yield number, problem or {at: cell or empty for at, cell in zip(header, cells, strict=True)}, header
    except csv.Error as error:
        advice = "a quote may be left open, or not be doubled inside a quoted cell"
        raise SourceError(f"{name}, row {number + 1} is not valid CSV ({error}); {advice}") from error
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error.strerror or error}") from error


def separated_otherwise(path: Path, name: str) -> str | None:
    """A note where the file is a CSV whose cells no comma separates; None too where it cannot be read: its reader says so."""
    if path.suffix.lower() != ".csv":
        return None
    try:
        with _opened(path) as file:
            separator = separator_of(file, path, name)
    except (OSError, SourceError):
        return None
    return None if separator == "," else f"{name} is read with a {SEPARATORS[separator]} as separator, as in its header"


def separator_of(file: TextIO, path: Path, name: str) -> str:
    """What separates the cells: of .tsv the tab, else what stands in the header outside quotes; the comma where nothing does.

    `file` stands before the header then, behind a line such as `sep=;` that says what separates. Raises SourceError where several
    stand in the header: which of them is part of a name cannot be told.
    """
    if path.suffix.lower() == ".tsv":
        return "\t"
    beginning = file.read(_HEADER_CHARACTERS)
    file.seek(0)
    if stated := _STATED.match(beginning):
        file.readline()
        return stated[1]
    header = re.split(r"[\r\n]", _QUOTED.sub("", beginning), maxsplit=1)[0]
    found = [one for one in SEPARATORS if one in header]
    if len(found) > 1:
        several = " and a ".join(SEPARATORS[one] for one in found)
        raise SourceError(
            f"{name}, row 0 has a {several} outside quotes, but only one can separate the columns; quote the names that "
            'contain the other ("a;b")'
        )
    return found[0] if found else ","


def columns_told(there: Iterable[object], wanted: Sequence[str] = ()) -> str:
    """The columns that are there, for a message; and of each that is wanted the one that looks most like it."""
    names = [str(one).encode("utf-8", "backslashreplace").decode() for one in there]
    shown = ", ".join(one[:60] for one in names[:40]) + (f" and {len(names) - 40} more" if len(names) > 40 else "")
    near = {one: found for one in wanted if (found := _nearest(one, names)) is not None}
    meant = ", ".join(f'{one} = "{found[:60]}"' for one, found in near.items())
    return shown + (f" (did you mean {meant}?)" if meant else "")


def _nearest(wanted: str, there: Sequence[str]) -> str | None:
    by_word = {one.strip().casefold(): one for one in reversed(there) if one != wanted}
    found = get_close_matches(wanted.casefold(), by_word, n=1, cutoff=_ALIKE)
    return by_word[found[0]] if found else None


def _rows(file: TextIO, separator: str) -> Iterator[list[str]]:
    """The cells of each row, whose lines together are no longer than may be looked at. Raises csv.Error."""
    n_left = CSV_ROW_CHARACTERS

    def lines() -> Iterator[str]:
        nonlocal n_left
        while line := file.readline(n_left + 1):
            n_left -= len(line)
            if n_left < 0:
                raise csv.Error(f"longer than {CSV_ROW_CHARACTERS:,} characters")
            yield line

    for cells in csv.reader(lines(), delimiter=separator, strict=True):
        n_left = CSV_ROW_CHARACTERS
        yield cells


def _opened(path: Path) -> TextIO:
    """newline="": LF, CRLF and the lone CR of old Macs all end a row, and stay as they are inside quotes.

    A byte that is not UTF-8 comes as half a character, and costs its row alone.
    """
    return TextIOWrapper(opened(path), encoding="utf-8-sig", errors="surrogateescape", newline="")


def _checked(header: list[str] | None, name: str) -> tuple[str, ...]:
    if not header:
        raise SourceError(f"{name} is empty, or begins with a blank line; its first row names the columns")
    if len(header) > CSV_COLUMNS:
        raise SourceError(f"{name}, row 0 names {len(header):,} columns; at most {CSV_COLUMNS:,} are allowed")
    if not _is_utf8(header):
        raise SourceError(f"{name}, row 0 is not UTF-8; save the file as UTF-8")
    repeated = sorted(column for column, n in Counter(header).items() if n > 1 and column)
    if repeated:
        raise SourceError(f"{name}, row 0 names the column {repeated[0]!r} twice; give each column its own name")
    return tuple(header)


def _problem(header: Sequence[str], cells: list[str], separator: str) -> str | None:
    if len(cells) != len(header):
        one = f"a cell with a line break or a {SEPARATORS[separator]} may lack quotes"
        return f"has {len(cells)} cells, but the header has {len(header)}; {one}"
    if sum(map(len, cells)) > ROW_BYTES:
        return f"is longer than {ROW_BYTES} characters"
    return None if _is_utf8(cells) else "holds a byte that is not UTF-8"


def _is_utf8(cells: list[str]) -> bool:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True
