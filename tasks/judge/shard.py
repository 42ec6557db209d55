"""A shard's requests, judged: what a Prefect task or another machine's worker calls. What shards share is runtime.py."""

import asyncio
import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.benchmark import Limits
from schemas.errors import CorruptLakeError
from schemas.records import JudgeReply, PlannedPart
from schemas.tables import REQUESTS, SAMPLES
from tasks.context import StageContext
from tasks.judge.admission import open_gates
from tasks.judge.engine import judge_requests
from tasks.judge.outcome import Outcome
from tasks.judge.provider.client import JudgeClient
from tasks.judge.provider.payload import Picture
from tasks.judge.runtime import LOOP
from tasks.ledger.ledger import Ledger, opened

ROWS_AT_ONCE = 8
"""Pictures read at a time."""
BATCHES_HELD = 6
"""So many of these in memory at once: requests come nearly in the order of the samples, and who is late reads anew (0.1 ms)."""
READ_BYTES = 1024 * 1024
"""Read from the file at a time. With Arrow's `pre_buffer` a row group's pictures would be read, and held, as a whole."""
STOP_POLL_S = 0.1
_ABOUT = ["image_sha256", "image_format", "width_px", "height_px"]


class PartPictures:
    """The pictures of one part of `samples`, by digest, read some at a time when their bytes are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = pq.ParquetFile(path, buffer_size=READ_BYTES, pre_buffer=False)
        self._batches: OrderedDict[tuple[int, int], pa.BinaryArray] = OrderedDict()
        self._cursor: tuple[int, Iterator[tuple[int, pa.RecordBatch]]] = (-1, iter(()))
        self._places: dict[str, tuple[int, int, str, int | None, int | None]] = {}
        for group in range(self._file.num_row_groups):
            columns = self._file.read_row_group(group, columns=_ABOUT).to_pydict()
            for row, (digest, name, *size_px) in enumerate(zip(*(columns[name] for name in _ABOUT), strict=True)):
                if digest is not None:
                    self._places.setdefault(digest, (group, row, name or "PNG", *size_px))

    def __call__(self, image_sha256: str) -> Picture:
        """The picture with this digest; its bytes are read when they are asked for. Both raise CorruptLakeError."""
        place = self._places.get(image_sha256)
        if place is None:
            raise self._corrupt(f"does not hold the picture {image_sha256[:12]}")
        group, row, image_format, width_px, height_px = place
        return Picture(partial(self._read, group, row), image_format, width_px, height_px)

    def close(self) -> None:
        """Close the file, and let the allocator give back what was held."""
        self._batches.clear()
        self._cursor = (-1, iter(()))
        self._file.close()
        pa.default_memory_pool().release_unused()

    def _read(self, group: int, row: int) -> memoryview:
        """A picture's bytes where they stand in Arrow's memory."""
        number, place = divmod(row, ROWS_AT_ONCE)
        try:
            content = self._batch(group, number)[place].as_buffer()
        except (OSError, pa.ArrowException) as error:
            raise self._corrupt(f"cannot be read: {error}") from error
        if content is None:
            raise self._corrupt(f"holds no bytes of the picture in row {row} of group {group}")
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
            self._batches[group, found[0]] = pc.struct_field(found[1].column(0), "bytes")
            if len(self._batches) > BATCHES_HELD:
                self._batches.popitem(last=False)
        self._batches.move_to_end((group, number))
        return self._batches[group, number]

    def _corrupt(self, what: str) -> CorruptLakeError:
        return CorruptLakeError(f"{self._path} {what}; delete the partition and run again")


OnReply = Callable[[JudgeReply], None]


@dataclass(frozen=True, slots=True)
class AskShard:
    """One part of a plan to ask within these limits. `on_reply` hears of each reply once it is durable, in the judging thread."""

    part: PlannedPart
    limits: Limits
    on_reply: OnReply | None = None


def judge_shard(context: StageContext, shard: AskShard, stop: threading.Event | None = None) -> Outcome:
    """Ask what the ledger lacks of a part's requests. Shards with one `context.ids.run_id` share `limits.max_usd`.

    When `stop` is set, replies under way are stored and it returns. Raises MissingKeyError, ProviderError, StoreError.
    """
    part, ids = shard.part, context.ids
    requests = context.lake.read_part(REQUESTS, ids.plan_id, part.index)
    with opened(context.ledger_url) as ledger:
        keys = requests["request_key"]
        known = ledger.known(keys)
        if len(known) == keys.n_unique() and not ledger.reasks_due(keys):
            return Outcome(n_requests=len(known), n_cached=len(known))
        _keep_what_is_loaded()
        pictures = PartPictures(context.lake.part(SAMPLES, ids.dataset_id, part.samples_part))
        try:
            judging = partial(judge_requests, requests, pictures, ledger, plan_id=ids.plan_id, on_reply=shard.on_reply)
            return LOOP.run(_judge(context, shard, ledger, judging, stop))
        finally:
            pictures.close()


@cache
def _keep_what_is_loaded() -> None:
    """Once in a process: the libraries' hundreds of thousands of objects stay, and a collection need not walk over them."""
    gc.freeze()


async def _judge(
    context: StageContext,
    shard: AskShard,
    ledger: Ledger,
    judging: Callable[..., Coroutine[Any, Any, Outcome]],
    stop: threading.Event | None,
) -> Outcome:
    """The shard's own things: the client with its connections, the gates, and an event that follows the caller's."""
    rubric, limits = context.rubrics[shard.part.rubric_id], shard.limits
    client = JudgeClient(context.judge(shard.part.judge_model), limits.concurrency, limits.deadline_s)
    stopping = asyncio.Event()
    watcher = asyncio.create_task(_watch(stop, stopping)) if stop is not None else None
    try:
        async with open_gates(ledger, client, rubric, limits, context.ids.run_id) as gates:
            return await judging(limits=limits, rubric=rubric, client=client, gates=gates, stop=stopping)
    finally:
        if watcher is not None:
            watcher.cancel()
        await client.close()


async def _watch(stop: threading.Event, stopping: asyncio.Event) -> None:
    while not stop.is_set():  # noqa: ASYNC110 - the event belongs to another thread
        await asyncio.sleep(STOP_POLL_S)
    stopping.set()
