"""Anchors: samples of an earlier dataset that are asked anew each night, in a role that no sample of a benchmark has."""

import hashlib
from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from schemas.benchmark.exam import EXAM
from schemas.errors import CorruptLakeError
from schemas.records import UNKNOWN
from schemas.tables.stored import PICTURES, SAMPLES
from tasks.lake.pictures import StoredDataset, digests_in

ANCHORS = "__anchors__"
"""No model, checkpoint or source of a benchmark file has a name that begins so."""
OFF_BOARD = (ANCHORS, EXAM, UNKNOWN)
"""Models of samples that belong to no checkpoint: frozen anchors, twins, and rows of which nobody could read who made them."""


def anchors_of(source: str) -> str:
    """The source of anchors that were taken from this source."""
    return f"{ANCHORS}/{source}"


def as_role(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of samples in the role of an anchor; its sample_id is still that of the sample it was taken from."""
    return dict(row) | {"source": anchors_of(row["source"]), "model": ANCHORS, "checkpoint": ANCHORS}


def read_anchors(anchor_set: StoredDataset) -> pl.DataFrame:
    """The samples of a set. Raises CorruptLakeError where it is not whole, also in its pictures' bytes."""
    check_anchors(anchor_set)
    samples = anchor_set.lake.scan(SAMPLES, anchor_set.id).select(*SAMPLES.columns).collect()
    if not _holds_pictures(anchor_set, samples):
        folder = anchor_set.lake.partition(anchor_set.table_of_pictures, anchor_set.id)
        raise _broken(anchor_set, f"{folder} holds other bytes than those of its pictures")
    return samples


def check_anchors(anchor_set: StoredDataset) -> None:
    """Raise CorruptLakeError where a marker or part of a set is gone or another than was written; no picture is read."""
    lake, key = anchor_set.lake, anchor_set.id
    gone = None
    try:
        if not anchor_set.is_whole:
            gone = PICTURES if lake.is_complete(SAMPLES, key) else SAMPLES
        for table in () if gone else (SAMPLES, anchor_set.table_of_pictures):
            lake.parts_without_pictures(table, key)
    except CorruptLakeError as error:
        raise _broken(anchor_set, str(error).rpartition("; ")[0]) from error
    if gone is not None:
        raise _broken(anchor_set, f"{lake.marker(gone, key)} is missing")


def _holds_pictures(anchor_set: StoredDataset, samples: pl.DataFrame) -> bool:
    """Whether all pictures that these samples show are there, with the bytes of their digests."""
    left = digests_in(samples)
    try:
        for rows in anchor_set.pictures(left):
            contents = rows["image"].combine_chunks().field("bytes")
            for digest, content in zip(rows["image_sha256"].to_pylist(), contents, strict=True):
                if content.is_valid and hashlib.sha256(content.as_buffer()).hexdigest() == digest:
                    left.discard(digest)
    except (pa.ArrowException, OSError):
        return False
    return not left


def _broken(anchor_set: StoredDataset, fault: str) -> CorruptLakeError:
    short = anchor_set.id[:12]
    return CorruptLakeError(
        f"{fault}. It is of the frozen anchors {short}, which no run writes again: restore complete/*/{short}*.json and "
        f"*/dataset_id={short}*/ of {anchor_set.lake.place} from a backup. Without one, salon anchors freeze FILE --anew "
        "chooses others, which ends the anchors' series: the new one has limits after 30 nights"
    )
