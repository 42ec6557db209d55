"""Pictures: opened whole, or refused with a status. What is done to their pixels is pixels.py, where it runs decoding.py.

Bytes are hostile until load() has ended: six decoders are allowed, pixels are counted before any is decoded, and
whatever a decoder raises is a refusal. Metadata is never trusted and never kept in a re-encoding.
"""

import io
import warnings
from dataclasses import dataclass

from PIL import Image, ImageFile, UnidentifiedImageError

from schemas.statuses import SampleStatus
from tasks.ingest.containers import (
    end_of_image,
    ends_behind_its_data,
    has_one_png_header,
    is_called_animated,
    numbers_in_a_field,
    scans_at_most,
    size_declared,
)
from tasks.ingest.paths import MAX_FILE_BYTES, quote
from tasks.ingest.pixels import to_plain

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
MAX_PIXELS = 25_000_000
MAX_SCANS = 60  # of a progressive JPEG: each goes over the whole picture, and 42 bytes are enough to ask for one
MAX_HELD_PIXELS = 15_000_000  # WebP's decoder holds 16 bytes a pixel; a progressive JPEG's 12, where every pixel is made
MAX_SIDE_PX = 65_535  # JPEG's own limit; a PNG 25 million pixels high takes 200 MB for its rows' addresses
MAX_READS = 500_000  # of a file's parts by decoders written in Python: a second; 35 MB of GIF are 270,000
MAX_FIELD_NUMBERS = 100_000  # of a TIFF: a strip for each row are 65,535
MAX_EXIF_PARTS = 250  # of a JPEG: each is put behind the others in a new copy
PNG_COMPRESSION = 3  # level 6 takes twice the time for 2 % less

_SHOWN_AS_THEY_ARE = {"PNG", "JPEG", "WEBP"}
_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"
_ORIENTATION_STANDS_IN = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")  # Pillow's names of what it may stand in
_JPEG_END, _PNG_END = b"\xff\xd9", b"\x00\x00\x00\x00IEND\xaeB`\x82"
_ORIENTATION_TAG = 0x0112
_UPRIGHT = 1
_UPRIGHT_BY = {  # EXIF 2.32, tag 0x0112: what undoes each orientation
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class OpenedImage:
    """A picture as the judge is shown it. `treatment` is "none" (its own bytes) or the steps of its re-encoding."""

    shown: bytes
    format: str
    treatment: str
    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True)
class RefusedImage:
    """Bytes that are no usable picture, and why."""

    status: SampleStatus
    detail: str


@dataclass(slots=True)
class _Decoded:
    """A picture to be encoded anew: its pixels, the orientation they still have, and the steps so far."""

    image: Image.Image
    orientation: int | None
    steps: list[str]


class _Counted(io.BytesIO):
    """A file for decoders that go over its parts one by one, in Python: a part may be two bytes, and a file 64 MiB of them."""

    n_reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.n_reads += 1
        if self.n_reads > MAX_READS:
            raise ValueError(f"the file has more parts than can be read in {MAX_READS} goes")
        return super().read(size)


def open_image(content: bytes) -> OpenedImage | RefusedImage:
    """Decode one file wholly and say what the judge is shown. Never raises, whatever the bytes."""
    refusal = _refuse_by_size(content)
    if refusal:
        return refusal
    _expect_decoder_warnings()
    try:
        decoded = _open(content)
        return _reencode(decoded) if isinstance(decoded, _Decoded) else decoded
    except UnidentifiedImageError:
        detail = f"no allowed decoder ({', '.join(FORMATS)}) knows bytes that begin with {content[:12]!r}"
        return RefusedImage(SampleStatus.NOT_AN_IMAGE, detail)
    except Image.DecompressionBombError as error:
        return RefusedImage(SampleStatus.TOO_MANY_PIXELS, quote(str(error)))
    except Exception as error:  # noqa: BLE001  decoders raise ValueError, TypeError, SyntaxError, MemoryError, struct.error, ...
        return RefusedImage(SampleStatus.BROKEN_IMAGE, f"decoding failed: {type(error).__name__}: {quote(str(error))}")


def open_header(content: bytes) -> OpenedImage | None:
    """A clean JPEG or PNG as its header describes it, no pixel decoded: what open_image says of it where its data is whole.

    None where it is of another kind, would be re-encoded, does not end in its end marker, or raises anything: open_image says
    more. Only for pictures that are trusted: what is wrong between header and end is not seen.
    """
    if not content.startswith((_JPEG, _PNG)) or len(content) > MAX_FILE_BYTES or not content.endswith((_JPEG_END, _PNG_END)):
        return None
    _expect_decoder_warnings()
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
            if _is_clean(image, content) and not _too_many_pixels(image.size):
                is_whole = image.format == "JPEG" or ends_behind_its_data(content)
                return OpenedImage(content, image.format or "", "none", image.width, image.height) if is_whole else None
    except Exception:  # noqa: BLE001  decoding tells which of all it is
        return None
    return None


def prepare_decoders() -> None:
    """Import every decoder now: a process that bounds itself does so afterwards."""
    Image.init()


def _refuse_by_size(content: bytes) -> RefusedImage | None:
    if not content:
        return RefusedImage(SampleStatus.EMPTY_FILE, "the file has no bytes")
    if len(content) > MAX_FILE_BYTES:
        return RefusedImage(SampleStatus.FILE_TOO_LARGE, f"the file has {len(content)} bytes; {MAX_FILE_BYTES} are allowed")
    n_scans = scans_at_most(content)
    if n_scans > MAX_SCANS:
        return RefusedImage(
            SampleStatus.BROKEN_IMAGE, f"a JPEG of {n_scans} scans; {MAX_SCANS} are allowed, and encoders write 10"
        )
    if numbers_in_a_field(content) > MAX_FIELD_NUMBERS:
        return RefusedImage(SampleStatus.BROKEN_IMAGE, f"a TIFF field of over {MAX_FIELD_NUMBERS} numbers")
    if content.startswith(_JPEG) and content.count(b"Exif\0\0") > MAX_EXIF_PARTS:
        return RefusedImage(SampleStatus.BROKEN_IMAGE, f"a JPEG with EXIF data in over {MAX_EXIF_PARTS} parts")
    declared = size_declared(content)  # before Pillow: its WebP plugin allocates whole canvases when it opens
    return _too_many_pixels(declared, MAX_HELD_PIXELS) if declared else None


def _open(content: bytes) -> OpenedImage | RefusedImage | _Decoded:
    """The decoder and what it holds are gone when this returns: a large picture is in memory twice at most."""
    with Image.open(_Counted(content), formats=FORMATS) as image:
        return _too_many_pixels(image.size) or _decode(image, content)


def _decode(image: ImageFile.ImageFile, content: bytes) -> OpenedImage | RefusedImage | _Decoded:
    """Load the first frame; where it is not clean, take the steps that make it 8-bit grey or RGB."""
    kind = image.format or ""
    if kind == "JPEG" and _is_clean(image, content):
        return _read_through(image, content)
    steps = ["first_frame"] if kind == "MPO" or _is_animated(image, content) else []
    deep = _is_deep(image)
    refusal = _load(image)
    if refusal:
        return refusal
    end = end_of_image(kind, content)
    if end is None:
        return RefusedImage(SampleStatus.BROKEN_IMAGE, f"the {kind} file breaks off before its end marker")
    steps += ["trailing_data_dropped"] if end < len(content) else []
    orientation = _orientation(image)
    is_clean = not steps and not deep and orientation == _UPRIGHT and kind in _SHOWN_AS_THEY_ARE and _is_plain(image, content)
    if is_clean:
        return OpenedImage(content, kind, "none", image.width, image.height)
    if image.mode in {"I", "F"}:
        detail = "its 32-bit pixels have no stated range; save it with 8 or 16 bits a channel"
        return RefusedImage(SampleStatus.NOT_AN_IMAGE, detail)
    steps += ["16_bit_scaled"] if deep else []
    return _Decoded(to_plain(image, steps), orientation, steps)


def _load(image: ImageFile.ImageFile) -> RefusedImage | None:
    """Make every pixel, unless there are too many."""
    refusal = _too_many_pixels(image.size, MAX_HELD_PIXELS if "progressive" in image.info else MAX_PIXELS)
    if not refusal:
        image.load()
        refusal = _too_many_pixels(image.size)  # a GIF frame may enlarge its screen
    return refusal


def _read_through(image: ImageFile.ImageFile, content: bytes) -> OpenedImage:
    """A clean JPEG, whose pixels nobody needs: all its coded data is decoded, then each block's mean alone is made a pixel.

    What can be wrong is wrong in markers or coded data; the rest is arithmetic, which takes longer than both and cannot fail.
    """
    width, height = image.size
    image.draft("L", (1, 1))
    image.load()
    return OpenedImage(content, "JPEG", "none", width, height)


def _is_clean(image: ImageFile.ImageFile, content: bytes) -> bool:
    """Whether the header shows an upright picture of 8 bits, grey or RGB, without transparency, and nothing behind it."""
    kind = image.format or ""
    is_upright = not any(name in image.info for name in _ORIENTATION_STANDS_IN) or _orientation(image) == _UPRIGHT
    is_plain = is_upright and kind in _SHOWN_AS_THEY_ARE and not _is_deep(image) and _is_plain(image, content)
    return is_plain and end_of_image(kind, content) == len(content) and not _is_animated(image, content)


def _is_animated(image: ImageFile.ImageFile, content: bytes) -> bool:
    return getattr(image, "is_animated", False) or is_called_animated(image.format or "", content)


def _is_deep(image: ImageFile.ImageFile) -> bool:
    """Whether it has 16 bits a channel; told before its pixels are loaded."""
    return image.mode.startswith("I;16") or any(";16" in str(tile[3]) for tile in image.tile)


def _is_plain(image: Image.Image, content: bytes) -> bool:
    """8-bit grey or RGB without transparency. Pillow also calls 1, 2 and 4-bit grey PNGs "L"; byte 24 is their depth."""
    has_eight_bits = image.format != "PNG" or content[24] == 8
    is_plain = image.mode in {"L", "RGB"} and "transparency" not in image.info and has_eight_bits
    return is_plain and (image.format != "PNG" or has_one_png_header(content))


def _orientation(image: Image.Image) -> int | None:
    """EXIF orientation 1–8 (1 where there is none or it is nonsense); None where the EXIF data cannot be read."""
    try:
        value = image.getexif().get(_ORIENTATION_TAG, _UPRIGHT)
    except Exception:  # noqa: BLE001  EXIF parsing raises as freely as decoding does, and the pixels are good
        return None
    return value if isinstance(value, int) and 1 <= value <= 8 else _UPRIGHT


def _reencode(decoded: _Decoded) -> OpenedImage:
    steps = decoded.steps
    if decoded.orientation != _UPRIGHT:
        steps.append("exif_rotated" if decoded.orientation else "exif_unreadable")
        if decoded.orientation:
            decoded.image = decoded.image.transpose(_UPRIGHT_BY[decoded.orientation])  # the other one is let go
    image = decoded.image
    image.info = {}  # the PNG writer would carry a colour profile or a transparent colour over
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=PNG_COMPRESSION)
    return OpenedImage(buffer.getvalue(), "PNG", ",".join([*steps, "reencoded_png"]), image.width, image.height)


def _too_many_pixels(size: tuple[int, int], allowed: int = MAX_PIXELS) -> RefusedImage | None:
    if max(size) > MAX_SIDE_PX:
        return RefusedImage(SampleStatus.TOO_MANY_PIXELS, f"{size[0]} × {size[1]} pixels; {MAX_SIDE_PX} a side are allowed")
    if size[0] * size[1] <= allowed:
        return None
    return RefusedImage(SampleStatus.TOO_MANY_PIXELS, f"{size[0]} × {size[1]} pixels; {allowed} are allowed")


def _expect_decoder_warnings() -> None:
    """Decoders warn about metadata we drop and sizes we refuse ourselves: the same bytes must end the same under `-W error`.

    Checked at each picture and not at import, because whoever restores the filters (pytest does) takes it away again.
    `warnings.catch_warnings` is no help: it is not safe in threads.
    """
    if not any(entry[0] == "ignore" and getattr(entry[3], "pattern", "") == r"PIL\." for entry in warnings.filters[:3]):
        warnings.filterwarnings("ignore", module=r"PIL\.")
