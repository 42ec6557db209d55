"""Group commit: one thread writes what many callers wait for, in one transaction. What is written is ledger.py's business."""

import asyncio
import contextlib
import queue
import shutil
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from schemas.errors import StoreError
from tasks.judge.ledger_commit import NO_RESULTS, Result, Transactions, Waiting, Write
from tasks.judge.ledger_patience import Patience
from tasks.judge.ledger_tables import is_passing

_Found = TypeVar("_Found")

MAX_WRITES_PER_COMMIT = 2_000
RESERVE_BYTES = 32 * 1024 * 1024
"""Nothing is bought any more once less than this is free: replies under way still find room."""


class GroupCommit:
    """The only writer of a ledger in this process. A caller returns when its rows are durable, or with a StoreError."""

    def __init__(
        self,
        engine: Engine,
        explain: Callable[[BaseException], StoreError],
        folder: Path | None,
        reserve_bytes: int,
        patience_s: float,
    ) -> None:
        self._transactions = Transactions(engine, explain)
        self._explain = explain
        self._folder = folder
        self._reserve_bytes = reserve_bytes
        self._patience_s = patience_s
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="salon-ledger", daemon=True)
        self._thread.start()

    @property
    def n_commits(self) -> int:
        """Transactions so far that were to last; on a server also those that turned out to write nothing."""
        return self._transactions.n_commits

    async def commit(self, *writes: Write) -> None:
        """Wait until these writes are durable."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(Waiting(writes, done))
        await done

    def commit_now(self, *writes: Write) -> None:
        """The same for callers without an event loop."""
        done: Future[None] = Future()
        self._put(Waiting(writes, done))
        done.result()

    async def alone(self, function: Callable[[Connection], _Found], *, is_lasting: bool = True) -> _Found:
        """Run a function as the only writer of the database; returns what it returns, once what it wrote is durable.

        It shares the transaction of what else waits; where it raises, its own writes are undone and its caller gets the error.
        """
        done: asyncio.Future[_Found] = asyncio.get_running_loop().create_future()
        self._put(Waiting((), done, function, is_lasting))
        return await done

    def alone_now(self, function: Callable[[Connection], _Found]) -> _Found:
        """The same for callers without an event loop."""
        done: Future[_Found] = Future()
        self._put(Waiting((), done, function))
        return done.result()

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
            with contextlib.suppress(queue.Empty):
                while len(batch) < MAX_WRITES_PER_COMMIT:
                    following = self._queue.get_nowait()
                    if following is None:
                        is_open = False
                        break
                    batch.append(following)
            self._write(batch)

    def _write(self, batch: list[Waiting]) -> None:
        """Commit a batch and tell its callers. A server that goes away is waited for: what was bought is to be stored."""
        patience = Patience(self._patience_s)
        while batch:
            try:
                batch = self._without_spending(batch)
                away_s = patience.waited_s if patience.n_waits else None
                results = self._transactions.make(batch, away_s) if batch else NO_RESULTS
            except Exception as cause:  # noqa: BLE001 - whatever it is, those who wait must hear of it
                error = self._explain(cause)
                is_over = not is_passing(cause) or patience.is_over
            else:
                _resolve(batch, None, results)
                return
            if is_over:
                functions = [waiting for waiting in batch if waiting.function]
                _resolve(functions or batch, error)
                batch = [waiting for waiting in batch if not waiting.function] if functions else []  # bought: stored without them
            else:
                patience.wait()

    def _without_spending(self, batch: list[Waiting]) -> list[Waiting]:
        """On a nearly full disk, refuse what would lead to new replies and go on with the rest."""
        refused = [waiting for waiting in batch if any(write.opens for write in waiting.writes)]
        if self._folder is None or not refused:
            return batch
        n_free = shutil.disk_usage(self._folder).free
        if n_free >= self._reserve_bytes:
            return batch
        error = StoreError(
            f"only {n_free} bytes are free for the ledger in {self._folder}, and {self._reserve_bytes} are kept for replies "
            "under way; nothing more is asked: free space, then run the same command again"
        )
        _resolve(refused, error)
        return [waiting for waiting in batch if waiting not in refused]


def _resolve(batch: list[Waiting], error: StoreError | None, results: Mapping[int, Result] = NO_RESULTS) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Waiting]] = {}
    for waiting in batch:
        if isinstance(waiting.done, Future):
            _settle([waiting], error, results)
        else:
            by_loop.setdefault(waiting.done.get_loop(), []).append(waiting)
    for loop, of_loop in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, of_loop, error, results)


def _settle(batch: list[Waiting], error: StoreError | None, results: Mapping[int, Result]) -> None:
    for waiting in batch:
        if waiting.done.done():
            continue  # a cancelled caller; its rows are stored all the same
        result, own_error = results.get(id(waiting), (None, None))
        failed = error or own_error
        if failed is not None:
            waiting.done.set_exception(failed)
        else:
            waiting.done.set_result(result)
