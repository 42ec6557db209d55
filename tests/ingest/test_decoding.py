"""Decoding in a bounded process: the same answers as without, and whatever ends the process is one row's status."""

import io
import os
import signal
import struct
import sys
import threading
import zlib
from pathlib import Path

import orjson
import pytest
from PIL import Image

from schemas.records import Sample
from tasks.ingest.decoding import Decoder, _checked, decoder, open_bounded
from tasks.ingest.images import MAX_PIXELS, OpenedImage, RefusedImage, open_image
from tasks.ingest.shards import open_shard


def save(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(depth: int, color: int, n_bytes: int, *extra: bytes, side: int = 5000) -> bytes:
    """As many pixels as are allowed, in a few kilobytes."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, depth, color, 0, 0, 0))
    rows = zlib.compressobj(1)
    data = b"".join(rows.compress(b"\0" + b"\x55" * (side * n_bytes)) for _ in range(side)) + rows.flush()
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def exif(orientation: int) -> Image.Exif:
    found = Image.Exif()
    found[0x0112] = orientation
    return found


def scans(n: int) -> bytes:
    """A progressive JPEG whose last scan stands there n times more: 42 bytes each, and each goes over every pixel."""
    content = save(Image.new("L", (2000, 2000), 128), "JPEG", progressive=True)
    last = content.rindex(b"\xff\xda")
    return content[:-2] + content[last:-2] * n + content[-2:]


SMALL = Image.new("RGB", (9, 7), (1, 200, 3))
ALIKE = {
    "clean": save(SMALL, "JPEG"),
    "treated": save(SMALL.convert("RGBA"), "PNG"),
    "trailing": save(SMALL, "PNG") + b"PK\x03\x04",
    "broken": save(SMALL, "PNG")[:-9],
    "no image": b"<svg/>",
    "empty": b"",
    "text that is not UTF-8": b"\xff\xfe" * 9,
}


@pytest.mark.parametrize("content", ALIKE.values(), ids=ALIKE.keys())
def test_it_answers_as_without_a_process(content):
    assert open_bounded(content) == open_image(content)


def test_a_clean_picture_does_not_come_back_as_a_copy():
    content = ALIKE["clean"]
    assert open_bounded(content).shown is content


EVERY_COLOUR = chunk(b"PLTE", bytes(range(256)) * 3), chunk(b"tRNS", bytes(range(256)))
LARGE = {
    "alpha": lambda: png(8, 6, 4),
    "alpha, 16 bits": lambda: png(16, 6, 8),
    "grey, 16 bits, one transparent": lambda: png(16, 0, 2, chunk(b"tRNS", b"\x55\x55")),
    "palette with transparency": lambda: png(8, 3, 1, *EVERY_COLOUR),
    "jpeg on its side": lambda: save(Image.new("RGB", (5000, 5000), (1, 2, 3)), "JPEG", exif=exif(6)),
    "webp with alpha": lambda: save(Image.new("RGBA", (3870, 3870), (1, 2, 3, 4)), "WEBP", lossless=True, method=0),
    "webp over its own cap": lambda: save(Image.new("RGB", (4000, 3900), (1, 2, 3)), "WEBP", method=0),
    "jpeg of 60 scans": lambda: scans(54),
    "jpeg of 10,000 scans": lambda: scans(9_994),
    "png, text chunk that is a bomb": lambda: png(8, 0, 1, chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(80_000_000))), side=1),
    "png, profile that is a bomb": lambda: png(8, 0, 1, chunk(b"iCCP", b"k\0\0" + zlib.compress(bytes(80_000_000))), side=1),
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
def test_no_picture_takes_300_megabytes_or_much_processor_time():
    """The largest of every kind that is allowed, and bombs, one after the other in one process. Alone, none takes two seconds."""
    one = Decoder(cpu_limit_s=5)
    try:
        opened = {name: one.open(make()) for name, make in LARGE.items()}
        peak_kb = next(line for line in Path(f"/proc/{one._process.pid}/status").read_text().splitlines() if "VmHWM" in line)
    finally:
        one.close()
    assert int(peak_kb.split()[1]) < 300 * 1024
    refused = {name: found.status.value for name, found in opened.items() if isinstance(found, RefusedImage)}
    assert refused == {
        "webp over its own cap": "too_many_pixels",
        "jpeg of 10,000 scans": "broken_image",
        "png, text chunk that is a bomb": "broken_image",
        "png, profile that is a bomb": "broken_image",
    }


def test_memory_over_the_limit_is_a_status_and_the_process_lives_on():
    one = Decoder(memory_limit_bytes=64 * 1024 * 1024)
    try:
        refused = one.open(png(8, 6, 4))
        assert isinstance(refused, RefusedImage)
        assert (refused.status, "MemoryError" in refused.detail) == ("broken_image", True)
        assert isinstance(one.open(ALIKE["clean"]), OpenedImage)
    finally:
        one.close()


def test_time_over_the_limit_is_a_status():
    one, large = Decoder(cpu_limit_s=0), png(16, 6, 8)  # none: what crosses a full second ends
    for _ in range(20):
        found = one.open(large)
        if isinstance(found, RefusedImage):
            break
    assert (found.status, found.detail) == ("broken_image", "decoding was stopped: it took more than 0 s of processor time")
    assert not one.is_living


def test_a_process_that_stands_still_is_a_status():
    one = Decoder()
    os.kill(one._process.pid, signal.SIGSTOP)
    refused = one.open(ALIKE["clean"], deadline_s=0.2)
    assert refused == RefusedImage(refused.status, "decoding was stopped: it took more than 0.2 s")


def test_what_kills_the_process_costs_one_row_and_no_more(tmp_path):
    with decoder() as one:
        os.kill(one._process.pid, signal.SIGSEGV)
        one._process.wait()
    samples = [Sample("s", str(n), "m", "c", {"prompt": str(n)}, image_bytes=ALIKE["clean"]) for n in range(3)]
    (table,) = open_shard(samples, tmp_path)
    rows = table.to_pylist()
    assert [row["status"] for row in rows] == ["broken_image", "ok", "ok"]
    assert "SIGSEGV" in rows[0]["detail"]


def test_threads_have_a_process_each():
    found, barrier = [], threading.Barrier(2, timeout=60)

    def work() -> None:
        with decoder() as one:
            barrier.wait()
            found.append(one)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is not found[1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the environment is read from /proc")
def test_the_process_knows_no_secret(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary-8c1f")
    one = Decoder()
    one.open(ALIKE["clean"])
    environment = Path(f"/proc/{one._process.pid}/environ").read_bytes()
    one.close()
    assert b"PYTHONPATH" in environment
    assert b"canary" not in environment


GOOD = {"format": "PNG", "treatment": "reencoded_png", "width_px": 3, "height_px": 3}
LIES = {
    "another format": GOOD | {"format": "SVG"},
    "no size": GOOD | {"width_px": 0},
    "too large": GOOD | {"width_px": MAX_PIXELS},
    "no number": GOOD | {"width_px": "wide"},
    "treated, and its own bytes": GOOD | {"treatment": "none"},
    "a status that is none": {"status": "fine", "detail": ""},
    "nothing": {},
    "a list": [],
}


@pytest.mark.parametrize("said", LIES.values(), ids=LIES.keys())
def test_what_the_process_says_is_checked(said):
    with pytest.raises((ValueError, TypeError, KeyError)):
        _checked(orjson.loads(orjson.dumps(said)), b"asked", b"shown")
    assert _checked(GOOD, b"asked", b"shown").shown == b"shown"
