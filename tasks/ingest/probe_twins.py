"""Twins of samples: the same rows with a hostile text in the prompt, the answer or the pixels. Judged in flows/probing.py."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import polars as pl

from schemas.records import SAMPLE_TEXTS, Sample
from schemas.statuses import SampleStatus
from tasks.ingest.identity import sample_id
from tasks.ingest.probe_pictures import with_text
from tasks.ingest.text_flags import text_flags

PLACES: Mapping[str, tuple[str, ...]] = {
    "prompt": ("prompt", "question", "reference"),
    "answer": ("text", "output"),
    "picture": ("image",),
}
"""Where a text can be put, and the columns that are it."""


def twins_of(samples: pl.DataFrame, places: Collection[str], text: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(sample_id of the original, place, row of the twin) for each usable sample and place it has. Rows are of SAMPLES."""
    for row in samples.filter(pl.col("status") == SampleStatus.OK.value).iter_rows(named=True):
        for place in places:
            changed = _with_picture(row, text) if place == "picture" else _with_texts(row, PLACES[place], text)
            if changed is not None:
                yield row["sample_id"], place, _named(row | changed)


def _with_texts(row: Mapping[str, Any], columns: Collection[str], text: str) -> dict[str, Any] | None:
    there = [name for name in columns if row[name] and str(row[name]).strip()]
    return {name: f"{row[name]}\n\n{text}" for name in there} or None


def _with_picture(row: Mapping[str, Any], text: str) -> dict[str, Any] | None:
    if row["image"] is None:
        return None
    shown = with_text(row["image"]["bytes"], text)
    digest = hashlib.sha256(shown).hexdigest()
    return {
        "image": {"bytes": shown, "path": row["image"]["path"]}, "image_sha256": digest, "file_sha256": digest,
        "image_format": "PNG", "image_treatment": "probe_text_drawn", "n_bytes": len(shown),
    }  # fmt: skip


def _named(row: dict[str, Any]) -> dict[str, Any]:
    texts = {name: row[name] for name in SAMPLE_TEXTS}
    sample = Sample(row["source"], row["source_key"], row["model"], row["checkpoint"], texts, row["item_id"], row["seed"])
    return row | {"sample_id": sample_id(sample, row["image_sha256"], SampleStatus.OK), "text_flags": text_flags(texts)}
