"""Which pictures a request shows, and one made smaller (`judges.max_side_px`). What a picture is: tasks/ingest/images."""

import io
import re

_RUNS = 3  # zlib's Z_RLE, as where ingest encodes (docs/decisions/02-ingest.md)


_DIGEST = re.compile(r'"sha256":"([0-9a-f]{64})"')  # no text can hold it: there JSON writes its quotes with a backslash


def digests_of(messages_json: str) -> list[str]:
    """The digests of the pictures of canonical messages, in the order in which they are shown."""
    return _DIGEST.findall(messages_json)


def without_digests(messages_json: str) -> str:
    """The messages less their pictures' digests: the same for all samples that ask the same."""
    return _DIGEST.sub('"sha256":""', messages_json)


class UnreadablePictureError(Exception):
    """A picture that no decoder can read to its end: one that ingest took by its header alone."""


def fitted_px(width_px: int, height_px: int, max_side_px: int | None) -> tuple[int, int]:
    """The size of a picture whose longest side is brought down to `max_side_px`: whole pixels, at least one, never larger."""
    longest = max(width_px, height_px)
    if max_side_px is None or longest <= max_side_px:
        return width_px, height_px
    # halves go up, in integers: the same size on every machine
    width, height = (max(1, (2 * side * max_side_px + longest) // (2 * longest)) for side in (width_px, height_px))
    return width, height


def size_px_of(content: bytes) -> tuple[int, int] | None:
    """The size that a picture's header says; None where it cannot be read. Nothing is decoded."""
    from PIL import Image  # only rubrics with example pictures need it

    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG", "WEBP")) as image:
            return image.size
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - decoders raise whatever they like
        return None


def shrunk(content: bytes | memoryview, max_side_px: int) -> bytes:
    """The picture resampled (Lanczos) to the size of fitted_px, as a PNG: nothing is lost beyond the resampling.

    `content` is a picture as ingest stores them: upright, 8 bits, grey or RGB. Raises UnreadablePictureError.
    """
    from PIL import Image  # only a judge that is shown smaller pictures needs it

    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG", "WEBP")) as image:
            size_px = fitted_px(*image.size, max_side_px)
            image.draft(None, (2 * size_px[0], 2 * size_px[1]))  # of a JPEG half or a quarter is decoded, still twice as large
            plain = image if image.mode in ("L", "RGB") else image.convert("RGB")
            made = plain.resize(size_px, Image.Resampling.LANCZOS, reducing_gap=2.0)
    except MemoryError:
        raise
    except Exception as error:  # decoders raise whatever they like
        raise UnreadablePictureError(str(error)) from error
    made.info = {}
    buffer = io.BytesIO()
    made.save(buffer, "PNG", compress_level=1, compress_type=_RUNS)
    return buffer.getvalue()
