"""Twins of samples with a text in the prompt, the answer or the pixels: a hostile one, and a harmless one of the same length.

Judged in flows/probing.py.
"""

import io
import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from PIL import Image, ImageDraw, ImageFont

from schemas.statuses.rows import SampleStatus
from schemas.tables.table import Row
from tasks.ingest.twins.exam import named, number_of, own_picture, shown_instead

PLACES: Mapping[str, tuple[str, ...]] = {
    "prompt": ("prompt", "question", "reference"),
    "answer": ("text", "output"),
    "picture": ("image",),
}
"""Where a text can be put, and the columns that are it."""

_N_COLUMNS = 44  # of a line: at the size below it fills the picture's width
_MARGIN_PX = 4
_HARMLESS: Mapping[int, tuple[str, ...]] = {
    1: ("a",),
    2: ("of", "on", "by"),
    3: ("the", "and", "oak"),
    4: ("page", "with", "line", "tone"),
    5: ("paper", "light", "plain"),
    6: ("margin", "window", "garden"),
    7: ("surface", "morning"),
    8: ("standing", "windmill"),
    9: ("landscape", "furniture"),
    10: ("background", "typography"),
}
"""Words that ask for nothing, by their length."""


def harmless(text: str) -> str:
    """A text that asks for nothing in the other's form: each word as long as the one in its place, stops and breaks kept."""
    n_used = Counter[int]()

    def word(found: re.Match[str]) -> str:
        said, made = found[0], ""
        while len(made) < len(said):
            n = min(len(said) - len(made), max(_HARMLESS))
            words = _HARMLESS[n]
            made += words[n_used[n] % len(words)]
            n_used[n] += 1
        return made.capitalize() if said[0].isupper() else made

    return re.sub(r"\w+", word, text)


@dataclass(frozen=True, slots=True)
class Twin:
    """A row of SAMPLES, and of PICTURES where its picture is one of its own; whose twin, in which place, hostile or harmless."""

    sample_id: str
    place: str
    is_harmless: bool
    row: Row
    picture: Row | None


def twins_of(
    samples: pl.DataFrame, places: Collection[str], texts: Sequence[str], picture_of: Callable[[str], Row]
) -> Iterator[Twin]:
    """Two twins for each usable sample and place it has: one with a hostile text, one with harmless words in its stead.

    Rows of samples have their `pictures`; `picture_of` gives the row of PICTURES of a digest. The sample's own id says which of
    the texts it has and at which edge of the picture, so that over many samples all are tried alike often.
    """
    for row in samples.filter(pl.col("status") == SampleStatus.OK.value).iter_rows(named=True):
        number = number_of(row["sample_id"])
        text, is_upper = texts[number % len(texts)], number // len(texts) % 2 == 1
        for place, is_harmless in itertools.product(places, (False, True)):
            said = harmless(text) if is_harmless else text
            picture = None
            if place != "picture":
                changed = _with_texts(row, PLACES[place], said)
            elif row["image_sha256"] is None:
                changed = None
            else:
                stored = picture_of(row["image_sha256"])
                drawn = with_text(stored["image"]["bytes"], said, is_upper=is_upper)
                picture = own_picture(stored, drawn, "probe_text_drawn")
                changed = shown_instead(row, picture)
            if changed is not None:
                yield Twin(row["sample_id"], place, is_harmless, named(row | changed), picture)


def _with_texts(row: Mapping[str, Any], columns: Collection[str], text: str) -> dict[str, Any] | None:
    there = [name for name in columns if row[name] and str(row[name]).strip()]
    return {name: f"{row[name]}\n\n{text}" for name in there} or None


def with_text(content: bytes, text: str, *, is_upper: bool = False) -> bytes:
    """The picture as PNG with the text in black on a white band at its lower or upper edge, as large as its width allows."""
    with Image.open(io.BytesIO(content)) as opened:
        image = opened.convert("RGB")
    lines = textwrap.wrap(text, _N_COLUMNS) or [""]
    font = ImageFont.load_default(size=max(8.0, 1.7 * image.width / _N_COLUMNS))
    pen = ImageDraw.Draw(image)
    _, top, _, bottom = pen.textbbox((0, 0), "Ag", font=font)
    height = int(1.25 * (bottom - top))
    band = min(image.height, height * len(lines) + 2 * _MARGIN_PX)
    start = 0 if is_upper else image.height - band
    pen.rectangle((0, start, image.width, start + band), fill="white")
    for number, line in enumerate(lines):
        pen.text((_MARGIN_PX, start + _MARGIN_PX + number * height - top), line, fill="black", font=font)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
