"""What one request costs: the published prices and picture rules, and its tokens, counted by the provider's own code.

Prices in USD per million tokens: https://platform.openai.com/docs/pricing (the Batch API is half). Picture rules:
https://platform.openai.com/docs/guides/images-vision ("Calculating costs"). Both as quoted there in November 2026.
The difficult provider keeps this table for itself, so that a client's estimate is held against other code than its own.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from math import ceil, sqrt
from typing import Any

from PIL import Image, UnidentifiedImageError

from demo.world import JUDGE


@dataclass(frozen=True, slots=True)
class Tiles:
    """Pictures counted in tiles of 512 px, after scaling down into 2048 px and to a shortest side of 768 px."""

    base: int = 85
    tile: int = 170

    def n_tokens(self, width_px: int, height_px: int, detail: str) -> int:
        """Tokens of one picture; detail "low" costs the base alone.

        Nothing is scaled up and sides are rounded: 128 x 64 px was billed as one tile, 2049 x 513 px as eight, 2050 x 513 px
        as four (measured bills in community.openai.com threads 1262691 and 1281361).
        """
        if detail == "low":
            return self.base
        width, height = float(width_px), float(height_px)
        for side, most in ((max, 2048), (min, 768)):
            scale = most / side(width, height)
            if scale < 1:
                width, height = max(1, round(width * scale)), max(1, round(height * scale))
        return self.base + self.tile * ceil(width / 512) * ceil(height / 512)


@dataclass(frozen=True, slots=True)
class Patches:
    """Pictures counted in patches of 32 px, at most 1536 of them, times the model's factor; detail makes no difference."""

    factor: float
    most: int = 1536

    def n_tokens(self, width_px: int, height_px: int, _detail: str) -> int:
        """Tokens of one picture; a larger one is scaled down until a whole number of patches fits both ways."""
        width, height = float(width_px), float(height_px)
        if ceil(width / 32) * ceil(height / 32) > self.most:
            scale = sqrt(32 * 32 * self.most / (width * height))
            across, down = width * scale / 32, height * scale / 32
            scale *= min(int(across) / across, int(down) / down)
            width, height = width * scale, height * scale
        return ceil(min(self.most, ceil(round(width / 32, 6)) * ceil(round(height / 32, 6))) * self.factor)


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million input and output tokens, and how a picture counts."""

    input_usd: float
    output_usd: float
    image: Tiles | Patches = Tiles()


_PUBLISHED = {
    "gpt-4.1": Price(2.00, 8.00),
    "gpt-4.1-mini": Price(0.40, 1.60, Patches(1.62)),
    "gpt-4.1-nano": Price(0.10, 0.40, Patches(2.46)),
    "gpt-4o": Price(2.50, 10.00),
    "gpt-4o-2024-05-13": Price(5.00, 15.00),
    "gpt-4o-mini": Price(0.15, 0.60, Tiles(2833, 5667)),
    JUDGE: Price(0.0, 0.0),  # the demo's own, which nobody bills
}


def published(model: str) -> Price | None:
    """The published price of a model: by its own name, or by its family's where a date follows. None where not known."""
    if model in _PUBLISHED:
        return _PUBLISHED[model]
    family, separator, date = model[:-11], model[-11:-10], model[-10:]
    is_dated = separator == "-" and date.replace("-", "").isdigit()
    return _PUBLISHED.get(family) if is_dated else None


_TOKENS_PER_MESSAGE = 3  # and once more for the answer's start: OpenAI cookbook, "How to count tokens with tiktoken"
_HEAD_CHARACTERS = 64 * 1024  # of base64: a picture's size stands in its first bytes, behind at most some metadata
# The pieces byte-pair encoders split text into first: a word with the space before it, up to three digits, signs, white space.
_PIECE = re.compile(r" ?[^\W\d_]+| ?\d{1,3}| ?(?:[^\w\s]|_)+|\s+")


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one answered request."""

    n_input_tokens: int
    n_output_tokens: int

    def as_json(self) -> dict[str, Any]:
        """The form of the API."""
        return {
            "prompt_tokens": self.n_input_tokens,
            "completion_tokens": self.n_output_tokens,
            "total_tokens": self.n_input_tokens + self.n_output_tokens,
        }


def usd(price: Price, usage: Usage) -> float:
    """The price of that many tokens."""
    return (usage.n_input_tokens * price.input_usd + usage.n_output_tokens * price.output_usd) / 1e6


def n_input_tokens(messages: Sequence[Mapping[str, Any]], image: Tiles | Patches) -> int:
    """Tokens of the messages: their texts, their pictures, and 3 for each message and for the answer's start."""
    total = _TOKENS_PER_MESSAGE
    for message in messages:
        total += _TOKENS_PER_MESSAGE
        content = message.get("content")
        parts: Sequence[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for part in parts:
            if part.get("type") == "image_url":
                total += _n_image_tokens(part["image_url"], image)
            else:
                total += n_text_tokens(str(part.get("text", "")))
    return total


@lru_cache(maxsize=4096)
def n_text_tokens(text: str) -> int:
    """Tokens of a text, approximately: one for a piece, more for long words and for letters beyond ASCII.

    No vocabulary is at hand, so this is the shape of the published encoders, not their table.
    """
    return sum(_n_piece_tokens(piece) for piece in _PIECE.findall(text))


def _n_piece_tokens(piece: str) -> int:
    if not piece.isascii():
        return ceil(len(piece.encode(errors="replace")) / 3)
    if piece.isspace():
        return 1
    word = piece.strip()
    return ceil(len(word) / (12 if word[0].isalnum() else 4))


def _n_image_tokens(image_url: Mapping[str, Any], rule: Tiles | Patches) -> int:
    size = _size_px(str(image_url["url"]))
    return rule.n_tokens(*size, str(image_url.get("detail", "auto"))) if size else 0


def _size_px(url: str) -> tuple[int, int] | None:
    """Width and height of a data URL's picture; None where it is none."""
    encoded = url[: _HEAD_CHARACTERS + 100].partition(";base64,")[2]
    encoded = encoded[: len(encoded) // 4 * 4]
    try:
        with Image.open(BytesIO(base64.b64decode(encoded)), formats=("PNG", "JPEG", "WEBP", "GIF")) as picture:
            return picture.size
    except (UnidentifiedImageError, binascii.Error, OSError, ValueError, SyntaxError, TypeError):
        return None
