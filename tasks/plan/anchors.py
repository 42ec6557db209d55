"""Anchors: a frozen set of samples a judge is asked about anew every night. How they are asked and stored; chosen in flows.

An anchor set is a dataset of the lake whose samples belong to no model: model and checkpoint are ANCHORS, so that none is
the same sample as the one it was taken from, and the source says which rubrics are for it. A night's dataset holds them behind
its own samples, and its plan asks them on the occasion of its date.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.tables import SAMPLES
from tasks.lake.reading import Lake

ANCHORS = "__anchors__"
"""No model, checkpoint or source of a benchmark file has a name that begins so."""


def anchors_of(source: str) -> str:
    """The source of anchors that were taken from this source."""
    return f"{ANCHORS}/{source}"


def as_role(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of samples in the role of an anchor; its sample_id is still that of the sample it was taken from."""
    return dict(row) | {"source": anchors_of(row["source"]), "model": ANCHORS, "checkpoint": ANCHORS}


def read_anchors(lake: Lake, anchor_set: str) -> pa.Table:
    """The samples of a set, pictures included. Raises StoreError where the lake does not hold it."""
    return pa.concat_tables([pq.ParquetFile(path).read() for path in lake.parts(SAMPLES, anchor_set)])


def anchor_sources(lake: Lake, dataset_id: str) -> frozenset[str]:
    """The sources of the anchors a dataset holds; none where it holds no anchors."""
    sources = lake.scan(SAMPLES, dataset_id).filter(pl.col("source").str.starts_with(f"{ANCHORS}/")).select("source")
    return frozenset(sources.unique().collect()["source"])
