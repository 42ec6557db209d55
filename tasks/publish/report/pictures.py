"""Thumbnails for the gallery: a few pictures out of a large table, row group by row group, as small data URIs.

Bytes are hostile: three decoders, pixels counted first, no failure spreads.
"""

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
from PIL import Image

from schemas.identities import RunIds
from schemas.input_budget import PICTURE_PIXELS
from schemas.tables import SAMPLES
from tasks.lake.reading import Lake

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


def thumbnails_of(lake: Lake, ids: RunIds, sample_ids: set[str]) -> dict[str, str]:
    """A data URI for each of the samples that has a picture."""
    made = ((sample_id, thumbnail(content)) for sample_id, content in stored_pictures(lake, ids, sample_ids))
    return {sample_id: picture for sample_id, picture in made if picture}


def stored_pictures(lake: Lake, ids: RunIds, sample_ids: set[str]) -> Iterator[tuple[str, bytes]]:
    """The stored bytes of the samples that have a picture, in the lake's order. One row group is in memory at a time.

    The parts that hold one of them are found in scans of many, and no other is opened.
    """
    is_wanted = pl.col("sample_id").is_in(sorted(sample_ids))
    for paths in lake.parts_together(SAMPLES, ids.dataset_id) if sample_ids else ():
        places = pl.scan_parquet(paths, include_file_paths="part").filter(is_wanted).select("part")
        parts = set(places.collect(engine="streaming")["part"])
        for path in paths:
            if str(path) in parts:
                with lake.open_part(SAMPLES, ids.dataset_id, path.name) as file:
                    yield from _from_part(path, file, sample_ids)


def _from_part(path: Path, file: pq.ParquetFile, sample_ids: set[str]) -> Iterator[tuple[str, bytes]]:
    places = pl.scan_parquet(path).select("sample_id").with_row_index("at")
    wanted = dict(places.filter(pl.col("sample_id").is_in(sorted(sample_ids))).select("at", "sample_id").collect().iter_rows())
    start = 0
    for group in range(file.num_row_groups):
        stop = start + file.metadata.row_group(group).num_rows
        mine = {at - start: sample_id for at, sample_id in wanted.items() if start <= at < stop}
        images = file.read_row_group(group, columns=["image"])["image"] if mine else None
        for at, sample_id in mine.items():
            content = (images[at].as_py() or {}).get("bytes") if images is not None else None
            if content:
                yield sample_id, content
        start = stop
