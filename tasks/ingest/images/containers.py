"""What an image file's container says without decoding a pixel: the size it declares, of what parts it is, where it ends."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# In JPEG's coded data FF is followed by 00 (a stuffed FF), D0–D7 (a restart) or FF (fill); anything else is a marker.
_JPEG_MARKER = re.compile(rb"\xff+[^\x00\xd0-\xd7\xff]", re.DOTALL)
_JPEG_SCAN, _JPEG_END, _JPEG_TEM = 0xDA, 0xD9, 0x01
_BLOCK_BYTES = 1024 * 1024  # looked through at once, whatever a file's length
_MAX_PARTS = 150_000  # markers of a JPEG, chunks of a PNG; a file of nothing else would have sixteen million
_WEBP_ANIMATION = 0x02  # flag of VP8X
_TIFF_NUMBERS = frozenset({3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 16, 17, 18})  # field types that become a Python object a number
# Byte order; where the offset of the first directory stands, in how many bytes; bytes of a number of fields and of a field.
_TIFF: Mapping[bytes, tuple[Literal["little", "big"], tuple[int, int], tuple[int, int]]] = {
    b"II*\0": ("little", (4, 4), (2, 12)), b"MM\0*": ("big", (4, 4), (2, 12)),
    b"II+\0": ("little", (8, 8), (8, 20)), b"MM\0+": ("big", (8, 8), (8, 20)),
}  # fmt: skip


def size_declared(content: bytes) -> tuple[int, int] | None:
    """Width and height a WebP file declares; None for any other or a broken header (the decoder will say more)."""
    if len(content) < 30 or content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        return None
    match content[12:16]:
        case b"VP8X":  # canvas, 24 bits each, less one
            return _little(content[24:27]) + 1, _little(content[27:30]) + 1
        case b"VP8 ":  # 14 bits each after the start code
            return _little(content[26:28]) & 0x3FFF, _little(content[28:30]) & 0x3FFF
        case b"VP8L":  # 14 bits each, less one, after the signature byte
            bits = _little(content[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            return None


def scans_at_most(content: bytes) -> int:
    """How many scans a JPEG can have: coded data holds no FF DA, only headers and metadata do; 0 for any other file."""
    return _n_pairs(content, b"\xff\xda") if content[:2] == b"\xff\xd8" else 0


def numbers_in_a_field(content: bytes) -> int:
    """The most numbers that a field of a TIFF's first directory says it has; 0 for any other file."""
    kind = _TIFF.get(content[:4])
    if kind is None:
        return 0
    order, (at, n_bytes), (n_long, n_field) = kind
    start = int.from_bytes(content[at : at + n_bytes], order)
    first = start + n_long
    n_fields = min(65_535, int.from_bytes(content[start:first], order))
    most = 0
    for position in range(first, min(first + n_fields * n_field, len(content)), n_field):
        if int.from_bytes(content[position + 2 : position + 4], order) in _TIFF_NUMBERS:
            most = max(most, int.from_bytes(content[position + 4 : position + 4 + n_bytes], order))
    return most


def is_called_animated(image_format: str, content: bytes) -> bool:
    """Whether a PNG or WebP announces an animation, of one frame or out of order too: viewers differ in what they show."""
    if image_format == "WEBP":
        return content[12:16] == b"VP8X" and bool(content[20] & _WEBP_ANIMATION)
    return image_format == "PNG" and any(kind == b"acTL" for kind, _ in _png_chunks(content))


def has_one_png_header(content: bytes) -> bool:
    """Whether a PNG begins with its header and has no other: of several, viewers take the first, the last, or none."""
    return [at for at, (kind, _) in enumerate(_png_chunks(content)) if kind == b"IHDR"] == [0]


def ends_behind_its_data(content: bytes) -> bool:
    """Whether a PNG has nothing between its picture's data and its end: what stands there is read with the pixels alone."""
    last = b""
    for kind, _ in _png_chunks(content):
        if kind == b"IEND":
            return last == b"IDAT"
        last = kind
    return False


def end_of_image(image_format: str, content: bytes) -> int | None:
    """The offset just behind the picture; None where its end is missing. Formats that are always re-encoded end anywhere."""
    match image_format:
        case "JPEG":
            return _end_of_jpeg(content)
        case "PNG":
            return _end_of_png(content)
        case "WEBP":
            end = 8 + _little(content[4:8])
            return end + end % 2 if end <= len(content) else None
        case _:
            return len(content)


def _end_of_png(content: bytes) -> int | None:
    ends = (end for kind, end in _png_chunks(content) if kind == b"IEND")
    return next((end for end in ends if end <= len(content)), None)


def _png_chunks(content: bytes) -> Iterator[tuple[bytes, int]]:
    """Type and end of each chunk, up to the first IEND. Raises ValueError where there are too many."""
    position = len(_PNG_SIGNATURE)
    for _ in range(_MAX_PARTS):
        if position + 12 > len(content):  # length, type, checksum: 12 bytes beside the data
            return
        end = position + 12 + int.from_bytes(content[position : position + 4], "big")
        kind = content[position + 4 : position + 8]
        yield kind, end
        if kind == b"IEND":
            return
        position = end
    raise ValueError(f"a PNG of more than {_MAX_PARTS} chunks")


def _end_of_jpeg(content: bytes) -> int | None:
    position, n_markers = 2, 0
    while marker := _JPEG_MARKER.search(content, position):
        kind, position = content[marker.end() - 1], marker.end()
        n_markers += 1
        if n_markers > _MAX_PARTS:
            raise ValueError(f"a JPEG of more than {_MAX_PARTS} markers")
        if kind == _JPEG_END:
            return position
        if kind == _JPEG_TEM:  # stands alone, without a length
            continue
        # A segment's length counts its own two bytes; coded data follows a scan's header, and search() runs over it.
        position += max(2, int.from_bytes(content[position : position + 2], "big"))
        if kind == _JPEG_SCAN and content.endswith(b"\xff\xd9") and _n_pairs(content, b"\xff\xd9", position) == 1:
            return len(content)  # the usual case, found ten times faster than by marker after marker
    return None


def _n_pairs(content: bytes, pair: bytes, start: int = 0) -> int:
    """How often two bytes that differ stand together from `start` on; bytes.count takes five times as long to say it."""
    n_found, wanted = 0, np.frombuffer(pair, "<u2")[0]
    for block in range(start, len(content) - 1, _BLOCK_BYTES):
        n_pairs = min(_BLOCK_BYTES, len(content) - 1 - block)  # they begin at each byte: at even ones, then at odd ones
        for first, n in ((block, (n_pairs + 1) // 2), (block + 1, n_pairs // 2)):
            n_found += int(np.count_nonzero(np.frombuffer(content, "<u2", n, first) == wanted))
    return n_found


def _little(content: bytes) -> int:
    return int.from_bytes(content, "little")
