"""A judge whose blindness is known: of twins with planted faults it notices a share, by kind. The rest it sees as they were.

Which request is about a twin is looked up in the lake the twins were stored in. A fault that is not noticed is taken out of the
messages before the judge looks; one that is noticed leaves it an empty scene to look at, in which nothing is as asked.
"""

import base64
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from demo.drawing import draw_png
from demo.world import Scene
from schemas.benchmark.exam import EXAM, PlantedFault

Message = Mapping[str, Any]
_HEAD = "data:image/png;base64,"
_EMPTY = draw_png(Scene((), is_plain=True))
_TITLE = re.compile(r', titled "[^"\n]{0,120}"')  # the drawn world holds no writing: a title in a prompt is nothing it can see
_PROMPTS = ("prompt", "question")
_OWN = ["sample_id", "item_id", "model", "checkpoint", "image_sha256", *_PROMPTS]


@dataclass(frozen=True, slots=True)
class Known:
    """A twin: what is wrong with it, the texts that ask for it, and the sample it was made of."""

    sample_id: str
    fault: PlantedFault
    texts: tuple[str, ...]
    texts_before: tuple[str, ...]
    picture_before: str  # its digest


class Examined:
    """The twins that stand in the lake, and which are noticed. It is looked at again when another dataset is there."""

    def __init__(self, lake: Path, noticed: Mapping[PlantedFault, float], seed: int) -> None:
        self._lake, self._noticed, self._seed = lake, noticed, seed
        self._datasets: frozenset[str] = frozenset()
        self._twins: dict[str, list[Known]] = {}
        self._pictures: dict[str, bytes] = {}

    def as_seen(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages as the judge takes them in: of a twin either without its fault, or with nothing there."""
        self._look()
        text, digests = _shown(messages)
        twin = next((found for digest in digests if (found := self._twin(digest, text)) is not None), None)
        if twin is None:
            return [_replaced(message, {}, {}) for message in messages]
        seen = _EMPTY if self.is_noticed(twin, text) else self._pictures[twin.picture_before]
        texts = dict(zip(twin.texts, twin.texts_before, strict=True))
        return [_replaced(message, texts, dict.fromkeys(digests, seen)) for message in messages]

    def is_noticed(self, twin: Known, text: str) -> bool:
        """Whether this twin's fault is noticed under this prompt: drawn from the seed, the twin and the texts."""
        drawn = sha256(f"{self._seed} {twin.sample_id} {text}".encode()).digest()[:8]
        return int.from_bytes(drawn) < self._noticed.get(twin.fault, 0.0) * 2**64

    def _twin(self, digest: str, text: str) -> Known | None:
        """The twin whose picture and texts came; None for the untouched sample, whose picture a twin of its prompt shares."""
        found: Known | None = None
        longest = -2  # a twin without such a text is known by its picture alone: -1
        for twin in self._twins.get(digest, ()):
            before = max((len(one) for one in twin.texts_before if one in text), default=-1)
            mine = max((len(one) for one in twin.texts if one in text), default=-1)
            if twin.picture_before == digest and before >= mine:
                return None
            if mine > longest:
                found, longest = twin, mine
        return found

    def _look(self) -> None:
        there = frozenset(path.name for path in (self._lake / "samples").glob("dataset_id=*"))
        if there == self._datasets:
            return
        self._datasets, self._twins, self._pictures = there, defaultdict(list), {}
        paths = sorted((self._lake / "samples").glob("dataset_id=*/*.parquet"))
        rows = pl.concat(pl.read_parquet(path, columns=_OWN, hive_partitioning=False) for path in paths).unique("sample_id")
        by_id = {row["sample_id"]: row for row in rows.iter_rows(named=True)}
        for row in by_id.values():
            own = by_id.get(row["item_id"]) if row["model"] == EXAM else None
            if own is not None and own["image_sha256"]:
                texts = [(row[name], own[name]) for name in _PROMPTS if row[name]]
                after, before = tuple(text for text, _ in texts), tuple(text for _, text in texts)
                known = Known(row["sample_id"], PlantedFault(row["checkpoint"]), after, before, own["image_sha256"])
                self._twins[row["image_sha256"]].append(known)
        wanted = {twin.picture_before for twins in self._twins.values() for twin in twins}
        for path in sorted((self._lake / "pictures").glob("dataset_id=*/*.parquet")):
            held = pl.read_parquet(path, columns=["image_sha256", "image"], hive_partitioning=False)
            for digest, image in held.filter(pl.col("image_sha256").is_in(list(wanted))).iter_rows():
                self._pictures[digest] = image["bytes"]


def _shown(messages: Sequence[Message]) -> tuple[str, list[str]]:
    """All texts, and the digests of the pictures."""
    parts = [part for message in messages for part in _parts(message)]
    text = "\n".join(str(part["text"]) for part in parts if part.get("type") == "text")
    return text, [sha256(_bytes(part)).hexdigest() for part in parts if part.get("type") == "image_url"]


def _parts(message: Message) -> Sequence[Mapping[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _bytes(part: Mapping[str, Any]) -> bytes:
    return base64.b64decode(str(part["image_url"]["url"]).partition(",")[2])


def _replaced(message: Message, texts: Mapping[str, str], pictures: Mapping[str, bytes]) -> Message:
    """The message with these texts and pictures in place of the others, and without titles."""
    parts: list[Mapping[str, Any]] = []
    for part in _parts(message):
        if part.get("type") == "image_url" and pictures:
            seen = pictures[sha256(_bytes(part)).hexdigest()]
            parts.append({"type": "image_url", "image_url": {"url": _HEAD + base64.b64encode(seen).decode()}})
        elif part.get("type") == "text":
            text = str(part["text"])
            for after, before in texts.items():
                text = text.replace(after, before)
            parts.append({"type": "text", "text": _TITLE.sub("", text)})
        else:
            parts.append(part)
    return {**message, "content": parts}
