"""Group commit: one thread writes what many callers wait for, in one transaction. What is written is ledger.py's business."""

import asyncio
import contextlib
import queue
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.expression import Executable

from schemas.errors import StoreError
from tasks.judge.ledger_tables import begin, is_passing, new_state

_Found = TypeVar("_Found")
_Result: TypeAlias = tuple[Any, Exception | None]
_NO_RESULTS: Mapping[int, _Result] = MappingProxyType({})

MAX_WRITES_PER_COMMIT = 2_000
TRY_AGAIN_S = 0.2
RESERVE_BYTES = 32 * 1024 * 1024
"""Nothing is bought any more once less than this is free: replies under way still find room."""


@dataclass(frozen=True, slots=True)
class Write:
    """Rows for one statement. `opens` marks a write that comes before money is spent: it is refused on a nearly full disk."""

    statement: Executable
    rows: Sequence[dict[str, Any]]
    opens: bool = False


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Writes that are made together or not at all, and who waits for them; or a function that reads and writes by itself."""

    writes: tuple[Write, ...]
    done: "asyncio.Future[Any] | Future[Any]"
    function: Callable[[Connection], Any] | None = None


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
        self._engine = engine
        self._new_state = new_state(engine)
        self._explain = explain
        self._folder = folder
        self._reserve_bytes = reserve_bytes
        self._patience_s = patience_s
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._is_closed = False
        self.n_commits = 0
        self._thread = threading.Thread(target=self._run, name="salon-ledger", daemon=True)
        self._thread.start()

    async def commit(self, *writes: Write) -> None:
        """Wait until these writes are durable."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(_Waiting(writes, done))
        await done

    def commit_now(self, *writes: Write) -> None:
        """The same for callers without an event loop."""
        done: Future[None] = Future()
        self._put(_Waiting(writes, done))
        done.result()

    async def alone(self, function: Callable[[Connection], _Found]) -> _Found:
        """Run a function as the only writer of the database; returns what it returns, once what it wrote is durable.

        It shares the transaction of what else waits; where it raises, its own writes are undone and its caller gets the error.
        """
        done: asyncio.Future[_Found] = asyncio.get_running_loop().create_future()
        self._put(_Waiting((), done, function))
        return await done

    def alone_now(self, function: Callable[[Connection], _Found]) -> _Found:
        """The same for callers without an event loop."""
        done: Future[_Found] = Future()
        self._put(_Waiting((), done, function))
        return done.result()

    def close(self) -> None:
        """Write what is waiting and stop."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
            self._thread.join()

    def _put(self, waiting: _Waiting) -> None:
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

    def _write(self, batch: list[_Waiting]) -> None:
        """Commit a batch and tell its callers. A server that goes away is waited for: what was bought is to be stored."""
        give_up_at = time.monotonic() + self._patience_s
        is_committing = False
        while batch:
            try:
                batch = self._without_spending(batch)
                with self._engine.connect() as connection:
                    results = self._execute(connection, batch) if batch else _NO_RESULTS
                    is_committing = True
                    connection.commit()
            except Exception as cause:  # noqa: BLE001 - whatever it is, those who wait must hear of it
                error = self._explain(cause)
                is_over = not is_passing(cause) or time.monotonic() >= give_up_at
            else:
                self.n_commits += bool(batch)
                _resolve(batch, None, results)
                return
            functions = [waiting for waiting in batch if waiting.function]
            writes = [waiting for waiting in batch if not waiting.function]
            if is_over and not (functions and writes):
                _resolve(batch, error)
                return
            if is_over or is_committing:
                # What was bought is stored without them. And after a commit without an answer, rows that stand there already
                # stay, but a function may not run twice.
                _resolve(functions, error)
                batch, is_committing = writes, False
            time.sleep(TRY_AGAIN_S)

    def _execute(self, connection: Connection, batch: list[_Waiting]) -> Mapping[int, _Result]:
        """All of a batch in a transaction that is not committed yet; what its functions returned."""
        begin(connection, is_alone=any(waiting.function for waiting in batch))
        _write_rows(connection, batch)
        results = {id(waiting): self._call(connection, waiting.function) for waiting in batch if waiting.function}
        # last, so that on a server its row is held no longer than the commit takes
        connection.execute(self._new_state, {"value": secrets.token_hex(16)})
        return results

    def _call(self, connection: Connection, function: Callable[[Connection], Any]) -> _Result:
        try:
            with connection.begin_nested():
                return function(connection), None
        except SQLAlchemyError as error:
            if is_passing(error):
                raise  # the transaction is gone with it
            return None, self._explain(error)
        except Exception as error:  # noqa: BLE001 - it belongs to the caller, and the others' writes must stand
            return None, error

    def _without_spending(self, batch: list[_Waiting]) -> list[_Waiting]:
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


def _write_rows(connection: Connection, batch: list[_Waiting]) -> None:
    """One executemany for each statement, its rows in one order in every process: two never wait for each other's."""
    together: dict[int, tuple[Executable, list[dict[str, Any]]]] = {}
    for waiting in batch:
        for write in waiting.writes:
            together.setdefault(id(write.statement), (write.statement, []))[1].extend(write.rows)
    for statement, rows in together.values():
        connection.execute(statement, sorted(rows, key=_place))


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    return row.get("request_key") or row["id"], row.get("ask_index", 0)


def _resolve(batch: list[_Waiting], error: StoreError | None, results: Mapping[int, _Result] = _NO_RESULTS) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}
    for waiting in batch:
        if isinstance(waiting.done, Future):
            _settle([waiting], error, results)
        else:
            by_loop.setdefault(waiting.done.get_loop(), []).append(waiting)
    for loop, of_loop in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, of_loop, error, results)


def _settle(batch: list[_Waiting], error: StoreError | None, results: Mapping[int, _Result]) -> None:
    for waiting in batch:
        if waiting.done.done():
            continue  # a cancelled caller; its rows are stored all the same
        result, own_error = results.get(id(waiting), (None, None))
        failed = error or own_error
        if failed is not None:
            waiting.done.set_exception(failed)
        else:
            waiting.done.set_result(result)
