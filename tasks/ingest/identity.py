"""Who a sample is: sample_id and dataset_id. What stands in a sample is decided elsewhere."""

import hashlib
import json
from collections.abc import Iterable

from schemas.records import Sample
from schemas.statuses import SampleStatus


def sample_id(sample: Sample, image_sha256: str | None, status: SampleStatus) -> str:
    """sha256 (hexadecimal) of the sample's content (image as shown, texts) and role (model, checkpoint, item, seed).

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
    if status is not SampleStatus.OK:
        identity |= {"source": sample.source, "source_key": sample.source_key, "status": status.value}
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def dataset_id(sorted_sample_ids: Iterable[str]) -> str:
    """sha256 (hexadecimal) over the sorted sample ids, joined by line feeds."""
    digest = hashlib.sha256()
    for index, one in enumerate(sorted_sample_ids):
        digest.update(f"\n{one}".encode() if index else one.encode())
    return digest.hexdigest()
