"""Who a sample is: sample_id and dataset_id. What stands in a sample is decided elsewhere."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from schemas.records import IMAGE, Sample, texts_of
from schemas.statuses.rows import SampleStatus

ID_BYTES = 32
_UNNAMED = "source-0"  # as source_name() calls the first that has no name
_WRAP = 1 << 256
IDS_AT_ONCE = 100_000  # sorted together: some 20 MB with their text
Ids: TypeAlias = npt.NDArray[np.bytes_]


def sample_id(sample: Sample, image_sha256: str | None, status: SampleStatus, pictures: Sequence[tuple[str, str]] = ()) -> str:
    """sha256 (hexadecimal) of the sample's content (pictures as shown, texts) and role (model, checkpoint, item, seed).

    `pictures`: role and digest of each in order; hashed only where there is more than one picture in the role `image`.
    Where it stands does not matter, except for a sample that cannot be used: its content is unknown or not its own, so
    source, source_key and status are hashed too.
    """
    identity: dict[str, object] = {
        "image_sha256": image_sha256,
        "texts": dict(sample.texts),
        "model": sample.model,
        "checkpoint": sample.checkpoint,
        "item_id": sample.item_id,
        "seed": sample.seed,
    }
    if any(picture != (IMAGE, image_sha256) for picture in pictures) or len(pictures) > 1:
        identity["pictures"] = [list(picture) for picture in pictures]
    if status is not SampleStatus.OK:
        identity |= {"source": sample.source, "source_key": sample.source_key, "status": status.value}
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def id_of_row(row: Mapping[str, Any], status: SampleStatus) -> str:
    """The sample_id of a row of the samples table, were this its status."""
    who = row["source"], row["source_key"], row["model"], row["checkpoint"]
    sample = Sample(*who, texts_of(row), row["item_id"], row["seed"])
    pictures = [(one["role"], one["sha256"]) for one in row.get("pictures") or ()]
    return sample_id(sample, row["image_sha256"], status, pictures)


def dataset_id(ids: Sequence[bytes], of_sources: int = 0, n_at_once: int = IDS_AT_ONCE) -> str:
    """sha256 (hexadecimal) over the sorted sample ids, hexadecimal and joined by line feeds. `ids` are packed, in any order.

    `of_sources`: the sum of what named_sources() says of them; no line of it where that is 0.
    """
    digest = hashlib.sha256()
    separator = b""
    for some in in_order(ids, n_at_once):
        digest.update(separator + some.tobytes().hex("\n", ID_BYTES).encode())
        separator = b"\n"
    if of_sources:
        digest.update(f"\n{of_sources % _WRAP:064x}".encode())
    return digest.hexdigest()


def named_sources(ids: Iterable[str], sources: Iterable[str]) -> int:
    """Which sample is of which source, in any order and any parts: the sum of sha256(id + source); 0 for one unnamed source.

    Rubrics are for sources by name, so the same samples under other names are another dataset. That of a sole source without a
    name, and of its anchors and twins, is known by its samples alone, as it always was.
    """
    named = ((one + source).encode() for one, source in zip(ids, sources, strict=True) if source.rpartition("/")[2] != _UNNAMED)
    return sum(int.from_bytes(hashlib.sha256(text).digest()) for text in named)


def packed(sample_ids: Iterable[str]) -> bytes:
    """Sample ids in 32 bytes each, one behind the other: a third of what a column of texts takes. Raises ValueError."""
    return bytes.fromhex("".join(sample_ids))


def unpacked(ids: bytes) -> Ids:
    """Packed ids as an array that compares and sorts as their hexadecimal texts do."""
    return np.frombuffer(ids, f"S{ID_BYTES}")


def in_order(ids: Sequence[bytes], n_at_once: int = IDS_AT_ONCE) -> Iterator[Ids]:
    """All packed ids sorted, in arrays of some `n_at_once`; none is empty.

    Ids are digests, so that ranges of their first byte hold about as many each: one range after the other is sorted.
    """
    n_ranges = min(256, max(1, sum(map(len, ids)) // ID_BYTES // n_at_once))
    for number in range(n_ranges):
        found = np.concatenate([np.empty(0, f"S{ID_BYTES}"), *(unpacked(one)[_is_in(one, number, n_ranges)] for one in ids)])
        if found.size:
            found.sort()
            yield found


def _is_in(ids: bytes, number: int, n_ranges: int) -> npt.NDArray[np.bool_]:
    first_bytes = np.frombuffer(ids, np.uint8)[::ID_BYTES].astype(np.uint16)
    found: npt.NDArray[np.bool_] = (first_bytes * np.uint16(n_ranges) >> 8) == number
    return found
