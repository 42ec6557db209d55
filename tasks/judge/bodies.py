"""Request bodies: a planned request and its picture as the bytes that are sent. What comes back is answers.py."""

import base64
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from schemas.errors import InputError

NOT_PARAMETERS = {
    "model": "name it as the judge's model",
    "messages": "the rubric has them",
    "stream": "replies are read whole",
    "n": "use repeats",
}
"""Keys of a request that a judge's `parameters` may not hold, and what to do instead."""

_MARKER = secrets.token_hex(16)
"""Stands for the picture until it is spliced in. Drawn anew in each process: no text can have been written to hold it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture's bytes as the judge is shown them, their format (PNG, JPEG, WEBP), and its size where that is known."""

    content: bytes
    image_format: str
    width_px: int | None = None
    height_px: int | None = None


def check_parameters(parameters: Mapping[str, object]) -> None:
    """Raise InputError where a judge's parameters would change what Salon sends beyond sampling."""
    for name in parameters:
        if name in NOT_PARAMETERS:
            raise InputError(f"judges.parameters: {name} cannot be set there; {NOT_PARAMETERS[name]}")


def request_body(
    judge_model: str, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], picture: Picture | None
) -> bytes:
    """The JSON body of a chat completion. The picture is spliced in as base64, so no JSON library walks over it."""
    marker = _MARKER
    while True:
        listed = [_sendable(message, marker) for message in messages]
        skeleton = orjson.dumps({**parameters, "model": judge_model, "messages": listed})
        pieces = skeleton.split(marker.encode())
        if len(pieces) == 1 + _n_images(messages):
            break
        marker = secrets.token_hex(16)  # a text holds the marker: take another
    if len(pieces) == 1:
        return skeleton
    if picture is None:
        raise ValueError("the messages hold a picture and none was given")
    start, encoded = f"data:image/{picture.image_format.lower()};base64,".encode(), base64.b64encode(picture.content)
    woven = [pieces[0]]
    for piece in pieces[1:]:
        woven += (start, encoded, piece)
    return b"".join(woven)  # one copy of the picture, however large


def _sendable(message: Mapping[str, Any], marker: str) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, list):
        image = {"type": "image_url", "image_url": {"url": marker}}
        content = [image if part["type"] == "image" else part for part in content]
    return {"role": message["role"], "content": content}


def _n_images(messages: Sequence[Mapping[str, Any]]) -> int:
    return sum(part["type"] == "image" for m in messages if isinstance(m["content"], list) for part in m["content"])
