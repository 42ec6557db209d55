"""The work queue: a shard's requests claimed block by block for workers; planned requests and their pictures in the lake."""

import asyncio
import contextlib
import hashlib
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rubrics.model import Rubric
from schemas.errors import CorruptLakeError
from schemas.records import PlannedPart
from schemas.tables import REQUESTS, SAMPLES
from tasks.context import StageContext
from tasks.judge.pictures import UnreadablePictureError, fitted_px, shrunk
from tasks.judge.provider.base import RequestPicture
from tasks.ledger.claims import Claims, Taken

LEAST_BLOCK = 64
"""Requests claimed in one commit: large enough to cost little, small enough that two processes share a shard's work."""
POLL_S = 0.5
"""Between two looks whether another process has its reply."""
QUEUED_COLUMNS = ["request_key", "variant", "parameters_json", "facts_json", "messages_json", "image_sha256"]
ROWS_AT_ONCE = 8
"""Pictures read at a time."""
HELD_BYTES = 12 * 1024 * 1024
"""Kept of what was read last: requests come nearly in the order of the samples; for one that is late a row group is read anew."""
READ_BYTES = 1024 * 1024
"""Read from the file at a time. With Arrow's `pre_buffer` a row group's pictures would be read, and held, as a whole."""
_ABOUT = ["image_sha256", "image_format", "width_px", "height_px"]
BLOCK = 250
"""Requests that are claimed in one commit."""


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request to be asked from `ask_index` on; `n_earlier` counts the attempts that are recorded, by ask index."""

    request_key: str
    variant: str | None
    parameters_json: str
    facts_json: str
    messages_json: str
    image_sha256: str | None
    ask_index: int = 0
    n_earlier: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class WorkQueue:
    """Hands `requests` to workers. `n_done` counts those that turned out to be answered, also by others."""

    requests: pl.DataFrame
    claims: Claims
    stopping: asyncio.Event
    block: int = LEAST_BLOCK
    n_done: int = 0
    _ready: deque[QueuedRequest] = field(default_factory=deque)
    _handed_out: set[str] = field(default_factory=set)
    _elsewhere: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _rows: Iterator[tuple[Any, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self._rows = self.requests.select(QUEUED_COLUMNS).iter_rows()

    async def next(self) -> QueuedRequest | None:
        """The next request that is ours; None when there is none left, or the run is stopped."""
        async with self._lock:
            while not self.stopping.is_set():
                if self.claims.is_lost:
                    self._start_over()
                if self._ready:
                    request = self._ready.popleft()
                    self._handed_out.add(request.request_key)
                    return request
                rows = self._next_rows()
                if rows:
                    await self._claim(rows)
                elif self._elsewhere:
                    await self._wait()
                else:
                    return None
            return None

    def _next_rows(self) -> dict[str, tuple[Any, ...]]:
        rows: dict[str, tuple[Any, ...]] = {}
        for row in self._rows:
            if row[0] not in self._handed_out:
                rows[row[0]] = row
            if len(rows) == self.block:
                break
        return rows

    async def _claim(self, rows: dict[str, tuple[Any, ...]]) -> Taken:
        taken = await self.claims.take(rows)
        self.n_done += len(taken.done)
        for key, row in rows.items():
            if key in taken.ours:
                n_earlier = (taken.n_attempts.get((key, 0), 0), taken.n_attempts.get((key, 1), 0))
                _, variant, parameters, facts, messages, digest = row
                self._ready.append(
                    QueuedRequest(key, variant, parameters, facts, messages, digest, int(key in taken.due), n_earlier)
                )
            elif key in taken.elsewhere:
                self._elsewhere[key] = row
        return taken

    async def _wait(self) -> None:
        """Look again after a while at what others are asking: it has its reply by then, or its owner is gone."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), POLL_S)
        if not self.stopping.is_set():
            rows, self._elsewhere = self._elsewhere, {}
            await self._claim(rows)

    def _start_over(self) -> None:
        """The claims were lost: others may be asking by now. What was handed out already is under way, and stays so."""
        self._ready.clear()
        self._elsewhere.clear()
        self.claims.is_lost = False
        self._rows = self.requests.select(QUEUED_COLUMNS).iter_rows()
        self.n_done = 0


class PartPictures:
    """The pictures of one part of `samples`, by digest, read some at a time when their bytes are asked for.

    Those larger than `max_side_px` are shown shrunk to it. Threads may read at the same time.
    """

    def __init__(self, path: Path, max_side_px: int | None = None) -> None:
        self._path = path
        self._max_side_px = max_side_px
        self._lock = threading.Lock()
        self._file = pq.ParquetFile(path, buffer_size=READ_BYTES, pre_buffer=False)
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
        place = self._places.get(image_sha256)
        if place is None:
            raise self._corrupt(f"does not hold the picture {image_sha256[:12]}")
        group, row, image_format, width_px, height_px = place
        read, most = partial(self._read, group, row, image_sha256), self._max_side_px
        if most is None or (width_px and height_px and max(width_px, height_px) <= most):
            return RequestPicture(read, image_format, width_px, height_px)
        width_px, height_px = fitted_px(width_px, height_px, most) if width_px and height_px else (None, None)
        return RequestPicture(partial(self._shrunk, read, most, image_sha256), "PNG", width_px, height_px, is_shrunk=True)

    def close(self) -> None:
        """Close the file, and let the allocator give back what was held."""
        self._batches.clear()
        self._cursor = (-1, iter(()))
        self._file.close()
        pa.default_memory_pool().release_unused()

    def _shrunk(self, read: Callable[[], memoryview], max_side_px: int, image_sha256: str) -> bytes:
        """The picture made smaller."""
        try:
            return shrunk(read(), max_side_px)
        except UnreadablePictureError as error:
            raise CorruptLakeError(
                f"{self._path} holds a picture, {image_sha256[:12]}, that cannot be decoded to be made smaller: {error}; "
                'read its source with decode = "full", which finds such files'
            ) from error

    def _read(self, group: int, row: int, image_sha256: str) -> memoryview:
        """A picture's bytes where they stand in Arrow's memory."""
        number, place = divmod(row, ROWS_AT_ONCE)
        try:
            with self._lock:
                content = self._batch(group, number)[place].as_buffer()
        except (OSError, pa.ArrowException) as error:
            raise self._corrupt(f"cannot be read: {error}") from error
        if content is None:
            raise self._corrupt(f"holds no bytes of the picture in row {row} of group {group}")
        if hashlib.sha256(content).hexdigest() != image_sha256:
            raise self._corrupt(f"holds other bytes than those of the picture {image_sha256[:12]}")
        return memoryview(content)

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
        while self._n_held_bytes > HELD_BYTES and len(self._batches) > 1:
            _, oldest = self._batches.popitem(last=False)
            self._n_held_bytes -= oldest.get_total_buffer_size()

    def _corrupt(self, what: str) -> CorruptLakeError:
        return CorruptLakeError(f"{self._path} {what}; delete the partition and run again")


@dataclass(frozen=True, slots=True)
class Reading:
    """What it takes to tell whether a reply can be read."""

    rubric: Rubric
    variant: str | None
    facts_json: str


@dataclass(slots=True)
class PlannedRequests:
    """The distinct requests of parts of one plan and judge. `part_of`: the part each stands in, by its place in `parts`."""

    context: StageContext
    parts: Sequence[PlannedPart]
    part_of: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.part_of = {}
        for place in range(len(self.parts)):
            for key in self._read(place, ["request_key"])["request_key"]:
                self.part_of.setdefault(key, place)

    def blocks(self, keys: Collection[str]) -> Generator[tuple[pl.DataFrame, PartPictures], None, None]:
        """The rows of these requests in the order of the plan, some at a time, and where their pictures are."""
        by_part = self._by_part(keys)
        for place in sorted(by_part):
            rows = self._read(place, QUEUED_COLUMNS).unique("request_key", keep="first", maintain_order=True)
            rows = rows.filter(pl.col("request_key").is_in(list(by_part[place])))
            samples = self.context.lake.part(SAMPLES, self.context.ids.dataset_id, self.parts[place].samples_part)
            pictures = PartPictures(samples, self.context.judge(self.parts[place].judge_model).max_side_px)
            try:
                for block in rows.iter_slices(BLOCK):
                    yield block, pictures
            finally:
                pictures.close()

    def readings(self, keys: Collection[str]) -> dict[str, Reading]:
        """What reads the replies to these requests, by request key."""
        found: dict[str, Reading] = {}
        for place, of_part in self._by_part(keys).items():
            rubric = self.context.rubrics[self.parts[place].rubric_id]
            rows = self._read(place, ["request_key", "variant", "facts_json"]).filter(pl.col("request_key").is_in(list(of_part)))
            found |= {key: Reading(rubric, variant, facts_json) for key, variant, facts_json in rows.iter_rows()}
        return found

    def _by_part(self, keys: Collection[str]) -> dict[int, set[str]]:
        by_part: dict[int, set[str]] = defaultdict(set)
        for key in keys:
            by_part[self.part_of[key]].add(key)
        return by_part

    def _read(self, place: int, columns: Sequence[str]) -> pl.DataFrame:
        return self.context.lake.read_part(REQUESTS, self.context.ids.plan_id, self.parts[place].index, list(columns))
