"""Pictures: opened whole, or refused with a status. What is done to their pixels is pixels.py, where it runs decode.py.

Bytes are hostile until load() has ended: six decoders are allowed, pixels are counted before any is decoded (limits.py), and
whatever a decoder raises is a refusal. Metadata is never trusted and never kept in a re-encoding.
"""

import io
import warnings
from dataclasses import dataclass

from PIL import Image, ImageFile, UnidentifiedImageError

from schemas.input_budget import PICTURE_BYTES
from schemas.statuses.rows import SampleStatus
from tasks.ingest.images.containers import end_of_image, ends_behind_its_data, has_one_png_header, is_called_animated
from tasks.ingest.images.limits import CountedFile, RefusedImage, refuse_size, refuse_unopened
from tasks.ingest.images.pixels import to_plain, turn_upright
from tasks.ingest.paths import quote

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
_CLEAN_WHEN_LOADED = {"PNG", "WEBP"}  # a JPEG that is clean is read through, all others are encoded anew
_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"
_RUNS = 3  # zlib's Z_RLE: what PNG's filters leave is mostly runs and noise (docs/decisions/02-ingest.md)
_JPEG_END, _PNG_END = b"\xff\xd9", b"\x00\x00\x00\x00IEND\xaeB`\x82"

UPRIGHT = 1
_SHOWN_AS_THEY_ARE = {"PNG", "JPEG", "WEBP"}
_ORIENTATION_STANDS_IN = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")  # Pillow's names of what it may stand in
_ORIENTATION_TAG = 0x0112


@dataclass(frozen=True, slots=True)
class OpenedImage:
    """A picture as the judge is shown it. `treatment` is "none" (its own bytes) or the steps of its re-encoding."""

    shown: bytes
    format: str
    treatment: str
    width_px: int
    height_px: int


@dataclass(slots=True)
class _Decoded:
    """A picture to be encoded anew: its pixels, the orientation they still have, and the steps so far."""

    image: Image.Image
    orientation: int | None
    steps: list[str]


def open_image(content: bytes) -> OpenedImage | RefusedImage:
    """Decode one file wholly and say what the judge is shown. Never raises, whatever the bytes."""
    refusal = refuse_unopened(content)
    if refusal:
        return refusal
    _expect_decoder_warnings()
    try:
        decoded = _open(content)
        return _reencode(decoded) if isinstance(decoded, _Decoded) else decoded
    except UnidentifiedImageError:
        detail = f"no allowed decoder ({', '.join(FORMATS)}) recognises a file that begins with {content[:12]!r}"
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
    if not content.startswith((_JPEG, _PNG)) or len(content) > PICTURE_BYTES or not content.endswith((_JPEG_END, _PNG_END)):
        return None
    _expect_decoder_warnings()
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
            if is_clean(image, content) and not refuse_size(image, is_reencoded=False):
                is_whole = image.format == "JPEG" or ends_behind_its_data(content)
                return OpenedImage(content, image.format or "", "none", image.width, image.height) if is_whole else None
    except Exception:  # noqa: BLE001  decoding tells which of all it is
        return None
    return None


def prepare_decoders() -> None:
    """Import every decoder now: a process that bounds itself does so afterwards."""
    Image.init()


def _open(content: bytes) -> OpenedImage | RefusedImage | _Decoded:
    """The decoder and what it holds are gone when this returns: a large picture is in memory twice at most."""
    with Image.open(CountedFile(content), formats=FORMATS) as image:
        if image.format == "JPEG" and is_clean(image, content):
            return refuse_size(image, is_reencoded=False) or _read_through(image, content)
        return refuse_size(image, is_reencoded=image.format not in _CLEAN_WHEN_LOADED) or _decode(image, content)


def _decode(image: ImageFile.ImageFile, content: bytes) -> OpenedImage | RefusedImage | _Decoded:
    """Load the first frame; where it is not clean, take the steps that make it 8-bit grey or RGB."""
    kind = image.format or ""
    steps = ["first_frame"] if kind == "MPO" or is_animated(image, content) else []
    is_16_bit = is_deep(image)
    image.load()
    end = end_of_image(kind, content)
    if end is None:
        return RefusedImage(SampleStatus.BROKEN_IMAGE, f"the {kind} file ends before its end marker")
    steps += ["trailing_data_dropped"] if end < len(content) else []
    orientation = orientation_of(image)
    is_as_it_is = kind in _CLEAN_WHEN_LOADED and not steps and not is_16_bit and orientation == UPRIGHT
    if is_as_it_is and is_plain(image, content):
        return OpenedImage(content, kind, "none", image.width, image.height)
    if image.mode in {"I", "F"}:
        detail = "its 32-bit pixels have no stated range; save it with 8 or 16 bits a channel"
        return RefusedImage(SampleStatus.NOT_AN_IMAGE, detail)
    refusal = refuse_size(image, is_reencoded=True)  # only now: a GIF frame may enlarge its screen, too
    if refusal:
        return refusal
    steps += ["16_bit_scaled"] if is_16_bit else []
    return _Decoded(to_plain(image, steps), orientation, steps)


def _read_through(image: ImageFile.ImageFile, content: bytes) -> OpenedImage:
    """A clean JPEG, whose pixels nobody needs: all its coded data is decoded, then each block's mean alone is made a pixel.

    What can be wrong is wrong in markers or coded data; the rest is arithmetic, which takes longer than both and cannot fail.
    """
    width, height = image.size
    image.draft("L", (1, 1))
    image.load()
    return OpenedImage(content, "JPEG", "none", width, height)


def _reencode(decoded: _Decoded) -> OpenedImage:
    steps = decoded.steps
    if decoded.orientation != UPRIGHT:
        steps.append("exif_rotated" if decoded.orientation else "exif_unreadable")
        if decoded.orientation:
            decoded.image = turn_upright(decoded.image, decoded.orientation)  # the other one is let go
    image = decoded.image
    image.info = {}  # the PNG writer would carry a colour profile or a transparent colour over
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1, compress_type=_RUNS)
    return OpenedImage(buffer.getvalue(), "PNG", ",".join([*steps, "reencoded_png"]), image.width, image.height)


def _expect_decoder_warnings() -> None:
    """Decoders warn about metadata we drop and sizes we refuse ourselves: the same bytes must end the same under `-W error`.

    Checked at each picture and not at import, because whoever restores the filters (pytest does) takes it away again.
    `warnings.catch_warnings` is no help: it is not safe in threads.
    """
    if not any(entry[0] == "ignore" and getattr(entry[3], "pattern", "") == r"PIL\." for entry in warnings.filters[:3]):
        warnings.filterwarnings("ignore", module=r"PIL\.")


def is_clean(image: ImageFile.ImageFile, content: bytes) -> bool:
    """Whether the header shows an upright picture of 8 bits, grey or RGB, without transparency, and nothing behind it."""
    kind = image.format or ""
    is_upright = not any(name in image.info for name in _ORIENTATION_STANDS_IN) or orientation_of(image) == UPRIGHT
    is_good = is_upright and kind in _SHOWN_AS_THEY_ARE and not is_deep(image) and is_plain(image, content)
    return is_good and end_of_image(kind, content) == len(content) and not is_animated(image, content)


def is_animated(image: ImageFile.ImageFile, content: bytes) -> bool:
    """Whether there are several frames, or it calls itself animated."""
    return getattr(image, "is_animated", False) or is_called_animated(image.format or "", content)


def is_deep(image: ImageFile.ImageFile) -> bool:
    """Whether it has 16 bits a channel; told before its pixels are loaded."""
    return image.mode.startswith("I;16") or any(";16" in str(tile[3]) for tile in image.tile)


def is_plain(image: Image.Image, content: bytes) -> bool:
    """8-bit grey or RGB without transparency. Pillow also calls 1, 2 and 4-bit grey PNGs "L"; byte 24 is their depth."""
    has_eight_bits = image.format != "PNG" or content[24] == 8
    is_plain = image.mode in {"L", "RGB"} and "transparency" not in image.info and has_eight_bits
    return is_plain and (image.format != "PNG" or has_one_png_header(content))


def orientation_of(image: Image.Image) -> int | None:
    """EXIF orientation 1–8 (1 where there is none or it is nonsense); None where the EXIF data cannot be read."""
    try:
        value = image.getexif().get(_ORIENTATION_TAG, UPRIGHT)
    except Exception:  # noqa: BLE001  EXIF parsing raises as freely as decoding does, and the pixels are good
        return None
    return value if isinstance(value, int) and 1 <= value <= 8 else UPRIGHT
