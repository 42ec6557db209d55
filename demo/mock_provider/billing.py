"""What one request costs: its tokens, counted by the provider's own code. Prices and picture rules are in prices.py."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from math import ceil
from typing import Any

from PIL import Image, UnidentifiedImageError

from demo.mock_provider.prices import Patches, Price, Tiles

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
