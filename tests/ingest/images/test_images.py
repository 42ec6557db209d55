"""open_image: what is shown, what is refused, and that no bytes make it raise."""

import hashlib
import io
import struct
import tracemalloc
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from schemas.input_budget import PICTURE_BYTES
from tasks.ingest.images.containers import scans_at_most, size_declared
from tasks.ingest.images.limits import RefusedImage
from tasks.ingest.images.open import FORMATS, OpenedImage, open_header, open_image
from tests.support.bombs import zlib_bomb


def save(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def noise(mode: str = "RGB", size: tuple[int, int] = (16, 12)) -> Image.Image:
    n_channels = {"L": 1, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    values = np.random.default_rng(7).integers(0, 256, (size[1], size[0], n_channels), dtype=np.uint8)
    return Image.frombytes(mode, size, values.tobytes())


def exif(orientation: int) -> Image.Exif:
    found = Image.Exif()
    found[0x0112] = orientation
    return found


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, depth: int, color: int, data: bytes, *extra: bytes) -> bytes:
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + png_chunk(b"IDAT", zlib.compress(data)) + png_chunk(b"IEND", b"")


def webp_canvas(width: int, height: int) -> bytes:
    body = (
        b"WEBPVP8X"
        + struct.pack("<I", 10)
        + bytes([2, 0, 0, 0])
        + (width - 1).to_bytes(3, "little")
        + (height - 1).to_bytes(3, "little")
    )
    return b"RIFF" + struct.pack("<I", len(body) + 4) + body + b"ANIM"


def behind(content: bytes, chunk: bytes) -> bytes:
    """A PNG with a chunk between its data and its end."""
    return content[:-12] + chunk + content[-12:]


def webp_of_one_frame() -> bytes:
    """An animation whose canvas is larger than its only frame."""
    frame = bytes(6) + struct.pack("<I", 15)[:3] + struct.pack("<I", 11)[:3] + bytes(4) + WEBP[12:]
    body = webp_canvas(32, 24)[8:] + struct.pack("<I", 6) + bytes(6) + b"ANMF" + struct.pack("<I", len(frame)) + frame
    return b"RIFF" + struct.pack("<I", len(body)) + body


def shown(opened: OpenedImage) -> Image.Image:
    return Image.open(io.BytesIO(opened.shown))


JPEG, PNG, WEBP = save(noise(), "JPEG"), save(noise(), "PNG"), save(noise(), "WEBP", lossless=True)
ACTL = png_chunk(b"acTL", struct.pack(">II", 1, 0))
FRAMES = [noise(), Image.new("RGB", (16, 12), "red")]

CLEAN = {
    "jpeg": JPEG,
    "jpeg, grey": save(noise("L"), "JPEG"),
    "jpeg, progressive": save(noise(size=(64, 48)), "JPEG", progressive=True),
    "jpeg, restart markers": save(noise(size=(64, 48)), "JPEG", restart_marker_blocks=1),
    "jpeg, upright exif": save(noise(), "JPEG", exif=exif(1)),
    "png": PNG,
    "png, grey": save(noise("L"), "PNG"),
    "webp, lossless": WEBP,
    "webp, lossy": save(noise(), "WEBP"),
}


@pytest.mark.parametrize("content", CLEAN.values(), ids=CLEAN.keys())
def test_a_clean_picture_is_shown_as_its_own_bytes(content):
    opened = open_image(content)
    assert isinstance(opened, OpenedImage)
    assert opened.shown is content
    assert opened.treatment == "none"


TREATED = {
    "jpeg, turned": (save(noise(), "JPEG", exif=exif(6)), "exif_rotated,reencoded_png"),
    "jpeg, cmyk": (save(noise("CMYK"), "JPEG"), "cmyk_to_rgb,reencoded_png"),
    "jpeg, archive behind it": (JPEG + b"PK\x03\x04 hidden", "trailing_data_dropped,reencoded_png"),
    "jpeg, second jpeg behind it": (JPEG + JPEG, "trailing_data_dropped,reencoded_png"),
    "jpeg, several frames (MPO)": (save(FRAMES[0], "MPO", save_all=True, append_images=FRAMES[1:]), "first_frame,reencoded_png"),
    "png, exif of garbage": (png(1, 1, 8, 0, b"\0\0", png_chunk(b"eXIf", b"NOT EXIF")), "exif_unreadable,reencoded_png"),
    "png, one byte behind it": (PNG + b"\n", "trailing_data_dropped,reencoded_png"),
    "png, animated": (save(FRAMES[0], "PNG", save_all=True, append_images=FRAMES[1:]), "first_frame,reencoded_png"),
    "png, animation of one frame": (png(1, 1, 8, 0, b"\0\0", ACTL), "first_frame,reencoded_png"),
    "png, animation announced twice": (png(1, 1, 8, 0, b"\0\0", ACTL, ACTL), "first_frame,reencoded_png"),
    "png, animation announced behind its data": (behind(PNG, ACTL), "first_frame,reencoded_png"),
    "png, turned behind its data": (behind(PNG, png_chunk(b"eXIf", exif(6).tobytes()[6:])), "exif_rotated,reencoded_png"),
    "png, transparent behind its data": (behind(PNG, png_chunk(b"tRNS", bytes(6))), "alpha_on_white,reencoded_png"),
    "png, two headers": (PNG[:33] + PNG[8:33] + PNG[33:], "reencoded_png"),
    "png, alpha": (save(noise("RGBA"), "PNG"), "alpha_on_white,reencoded_png"),
    "png, palette": (save(noise().convert("P"), "PNG"), "p_to_rgb,reencoded_png"),
    "png, palette and transparency": (save(noise().convert("P"), "PNG", transparency=0), "alpha_on_white,reencoded_png"),
    "png, transparent colour": (save(noise(), "PNG", transparency=(1, 2, 3)), "alpha_on_white,reencoded_png"),
    "png, one bit": (save(noise("L").convert("1"), "PNG"), "1_to_l,reencoded_png"),
    "png, four bits": (png(2, 1, 4, 0, b"\0\x0f"), "reencoded_png"),
    "png, 16 bits grey": (png(2, 1, 16, 0, b"\0" + struct.pack(">HH", 0, 65535)), "16_bit_scaled,reencoded_png"),
    "png, 16 bits rgb": (png(1, 1, 16, 2, b"\0" + struct.pack(">HHH", 0, 32768, 65535)), "16_bit_scaled,reencoded_png"),
    "webp, animated": (save(FRAMES[0], "WEBP", save_all=True, append_images=FRAMES[1:]), "first_frame,reencoded_png"),
    "webp, animation of one frame": (webp_of_one_frame(), "first_frame,reencoded_png"),
    "webp, bytes behind it": (WEBP + b"xx", "trailing_data_dropped,reencoded_png"),
    "gif": (save(noise(), "GIF"), None),
    "gif, animated": (save(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:]), None),
    "bmp": (save(noise(), "BMP"), "reencoded_png"),
    "tiff": (save(noise(), "TIFF"), "reencoded_png"),
    "tiff, 16 bits": (save(Image.fromarray(np.array([[0, 65535]], dtype=np.uint16)), "TIFF"), "16_bit_scaled,reencoded_png"),
}


@pytest.mark.parametrize(("content", "treatment"), TREATED.values(), ids=TREATED.keys())
def test_any_other_picture_is_reencoded_and_says_so(content, treatment):
    opened = open_image(content)
    assert isinstance(opened, OpenedImage), opened
    if treatment:
        assert opened.treatment == treatment
    assert opened.treatment.endswith("reencoded_png")
    again = open_image(opened.shown)
    assert isinstance(again, OpenedImage)
    assert again.treatment == "none"  # what is shown is itself clean: no metadata, one frame, 8 bits
    assert (opened.format, opened.width_px, opened.height_px) == ("PNG", *shown(opened).size)
    assert open_image(content) == opened  # the same bytes each time


REFUSED = {
    "no bytes": (b"", "empty_file"),
    "text": (b"<html>Not found</html>", "not_an_image"),
    "svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not_an_image"),
    "another format (ppm)": (save(noise(), "PPM"), "not_an_image"),
    "another format (blp)": (b"BLP2" + b"\1\0\0\0" + bytes(1200), "not_an_image"),
    "another format (ico)": (save(noise(), "ICO"), "not_an_image"),
    "another format (jpeg 2000)": (b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(64), "not_an_image"),
    "jpeg cut in half": (JPEG[: len(JPEG) // 2], "broken_image"),
    "jpeg without its last byte": (JPEG[:-1], "broken_image"),
    "png cut in half": (PNG[: len(PNG) // 2], "broken_image"),
    "png without its end": (PNG[:-12], "broken_image"),
    "png, corrupt zlib": (PNG[:60] + bytes(40) + PNG[100:], "broken_image"),
    "png of 50000 × 50000": (png(50000, 50000, 8, 2, b"\0"), "too_many_pixels"),
    "png of 5001 × 5000": (png(5001, 5000, 8, 0, b"\0"), "too_many_pixels"),
    "png of 1 × 65536": (png(1, 65536, 8, 0, b"\0"), "too_many_pixels"),
    "png of 10000 × 10000, which Pillow only warns about": (png(10000, 10000, 8, 0, b"\0"), "too_many_pixels"),
    "webp canvas of 16383 × 16383": (webp_canvas(16383, 16383), "too_many_pixels"),
    "webp canvas of 65536 × 65536, which Pillow does not open": (webp_canvas(65536, 65536), "too_many_pixels"),
    "gif screen of 65535 × 65535": (b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\2\1\0\0;", "too_many_pixels"),
    "png, text chunk that is a bomb": (
        png(1, 1, 8, 0, b"\0\0", png_chunk(b"zTXt", b"k\0\0" + zlib_bomb(76))),
        "broken_image",
    ),
    "tiff of 32-bit floats": (save(Image.fromarray(np.zeros((2, 2), dtype=np.float32)), "TIFF"), "not_an_image"),
}


@pytest.mark.parametrize(("content", "status"), REFUSED.values(), ids=REFUSED.keys())
def test_unusable_bytes_are_refused_with_a_status(content, status):
    refused = open_image(content)
    assert isinstance(refused, RefusedImage), refused
    assert refused.status == status
    assert refused.detail.isprintable()


def test_a_png_without_its_end_is_noticed_though_pillow_opens_it():
    assert "end marker" in open_image(REFUSED["png without its end"][0]).detail


@pytest.mark.parametrize(
    "options", [{"lossless": True}, {"quality": 80}, {"quality": 80, "exif": exif(1)}], ids=["VP8L", "VP8", "VP8X"]
)
def test_the_declared_size_of_a_webp_is_the_one_pillow_finds(options):
    assert size_declared(save(noise(size=(301, 77)), "WEBP", **options)) == (301, 77)


def test_a_file_over_the_cap_is_refused_before_it_is_opened():
    refused = open_image(PNG + bytes(PICTURE_BYTES))
    assert isinstance(refused, RefusedImage)
    assert refused.status == "file_too_large"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_ends_upright(orientation):
    image = noise(size=(5, 3))
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # the transposition that stores an upright picture so
    stored = image.transpose(Image.Transpose(undo[orientation])) if orientation > 1 else image
    opened = open_image(save(stored, "PNG", exif=exif(orientation)))
    assert isinstance(opened, OpenedImage)
    assert (shown(opened).size, shown(opened).tobytes()) == (image.size, image.tobytes())


def test_sixteen_bits_are_scaled_and_not_clipped():
    values = [0, 128, 256, 32768, 65279, 65535]
    opened = open_image(png(6, 1, 16, 0, b"\0" + struct.pack(">6H", *values)))
    assert list(shown(opened).tobytes()) == [round(value * 255 / 65535) for value in values]


def test_what_is_hidden_under_alpha_stays_hidden():
    secret = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    assert shown(open_image(save(secret, "PNG"))).convert("RGB").getpixel((1, 1)) == (255, 255, 255)
    grey = png(2, 1, 16, 0, b"\0" + struct.pack(">HH", 7, 900), png_chunk(b"tRNS", struct.pack(">H", 7)))
    assert list(shown(open_image(grey)).convert("L").tobytes()) == [255, round(900 * 255 / 65535)]


def test_the_first_frame_is_the_one_shown():
    animated = save(Image.new("RGB", (4, 4), "blue"), "GIF", save_all=True, append_images=[Image.new("RGB", (4, 4), "red")])
    assert shown(open_image(animated)).getpixel((0, 0)) == (0, 0, 255)


def test_nothing_of_the_metadata_survives_a_reencoding():
    info = exif(6)
    info[0x010E] = "a secret description"
    opened = open_image(save(noise(), "JPEG", exif=info, comment=b"a secret comment", icc_profile=b"a secret profile"))
    assert shown(opened).info == {}
    assert b"secret" not in opened.shown


def test_a_refusal_does_not_allocate_the_picture():
    bomb = REFUSED["png of 50000 × 50000"][0]
    open_image(PNG)
    tracemalloc.start()
    open_image(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


JPEGS = [
    save(noise(mode, size), "JPEG", **options)
    for mode in ("L", "RGB")
    for size in ((1, 1), (16, 12), (33, 65))
    for options in ({}, {"progressive": True}, {"subsampling": 0}, {"keep_rgb": True}, {"restart_marker_blocks": 3})
]


@settings(max_examples=300)
@given(st.sampled_from(JPEGS), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.binary(max_size=30)), max_size=4))
def test_a_clean_jpeg_is_read_through_and_refused_where_decoding_every_pixel_is(content, changes):
    """Bytes are cut out and put in between start and end marker; Pillow's whole decoding, message and all, is what counts."""
    for at, n_cut, more in changes:
        start = 2 + int(at * (len(content) - 4))
        content = content[:start] + more + content[min(len(content) - 2, start + n_cut) :]
    opened, said = open_image(content), ""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            image.load()
    except Exception as error:  # noqa: BLE001  whatever a decoder raises
        said = str(error) or type(error).__name__
    if isinstance(opened, OpenedImage):
        assert said == ""
        assert opened.treatment != "none" or (opened.width_px, opened.height_px) == image.size
    else:
        assert opened.status == "not_an_image" or (said or "before its end marker")[:40] in opened.detail


@pytest.mark.parametrize("at", [0, 1, 2**20 - 2, 2**20 - 1, 2**20, 2**20 + 1, 3 * 2**20 - 4])
def test_scans_are_counted_wherever_they_stand(at):
    content = bytearray(b"\xff\xd8" + bytes(3 * 2**20 - 2))
    content[2 + at : 4 + at] = b"\xff\xda"
    assert scans_at_most(bytes(content)) == bytes(content).count(b"\xff\xda") == 1


def test_warnings_as_errors_change_nothing():
    contents = [TREATED["png, exif of garbage"][0], REFUSED["png of 10000 × 10000, which Pillow only warns about"][0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strict = [open_image(content) for content in contents]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [open_image(content) for content in contents] == strict


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([*CLEAN.values(), *(content for content, _ in TREATED.values())]), st.data())
def test_no_bytes_make_it_raise(content, data):
    """A picture with some bytes replaced, or cut off, is opened or refused, and opened the same twice."""
    spots = data.draw(st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=6))
    changed = bytearray(content)
    for spot, value in spots:
        changed[spot] = value
    hostile = bytes(changed[: data.draw(st.integers(0, len(changed)))] if data.draw(st.booleans()) else changed)
    opened = open_image(hostile)
    assert isinstance(opened, OpenedImage | RefusedImage)
    assert opened == open_image(hostile)
    if isinstance(opened, OpenedImage) and opened.treatment == "none":
        assert hashlib.sha256(opened.shown).digest() == hashlib.sha256(hostile).digest()


@pytest.mark.parametrize("content", CLEAN.values(), ids=CLEAN.keys())
def test_a_clean_pictures_header_says_what_decoding_says(content):
    found = open_header(content)
    assert found is None if content.startswith(b"RIFF") else found == open_image(content)


@pytest.mark.parametrize("case", [*TREATED, *REFUSED])
def test_only_a_clean_picture_is_taken_at_its_headers_word(case):
    """What would be re-encoded or refused is decoded, so the setting changes no bytes; save for what only the data tells."""
    content = (TREATED | REFUSED)[case][0]
    if case != "png, corrupt zlib":
        assert open_header(content) is None
