"""Group commit: one thread writes what many callers wait for, in one transaction. What a transaction is: transactions.py."""

import asyncio
import contextlib
import queue
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from schemas.errors import StoreError
from tasks.ledger.backoff import Backoff, is_passing
from tasks.ledger.full_disk import ROOM, is_full
from tasks.ledger.process_identity import HERE, Machine
from tasks.ledger.transactions import NO_RESULTS, Result, Transactions, Waiting, Write

_Found = TypeVar("_Found")

MAX_WRITES_PER_COMMIT = 2_000
N_FOR_PAUSE, SHARE_FOR_COMMIT, MOST_PAUSE_S, PAUSE_STEP_S = 32, 16, 0.1, 0.01
"""With so many attempts under way more rows will come: a commit waits for one of 16 of them, 0.1 s at most. At a judge's latency
it would else hold one row, at the price of a hundred. That is a 32nd of the latency; who waits so long is not in flight."""
RESERVE_BYTES = 32 * 1024 * 1024
"""Nothing is bought any more once less than this is free: replies under way still find room."""


class GroupCommit:
    """The only writer of a ledger in this process. A caller returns when its rows are durable, or with an error."""

    def __init__(
        self,
        engine: Engine,
        explain: Callable[[Exception], Exception],
        folder: Path | None,
        reserve_bytes: int,
        max_away_s: float,
        machine: Machine = HERE,
    ) -> None:
        self._transactions = Transactions(engine, explain, machine)
        self._machine = machine
        self._explain = explain
        self._folder = folder
        self._reserve_bytes = reserve_bytes
        self._max_away_s = max_away_s
        self.n_under_way = 0  # attempts begun here whose end will be written here
        self._queue: queue.SimpleQueue[Waiting | None] = machine.queue()
        self._is_closed = False
        self._thread = machine.start(self._run, "salon-ledger")

    @property
    def n_commits(self) -> int:
        """Transactions so far that were to last; on a server also those that turned out to write nothing."""
        return self._transactions.n_commits

    def end_attempt(self) -> None:
        """An attempt's end is about to be written; it may have begun before this writer did."""
        self.n_under_way = max(0, self.n_under_way - 1)

    async def commit(self, *writes: Write) -> None:
        """Wait until these writes are durable."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(Waiting(writes, done))
        await done

    def commit_now(self, *writes: Write) -> None:
        """The same for callers without an event loop."""
        done: Future[None] = Future()
        self._put(Waiting(writes, done))
        self._machine.result(done)

    async def alone(self, function: Callable[[Connection], _Found], *, is_lasting: bool = True) -> _Found:
        """Run a function as the only writer of the database; returns what it returns, once what it wrote is durable.

        It shares the transaction of what else waits; where it raises, its own writes are undone and its caller gets the error.
        """
        done: asyncio.Future[_Found] = asyncio.get_running_loop().create_future()
        self._put(Waiting((), done, function, is_lasting))
        return await done

    def alone_now(self, function: Callable[[Connection], _Found], *, changes_state: bool = True) -> _Found:
        """The same for callers without an event loop."""
        done: Future[_Found] = Future()
        self._put(Waiting((), done, function, changes_state=changes_state))
        found: _Found = self._machine.result(done)
        return found

    def close(self) -> None:
        """Write what is waiting and stop."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
            self._thread.join()
            with contextlib.suppress(SQLAlchemyError):  # swept a day later
                self._transactions.close()

    def _put(self, waiting: Waiting) -> None:
        if self._is_closed:
            raise StoreError("the ledger is closed; open it again to write to it")
        self._queue.put(waiting)

    def _run(self) -> None:
        is_open = True
        while is_open:
            first = self._queue.get()
            if first is None:
                break
            batch = [first]
            if first.function is None:
                self._wait_for_more()
            with contextlib.suppress(queue.Empty):
                while len(batch) < MAX_WRITES_PER_COMMIT:
                    following = self._queue.get_nowait()
                    if following is None:
                        is_open = False
                        break
                    batch.append(following)
            self._write(batch)

    def _wait_for_more(self) -> None:
        until_s = self._machine.monotonic_s() + MOST_PAUSE_S
        while self.n_under_way >= N_FOR_PAUSE and not self._is_closed and self._machine.monotonic_s() < until_s:
            if self._queue.qsize() + 1 >= self.n_under_way // SHARE_FOR_COMMIT:
                return
            self._machine.sleep(PAUSE_STEP_S)

    def _write(self, batch: list[Waiting]) -> None:
        """Commit a batch and tell its callers. A server that goes away, or room, is waited for: what was bought is kept."""
        backoff = Backoff(self._max_away_s, self._machine)
        while batch:
            try:
                batch = self._without_spending(batch)
                away_s = backoff.waited_s if backoff.n_waits else None
                results = self._transactions.make(batch, away_s) if batch else NO_RESULTS
            except Exception as cause:  # noqa: BLE001 - whatever it is, those who wait must hear of it
                error, failed, is_for_room = self._explain(cause), cause, is_full(cause)
                is_over = not (is_for_room or is_passing(cause)) or backoff.is_over
            else:
                backoff.ended()
                if any(waiting.writes for waiting in batch):
                    ROOM.end()
                _resolve(batch, None, results)
                return
            if is_over:
                first, batch = _to_give_up(batch)
                _resolve(first, error)
            else:
                backoff.wait(failed, is_for_room=is_for_room)

    def _without_spending(self, batch: list[Waiting]) -> list[Waiting]:
        """On a nearly full disk, refuse what would lead to new replies and go on with the rest."""
        refused = [waiting for waiting in batch if waiting.opens]
        if self._folder is None or not refused:
            return batch
        n_free = shutil.disk_usage(self._folder).free
        if n_free >= self._reserve_bytes:
            return batch
        error = StoreError(
            f"only {n_free / 1e6:.1f} MB are free for the ledger in {self._folder}, and {self._reserve_bytes / 1e6:.1f} MB are "
            "reserved for replies in flight; no more requests are sent: free space, then run the same command again"
        )
        _resolve(refused, error)
        return [waiting for waiting in batch if waiting not in refused]


def _to_give_up(batch: list[Waiting]) -> tuple[list[Waiting], list[Waiting]]:
    """Of a batch that failed who hear of it, and the rest: what was bought may be written without functions, or new attempts."""
    functions = [waiting for waiting in batch if waiting.function]
    if functions:
        return functions, [waiting for waiting in batch if not waiting.function]
    opening = [waiting for waiting in batch if waiting.opens]
    return (opening, [waiting for waiting in batch if not waiting.opens]) if opening else (batch, [])


def _resolve(batch: list[Waiting], error: Exception | None, results: Mapping[int, Result] = NO_RESULTS) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Waiting]] = {}
    for waiting in batch:
        if isinstance(waiting.done, Future):
            _set_results([waiting], error, results)
        else:
            by_loop.setdefault(waiting.done.get_loop(), []).append(waiting)
    for loop, of_loop in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_set_results, of_loop, error, results)


def _set_results(batch: list[Waiting], error: Exception | None, results: Mapping[int, Result]) -> None:
    for waiting in batch:
        if waiting.done.done():
            continue  # a cancelled caller; its rows are stored all the same
        result, own_error = results.get(id(waiting), (None, None))
        failed = error or own_error
        if failed is not None:
            waiting.done.set_exception(failed)
        else:
            waiting.done.set_result(result)
