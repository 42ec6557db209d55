"""Twins of samples: the same rows with a hostile text in the prompt, the answer or the pixels. Judged in flows/probing.py."""

import hashlib
import io
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import polars as pl
from PIL import Image, ImageDraw, ImageFont

from schemas.records import IMAGE, texts_of
from schemas.statuses import SampleStatus
from tasks.ingest.identity import id_of_row
from tasks.ingest.text_flags import text_flags

PLACES: Mapping[str, tuple[str, ...]] = {
    "prompt": ("prompt", "question", "reference"),
    "answer": ("text", "output"),
    "picture": ("image",),
}
"""Where a text can be put, and the columns that are it."""

_N_COLUMNS = 44  # of a line: at the size below it fills the picture's width
_MARGIN_PX = 4


def twins_of(
    samples: pl.DataFrame, places: Collection[str], text: str, picture_of: Callable[[str], dict[str, Any]]
) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any] | None]]:
    """(sample_id of the original, place, row of the twin, row of its own picture) for each usable sample and place it has.

    Rows are of SAMPLES, with their `pictures`, and of PICTURES: `picture_of` gives the one of a digest.
    """
    for row in samples.filter(pl.col("status") == SampleStatus.OK.value).iter_rows(named=True):
        for place in places:
            picture = None
            if place != "picture":
                changed = _with_texts(row, PLACES[place], text)
            elif row["image_sha256"] is None:
                changed = None
            else:
                picture = _with_text_drawn(picture_of(row["image_sha256"]), text)
                changed = {name: value for name, value in picture.items() if name != IMAGE}
                digests = {row["image_sha256"]: picture["image_sha256"]}
                changed["pictures"] = [
                    one | {"sha256": digests.get(one["sha256"], one["sha256"])} if one["role"] == IMAGE else one
                    for one in row["pictures"]
                ]
            if changed is not None:
                yield row["sample_id"], place, _named(row | changed), picture


def _with_texts(row: Mapping[str, Any], columns: Collection[str], text: str) -> dict[str, Any] | None:
    there = [name for name in columns if row[name] and str(row[name]).strip()]
    return {name: f"{row[name]}\n\n{text}" for name in there} or None


def _with_text_drawn(picture: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The row of the picture with the text drawn on it."""
    shown = with_text(picture["image"]["bytes"], text)
    digest = hashlib.sha256(shown).hexdigest()
    return dict(picture) | {
        "image": {"bytes": shown, "path": picture["image"]["path"]}, "image_sha256": digest, "file_sha256": digest,
        "image_format": "PNG", "image_treatment": "probe_text_drawn", "n_bytes": len(shown),
    }  # fmt: skip


def _named(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"sample_id": id_of_row(row, SampleStatus.OK), "text_flags": text_flags(texts_of(row))}


def with_text(content: bytes, text: str) -> bytes:
    """The picture as PNG with the text in black on a white band at its lower edge, as large as its width allows."""
    with Image.open(io.BytesIO(content)) as opened:
        image = opened.convert("RGB")
    lines = textwrap.wrap(text, _N_COLUMNS) or [""]
    font = ImageFont.load_default(size=max(8.0, 1.7 * image.width / _N_COLUMNS))
    pen = ImageDraw.Draw(image)
    _, top, _, bottom = pen.textbbox((0, 0), "Ag", font=font)
    height = int(1.25 * (bottom - top))
    band = min(image.height, height * len(lines) + 2 * _MARGIN_PX)
    pen.rectangle((0, image.height - band, image.width, image.height), fill="white")
    for number, line in enumerate(lines):
        pen.text((_MARGIN_PX, image.height - band + _MARGIN_PX + number * height - top), line, fill="black", font=font)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
