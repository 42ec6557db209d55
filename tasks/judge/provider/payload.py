"""Bodies with pictures in them: JSON around them, and each picture encoded while it is sent. Which JSON: the providers."""

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson
from pybase64 import b64encode

from schemas.errors import InputError
from tasks.judge.provider.exchange import RequestPicture

_MARKER = secrets.token_hex(16)
"""Stands for the picture until it is spliced in. Drawn anew in each process: no text can have been written to hold it."""

PIECE_BYTES = 96 * 1024
"""Of a picture, encoded at a time: 128 KB of base64. A multiple of three, so that the pieces' base64 is that of the whole."""


class SplicedPayload:
    """The JSON of a request: what stands around the pictures, and the pictures encoded as they are sent."""

    __slots__ = ("_images", "_texts", "n_bytes", "on_start")

    def __init__(self, texts: Sequence[bytes], images: Sequence[bytes | memoryview]) -> None:
        self._texts = texts
        self._images = list(images)
        self.on_start: Callable[[], None] = _nothing
        self.n_bytes = sum(map(len, texts)) + sum(4 * -(-len(image) // 3) for image in images)

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of about 128 KB; a picture's bytes are given up with the last of them."""
        self.on_start()
        first, *others = self._texts
        held = first
        self._images.reverse()
        for text in others:
            image = self._images.pop()
            for start in range(0, len(image), PIECE_BYTES):
                held += b64encode(image[start : start + PIECE_BYTES])
                if len(held) >= PIECE_BYTES:
                    yield held
                    held = b""
            image = b""
            held += text
        yield held


def _nothing() -> None:
    """What a body does at its start where nobody waits for that."""


def spliced(
    content: Callable[[str], object],
    n_images: int,
    pictures: Sequence[RequestPicture],
    before: Callable[[RequestPicture], bytes] = lambda _: b"",
) -> SplicedPayload:
    """The JSON that `content` makes of a text standing for each picture, with `before` and the pictures as base64 in its places.

    No JSON library walks over a picture. Raises what the pictures' `read` raises.
    """
    if n_images != len(pictures):
        raise ValueError(f"the messages hold {n_images} pictures, but {len(pictures)} were given")
    marker = _MARKER
    while len(texts := orjson.dumps(content(marker)).split(marker.encode())) != 1 + n_images:
        marker = secrets.token_hex(16)  # a text holds the marker: take another
    starts = [*map(before, pictures), b""]
    return SplicedPayload([text + start for text, start in zip(texts, starts, strict=True)], [one.read() for one in pictures])


def media_type(picture: RequestPicture) -> str:
    """What its bytes are."""
    return f"image/{picture.image_format.lower()}"


def n_images(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many pictures stand in rendered messages."""
    return sum(part["type"] == "image" for m in messages if isinstance(m["content"], list) for part in m["content"])


def refuse(parameters: Mapping[str, object], reasons: Mapping[str, str]) -> None:
    """Raise InputError where a judge's parameters hold one of these names; the reason says what to do instead."""
    for name in parameters:
        if name in reasons:
            raise InputError(f"{name} cannot be set here; {reasons[name]}")


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
