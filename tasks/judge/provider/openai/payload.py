"""Payloads: a planned request and its picture as the bytes that are sent. What comes back is responses.py."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson
from pybase64 import b64encode

from schemas.errors import InputError
from tasks.judge.provider.base import RequestPicture

NOT_PARAMETERS = {
    "model": "name it as the judge's model",
    "messages": "the rubric has them",
    "stream": "replies are read whole",
    "n": "use repeats",
}
"""Keys of a request that a judge's `parameters` may not hold, and what to do instead."""

_MARKER = secrets.token_hex(16)
"""Stands for the picture until it is spliced in. Drawn anew in each process: no text can have been written to hold it."""


PIECE_BYTES = 96 * 1024
"""Of a picture, encoded at a time: 128 KB of base64. A multiple of three, so that the pieces' base64 is that of the whole."""


def check_parameters(parameters: Mapping[str, object]) -> None:
    """Raise InputError where a judge's parameters would change what Salon sends beyond sampling."""
    for name in parameters:
        if name in NOT_PARAMETERS:
            raise InputError(f"{name} cannot be set there; {NOT_PARAMETERS[name]}")


class ChatPayload:
    """The JSON of a chat completion: what stands around the picture, and the picture encoded as it is sent."""

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


def make_payload(
    judge_model: str, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], picture: RequestPicture | None
) -> ChatPayload:
    """The body of a chat completion. The picture is spliced in as base64, so no JSON library walks over it.

    Raises what the picture's `read` raises.
    """
    marker, n_images = _MARKER, _n_images(messages)
    while True:
        listed = [_sendable(message, marker) for message in messages]
        texts = orjson.dumps({**parameters, "model": judge_model, "messages": listed}).split(marker.encode())
        if len(texts) == 1 + n_images:
            break
        marker = secrets.token_hex(16)  # a text holds the marker: take another
    if not n_images:
        return ChatPayload(texts, b"")
    if picture is None:
        raise ValueError("the messages hold a picture and none was given")
    start = f"data:image/{picture.image_format.lower()};base64,".encode()
    return ChatPayload([text + start for text in texts[:-1]] + texts[-1:], picture.read())


def _sendable(message: Mapping[str, Any], marker: str) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, list):
        content = [_image(part, marker) if part["type"] == "image" else part for part in content]
    return {"role": message["role"], "content": content}


def _image(part: Mapping[str, Any], marker: str) -> dict[str, Any]:
    """The picture's place, and the detail it is looked at with where the judge states one."""
    detail = part.get("shown", {}).get("detail")
    return {"type": "image_url", "image_url": {"url": marker} | ({"detail": detail} if detail else {})}


def _n_images(messages: Sequence[Mapping[str, Any]]) -> int:
    return sum(part["type"] == "image" for m in messages if isinstance(m["content"], list) for part in m["content"])
