"""The request key: sha256 over canonical JSON of everything that can change an answer. What is planned is rows.py."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import orjson

from schemas.identities import canonical_json

DIGEST_SLOT = secrets.token_hex(32)
"""Stands for a digest in what is rendered once for many pictures or samples. Drawn anew in each process, as long
as a digest, and never stored: no sample's text can hold it."""

_SLOT = DIGEST_SLOT.encode()


def canonical_messages(
    messages: Sequence[Mapping[str, object]], shown: Mapping[str, str | int] = MappingProxyType({})
) -> tuple[bytes, int]:
    """The rendered messages as canonical JSON with DIGEST_SLOT at each picture, and the number of pictures.

    `shown` says how the pictures are shown where that is not as they are (Judge.shown): it stands beside each.
    """
    n_images = 0
    listed: list[Mapping[str, object]] = []
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            said = {"sha256": DIGEST_SLOT} | ({"shown": dict(shown)} if shown else {})
            parts = [part | said if part["type"] == "image" else part for part in content]
            n_images += sum(part["type"] == "image" for part in parts)
            listed.append({**message, "content": parts})
        else:
            listed.append(message)
    return canonical_json(listed), n_images


def filled(content: bytes, digest: str) -> bytes:
    """The content with `digest` at every DIGEST_SLOT."""
    return content.replace(_SLOT, digest.encode())


@dataclass(frozen=True, slots=True)
class KeyTemplate:
    """The canonical JSON of a request, read up to its first DIGEST_SLOT, and the pieces that follow each slot.

    Requests that differ in one digest alone share it: what comes before the digest is hashed once.
    """

    begun: Any  # a sha256 object; only copies of it are fed
    rest: tuple[bytes, ...]

    def key(self, digest: bytes) -> bytes:
        """The request key, 32 bytes; `digest` (hexadecimal) stands in every slot."""
        hasher = self.begun.copy()
        for piece in self.rest:
            hasher.update(digest + piece)
        found: bytes = hasher.digest()
        return found


def key_template(*, messages: bytes | None, judge: Mapping[str, object], repeat: int, occasion: str, facts: bytes) -> KeyTemplate:
    """What the keys of one question have in common.

    `messages` is canonical JSON with a slot for each picture, None where nothing is sent: the slot is then the sample's id.
    `judge` holds what all requests of a rubric's variant and judge share: model, parameters, rubric_id, rubric_version,
    `deployment` where one is named, and `shown` where pictures are not shown as they are (a question without a picture is then
    another one, too: its reply is this judge's own).
    """
    asked = {"sample_id": DIGEST_SLOT} if messages is None else {"messages": orjson.Fragment(messages)}
    content = {**judge, **asked, "facts": orjson.Fragment(facts), "occasion": occasion, "repeat": repeat}
    first, *rest = orjson.dumps(content, option=orjson.OPT_SORT_KEYS).split(_SLOT)
    return KeyTemplate(sha256(first), tuple(rest))
