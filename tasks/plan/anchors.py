"""Anchors: samples of an earlier dataset that are asked anew each night, in a role that no sample of a benchmark has."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from schemas.benchmark.exam import EXAM
from schemas.records import UNKNOWN
from schemas.tables.stored import SAMPLES
from tasks.lake.pictures import StoredDataset

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
    """The samples of a set. Raises StoreError where the lake does not hold it."""
    return anchor_set.lake.scan(SAMPLES, anchor_set.id).select(*SAMPLES.columns).collect()
