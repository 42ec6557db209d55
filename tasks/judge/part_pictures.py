"""The pictures of a part's requests, read out of the lake where they are sent. Whose requests they are is work_queue.py."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rubrics.messages import Example
from rubrics.model import Rubric
from schemas.errors import CorruptLakeError
from schemas.records import PlannedPart
from tasks.context import StageContext
from tasks.judge.pictures import UnreadablePictureError, digests_of, fitted_px, shrunk, size_px_of
from tasks.judge.provider.exchange import RequestPicture
from tasks.lake.plain_values import PlainValues

ROWS_AT_ONCE = 8
"""Pictures that Arrow reads at a time, of parts not laid out as ours are now."""
HELD_BYTES = 12 * 1024 * 1024
"""Kept of what it read last: requests come nearly in the order of the samples; for one that is late a row group is read anew."""
READ_BYTES = 1024 * 1024
"""Read from the file at a time. With Arrow's `pre_buffer` a row group's pictures would be read, and held, as a whole."""
_ABOUT = ["image_sha256", "image_format", "width_px", "height_px"]


class PartPictures:
    """The pictures of one file, by digest, read some at a time when their bytes are asked for; others are found `elsewhere`.

    Those larger than `max_side_px` are shown shrunk to it. Threads may read at the same time.
    """

    def __init__(
        self,
        path: Path,
        max_side_px: int | None = None,
        elsewhere: Callable[[str], Path | None] | None = None,
        examples: Iterable[Example] = (),
        held_bytes: int = HELD_BYTES,
    ) -> None:
        self._path = path
        self._elsewhere = elsewhere
        self._others: dict[Path, PartPictures] = {}
        self._examples = {example.sha256: example for example in examples}
        self._max_side_px = max_side_px
        self._most_held_bytes = held_bytes
        self._lock = threading.Lock()
        self._file = pq.ParquetFile(path, buffer_size=READ_BYTES, pre_buffer=False)
        self._values = PlainValues(path, self._file, "image.bytes")
        self._batches: OrderedDict[tuple[int, int], pa.BinaryArray] = OrderedDict()
        self._n_held_bytes = 0
        self._cursor: tuple[int, Iterator[tuple[int, pa.RecordBatch]]] = (-1, iter(()))
        self._places: dict[str, tuple[int, int, str, int | None, int | None]] = {}
        for group in range(self._file.num_row_groups):
            columns = self._file.read_row_group(group, columns=_ABOUT).to_pydict()
            for row, (digest, name, *size_px) in enumerate(zip(*(columns[name] for name in _ABOUT), strict=True)):
                if digest is not None:
                    self._places.setdefault(digest, (group, row, name or "PNG", *size_px))

    def __call__(self, image_sha256: str) -> RequestPicture:
        """The picture with this digest; its bytes are read when they are asked for. Both raise CorruptLakeError."""
        example, place = self._examples.get(image_sha256), self._places.get(image_sha256)
        if example is not None:
            shown = self._shown(lambda: example.content, image_sha256, (example.image_format, None, None))
            width_px, height_px = _size_px(example)
            if width_px is not None and height_px is not None:
                width_px, height_px = fitted_px(width_px, height_px, self._max_side_px)
            return replace(shown, width_px=width_px, height_px=height_px)
        if place is None:
            path = self._elsewhere(image_sha256) if self._elsewhere else None
            if path is not None and path != self._path:
                with self._lock:
                    if path not in self._others:  # few pictures of each are asked for: pairs are of several checkpoints' files
                        self._others[path] = PartPictures(path, self._max_side_px, held_bytes=HELD_BYTES // 8)
                return self._others[path](image_sha256)
            raise self._corrupt(f"does not hold the picture {image_sha256[:12]}")
        group, row, image_format, width_px, height_px = place
        return self._shown(partial(self._read, group, row, image_sha256), image_sha256, (image_format, width_px, height_px))

    def _shown(
        self, read: Callable[[], bytes | memoryview], image_sha256: str, about: tuple[str, int | None, int | None]
    ) -> RequestPicture:
        (image_format, width_px, height_px), most = about, self._max_side_px
        if most is None or (width_px and height_px and max(width_px, height_px) <= most):
            return RequestPicture(read, image_format, width_px, height_px)
        width_px, height_px = fitted_px(width_px, height_px, most) if width_px and height_px else (None, None)
        return RequestPicture(partial(self._shrink, read, most, image_sha256), "PNG", width_px, height_px, is_shrunk=True)

    def close(self) -> None:
        """Close the file, and let the allocator give back what was held."""
        for other in self._others.values():
            other.close()
        self._batches.clear()
        self._cursor = (-1, iter(()))
        self._file.close()
        self._values.close()
        pa.default_memory_pool().release_unused()

    def _shrink(self, read: Callable[[], bytes | memoryview], max_side_px: int, image_sha256: str) -> bytes:
        """The picture made smaller."""
        try:
            return shrunk(read(), max_side_px)
        except UnreadablePictureError as error:
            raise CorruptLakeError(
                f"{self._path} holds a picture, {image_sha256[:12]}, that cannot be decoded for resizing: {error}; "
                'set decode = "full" for its source, which finds such files at ingest'
            ) from error

    def _read(self, group: int, row: int, image_sha256: str) -> memoryview:
        """A picture's bytes as they stand in the file; those of an older part where they stand in Arrow's memory."""
        try:
            placed = self._values.read(group, row)
            if placed is not None and hashlib.sha256(placed).hexdigest() == image_sha256:
                return memoryview(placed)
            content = self._by_arrow(group, row)  # it has the last word on what stands there
        except (OSError, pa.ArrowException) as error:
            raise self._corrupt(f"cannot be read: {error}") from error
        if content is None:
            raise self._corrupt(f"holds no bytes of the picture in row {row} of group {group}")
        if hashlib.sha256(content).hexdigest() != image_sha256:
            raise self._corrupt(f"holds bytes that are not those of the picture {image_sha256[:12]}")
        return memoryview(content)

    def _by_arrow(self, group: int, row: int) -> pa.Buffer | None:
        number, place = divmod(row, ROWS_AT_ONCE)
        with self._lock:
            return self._batch(group, number)[place].as_buffer()

    def _batch(self, group: int, number: int) -> pa.BinaryArray:
        """From what is held, else read on from where the last one ended, or from the row group's beginning."""
        while (group, number) not in self._batches:
            at, rest = self._cursor
            found = next(rest, None) if at == group else None
            if found is None or found[0] > number:
                # One column, a few rows at a time: Arrow's threads would only be waited for.
                batches = self._file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=["image.bytes"], use_threads=False)
                self._cursor = (group, enumerate(batches))
                continue
            self._hold((group, found[0]), pc.struct_field(found[1].column(0), "bytes"))
        self._batches.move_to_end((group, number))
        return self._batches[group, number]

    def _hold(self, key: tuple[int, int], batch: pa.BinaryArray) -> None:
        if key not in self._batches:
            self._n_held_bytes += batch.get_total_buffer_size()
        self._batches[key] = batch
        while self._n_held_bytes > self._most_held_bytes and len(self._batches) > 1:
            _, oldest = self._batches.popitem(last=False)
            self._n_held_bytes -= oldest.get_total_buffer_size()

    def _corrupt(self, what: str) -> CorruptLakeError:
        return CorruptLakeError(f"{self._path} {what}; delete the partition, then run the same command again")


@lru_cache(maxsize=256)
def _size_px(example: Example) -> tuple[int, int] | tuple[None, None]:
    found = size_px_of(example.content)
    return (None, None) if found is None or min(found) < 1 else found


def example_sizes(rubric: Rubric) -> pl.DataFrame:
    """The sizes of a rubric's example pictures, by digest."""
    rows = [(example.sha256, *_size_px(example)) for example in rubric.examples.values()]
    return pl.DataFrame(rows, {"image_sha256": pl.String, "width_px": pl.Int32, "height_px": pl.Int32}, orient="row")


def part_pictures(context: StageContext, part: PlannedPart, requests: pl.DataFrame) -> PartPictures:
    """The pictures that these requests of a part show: most are those that its samples were the first to show."""
    dataset = context.dataset
    table = dataset.table_of_pictures

    @cache
    def places() -> dict[str, str]:
        wanted = {digest for said in requests["messages_json"].drop_nulls() for digest in digests_of(said)}
        return dataset.parts_holding(wanted)

    def elsewhere(digest: str) -> Path | None:
        name = places().get(digest)
        return dataset.lake.part(table, dataset.id, int(name.removeprefix("part-").removesuffix(".parquet"))) if name else None

    path = dataset.lake.part(table, dataset.id, part.samples_part)
    examples = context.rubrics[part.rubric_id].examples.values()
    return PartPictures(path, context.judge(part.judge_model).max_side_px, elsewhere, examples)
