"""Small pictures for the gallery, as data URIs. Bytes are hostile: three decoders, pixels counted first, no failure spreads."""

import base64
import io

from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP")  # what ingest stores
MAX_PIXELS = 25_000_000
MAX_BYTES = 5_000
"""Of a thumbnail before base64: 200 of them stay under 1.4 MB of page."""

_LADDER = ((176, 60), (176, 35), (120, 35), (80, 20))  # longest side in pixels, WebP quality: the first that fits is taken
_METHOD = 4  # effort of the encoder; 6 takes three times as long for 2 % less


def thumbnail(content: bytes) -> str | None:
    """A `data:image/webp` URI of at most MAX_BYTES; None where the bytes are no picture that may be decoded. Never raises."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                return None
            image.draft("RGB", (2 * _LADDER[0][0], 2 * _LADDER[0][0]))  # a JPEG is decoded at a fraction of its size
            small = image.convert("RGB")
        return _encoded(small)
    except Exception:  # noqa: BLE001  decoders raise ValueError, TypeError, SyntaxError, MemoryError, struct.error, ...
        return None


def _encoded(picture: Image.Image) -> str | None:
    for side_px, quality in _LADDER:
        small = picture.copy()
        small.thumbnail((side_px, side_px), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        small.save(buffer, "WEBP", quality=quality, method=_METHOD)
        if buffer.tell() <= MAX_BYTES:
            return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return None
