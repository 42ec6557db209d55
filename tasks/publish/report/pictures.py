"""Thumbnails for the gallery: a few pictures of a large lake as small data URIs.

Bytes are hostile: three decoders, pixels counted first, no failure spreads.
"""

import base64
import io
from collections.abc import Collection, Iterator

import polars as pl
from PIL import Image

from schemas.input_budget import PICTURE_PIXELS
from schemas.tables.stored import SAMPLES
from tasks.lake.pictures import StoredDataset

FORMATS = ("PNG", "JPEG", "WEBP")  # what ingest stores
MAX_BYTES = 5_000
"""Of a thumbnail before base64: 200 of them stay under 1.4 MB of page."""

_LADDER = ((176, 60), (176, 35), (120, 35), (80, 20))  # longest side in pixels, WebP quality: the first that fits is taken
_METHOD = 4  # effort of the encoder; 6 takes three times as long for 2 % less


def thumbnail(content: bytes) -> str | None:
    """A `data:image/webp` URI of at most MAX_BYTES; None where the bytes are no picture that may be decoded. Never raises."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > PICTURE_PIXELS:
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


def thumbnails_of(dataset: StoredDataset, sample_ids: set[str]) -> dict[str, str]:
    """A data URI for each of the samples that has a picture."""
    digests = judged_digests(dataset, sample_ids)
    made = {digest: thumbnail(content) for digest, content in contents_of(dataset, set(digests.values()))}
    return {sample_id: picture for sample_id, digest in digests.items() if (picture := made.get(digest))}


def judged_digests(dataset: StoredDataset, sample_ids: set[str]) -> dict[str, str]:
    """The sha256 of each sample's judged picture, of those that have one."""
    is_wanted = pl.col("sample_id").is_in(sorted(sample_ids)) & pl.col("image_sha256").is_not_null()
    found = dataset.lake.collect(SAMPLES, dataset.id, lambda rows: rows.filter(is_wanted).select("sample_id", "image_sha256"))
    return dict(found.iter_rows())


def contents_of(dataset: StoredDataset, digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """(digest, stored bytes) of those of the pictures that are there, in their order, a row group in memory at a time."""
    for table in dataset.pictures(digests):
        for digest, image in zip(table["image_sha256"].to_pylist(), table["image"], strict=True):
            content = (image.as_py() or {}).get("bytes")
            if content:
                yield digest, content
