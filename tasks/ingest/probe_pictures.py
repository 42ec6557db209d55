"""A picture with a text written into a copy of it, for `salon probe-injection`. Which text and which pictures: probe_twins.py."""

import io
import textwrap

from PIL import Image, ImageDraw, ImageFont

_N_COLUMNS = 44  # of a line: at the size below it fills the picture's width
_MARGIN_PX = 4


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
