"""The body of a chat completion from a planned request. How pictures are spliced in is ../payload.py."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tasks.judge.provider.exchange import RequestPicture
from tasks.judge.provider.payload import SplicedPayload, media_type, n_images, refuse, spliced

NOT_PARAMETERS = {
    "model": "set the judge's model instead",
    "messages": "the rubric defines them",
    "stream": "replies are read whole",
    "n": "use repeats",
}
"""Keys of a request that a judge's `parameters` may not hold, and what to do instead."""


def check_parameters(parameters: Mapping[str, object]) -> None:
    """Raise InputError where a judge's parameters would change what Salon sends beyond sampling."""
    refuse(parameters, NOT_PARAMETERS)


def make_payload(
    judge_model: str, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], pictures: Sequence[RequestPicture]
) -> SplicedPayload:
    """The body of a chat completion. Raises what the pictures' `read` raises."""

    def content(marker: str, urls: Sequence[str] = ()) -> dict[str, object]:
        named = iter(urls)
        return {**parameters, "model": judge_model, "messages": [_sendable(message, marker, named) for message in messages]}

    urls = [picture.url for picture in pictures if picture.url is not None]
    if urls and len(urls) == len(pictures) == n_images(messages):
        return SplicedPayload([orjson.dumps(content("", urls))], [])
    return spliced(content, n_images(messages), pictures, lambda picture: f"data:{media_type(picture)};base64,".encode())


def _sendable(message: Mapping[str, Any], marker: str, urls: Iterator[str]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, list):
        content = [_image(part, next(urls, marker)) if part["type"] == "image" else part for part in content]
    return {"role": message["role"], "content": content}


def _image(part: Mapping[str, Any], marker: str) -> dict[str, Any]:
    """The picture's place, and the detail it is looked at with where the judge states one."""
    detail = part.get("shown", {}).get("detail")
    return {"type": "image_url", "image_url": {"url": marker} | ({"detail": detail} if detail else {})}
