"""One reader a dataset format, and read(): rows of a source become Samples. How a format finds its rows is in its file."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from schemas.errors import SourceError
from schemas.records import UNKNOWN, RolePicture, Sample
from schemas.statuses.rows import SampleStatus
from tasks.ingest.left_out import LeftOut
from tasks.ingest.paths import quote
from tasks.ingest.readers import geneval, huggingface, tables, webdataset
from tasks.ingest.rows import DatasetReader, RawRow, is_kept, pointers, sample_of, value_at
from tasks.ingest.source_files import IMAGE_SUFFIXES, some_file_below
from tasks.ingest.sources import ResolvedSource
from tasks.ingest.values import BadValueError

_OF_PICTURES = IMAGE_SUFFIXES | {".parquet", ".arrow", ".tar", ".heic", ".heif", ".avif", ".jxl"}
"""Of files that hold pictures, also of a kind that is not read: a source of these is told, not passed over."""

READERS: dict[str, DatasetReader] = {
    "geneval": geneval.READER,
    "huggingface": huggingface.HUGGINGFACE,
    "imagefolder": huggingface.IMAGEFOLDER,
    "manifest": tables.MANIFEST,
    "webdataset": webdataset.READER,
}


def read(source: ResolvedSource) -> Iterator[Sample]:
    """The source's samples in its own order, those that pass `where` and are of a wanted checkpoint, or nobody knows of which.

    No picture is opened; a row that cannot be used has another status than ok. Raises SourceError where the source
    cannot be read at all or a needed column is not there.
    """
    reader = READERS.get(source.reader)
    if reader is None:
        raise SourceError(f"source {source.name!r}: there is no reader {source.reader!r}; available: {', '.join(READERS)}")
    places = pointers(source, reader.columns)
    seen: set[bytes] = set()
    for row, is_maker_said in _with_makers(reader.rows(source), source, places):
        if is_kept(row, source):
            sample = sample_of(row, source, places, is_maker_said=is_maker_said)
            if sample.model == UNKNOWN or source.is_wanted(sample.model, sample.checkpoint):
                yield _checked_id(sample, seen)


def _with_makers(rows: Iterable[RawRow], source: ResolvedSource, places: Mapping[str, str]) -> Iterator[tuple[RawRow, bool]]:
    """The rows, and of each whether a column was to say its checkpoint, as one says that of a readable row.

    What cannot be read before the first readable row waits for it.
    """
    is_said, waiting, has_read = False, list[RawRow](), False
    for row in rows:
        if row.status is SampleStatus.OK:
            is_said = is_said or (source.checkpoint is None and _says_checkpoint(row, source, places))
            has_read = True
            yield from ((one, is_said) for one in waiting)
            waiting.clear()
        if has_read:
            yield row, is_said
        else:
            waiting.append(row)
    yield from ((one, is_said) for one in waiting)


def _says_checkpoint(row: RawRow, source: ResolvedSource, places: Mapping[str, str]) -> bool:
    try:
        return "checkpoint" in places and value_at(row, source, "checkpoint", places["checkpoint"], is_needed=False) is not None
    except BadValueError:
        return True


def left_out(source: ResolvedSource) -> LeftOut:
    """What of the source's files is not read. Raises SourceError as read() does."""
    look = READERS[source.reader].left_out
    return look(source) if look else LeftOut(source.name)


def is_begun(source: ResolvedSource) -> bool:
    """Whether the source's folder holds a picture, a row of one, or what cannot be read: False before the first is drawn."""
    if not source.path.is_dir():
        return True
    if some_file_below(source.path, lambda name: Path(name).suffix.lower() in _OF_PICTURES):
        return True
    idle = {
        SampleStatus.MISSING_FILE,
        *([SampleStatus.MISSING_VALUE] if source.reader == "geneval" else []),
    }  # its folders come first
    try:
        return any(one.status not in idle for one in read(source))
    except SourceError:
        return some_file_below(source.path, lambda name: Path(name).suffix.lower() in tables.SUFFIXES)


def unreadable(sources: Iterable[ResolvedSource]) -> Iterator[tuple[ResolvedSource, SourceError]]:
    """Those of whose rows not even the first can be read, and why."""
    for source in sources:
        try:
            next(read(source), None)
        except SourceError as error:
            yield source, error


def _checked_id(sample: Sample, seen: set[bytes]) -> Sample:
    """The sample, refused where the source used its item id (and seed) for the same model and checkpoint before.

    A row that repeats an earlier one, picture and texts, is no conflict: it becomes a duplicate of that one once it is opened.
    """
    if sample.item_id is None or sample.status is not SampleStatus.OK:
        return sample
    role = (sample.model, sample.checkpoint, sample.item_id, sample.seed)
    digest, whole = (
        _digest(role),
        _digest((role, [_named(one) for one in sample.pictures], sorted(sample.texts.items()))),
    )
    if digest in seen and whole not in seen:
        seed = "" if sample.seed is None else f" with seed {sample.seed}"
        detail = f"an earlier row of this model and checkpoint has the item id {quote(sample.item_id)}{seed}; that row is used"
        return replace(sample, status=SampleStatus.REPEATED_ID, detail=detail)
    seen |= {digest, whole}
    return sample


def _named(picture: RolePicture) -> tuple[object, ...]:
    """What tells a picture that is not opened yet from another: its path, and its bytes where the row holds them."""
    content = picture.content
    return picture.role, picture.path, None if content is None else hashlib.sha256(content).digest()


def _digest(values: object) -> bytes:
    return hashlib.blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()  # a million stay in memory
