"""The work queue: a shard's requests claimed block by block for workers; planned requests in the lake."""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import polars as pl

from schemas.records import PlannedPart
from schemas.tables.stored import REQUESTS
from tasks.context import StageContext
from tasks.judge.part_pictures import PartPictures, part_pictures
from tasks.judge.provider.exchange import Answer
from tasks.judge.readings import FirstReplies, is_reask_due
from tasks.ledger.claims import Claims

LEAST_BLOCK = 64
"""Requests claimed in one commit: large enough to cost little, small enough that two processes share a shard's work."""
POLL_S = 0.5
"""Between two looks whether another process has its reply, for each of BLOCKS_A_LOOK blocks that it is asking."""
BLOCKS_A_LOOK = 4
"""Looked at in one commit: a database takes only so many parameters, and others wait to write."""
QUEUED_COLUMNS = ["request_key", "variant", "parameters_json", "facts_json", "messages_json"]
BLOCK = 250
"""Requests that are claimed in one commit."""
MANY_ATTEMPTS = 6
"""Three runs make so many of a request at least, whatever it fails of (retries.py)."""

ReaskCheck: TypeAlias = Callable[[Answer], bool]


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request to be asked from `ask_index` on; `n_earlier` counts the attempts that were sent, by ask index."""

    request_key: str
    variant: str | None
    parameters_json: str
    facts_json: str
    messages_json: str
    ask_index: int = 0
    n_earlier: tuple[int, int] = (0, 0)
    n_lost: int = 0  # of its claims, when it was claimed
    tried_for_s: float = 0.0  # since its first attempt, where the earlier ones are many


@dataclass(slots=True)
class WorkQueue:
    """Hands `requests` to workers. `n_done` counts those that turned out to be answered, also by others."""

    requests: pl.DataFrame
    claims: Claims
    stopping: asyncio.Event
    block: int = LEAST_BLOCK
    poll_s: float = POLL_S
    first: FirstReplies = field(default_factory=lambda: FirstReplies(None))
    n_done: int = 0
    _ready: deque[QueuedRequest] = field(default_factory=deque)
    _handed_out: set[str] = field(default_factory=set)
    _elsewhere: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _rows: Iterator[tuple[Any, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self._rows = self.requests[QUEUED_COLUMNS].iter_rows()

    async def next(self) -> QueuedRequest | None:
        """The next request that is ours; None when there is none left, or the run is stopped."""
        async with self._lock:
            while not self.stopping.is_set():
                if self.claims.is_lost:
                    self._start_over()
                if self._ready:
                    request = self._ready.popleft()
                    self._handed_out.add(request.request_key)
                    return request if await self.first.begin(request.request_key, self.stopping) else None
                rows = self._next_rows()
                if rows:
                    await self._claim(rows)
                elif self._elsewhere:
                    await self._wait()
                else:
                    return None
            return None

    def put_back(self, request_key: str) -> None:
        """A request that was handed out and not asked, since its claim may be another's by now: all are claimed anew."""
        self._handed_out.discard(request_key)
        self.claims.is_lost = True

    def _next_rows(self) -> dict[str, tuple[Any, ...]]:
        rows: dict[str, tuple[Any, ...]] = {}
        for row in self._rows:
            if row[0] not in self._handed_out:
                rows[row[0]] = row
            if len(rows) == self.block:
                break
        return rows

    async def _claim(self, rows: dict[str, tuple[Any, ...]]) -> None:
        taken = await self.claims.take(rows)
        self.n_done += len(taken.done)
        often = {key for (key, _), n in taken.n_attempts.items() if n >= MANY_ATTEMPTS}
        tried_for_s = await self.claims.tried_for_s(often)
        for key, row in rows.items():
            if key in taken.ours:
                n_earlier = (taken.n_attempts.get((key, 0), 0), taken.n_attempts.get((key, 1), 0))
                _, variant, parameters, facts, messages = row
                asked = key, variant, parameters, facts, messages, int(key in taken.due), n_earlier, self.claims.n_lost
                self._ready.append(QueuedRequest(*asked, tried_for_s.get(key, 0.0)))
            elif key in taken.elsewhere:
                self._elsewhere[key] = row

    async def _wait(self) -> None:
        """Look again after a while at what others are asking: it has its reply by then, or its owner is gone."""
        n, rows = BLOCKS_A_LOOK * self.block, list(self._elsewhere.items())
        for start in range(0, len(rows), n):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), self.poll_s)
            if self.stopping.is_set():
                return
            some = dict(rows[start : start + n])
            for key in some:
                self._elsewhere.pop(key, None)
            await self._claim(some)

    def _start_over(self) -> None:
        """The claims were lost: others may be asking by now. What was handed out already is under way, and stays so."""
        self._ready.clear()
        self._elsewhere.clear()
        self.claims.is_lost = False
        self._rows = self.requests[QUEUED_COLUMNS].iter_rows()
        self.n_done = 0


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
            pictures = part_pictures(self.context, self.parts[place], rows)
            try:
                for block in rows.iter_slices(BLOCK):
                    yield block, pictures
            finally:
                pictures.close()

    def reask_checks(self, keys: Collection[str]) -> dict[str, ReaskCheck]:
        """By request key, what tells whether an answer to it is to be asked for once more."""
        found: dict[str, ReaskCheck] = {}
        for place, of_part in self._by_part(keys).items():
            rubric = self.context.rubrics[self.parts[place].rubric_id]
            rows = self._read(place, ["request_key", "variant", "facts_json"]).filter(pl.col("request_key").is_in(list(of_part)))
            found |= {key: partial(is_reask_due, rubric, variant, facts_json) for key, variant, facts_json in rows.iter_rows()}
        return found

    def _by_part(self, keys: Collection[str]) -> dict[int, set[str]]:
        by_part: dict[int, set[str]] = defaultdict(set)
        for key in keys:
            by_part[self.part_of[key]].add(key)
        return by_part

    def _read(self, place: int, columns: Sequence[str]) -> pl.DataFrame:
        return self.context.lake.read_part(REQUESTS, self.context.ids.plan_id, self.parts[place].index, list(columns))
