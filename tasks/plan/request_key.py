"""The request key: sha256 over canonical JSON of everything that can change an answer. What is planned is rows.py."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any, TypeAlias

import orjson

from schemas.identities import canonical_json
from schemas.records import IMAGE

DIGEST_SLOT = secrets.token_hex(32)
"""Stands for a digest in what is rendered once for many pictures or samples. Drawn anew in each process, as long
as a digest, and never stored: no sample's text can hold it."""

_SLOT = DIGEST_SLOT.encode()


Slot: TypeAlias = tuple[str, int]
"""A picture of a sample by its role and its number in it, from 0."""


def canonical_messages(
    messages: Sequence[Mapping[str, object]], shown: Mapping[str, str | int] = MappingProxyType({})
) -> tuple[bytes, tuple[Slot, ...]]:
    """The rendered messages as canonical JSON with DIGEST_SLOT at each picture of the sample, and which these are, in order.

    `shown` says how the pictures are shown where that is not as they are (Judge.shown): it stands beside each.
    """
    slots: list[Slot] = []
    listed: list[Mapping[str, object]] = []
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            parts = [_canonical(part, shown, slots) if part["type"] == "image" else part for part in content]
            listed.append({**message, "content": parts})
        else:
            listed.append(message)
    return canonical_json(listed), tuple(slots)


def _canonical(part: Mapping[str, Any], shown: Mapping[str, str | int], slots: list[Slot]) -> dict[str, object]:
    """A picture's part as what is sent: its digest, and how it is shown; whose it is makes no other question."""
    if "sha256" not in part:
        slots.append((part.get("role", IMAGE), part.get("index", 0)))
    said = {**part.get("shown", {}), **shown}
    return {"type": "image", "sha256": part.get("sha256", DIGEST_SLOT)} | ({"shown": said} if said else {})


def filled(content: bytes, digests: Sequence[str]) -> bytes:
    """The content with these digests at its DIGEST_SLOTs, in order."""
    if len(digests) == 1:  # nearly always: twice as quick
        return content.replace(_SLOT, digests[0].encode())
    first, *rest = content.split(_SLOT)
    return first + b"".join(digest.encode() + text for digest, text in zip(digests, rest, strict=True))


@dataclass(frozen=True, slots=True)
class KeyTemplate:
    """The canonical JSON of a request, read up to its first DIGEST_SLOT, and the pieces that follow each slot.

    Requests that differ in digests alone share it: what comes before the first is hashed once.
    """

    begun: Any  # a sha256 object; only copies of it are fed
    rest: tuple[bytes, ...]

    def key(self, digests: Sequence[str]) -> bytes:
        """The request key, 32 bytes; `digests` (hexadecimal) stand in the slots, in order."""
        hasher = self.begun.copy()
        for digest, piece in zip(digests, self.rest, strict=True):
            hasher.update(digest.encode() + piece)
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
