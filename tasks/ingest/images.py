"""Pictures: opened whole, or refused with a status. The only place of ingest that knows Pillow.

Bytes are hostile until load() has ended: six decoders are allowed, pixels are counted before any is decoded, and
whatever a decoder raises is a refusal. Metadata is never trusted and never kept in a re-encoding.
"""

import io
import warnings
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFile, UnidentifiedImageError

from schemas.statuses import SampleStatus
from tasks.ingest.containers import end_of_image, size_declared
from tasks.ingest.paths import MAX_FILE_BYTES, quote

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
MAX_PIXELS = 25_000_000
BACKGROUND = (255, 255, 255)  # what transparent pixels are shown on
PNG_COMPRESSION = 3  # level 6 takes twice the time for 2 % less

_SHOWN_AS_THEY_ARE = {"PNG", "JPEG", "WEBP"}
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


def open_image(content: bytes) -> OpenedImage | RefusedImage:
    """Decode one file wholly and say what the judge is shown. Never raises, whatever the bytes."""
    refusal = _refuse_by_size(content)
    if refusal:
        return refusal
    _expect_decoder_warnings()
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            return _too_many_pixels(image.size) if _is_too_large(image.size) else _decode(image, content)
    except UnidentifiedImageError:
        detail = f"no allowed decoder ({', '.join(FORMATS)}) knows bytes that begin with {content[:12]!r}"
        return RefusedImage(SampleStatus.NOT_AN_IMAGE, detail)
    except Image.DecompressionBombError as error:
        return RefusedImage(SampleStatus.TOO_MANY_PIXELS, quote(str(error)))
    except Exception as error:  # noqa: BLE001  decoders raise ValueError, TypeError, SyntaxError, MemoryError, struct.error, ...
        return RefusedImage(SampleStatus.BROKEN_IMAGE, f"decoding failed: {type(error).__name__}: {quote(str(error))}")


def _refuse_by_size(content: bytes) -> RefusedImage | None:
    if not content:
        return RefusedImage(SampleStatus.EMPTY_FILE, "the file has no bytes")
    if len(content) > MAX_FILE_BYTES:
        return RefusedImage(SampleStatus.FILE_TOO_LARGE, f"the file has {len(content)} bytes; {MAX_FILE_BYTES} are allowed")
    declared = size_declared(content)  # before Pillow: its WebP plugin allocates whole canvases when it opens
    return _too_many_pixels(declared) if declared and _is_too_large(declared) else None


def _decode(image: ImageFile.ImageFile, content: bytes) -> OpenedImage | RefusedImage:
    """Load the first frame and take every step that is needed to show it as 8-bit grey or RGB, upright."""
    kind = image.format or ""
    steps = ["first_frame"] if kind == "MPO" or getattr(image, "is_animated", False) else []
    deep = image.mode.startswith("I;16") or any(";16" in str(tile[3]) for tile in image.tile)
    image.load()
    if _is_too_large(image.size):  # a GIF frame may enlarge its screen
        return _too_many_pixels(image.size)
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
    shown = _to_plain(image, steps)
    if orientation != _UPRIGHT:
        steps.append("exif_rotated" if orientation else "exif_unreadable")
        shown = shown.transpose(_UPRIGHT_BY[orientation]) if orientation else shown
    return _reencode(shown, [*steps, "reencoded_png"])


def _is_plain(image: Image.Image, content: bytes) -> bool:
    """8-bit grey or RGB without transparency. Pillow also calls 1, 2 and 4-bit grey PNGs "L"; byte 24 is their depth."""
    has_eight_bits = image.format != "PNG" or content[24] == 8
    return image.mode in {"L", "RGB"} and "transparency" not in image.info and has_eight_bits


def _to_plain(image: Image.Image, steps: list[str]) -> Image.Image:
    """The picture as L or RGB; what was done is added to `steps`."""
    if image.mode.startswith("I;16"):
        image = _scale_16_bits(image)
    if image.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or "transparency" in image.info:
        steps.append("alpha_on_white")
        rgba = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", rgba.size, (*BACKGROUND, 255)), rgba).convert("RGB")
    if image.mode in {"L", "RGB"}:
        return image.copy()
    steps.append(f"{image.mode.lower()}_to_{'l' if image.mode == '1' else 'rgb'}")
    return image.convert("L" if image.mode == "1" else "RGB")


def _scale_16_bits(image: Image.Image) -> Image.Image:
    """0–65535 to 0–255, rounded; Pillow's own conversion clips. A transparent grey value becomes an alpha channel."""
    deep = np.asarray(image).astype(np.uint32)
    grey = Image.fromarray(((deep * 255 + 32767) // 65535).astype(np.uint8))
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        grey.putalpha(Image.fromarray(np.where(deep == transparent, 0, 255).astype(np.uint8)))
    return grey


def _orientation(image: Image.Image) -> int | None:
    """EXIF orientation 1–8 (1 where there is none or it is nonsense); None where the EXIF data cannot be read."""
    try:
        value = image.getexif().get(_ORIENTATION_TAG, _UPRIGHT)
    except Exception:  # noqa: BLE001  EXIF parsing raises as freely as decoding does, and the pixels are good
        return None
    return value if isinstance(value, int) and 1 <= value <= 8 else _UPRIGHT


def _reencode(image: Image.Image, steps: list[str]) -> OpenedImage:
    image.info = {}  # the PNG writer would carry a colour profile or a transparent colour over
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=PNG_COMPRESSION)
    return OpenedImage(buffer.getvalue(), "PNG", ",".join(steps), image.width, image.height)


def _is_too_large(size: tuple[int, int]) -> bool:
    return size[0] * size[1] > MAX_PIXELS


def _too_many_pixels(size: tuple[int, int]) -> RefusedImage:
    return RefusedImage(SampleStatus.TOO_MANY_PIXELS, f"{size[0]} × {size[1]} pixels; {MAX_PIXELS} are allowed")


def _expect_decoder_warnings() -> None:
    """Decoders warn about metadata we drop and sizes we refuse ourselves: the same bytes must end the same under `-W error`.

    Checked at each picture and not at import, because whoever restores the filters (pytest does) takes it away again.
    `warnings.catch_warnings` is no help: it is not safe in threads.
    """
    if not any(entry[0] == "ignore" and getattr(entry[3], "pattern", "") == r"PIL\." for entry in warnings.filters[:3]):
        warnings.filterwarnings("ignore", module=r"PIL\.")
