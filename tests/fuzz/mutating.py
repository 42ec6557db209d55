"""Bytes made hostile: seeds that are valid, changed step by step. A step is four numbers, so that Hypothesis can shrink it and
a campaign draw it. What reads the bytes is in surfaces.py."""

import re
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Final

Step = tuple[int, int, int, int]
"""Which change, where, how far, and with what: each taken modulo what there is."""

MAX_BYTES: Final = 200_000  # of an input: what is larger is measured by the grown inputs alone
VALUES: Final = (
    b"null", b"true", b"-1", b"0", b"1e999", b"-0.0", b"NaN", b"Infinity", b"18446744073709551616", b"9" * 400, b"9" * 5000,
    b"1e-400", b'""', b'"\\ud800"', b'"\\u0000"', b"[]", b"{}", b"[{}]", b"[[1]]", b'{"a":{}}', b'[null,"a",1.5]', b'"x"',
    b"[" * 99 + b"]" * 99, b"[" * 5000 + b"]" * 5000, b'{"a":' * 300 + b"1" + b"}" * 300, b'"' + b"long " * 5000 + b'"',
    b'"2026-13-99T99:99:99Z"', b'"../../etc/passwd"', b'"\xef\xbb\xbf"', b"'''", b"0001-01-01", b"9999-12-31T23:59:60Z",
    '"\u202e\u2028\ufeff"'.encode(), '"١٢"'.encode(), b"{column}", b"{0.__class__}", b"\xff\xfe", b"\x00",
)  # fmt: skip
_TOKEN: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[-+]?\d[\d.eE+-]*|\b(?:true|false|null)\b')
_PAIR: Final = re.compile(rb'"[^"\\\n]*"\s*:\s*(?:"[^"\\\n]*"|-?[\d.]+)|^[\w.]+ *=[^\n]*\n', re.MULTILINE)
_EXTREMES: Final = (b"\x00" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x01", b"\xff\xff\xff\x7f")
_ENCODINGS: Final = ("utf-16", "utf-16-be", "utf-32", "utf-8-sig", "utf-7", "cp1252")


def mutated(seeds: Sequence[bytes], which: int, steps: Sequence[Step]) -> bytes:
    """One of the seeds after the steps, at most MAX_BYTES long."""
    content = seeds[which % len(seeds)]
    for kind, at, n, what in steps:
        content = _CHANGES[kind % len(_CHANGES)](content, at, n, seeds[what % len(seeds)], what)[:MAX_BYTES]
    return content


def _truncated(content: bytes, at: int, _n: int, _other: bytes, _what: int) -> bytes:
    return content[: at % (len(content) + 1)]


def _without(content: bytes, at: int, n: int, _other: bytes, _what: int) -> bytes:
    at %= len(content) + 1
    return content[:at] + content[at + 1 + n % 64 :]


def _repeated(content: bytes, at: int, n: int, _other: bytes, what: int) -> bytes:
    at %= len(content) + 1
    end = at + 1 + n % 200
    return content[:at] + content[at:end] * (2 + what % 50) + content[end:]


def _flipped(content: bytes, at: int, n: int, _other: bytes, _what: int) -> bytes:
    at %= len(content) or 1
    return content[:at] + bytes(byte ^ (1 << n % 8) for byte in content[at : at + 1]) + content[at + 1 :]


def _spliced(content: bytes, at: int, n: int, other: bytes, _what: int) -> bytes:
    return content[: at % (len(content) + 1)] + other[n % (len(other) + 1) :]


def _inserted(content: bytes, at: int, n: int, _other: bytes, _what: int) -> bytes:
    at %= len(content) + 1
    return content[:at] + VALUES[n % len(VALUES)] + content[at:]


def _overwritten(content: bytes, at: int, n: int, _other: bytes, _what: int) -> bytes:
    at %= len(content) + 1
    return content[:at] + _EXTREMES[n % len(_EXTREMES)] + content[at + 4 :]


def _revalued(content: bytes, at: int, n: int, _other: bytes, _what: int) -> bytes:
    """A value or key of JSON, TOML or CSV in another's place."""
    found = list(_TOKEN.finditer(content, 0, 20_000))
    if not found:
        return content
    start, end = found[at % len(found)].span()
    return content[:start] + VALUES[n % len(VALUES)] + content[end:]


def _said_twice(content: bytes, at: int, n: int, _other: bytes, _what: int) -> bytes:
    """A key with its value a second time."""
    found = list(_PAIR.finditer(content, 0, 20_000))
    if not found:
        return content
    one, end = found[at % len(found)], found[n % len(found)].end()
    return content[: one.end()] + (b"" if one[0].endswith(b"\n") else b",") + one[0] + content[one.end() : end] + content[end:]


def _nested(content: bytes, at: int, n: int, _other: bytes, what: int) -> bytes:
    found = list(_TOKEN.finditer(content, 0, 20_000))
    start, end = found[at % len(found)].span() if found else (0, len(content))
    depth = (1, 3, 64, 101, 999, 3000)[n % 6]
    before, behind = ((b"[", b"]"), (b'{"a":', b"}"))[what % 2]
    return content[:start] + before * depth + content[start:end] + behind * depth + content[end:]


def _encoded(content: bytes, _at: int, n: int, _other: bytes, _what: int) -> bytes:
    return content.decode("utf-8", "replace").encode(_ENCODINGS[n % len(_ENCODINGS)], "replace")


_CHANGES: Final[tuple[Callable[[bytes, int, int, bytes, int], bytes], ...]] = (
    _revalued, _truncated, _without, _repeated, _flipped, _spliced, _inserted, _overwritten, _revalued, _said_twice, _nested,
    _encoded,
)  # fmt: skip


def with_tar_sums(content: bytes) -> bytes:
    """Checksums of a tar's headers made right again, or every change would end at the first of them."""
    blocks = bytearray(content)
    for at in range(0, len(blocks) - 511, 512):
        if blocks[at + 257 : at + 262] == b"ustar":
            blocks[at + 148 : at + 156] = b" " * 8
            blocks[at + 148 : at + 156] = b"%06o\0 " % sum(blocks[at : at + 512])
    return bytes(blocks)


def with_png_sums(content: bytes) -> bytes:
    """Checksums of a PNG's chunks made right again, as far as the chunks can be followed."""
    if not content.startswith(b"\x89PNG\r\n\x1a\n"):
        return content
    made, at = bytearray(content), 8
    while at + 12 <= len(made):
        (size,) = struct.unpack(">I", made[at : at + 4])
        end = at + 8 + size
        if end + 4 > len(made):
            break
        made[end : end + 4] = struct.pack(">I", zlib.crc32(made[at + 4 : end]))
        at = end + 4
    return bytes(made)
