"""Whether a picture can be shown as it is: upright, 8-bit grey or RGB, one frame, nothing behind it. Nothing is changed here."""

from PIL import Image, ImageFile

from tasks.ingest.images.containers import end_of_image, has_one_png_header, is_called_animated

UPRIGHT = 1
_SHOWN_AS_THEY_ARE = {"PNG", "JPEG", "WEBP"}
_ORIENTATION_STANDS_IN = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")  # Pillow's names of what it may stand in
_ORIENTATION_TAG = 0x0112


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
