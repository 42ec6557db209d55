"""No picture can hurt the page: not by its size, not by its bytes; and each sample gets its own."""

import base64
import io
import random
import struct
import zlib

import pytest
from PIL import Image

from schemas.tables.stored import SAMPLES
from tasks.lake.pictures import StoredDataset
from tasks.publish.report.pictures import MAX_BYTES, thumbnail, thumbnails_of


def png_that_says(width: int, height: int) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


def saved(kind: str, mode: str = "RGB", size: tuple[int, int] = (300, 200)) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, kind)
    return buffer.getvalue()


def opened(uri: str) -> Image.Image:
    kind, _, content = uri.partition(",")
    assert kind == "data:image/webp;base64"
    return Image.open(io.BytesIO(base64.b64decode(content, validate=True)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<svg onload='alert(1)'/>",
        b"GIF89a" + bytes(40),
        saved("GIF"),
        saved("TIFF"),
        saved("BMP"),
        saved("PNG")[:60],
        png_that_says(60_000, 60_000),
        png_that_says(5_001, 5_001),
        b"\xff\xd8\xff" + bytes(100),
        saved("JPEG")[:-400],
    ],
    ids=["nothing", "svg", "half-gif", "gif", "tiff", "bmp", "half-png", "bomb", "over-cap", "half-jpeg", "cut-jpeg"],
)
def test_what_is_no_picture_of_ours_gives_none(content):
    assert thumbnail(content) is None


@pytest.mark.parametrize(
    "content",
    [
        saved("PNG"),
        saved("JPEG", size=(3000, 2000)),
        saved("WEBP"),
        saved("PNG", "L"),
        saved("PNG", "P"),
        saved("JPEG", "CMYK"),
        saved("PNG", size=(1, 4000)),
    ],
    ids=["png", "large-jpeg", "webp", "grey", "palette", "cmyk", "sliver"],
)
def test_a_picture_gets_small_and_keeps_its_shape(content):
    small = opened(thumbnail(content))
    assert max(small.size) <= 176
    with Image.open(io.BytesIO(content)) as whole:
        assert abs(small.width / small.height - whole.width / whole.height) < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_even_noise_stays_under_the_limit(seed):
    content = io.BytesIO()
    Image.frombytes("RGB", (512, 512), random.Random(seed).randbytes(3 * 512**2)).save(content, "PNG")
    uri = thumbnail(content.getvalue())
    assert len(base64.b64decode(uri.partition(",")[2])) <= MAX_BYTES
    assert uri == thumbnail(content.getvalue())


def test_each_sample_gets_its_own_picture_across_row_groups(made_of, drawn):
    """150 samples are three row groups of pictures; one sample has none."""
    made = made_of(
        made_by=[("north", "1")], n_prompts=150, n_per_prompt=1, picture=lambda index: None if index == 7 else drawn(index)
    )
    dataset_id = made.provenance["identities"]["dataset_id"]
    samples = made.lake.scan(SAMPLES, dataset_id).select("sample_id").collect()
    wanted = {samples["sample_id"][index]: index for index in (0, 7, 63, 64, 149)}
    found = thumbnails_of(StoredDataset(made.lake, dataset_id), set(wanted))
    assert {wanted[sample_id] for sample_id in found} == {0, 63, 64, 149}
    for sample_id, uri in found.items():
        index = wanted[sample_id]
        pixel = opened(uri).convert("RGB").getpixel((10, 10))
        assert all(abs(a - b) < 12 for a, b in zip(pixel, (index * 37 % 256, index * 91 % 256, 120), strict=True))
