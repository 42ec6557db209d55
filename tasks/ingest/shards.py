"""Shards: lists of Samples, opened into rows of `samples` and `pictures`. Where the rows go is parts.py's business."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, tee
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from schemas.input_budget import SHARD_PICTURE_BYTES
from schemas.records import IMAGE, SAMPLE_TEXTS, RolePicture, Sample, texts_json_of
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import SAMPLES
from tasks.ingest.identity import id_of_row, sample_id
from tasks.ingest.images.limits import RefusedImage
from tasks.ingest.opened_files import OpenedFiles, Shown, about_of, own_path
from tasks.ingest.paths import RefusedPath, is_remote, read_file
from tasks.ingest.rows import UndecodedSample
from tasks.ingest.text_flags import text_flags
from tasks.stopping import check_not_stopped

_FETCHED_AHEAD = 16  # remote pictures that are in memory together


def shards(samples: Iterable[Sample], size: int) -> Iterator[list[Sample]]:
    """The samples in lists of at most `size`, in order; shorter ones where the pictures they carry get too large."""
    shard: list[Sample] = []
    n_bytes = 0
    for sample in samples:
        own = sum(len(picture.content or b"") for picture in sample.pictures)
        if shard and (len(shard) >= size or n_bytes + own > SHARD_PICTURE_BYTES):
            yield shard
            shard, n_bytes = [], 0
        shard.append(sample)
        n_bytes += own
    if shard:
        yield shard


class OpenedShard:
    """A shard's samples, every picture read and decoded: take `pictures()` to its end, then `rows()`."""

    def __init__(self, samples: Iterable[Sample], root: Path) -> None:
        self._samples, self._root = samples, root
        self._rows: list[dict[str, Any]] = []

    def pictures(self) -> Iterator[pa.Table]:
        """Each distinct picture once, as rows of `pictures` in the order in which samples show them. Paths are below the root.

        In tables of a row group each: more of a shard's pictures are never in memory. Raises nothing for what data holds;
        StoppedError.
        """
        seen: dict[str, str] = {}
        opened = OpenedFiles()
        samples, ahead = tee(self._samples)
        contents = _contents(ahead, self._root)
        for sample in samples:
            check_not_stopped()
            looked_at: list[_LookedAt] = []
            for picture, content in zip(sample.pictures, contents, strict=False):  # in this order: none is taken too many
                looked_at.append(_look(sample, picture, content, opened))
                if opened.is_full:
                    yield opened.taken()
            row = _row(sample, looked_at)
            if row["sample_id"] in seen:
                as_duplicate(row, seen[row["sample_id"]])
            else:
                seen[row["sample_id"]] = sample.source_key
            self._rows.append(row)
        if opened.rows:
            yield opened.taken()

    def rows(self) -> pa.Table:
        """The samples as rows of `samples`, in order; one like an earlier one of the shard has status duplicate."""
        return pa.Table.from_pylist(self._rows, schema=SAMPLES.schema)


def as_duplicate(row: dict[str, Any], first: str) -> None:
    """Turn a row of the samples table into a duplicate of the one at source_key `first`, with an id of its own."""
    row["duplicate_of_sample_id"] = row["sample_id"]
    row["sample_id"] = id_of_row(row, SampleStatus.DUPLICATE)
    row["status"] = SampleStatus.DUPLICATE.value
    row["detail"] = (
        f"same picture, texts, model and checkpoint as {first}, whose judgement counts for both; "
        "if they are two separate draws, give each its own item_id or seed"
    )


def files_of(sample: Sample) -> list[str]:
    """The files below the root that are opened for it."""
    if sample.status is not SampleStatus.OK:
        return []
    return [one.path for one in sample.pictures if one.path and one.content is None and not is_remote(one.path)]


def is_fetched(sample: Sample) -> bool:
    """Whether one of its pictures comes over the network."""
    return any(_is_fetched(sample, one) for one in sample.pictures)


def _is_fetched(sample: Sample, picture: RolePicture) -> bool:
    is_wanted = sample.status is SampleStatus.OK and picture.content is None
    return is_wanted and bool(sample.remote_hosts) and is_remote(picture.path or "")


_Content: TypeAlias = bytes | RefusedPath | None


class _LookedAt(NamedTuple):
    """A picture of a sample, what became of it, and its file's digest and size, where it was read."""

    picture: RolePicture
    found: Shown | RefusedImage | RefusedPath | None
    file_sha256: str | None = None
    n_bytes: int | None = None


def _look(sample: Sample, picture: RolePicture, content: _Content, opened: OpenedFiles) -> _LookedAt:
    if not isinstance(content, bytes):
        return _LookedAt(picture, content)
    found = opened.open(content, picture.path, by_header=isinstance(sample, UndecodedSample))
    file_sha256 = found.file_sha256 if isinstance(found, Shown) else hashlib.sha256(content).hexdigest()
    return _LookedAt(picture, found, file_sha256, len(content))


def _contents(samples: Iterable[Sample], root: Path) -> Iterator[_Content]:
    """The bytes of each sample's pictures, one at a time; what is remote is fetched some pictures ahead, several at once."""
    waiting = ((sample, picture) for sample in samples for picture in sample.pictures)
    while batch := list(islice(waiting, _FETCHED_AHEAD)):
        fetched = _fetched([(sample, picture) for sample, picture in batch if _is_fetched(sample, picture)])
        for sample, picture in batch:
            yield _content(sample, picture, root, fetched)


def _fetched(pictures: list[tuple[Sample, RolePicture]]) -> dict[tuple[tuple[str, ...], str], bytes | RefusedPath]:
    """By hosts and address, fetched by source: each has hosts of its own."""
    if not pictures:
        return {}
    from tasks.ingest.fetching import fetch  # aiohttp with it

    found: dict[tuple[tuple[str, ...], str], bytes | RefusedPath] = {}
    for hosts in {sample.remote_hosts for sample, _ in pictures}:
        mine = list(dict.fromkeys(picture.path or "" for sample, picture in pictures if sample.remote_hosts == hosts))
        found |= {(hosts, address): one for address, one in zip(mine, fetch(mine, hosts), strict=True)}
    return found


def _content(
    sample: Sample, picture: RolePicture, root: Path, fetched: Mapping[tuple[tuple[str, ...], str], bytes | RefusedPath]
) -> _Content:
    if sample.status is not SampleStatus.OK:
        return None
    if picture.content is not None:
        return picture.content
    if _is_fetched(sample, picture):
        return fetched[sample.remote_hosts, picture.path or ""]
    return None if picture.path is None else read_file(root, picture.path)


def _row(sample: Sample, looked_at: list[_LookedAt]) -> dict[str, Any]:
    status, detail = sample.status, sample.detail
    for picture, one, *_ in looked_at:
        if isinstance(one, RefusedImage | RefusedPath) and status is SampleStatus.OK:
            status, detail = one.status, one.detail if picture.role == IMAGE else f"{picture.role}: {one.detail}"
    found = [(picture, one) for picture, one, *_ in looked_at if isinstance(one, Shown)]
    shown = next((one for picture, one in found if picture.role == IMAGE), None)
    judged = next((one for one in looked_at if one.picture.role == IMAGE), None)
    image_sha256 = shown.sha256 if shown else None
    about = about_of(shown)
    if shown is None and judged is not None:
        about["file_sha256"] = judged.file_sha256
    pictures = [{"role": one.role, "sha256": known.sha256, "path": own_path(one.path)} for one, known in found]
    return {
        "sample_id": sample_id(sample, image_sha256, status, [(one["role"] or "", one["sha256"] or "") for one in pictures]),
        "source": sample.source,
        "source_key": sample.source_key,
        "item_id": sample.item_id,
        "model": sample.model,
        "checkpoint": sample.checkpoint,
        **{name: sample.texts.get(name) for name in SAMPLE_TEXTS},
        "seed": sample.seed,
        "image": None,
        "image_sha256": image_sha256,
        **about,
        "n_bytes": judged.n_bytes if judged else None,
        "text_flags": text_flags(sample.texts),
        "status": status.value,
        "duplicate_of_sample_id": None,
        "detail": detail,
        "texts_json": texts_json_of(sample.texts),
        "pictures": pictures,
    }
