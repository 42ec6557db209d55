"""Samples held against what names them: pictures against their digests, rows against their ids. Nothing is read from sources."""

import hashlib
from collections.abc import Iterator
from typing import Any

import polars as pl

from schemas.records import SAMPLE_TEXTS, Sample
from schemas.statuses import SampleStatus
from tasks.ingest.identity import sample_id
from tasks.ingest.text_flags import text_flags

_PLAIN = [
    "sample_id", "source", "source_key", "model", "checkpoint", *SAMPLE_TEXTS, "item_id", "seed", "status", "image_sha256",
    "text_flags",
]  # fmt: skip
_STATUSES = frozenset(status.value for status in SampleStatus)


def changed_samples(samples: pl.DataFrame) -> Iterator[tuple[str, str, str | None, str | None]]:
    """(sample_id, column, stored, computed) wherever picture and texts do not give the digests and flags beside them."""
    for row in samples.select(*_PLAIN, "image").iter_rows(named=True):
        picture = row["image"]
        if picture is not None:
            digest = hashlib.sha256(picture["bytes"]).hexdigest()
            if digest != row["image_sha256"]:
                yield row["sample_id"], "image", row["image_sha256"], digest
        elif row["status"] == SampleStatus.OK and row["image_sha256"] is not None:
            yield row["sample_id"], "image", row["image_sha256"], None
        sample = _sample(row)
        flags = text_flags(sample.texts)
        if flags != row["text_flags"]:
            yield row["sample_id"], "text_flags", row["text_flags"], flags
        if row["status"] not in _STATUSES:
            yield row["sample_id"], "status", row["status"], None
            continue
        computed = sample_id(sample, row["image_sha256"], SampleStatus(row["status"]))
        if computed != row["sample_id"]:
            yield row["sample_id"], "sample_id", row["sample_id"], computed


def _sample(row: dict[str, Any]) -> Sample:
    return Sample(
        source=row["source"],
        source_key=row["source_key"],
        model=row["model"],
        checkpoint=row["checkpoint"],
        texts={name: row[name] for name in SAMPLE_TEXTS},
        item_id=row["item_id"],
        seed=row["seed"],
    )
