"""What a picture may cost: counts and sizes that are looked at before its pixels are made. Opening it is open.py.

Each bound keeps the worst file of its kind below 300 MB and 2 s of processor time (docs/decisions/02-ingest.md).
"""

import io
from dataclasses import dataclass

from PIL import Image

from schemas.input_budget import PICTURE_BYTES, PICTURE_PIXELS, PICTURE_READS
from schemas.statuses.rows import SampleStatus
from tasks.ingest.images.containers import numbers_in_a_field, scans_at_most, size_declared

MAX_PROGRESSIVE_PIXELS = 20_000_000  # every scan's coefficients are held, and decoded: noise takes 12 bytes and 70 ns a pixel
MAX_REENCODED_PIXELS = 4096 * 2160  # noise takes a PNG encoder 100 ns a pixel
MAX_REENCODED_PROGRESSIVE_PIXELS = 6_000_000  # both, and in four colours
MAX_SCANS = 60  # of a progressive JPEG: each goes over the whole picture, and 42 bytes are enough to ask for one
MAX_WEBP_BYTES = 250_000_000  # held by its decoder: 16 a pixel, and the file twice
MAX_SIDE_PX = 65_535  # JPEG's own limit; a PNG 25 million pixels high takes 200 MB for its rows' addresses
MAX_FIELD_NUMBERS = 100_000  # of a TIFF: a strip for each row are 65,535
MAX_EXIF_PARTS = 250  # of a JPEG: each is put behind the others in a new copy

_ALLOWED = {  # (is progressive, is encoded anew): pixels
    (False, False): PICTURE_PIXELS,
    (True, False): MAX_PROGRESSIVE_PIXELS,
    (False, True): MAX_REENCODED_PIXELS,
    (True, True): MAX_REENCODED_PROGRESSIVE_PIXELS,
}


@dataclass(frozen=True, slots=True)
class RefusedImage:
    """Bytes that are no usable picture, and why."""

    status: SampleStatus
    detail: str


class CountedFile(io.BytesIO):
    """A file for decoders that go over its parts one by one, in Python: a part may be two bytes, and a file 64 MiB of them."""

    n_reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """As of a file. Raises ValueError after PICTURE_READS."""
        self.n_reads += 1
        if self.n_reads > PICTURE_READS:
            raise ValueError(f"the file has more parts than can be read in {PICTURE_READS} reads")
        return super().read(size)


def refuse_unopened(content: bytes) -> RefusedImage | None:
    """By the file alone: its length, and what it says of itself."""
    if not content:
        return RefusedImage(SampleStatus.EMPTY_FILE, "the file has no bytes")
    if len(content) > PICTURE_BYTES:
        return RefusedImage(SampleStatus.FILE_TOO_LARGE, f"the file has {len(content)} bytes; {PICTURE_BYTES} are allowed")
    too_many = _too_many_parts(content)
    if too_many:
        return RefusedImage(SampleStatus.BROKEN_IMAGE, too_many)
    declared = size_declared(content)  # before Pillow: its WebP plugin allocates whole canvases when it opens
    allowed = (MAX_WEBP_BYTES - 2 * len(content)) // 16
    if declared and declared[0] * declared[1] > allowed:
        detail = f"{_said(declared)}; {allowed} are allowed for a WebP file of {len(content)} bytes"
        return RefusedImage(SampleStatus.TOO_MANY_PIXELS, detail)
    return None


def _too_many_parts(content: bytes) -> str | None:
    n_scans = scans_at_most(content)
    if n_scans > MAX_SCANS:
        return f"a JPEG of {n_scans} scans; {MAX_SCANS} are allowed (encoders write 10)"
    if numbers_in_a_field(content) > MAX_FIELD_NUMBERS:
        return f"a TIFF field of more than {MAX_FIELD_NUMBERS} numbers"
    if content.startswith(b"\xff\xd8\xff") and content.count(b"Exif\0\0") > MAX_EXIF_PARTS:
        return f"a JPEG with EXIF data in more than {MAX_EXIF_PARTS} parts"
    return None


def refuse_size(image: Image.Image, *, is_reencoded: bool) -> RefusedImage | None:
    """By its pixels, how they are coded, and what is to be done with them."""
    if max(image.size) > MAX_SIDE_PX:
        return RefusedImage(SampleStatus.TOO_MANY_PIXELS, f"{_said(image.size)}; {MAX_SIDE_PX} per side are allowed")
    is_progressive = "progressive" in image.info
    allowed = _ALLOWED[is_progressive, is_reencoded]
    if image.width * image.height <= allowed:
        return None
    kind = "progressive JPEG" if is_progressive else "picture"
    use = "that cannot be shown as it is" if is_reencoded else "shown as it is"
    return RefusedImage(SampleStatus.TOO_MANY_PIXELS, f"{_said(image.size)}; {allowed} are allowed for a {kind} {use}")


def _said(size: tuple[int, int]) -> str:
    return f"{size[0]} × {size[1]} pixels"
