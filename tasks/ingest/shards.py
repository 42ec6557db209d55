"""Shards: lists of Samples, opened into rows of the samples table. Where the rows go is samples.py's business."""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from schemas.records import SAMPLE_TEXTS, Sample
from schemas.statuses import SampleStatus
from schemas.tables import SAMPLES
from tasks.ingest.fetching import fetch, shown_url
from tasks.ingest.identity import id_of_row, sample_id
from tasks.ingest.images.decode import open_bounded
from tasks.ingest.images.open import OpenedImage, open_header
from tasks.ingest.paths import RefusedPath, encodable, is_remote, read_file
from tasks.ingest.rows import UndecodedSample
from tasks.ingest.text_flags import text_flags
from tasks.lake.atomic_files import IMAGE_ROWS_PER_GROUP
from tasks.stopping import check_not_stopped

MAX_SHARD_BYTES = 256 * 1024 * 1024  # of pictures that readers hand on in memory
_FETCHED_AHEAD = 16  # samples whose remote pictures are in memory together
_GROUP_BYTES = 64 * 1024 * 1024  # of pictures in a row group, which is in memory two or three times while it is written


def shards(samples: Iterable[Sample], size: int) -> Iterator[list[Sample]]:
    """The samples in lists of at most `size`, in order; shorter ones where the pictures they carry get too large."""
    shard: list[Sample] = []
    n_bytes = 0
    for sample in samples:
        own = len(sample.image_bytes or b"")
        if shard and (len(shard) >= size or n_bytes + own > MAX_SHARD_BYTES):
            yield shard
            shard, n_bytes = [], 0
        shard.append(sample)
        n_bytes += own
    if shard:
        yield shard


def open_shard(samples: Iterable[Sample], root: Path) -> Iterator[pa.Table]:
    """The samples as rows of the samples table, in order, every picture read and decoded. Image paths are below `root`.

    In tables of a row group each: more of a shard's pictures are never in memory. A sample like an earlier one of the shard
    has status duplicate. Raises nothing for what data holds; StoppedError.
    """
    schema = SAMPLES.schema()
    rows: list[dict[str, Any]] = []
    n_bytes = 0
    seen: dict[str, str] = {}
    for sample, content in _with_contents(samples, root):
        check_not_stopped()
        row = _open_one(sample, content)
        if row["sample_id"] in seen:
            as_duplicate(row, seen[row["sample_id"]])
        else:
            seen[row["sample_id"]] = sample.source_key
        rows.append(row)
        n_bytes += len(row["image"]["bytes"]) if row["image"] else 0
        if len(rows) >= IMAGE_ROWS_PER_GROUP or n_bytes >= _GROUP_BYTES:
            yield pa.Table.from_pylist(rows, schema=schema)
            rows, n_bytes = [], 0
    if rows:
        yield pa.Table.from_pylist(rows, schema=schema)


def as_duplicate(row: dict[str, Any], first: str) -> None:
    """Turn a row of the samples table into a duplicate of the one at source_key `first`: its id is its own, its picture gone."""
    row["sample_id"] = id_of_row(row, SampleStatus.DUPLICATE)
    row["status"] = SampleStatus.DUPLICATE.value
    row["detail"] = (
        f"same picture, texts, model and checkpoint as {first}, which counts; "
        "if both are meant to, tell them apart by an item_id or a seed"
    )
    row["image"] = None


def _open_one(sample: Sample, content: bytes | RefusedPath | None) -> dict[str, Any]:
    status, detail = sample.status, sample.detail
    shown: OpenedImage | None = None
    if status is SampleStatus.OK:
        if isinstance(content, RefusedPath):
            status, detail = content.status, content.detail
        elif content is not None:
            undecoded = open_header(content) if isinstance(sample, UndecodedSample) else None
            opened = undecoded or open_bounded(content)
            if isinstance(opened, OpenedImage):
                shown = opened
            else:
                status, detail = opened.status, opened.detail
    return _row(sample, status, detail, content if isinstance(content, bytes) else None, shown)


def _with_contents(samples: Iterable[Sample], root: Path) -> Iterator[tuple[Sample, bytes | RefusedPath | None]]:
    """Each sample with its file's bytes; what is remote is fetched some samples ahead, several at once."""
    waiting = iter(samples)
    while batch := list(islice(waiting, _FETCHED_AHEAD)):
        remote = [sample for sample in batch if _is_fetched(sample)]
        fetched = dict(zip(map(id, remote), _fetched(remote), strict=True))
        for sample in batch:
            yield sample, fetched[id(sample)] if id(sample) in fetched else _content(sample, root)


def _is_fetched(sample: Sample) -> bool:
    is_named = sample.status is SampleStatus.OK and sample.image_bytes is None and sample.image_path is not None
    return is_named and bool(sample.remote_hosts) and is_remote(sample.image_path or "")


def _fetched(samples: list[Sample]) -> list[bytes | RefusedPath]:
    """Fetched by source: each has hosts of its own."""
    found: dict[int, bytes | RefusedPath] = {}
    for hosts in {sample.remote_hosts for sample in samples}:
        mine = [sample for sample in samples if sample.remote_hosts == hosts]
        found |= dict(zip(map(id, mine), fetch([sample.image_path or "" for sample in mine], hosts), strict=True))
    return [found[id(sample)] for sample in samples]


def _content(sample: Sample, root: Path) -> bytes | RefusedPath | None:
    if sample.status is not SampleStatus.OK:
        return None
    if sample.image_bytes is not None:
        return sample.image_bytes
    return None if sample.image_path is None else read_file(root, sample.image_path)


def _row(
    sample: Sample, status: SampleStatus, detail: str | None, content: bytes | None, shown: OpenedImage | None
) -> dict[str, Any]:
    file_sha256 = None if content is None else hashlib.sha256(content).hexdigest()
    is_own = shown is not None and shown.shown is content
    image_sha256 = file_sha256 if is_own else hashlib.sha256(shown.shown).hexdigest() if shown else None
    return {
        "sample_id": sample_id(sample, image_sha256, status),
        "source": sample.source,
        "source_key": sample.source_key,
        "item_id": sample.item_id,
        "model": sample.model,
        "checkpoint": sample.checkpoint,
        **{name: sample.texts.get(name) for name in SAMPLE_TEXTS},
        "seed": sample.seed,
        "image": {"bytes": shown.shown, "path": _own_path(sample)} if shown else None,
        "image_sha256": image_sha256,
        "file_sha256": file_sha256,
        "image_format": shown.format if shown else None,
        "image_treatment": shown.treatment if shown else None,
        "width_px": shown.width_px if shown else None,
        "height_px": shown.height_px if shown else None,
        "n_bytes": None if content is None else len(content),
        "text_flags": text_flags(sample.texts),
        "status": status.value,
        "detail": detail,
    }


def _own_path(sample: Sample) -> str | None:
    """The path by which the source names the picture, `./` taken off; its last part alone where it is of one machine."""
    path = sample.image_path
    if path and is_remote(path):
        path = shown_url(path)
        return encodable(PurePosixPath(path).name)
    if not path:
        return None
    plain = PurePosixPath(path.replace("\\", "/"))
    is_of_a_machine = plain.is_absolute() or ".." in plain.parts or plain.parts[0].endswith(":")
    return encodable(plain.name if is_of_a_machine else str(plain))
