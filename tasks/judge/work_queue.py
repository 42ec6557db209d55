"""The asks of a shard in order, claimed block by block; at the end those that wait for another process's reply. No sending."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tasks.ledger.claims import Claims, Taken

LEAST_BLOCK = 64
"""Requests claimed in one commit: large enough to cost little, small enough that two processes share a shard's work."""
POLL_S = 0.5
"""Between two looks whether another process has its reply."""

ASKED_COLUMNS = ["request_key", "variant", "parameters_json", "facts_json", "messages_json", "image_sha256"]


@dataclass(frozen=True, slots=True)
class Ask:
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
class Feed:
    """Hands the asks of `requests` to workers. `n_done` counts those that turned out to be answered, also by others."""

    requests: pl.DataFrame
    claims: Claims
    stopping: asyncio.Event
    block: int = LEAST_BLOCK
    n_done: int = 0
    _ready: deque[Ask] = field(default_factory=deque)
    _handed_out: set[str] = field(default_factory=set)
    _elsewhere: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _rows: Iterator[tuple[Any, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self._rows = self.requests.select(ASKED_COLUMNS).iter_rows()

    async def next(self) -> Ask | None:
        """The next ask that is ours; None when there is none left, or the run is stopped."""
        async with self._lock:
            while not self.stopping.is_set():
                if self.claims.is_lost:
                    self._start_over()
                if self._ready:
                    ask = self._ready.popleft()
                    self._handed_out.add(ask.request_key)
                    return ask
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
                self._ready.append(Ask(key, variant, parameters, facts, messages, digest, int(key in taken.due), n_earlier))
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
        self._rows = self.requests.select(ASKED_COLUMNS).iter_rows()
        self.n_done = 0
