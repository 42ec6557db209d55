"""A shard's requests, judged in an event loop of its own: what a Prefect task or another machine's worker calls."""

import asyncio
import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from functools import cache, partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rubrics.model import Rubric
from schemas.benchmark import Judge, Limits
from schemas.errors import CorruptLakeError
from schemas.records import JudgeReply
from schemas.tables import SAMPLES
from tasks.judge.bodies import Picture
from tasks.judge.client import JudgeClient
from tasks.judge.engine import judge_requests
from tasks.judge.gates import open_gates
from tasks.judge.ledger import Ledger
from tasks.judge.outcome import Outcome
from tasks.store import Lake

GROUPS_HELD = 1
"""Row groups of pictures (64 each) in memory at once; requests come in the order of the samples."""
STOP_POLL_S = 0.1
_ABOUT = ["image_sha256", "image_format", "width_px", "height_px"]


class PartPictures:
    """The pictures of one part of `samples`, by digest, read one row group at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = pq.ParquetFile(path)
        self._groups: OrderedDict[int, pa.ChunkedArray] = OrderedDict()
        self._places: dict[str, tuple[int, int, str, int | None, int | None]] = {}
        for group in range(self._file.num_row_groups):
            columns = self._file.read_row_group(group, columns=_ABOUT).to_pydict()
            for row, (digest, name, *size_px) in enumerate(zip(*(columns[name] for name in _ABOUT), strict=True)):
                if digest is not None:
                    self._places.setdefault(digest, (group, row, name or "PNG", *size_px))

    def __call__(self, image_sha256: str) -> Picture:
        """The picture with this digest. Raises CorruptLakeError where the part does not hold it."""
        group, row, image_format, width_px, height_px = self._places.get(image_sha256, (-1, -1, "", None, None))
        content = self._read(group)[row].as_py() if group >= 0 else None  # copied when it is asked for, not before
        if content is None:
            raise CorruptLakeError(
                f"{self._path} does not hold the picture {image_sha256[:12]}; delete the partition and run again"
            )
        return Picture(content, image_format, width_px, height_px)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, group: int) -> pa.ChunkedArray:
        if group not in self._groups:
            table = self._file.read_row_group(group, columns=["image"])
            self._groups[group] = pc.struct_field(table.column("image"), "bytes")
            while len(self._groups) > GROUPS_HELD:
                self._groups.popitem(last=False)
        self._groups.move_to_end(group)
        return self._groups[group]


def judge_shard(
    lake: Lake,
    dataset_id: str,
    part_index: int,
    requests: pl.DataFrame,
    rubric: Rubric,
    judge: Judge,
    limits: Limits,
    ledger_url: str,
    *,
    plan_id: str = "",
    run_id: str = "",
    on_reply: Callable[[JudgeReply], None] | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Ask what the ledger lacks of these REQUESTS rows, whose pictures are in part `part_index` of the dataset.

    Shards with one `run_id` share `limits.max_usd`. `on_reply` is called in the calling thread, after each reply is durable.
    When `stop` is set, replies under way are stored and it returns. Raises MissingKeyError, ProviderError, StoreError.
    """
    with Ledger(ledger_url) as ledger:
        keys = requests["request_key"]
        known = ledger.known(keys)
        if len(known) == keys.n_unique() and not ledger.reasks_due(keys):
            return Outcome(n_requests=len(known), n_cached=len(known))
        _keep_what_is_loaded()
        pictures = PartPictures(lake.part(SAMPLES, dataset_id, part_index))
        try:
            judging = partial(judge_requests, requests, pictures, ledger, plan_id=plan_id, on_reply=on_reply)
            return asyncio.run(_judge(judging, ledger, rubric, judge, limits, run_id, stop))
        finally:
            pictures.close()


@cache
def _keep_what_is_loaded() -> None:
    """Once in a process: the libraries' hundreds of thousands of objects stay, and a collection need not walk over them."""
    gc.freeze()


async def _judge(
    judging: Callable[..., Coroutine[Any, Any, Outcome]],
    ledger: Ledger,
    rubric: Rubric,
    judge: Judge,
    limits: Limits,
    run_id: str,
    stop: threading.Event | None,
) -> Outcome:
    """The loop's own things: the client with its connections, the gates, and an event that follows the caller's."""
    client = JudgeClient(judge, limits.concurrency, limits.deadline_s)
    stopping = asyncio.Event()
    watcher = asyncio.create_task(_watch(stop, stopping)) if stop is not None else None
    try:
        async with open_gates(ledger, client, rubric, limits, run_id) as gates:
            return await judging(limits=limits, rubric=rubric, client=client, gates=gates, stop=stopping)
    finally:
        if watcher is not None:
            watcher.cancel()
        await client.close()


async def _watch(stop: threading.Event, stopping: asyncio.Event) -> None:
    while not stop.is_set():  # noqa: ASYNC110 - the event belongs to another thread
        await asyncio.sleep(STOP_POLL_S)
    stopping.set()
