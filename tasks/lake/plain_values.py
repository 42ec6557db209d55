"""A column's values, one by one from where they stand in a Parquet file: those of uncompressed plain pages, as pictures lie in.

Arrow reads pages, copies what is in them into memory that is new each time, and twice: for pictures that is half of what their
digests cost. How pictures are written: atomic_files.py. What is laid out otherwise is left to Arrow.
"""

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

_HEADER_BYTES = 256
"""Read to find a page's header; ours take some 30. One with more in it, such as values as statistics, is Arrow's."""
_LENGTH_BYTES = 4
# parquet.thrift: PageHeader's and DataPageHeader's fields, and what ours say
_KIND, _N_UNPACKED, _N_BYTES, _DATA_PAGE = 1, 2, 3, 5
_ENCODING, _LEVELS_ENCODING = 2, 3
_IS_DATA_PAGE, _PLAIN, _RLE = 0, 0, 3
_TRUE, _FALSE, _INTEGERS, _BYTES, _STRUCT = 1, 2, (4, 5, 6), 8, 12


class PlainValues:
    """The values of one column of byte arrays. Threads may read at the same time.

    The footer is believed: who opens a part has held it against its marker. A value is not: it has a digest of its own.
    """

    def __init__(self, path: Path, file: pq.ParquetFile, column: str) -> None:
        self._metadata = file.metadata
        schema = self._metadata.schema
        self._column = next(index for index in range(len(schema)) if schema.column(index).path == column)
        said = schema.column(self._column)
        self._has_levels = said.max_definition_level > 0 and said.max_repetition_level == 0
        self._places: dict[int, list[tuple[int, int]]] = {}
        self._file = path.open("rb", buffering=0)

    def read(self, group: int, row: int) -> bytes | None:
        """The value of a row; None where the row group is laid out otherwise, or lacks a value. Raises OSError."""
        if group not in self._places:
            self._places[group] = self._found(group)
        places = self._places[group]
        return os.pread(self._file.fileno(), places[row][1], places[row][0]) if places else None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _found(self, group: int) -> list[tuple[int, int]]:
        """Where each of a row group's values begins, and its length."""
        rows = self._metadata.row_group(group)
        chunk = rows.column(self._column)
        if not self._has_levels or chunk.compression != "UNCOMPRESSED" or chunk.has_dictionary_page:
            return []
        try:
            places = self._walked(chunk.data_page_offset, chunk.total_compressed_size)
        except (ValueError, LookupError):
            return []
        return places if len(places) == rows.num_rows else []

    def _walked(self, at: int, n_bytes: int) -> list[tuple[int, int]]:
        """The same by the pages' headers and the length before each value. Raises where they are not as expected."""
        places, end = list[tuple[int, int]](), at + n_bytes
        while at < end:
            header, n_header = _struct(os.pread(self._file.fileno(), _HEADER_BYTES, at), 0)
            page = header[_DATA_PAGE]
            if header[_KIND] != _IS_DATA_PAGE or page[_ENCODING] != _PLAIN or page[_LEVELS_ENCODING] != _RLE:
                raise ValueError("a page of another kind")
            if header[_N_BYTES] != header[_N_UNPACKED]:
                raise ValueError("a page that is packed")
            at += n_header
            page_end = at + header[_N_BYTES]
            at += _LENGTH_BYTES + self._length(at)  # the levels, which say whether a value is there
            while at < page_end:
                n = self._length(at)
                places.append((at + _LENGTH_BYTES, n))
                at += _LENGTH_BYTES + n
            if at != page_end:
                raise ValueError("a page whose values do not end where it does")
        return places

    def _length(self, at: int) -> int:
        return int.from_bytes(os.pread(self._file.fileno(), _LENGTH_BYTES, at), "little")


def _struct(content: bytes, at: int) -> tuple[dict[int, Any], int]:
    """A struct of Thrift's compact protocol by its fields' numbers, and where it ends. Texts are passed over."""
    fields, number = dict[int, Any](), 0
    while (start := content[at]) != 0:
        at += 1
        step, kind = start >> 4, start & 15
        if step:
            number += step
        else:
            number, at = _integer(content, at)
        if kind in _INTEGERS:
            fields[number], at = _integer(content, at)
        elif kind == _STRUCT:
            fields[number], at = _struct(content, at)
        elif kind == _BYTES:
            n, at = _varint(content, at)
            at += n
        elif kind not in (_TRUE, _FALSE):
            raise ValueError(f"a field of kind {kind}")
    return fields, at + 1


def _integer(content: bytes, at: int) -> tuple[int, int]:
    raw, at = _varint(content, at)
    return (raw >> 1) ^ -(raw & 1), at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
