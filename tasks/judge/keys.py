"""The request key: sha256 over canonical JSON of everything that can change an answer. What is planned is plan.py."""

import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256

import orjson

DIGEST_SLOT = secrets.token_hex(32)
"""Stands for the picture's digest in messages that are rendered once for many pictures. Drawn anew in each process, as long
as a digest, and never stored: no sample's text can hold it."""


def canonical_json(value: object) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces: equal values, equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def canonical_messages(messages: Sequence[Mapping[str, object]]) -> tuple[bytes, int]:
    """The rendered messages as canonical JSON with DIGEST_SLOT at each picture, and the number of pictures."""
    n_images = 0
    listed: list[Mapping[str, object]] = []
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            parts = [part | {"sha256": DIGEST_SLOT} if part["type"] == "image" else part for part in content]
            n_images += sum(part["type"] == "image" for part in parts)
            listed.append({**message, "content": parts})
        else:
            listed.append(message)
    return canonical_json(listed), n_images


def request_key(
    *, asked: Mapping[str, bytes | str], judge: Mapping[str, object], repeat: int, occasion: str, facts: bytes
) -> str:
    """sha256 (hexadecimal) of one request.

    `asked` is {"messages": canonical JSON} or, where nothing is sent, {"sample_id": digest}; `judge` holds the parts all
    requests of a rubric and judge share: model, parameters, rubric_id, rubric_version.
    """
    content = {
        **judge,
        **{name: orjson.Fragment(value) if isinstance(value, bytes) else value for name, value in asked.items()},
        "facts": orjson.Fragment(facts),
        "occasion": occasion,
        "repeat": repeat,
    }
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
