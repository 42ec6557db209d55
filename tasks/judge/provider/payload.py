"""Bodies with a picture in them: JSON around it, and the picture encoded while it is sent. Which JSON: the providers."""

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson
from pybase64 import b64encode

from schemas.errors import InputError
from tasks.judge.provider.base import RequestPicture

_MARKER = secrets.token_hex(16)
"""Stands for the picture until it is spliced in. Drawn anew in each process: no text can have been written to hold it."""

PIECE_BYTES = 96 * 1024
"""Of a picture, encoded at a time: 128 KB of base64. A multiple of three, so that the pieces' base64 is that of the whole."""


class SplicedPayload:
    """The JSON of a request: what stands around the picture, and the picture encoded as it is sent."""

    __slots__ = ("_image", "_texts", "n_bytes", "on_start")

    def __init__(self, texts: Sequence[bytes], image: bytes | memoryview) -> None:
        self._texts = texts
        self._image = image
        self.on_start: Callable[[], None] = _nothing
        n_encoded = 4 * -(-len(image) // 3)
        self.n_bytes = sum(map(len, texts)) + (len(texts) - 1) * n_encoded

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of about 128 KB; the picture's bytes are given up with the last of them."""
        self.on_start()
        image, self._image = self._image, b""
        first, *others = self._texts
        held = first
        for number, text in enumerate(others, 1):
            for start in range(0, len(image), PIECE_BYTES):
                held += b64encode(image[start : start + PIECE_BYTES])
                if len(held) >= PIECE_BYTES:
                    yield held
                    held = b""
            if number == len(others):
                image = b""
            held += text
        yield held


def _nothing() -> None:
    """What a body does at its start where nobody waits for that."""


def spliced(
    content: Callable[[str], object], n_images: int, picture: RequestPicture | None, before: bytes = b""
) -> SplicedPayload:
    """The JSON that `content` makes of a text standing for the picture, with `before` and the picture as base64 in its place.

    No JSON library walks over the picture. Raises what the picture's `read` raises.
    """
    if n_images and picture is None:
        raise ValueError("the messages hold a picture and none was given")
    marker = _MARKER
    while len(texts := orjson.dumps(content(marker)).split(marker.encode())) != 1 + n_images:
        marker = secrets.token_hex(16)  # a text holds the marker: take another
    if not n_images or picture is None:
        return SplicedPayload(texts, b"")
    return SplicedPayload([text + before for text in texts[:-1]] + texts[-1:], picture.read())


def n_images(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many times the picture stands in rendered messages."""
    return sum(part["type"] == "image" for m in messages if isinstance(m["content"], list) for part in m["content"])


def refuse(parameters: Mapping[str, object], reasons: Mapping[str, str]) -> None:
    """Raise InputError where a judge's parameters hold one of these names; the reason says what to do instead."""
    for name in parameters:
        if name in reasons:
            raise InputError(f"{name} cannot be set there; {reasons[name]}")


def without(schema: Any, names: Collection[str]) -> Any:
    """A JSON schema less the keywords of these names; properties keep theirs."""
    if isinstance(schema, list):
        return [without(one, names) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name not in names}
    return {
        name: {key: without(one, names) for key, one in value.items()} if name == "properties" else without(value, names)
        for name, value in kept.items()
    }
