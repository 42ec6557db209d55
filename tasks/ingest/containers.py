"""What an image file's container says without decoding a pixel: the size it declares, and where the picture ends."""

import re

import numpy as np

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# In JPEG's coded data FF is followed by 00 (a stuffed FF), D0–D7 (a restart) or FF (fill); anything else is a marker.
_JPEG_MARKER = re.compile(rb"\xff+[^\x00\xd0-\xd7\xff]", re.DOTALL)
_JPEG_SCAN, _JPEG_END, _JPEG_TEM = 0xDA, 0xD9, 0x01
_BLOCK_BYTES = 1024 * 1024  # looked through at once, whatever a file's length


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
    position = len(_PNG_SIGNATURE)
    while position + 12 <= len(content):  # length, type, checksum: 12 bytes beside the data
        end = position + 12 + int.from_bytes(content[position : position + 4], "big")
        if content[position + 4 : position + 8] == b"IEND":
            return end if end <= len(content) else None
        position = end
    return None


def _end_of_jpeg(content: bytes) -> int | None:
    position = 2
    while marker := _JPEG_MARKER.search(content, position):
        kind, position = content[marker.end() - 1], marker.end()
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
