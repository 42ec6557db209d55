"""Shards: lists of Samples, opened into rows of the samples table. Where the rows go is samples.py's business."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from schemas.input_budget import SHARD_PICTURE_BYTES
from schemas.records import SAMPLE_TEXTS, Sample, texts_json_of
from schemas.statuses import SampleStatus
from schemas.tables import SAMPLES
from tasks.ingest.fetching import fetch, shown_url
from tasks.ingest.identity import id_of_row, sample_id
from tasks.ingest.images.decode import open_bounded
from tasks.ingest.images.limits import RefusedImage
from tasks.ingest.images.open import OpenedImage, open_header
from tasks.ingest.paths import RefusedPath, encodable, is_remote, read_file
from tasks.ingest.rows import UndecodedSample
from tasks.ingest.text_flags import text_flags
from tasks.lake.atomic_files import IMAGE_ROWS_PER_GROUP
from tasks.stopping import check_not_stopped

_FETCHED_AHEAD = 16  # samples whose remote pictures are in memory together
_GROUP_BYTES = 64 * 1024 * 1024  # of pictures in a row group, which is in memory two or three times while it is written


def shards(samples: Iterable[Sample], size: int) -> Iterator[list[Sample]]:
    """The samples in lists of at most `size`, in order; shorter ones where the pictures they carry get too large."""
    shard: list[Sample] = []
    n_bytes = 0
    for sample in samples:
        own = len(sample.image_bytes or b"")
        if shard and (len(shard) >= size or n_bytes + own > SHARD_PICTURE_BYTES):
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
    opened = _Opened()
    for sample, content in _with_contents(samples, root):
        check_not_stopped()
        row = _open_one(sample, content, opened)
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
    row["duplicate_of_sample_id"] = row["sample_id"]
    row["sample_id"] = id_of_row(row, SampleStatus.DUPLICATE)
    row["status"] = SampleStatus.DUPLICATE.value
    row["detail"] = (
        f"same picture, texts, model and checkpoint as {first}, which counts; "
        "if both are meant to, tell them apart by an item_id or a seed"
    )
    row["image"] = None


def picture_of(sample: Sample) -> str | None:
    """The file below the root that is opened for it, if any."""
    is_opened = sample.status is SampleStatus.OK and sample.image_bytes is None and bool(sample.image_path)
    return sample.image_path if is_opened and not is_remote(sample.image_path or "") else None


def is_fetched(sample: Sample) -> bool:
    """Whether its picture comes over the network."""
    is_named = sample.status is SampleStatus.OK and sample.image_bytes is None and sample.image_path is not None
    return is_named and bool(sample.remote_hosts) and is_remote(sample.image_path or "")


class _Opened:
    """The pictures of a shard that are shown as they are: one that several samples use is opened once."""

    def __init__(self) -> None:
        self._by_file: dict[tuple[str, bool], OpenedImage] = {}

    def open(self, content: bytes, file_sha256: str, *, by_header: bool) -> OpenedImage | RefusedImage:
        """What `content` shows, or why nothing; by its header alone where that and its end prove the file whole."""
        key = file_sha256, by_header
        if key in self._by_file:
            return replace(self._by_file[key], shown=content)
        found = (open_header(content) if by_header else None) or open_bounded(content)
        if isinstance(found, OpenedImage) and found.shown is content:
            self._by_file[key] = replace(found, shown=b"")
        return found


def _open_one(sample: Sample, content: bytes | RefusedPath | None, opened: _Opened) -> dict[str, Any]:
    status, detail = sample.status, sample.detail
    shown: OpenedImage | None = None
    file_sha256 = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else None
    if status is SampleStatus.OK:
        if isinstance(content, RefusedPath):
            status, detail = content.status, content.detail
        elif content is not None and file_sha256 is not None:
            found = opened.open(content, file_sha256, by_header=isinstance(sample, UndecodedSample))
            if isinstance(found, OpenedImage):
                shown = found
            else:
                status, detail = found.status, found.detail
    return _row(sample, status, detail, content if isinstance(content, bytes) else None, shown, file_sha256)


def _with_contents(samples: Iterable[Sample], root: Path) -> Iterator[tuple[Sample, bytes | RefusedPath | None]]:
    """Each sample with its file's bytes; what is remote is fetched some samples ahead, several at once."""
    waiting = iter(samples)
    while batch := list(islice(waiting, _FETCHED_AHEAD)):
        remote = [sample for sample in batch if is_fetched(sample)]
        fetched = dict(zip(map(id, remote), _fetched(remote), strict=True))
        for sample in batch:
            yield sample, fetched[id(sample)] if id(sample) in fetched else _content(sample, root)


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
    sample: Sample, status: SampleStatus, detail: str | None, content: bytes | None, shown: OpenedImage | None,
    file_sha256: str | None,
) -> dict[str, Any]:  # fmt: skip
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
        "duplicate_of_sample_id": None,
        "detail": detail,
        "texts_json": texts_json_of(sample.texts),
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
