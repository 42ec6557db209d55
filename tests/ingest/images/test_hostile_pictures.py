"""Hostile pictures by name, each opened alone: what it is answered, how much memory and processor time it took."""

import io
import os
import random
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from tasks.ingest.images.decode import Decoder
from tasks.ingest.images.open import OpenedImage
from tests.support.bombs import zlib_bomb

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory and time of a process are read from /proc")
MAX_PEAK_BYTES = 300 * 1024 * 1024
MAX_CPU_S = 6.0  # alone 1.4 s at most; a core that is shared counts up to three times as much


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, data: bytes, *extra: bytes, depth: int = 8, color: int = 0) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def rows(width: int, height: int, n_bytes: int) -> bytes:
    """The compressed rows of a picture: kilobytes that are megabytes."""
    packer = zlib.compressobj(1)
    return b"".join(packer.compress(b"\0" + b"\x55" * (width * n_bytes)) for _ in range(height)) + packer.flush()


def save(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def jpeg_of_scans(n: int) -> bytes:
    """A progressive JPEG whose last scan, 42 bytes that go over every pixel, stands there n times more."""
    content = save(Image.new("L", (2000, 2000), 128), "JPEG", progressive=True)
    last = content.rindex(b"\xff\xda")
    return content[:-2] + content[last:-2] * n + content[-2:]


def frames(kind: str, n: int, side: int) -> bytes:
    each = [Image.new("L", (side, side), number % 256) for number in range(n)]
    return save(each[0], kind, save_all=True, append_images=each[1:])


def tiff(width: int, height: int, *tags: tuple[int, int, int, int]) -> bytes:
    """A TIFF of tags alone; its pixels would stand at 8."""
    every = sorted(
        [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (262, 3, 1, 1), (273, 4, 1, 8), (278, 4, 1, height), *tags]
    )
    entries = b"".join(struct.pack("<HHII", *tag) for tag in every)
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(every)) + entries + bytes(4)


def jpeg_with(parts: bytes) -> bytes:
    return SMALL_JPEG[:2] + parts + SMALL_JPEG[2:]


def gif_with(parts: bytes) -> bytes:
    """A GIF with something in front of its first frame."""
    content = save(Image.new("P", (8, 8)), "GIF")
    return content[: content.index(b",")] + parts + content[content.index(b",") :]


def bmp_of_runs(side: int) -> bytes:
    """A run-length encoded BMP whose every pixel is a run of its own."""
    header = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, 0, 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", 0, 0, 0, 1078) + header + bytes(1024) + b"\1\0" * side * side


SMALL_JPEG = save(Image.new("L", (8, 8)), "JPEG")
PALETTE = chunk(b"PLTE", bytes(range(256)) * 3), chunk(b"tRNS", bytes(range(256)))
BOMB = zlib_bomb(76)
BROKEN, LARGE, NONE = "broken_image", "too_many_pixels", "not_an_image"
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "png: 50,000 pixels square in 100 bytes": (lambda: png(50_000, 50_000, b""), LARGE),
    "png: 4 billion by 1": (lambda: png(2**31 - 1, 1, b""), LARGE),
    "png: no width": (lambda: png(0, 5, b""), NONE),
    "png: the most that is encoded anew, 16 bits and alpha": (
        lambda: png(4096, 2160, rows(4096, 2160, 8), color=6, depth=16), "ok"),
    "png: 16-bit grey, one value transparent": (
        lambda: png(4096, 2160, rows(4096, 2160, 2), chunk(b"tRNS", b"\x55\x55"), depth=16), "ok"),
    "png: a palette of transparent colours": (lambda: png(4096, 2160, rows(4096, 2160, 1), *PALETTE, color=3), "ok"),
    "png: the most that is opened, and cannot be shown": (lambda: png(5000, 5000, rows(5000, 5000, 8), color=6, depth=16), LARGE),
    "png: the same beside a private chunk of 60 MB": (
        lambda: png(5000, 5000, rows(5000, 5000, 8), chunk(b"abCd", bytes(60_000_000)), color=6, depth=16), LARGE),
    "png: noise, the most that is encoded anew": (lambda: save(_noise("RGBA", 4096, 2160), "PNG", compress_level=0), "ok"),
    "png: noise, the most that is shown": (lambda: save(_noise("RGB", 4700, 4700), "PNG", compress_level=0), "ok"),
    "webp: noise, the most that is encoded anew": (
        lambda: save(_noise("RGBA", 4096, 2160), "WEBP", lossless=True, method=0), "ok"),
    "webp: the most that is shown": (lambda: save(Image.new("RGB", (5000, 2950)), "WEBP", method=0), "ok"),
    "webp: too many pixels for its decoder": (lambda: save(Image.new("RGB", (5000, 3200)), "WEBP", method=0), LARGE),
    "png: more pixels than it says, a bomb": (lambda: png(2, 2, BOMB), "ok"),
    "png: a text chunk that is a bomb": (lambda: png(1, 1, rows(1, 1, 1), chunk(b"zTXt", b"k\0\0" + BOMB)), BROKEN),
    "png: international text that is a bomb": (lambda: png(1, 1, rows(1, 1, 1), chunk(b"iTXt", b"k\0\1\0\0\0" + BOMB)), BROKEN),
    "png: a colour profile that is a bomb": (lambda: png(1, 1, rows(1, 1, 1), chunk(b"iCCP", b"k\0\0" + BOMB)), BROKEN),
    "png: a hundred thousand text chunks": (lambda: png(1, 1, rows(1, 1, 1), chunk(b"tEXt", b"k\0v") * 100_000), "ok"),
    "png: a chunk that says it is 2 GB": (lambda: png(1, 1, rows(1, 1, 1))[:33] + b"\x7f\xff\xff\xffIDAT" + bytes(9), BROKEN),
    "png: two hundred thousand chunks": (lambda: png(1, 1, rows(1, 1, 1), chunk(b"abCd", b"") * 200_000), BROKEN),
    "png: 25 million pixels high": (lambda: png(1, 25_000_000, b""), LARGE),
    "jpeg: 200,000 comments": (lambda: jpeg_with(b"\xff\xfe\0\2" * 200_000), BROKEN),
    "jpeg: half a million fill bytes": (lambda: jpeg_with(b"\xff" * 500_000), BROKEN),
    "jpeg: 200,000 comments behind its data": (
        lambda: SMALL_JPEG[:-2] + b"\xff\xfe\0\4\xff\xd9" + b"\xff\xfe\0\2" * 200_000 + b"\xff\xd9", BROKEN),
    "jpeg: EXIF data in 900 parts": (lambda: jpeg_with((b"\xff\xe1\xff\xffExif\0\0" + bytes(65_527)) * 900), BROKEN),
    "jpeg: progressive, four colours, 16 million pixels": (
        lambda: save(Image.new("CMYK", (4000, 4000)), "JPEG", progressive=True), LARGE),
    "gif: 300,000 blocks of a byte": (lambda: gif_with(b"!\x77" + b"\1x" * 300_000 + b"\0"), BROKEN),
    "bmp: a million runs": (lambda: bmp_of_runs(1000), BROKEN),
    "tiff: five million strips": (lambda: tiff(5, 5, (273, 4, 5_000_000, 8)) + bytes(20_000_000), BROKEN),
    "jpeg: 60 scans": (lambda: jpeg_of_scans(54), "ok"),
    "jpeg: 10,000 scans": (lambda: jpeg_of_scans(9_994), BROKEN),
    "jpeg: 65,500 pixels square": (lambda: SMALL_JPEG.replace(b"\0\x08\0\x08", b"\xff\xdc\xff\xdc"), LARGE),
    "jpeg: noise, the most that is encoded anew, on its side": (
        lambda: save(_noise("RGB", 4096, 2160), "JPEG", exif=_turned()), "ok"),
    "jpeg: progressive noise, the most that is shown": (lambda: save(_noise("RGB", 5000, 4000), "JPEG", progressive=True), "ok"),
    "jpeg: progressive noise, the most that is encoded anew": (
        lambda: save(_noise("CMYK", 3000, 2000), "JPEG", progressive=True), "ok"),
    "gif: a screen of 65,535 square": (lambda: b"GIF89a" + b"\xff" * 4 + b"\0\0\0," + bytes(4) + b"\xff" * 4 + bytes(9), LARGE),
    "gif: 2,000 frames": (lambda: frames("GIF", 2_000, 16), "ok"),
    "tiff: 60,000 pixels square": (lambda: tiff(60_000, 60_000), LARGE),
    "tiff: a strip of 4 GB": (lambda: tiff(5, 5, (279, 4, 1, 2**32 - 1)), "ok"),
    "tiff: a directory that leads to itself": (lambda: tiff(5, 5)[:-4] + struct.pack("<I", 8), "ok"),
    "bmp: 20,000 pixels square": (
        lambda: save(Image.new("L", (8, 8)), "BMP").replace(struct.pack("<ii", 8, 8), struct.pack("<ii", 20_000, 20_000)),
        LARGE,
    ),
    "blp: 284 bytes that a decoder left on takes 655 MB for": (lambda: b"BLP2" + b"\1\0\0\0" + bytes(276), NONE),
    "eps: a program": (lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(x) run\n", NONE),
    "svg: with a file of this machine": (lambda: b'<svg><image href="file:///etc/passwd"/></svg>', NONE),
    "a zip": (lambda: b"PK\x03\x04" + bytes(99), NONE),
    "a pickle": (lambda: b"\x80\x04\x95" + bytes(99), NONE),
}  # fmt: skip


def _noise(mode: str, width: int, height: int) -> Image.Image:
    """What no encoder makes smaller."""
    content = random.Random(1).randbytes(width * height * len(mode))
    return Image.frombytes(mode, (width, height), content)


def _turned() -> Image.Exif:
    found = Image.Exif()
    found[0x0112] = 6
    return found


@pytest.fixture(scope="module")
def one() -> Iterator[Decoder]:
    started = Decoder()
    yield started
    started.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_picture_is_a_status_and_takes_little(one: Decoder, name: str) -> None:
    """Peak memory of the decoding process, reset before each picture, and the processor time it took for this one alone."""
    make, expected = HOSTILE[name]
    content, process = make(), Path(f"/proc/{one._process.pid}")
    (process / "clear_refs").write_text("5")
    before_s = _cpu_s(process)
    found = one.open(content)
    assert one.is_living, f"{name} ended the process"
    peak_kb = next(int(line.split()[1]) for line in (process / "status").read_text().splitlines() if line.startswith("VmHWM"))
    assert ("ok" if isinstance(found, OpenedImage) else found.status) == expected
    assert peak_kb * 1024 < MAX_PEAK_BYTES
    assert _cpu_s(process) - before_s < MAX_CPU_S


def _cpu_s(process: Path) -> float:
    """User and system seconds, from the fields behind the name."""
    fields = (process / "stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
