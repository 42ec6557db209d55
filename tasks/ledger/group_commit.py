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

from sqlalchemy import delete, select, update
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.expression import Executable

from schemas.errors import StoreError
from tasks.ledger.connection import Backoff, is_passing
from tasks.ledger.pipelining import begin, commit, later, n_changes, pipelined, sync
from tasks.ledger.process_identity import RENEW_EVERY_S, expiry_us
from tasks.ledger.tables import LEDGER_META, OWNERS, WRITERS, now_us, state_row, upsert

Result: TypeAlias = tuple[Any, Exception | None]
NO_RESULTS: Mapping[int, Result] = MappingProxyType({})

_KEPT_US = 86_400 * 1_000_000
"""The word of a process that was killed is swept after a day."""


@dataclass(frozen=True, slots=True)
class Write:
    """Rows for one statement. `opens` marks a write that comes before money is spent: it is refused on a nearly full disk."""

    statement: Executable
    rows: Sequence[dict[str, Any]]
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """Writes that are made together or not at all, and who waits for them; or a function that reads and writes by itself."""

    writes: tuple[Write, ...]
    done: "asyncio.Future[Any] | Future[Any]"
    function: Callable[[Connection], Any] | None = None
    is_lasting: bool = True


class Transactions:
    """The transactions of one writer, one after the other. `n_commits` counts those that wrote."""

    def __init__(self, engine: Engine, explain: Callable[[BaseException], StoreError]) -> None:
        self.n_commits = 0
        self._engine, self._explain = engine, explain
        self._set_state = upsert(engine, LEDGER_META, is_where_written=True)
        self._leave_word = upsert(engine, WRITERS, is_where_written=True)
        self._is_on_server = engine.dialect.name != "sqlite"
        self._id = secrets.token_hex(16)
        self._has_word = False
        self._in_doubt: tuple[str, Mapping[int, Result]] | None = None

    def make(self, batch: Sequence[Waiting], away_s: float | None = None) -> Mapping[int, Result]:
        """All of a batch in one transaction, durable when it returns; what its functions returned, by the id of who waits.

        `away_s`: None the first time. After an error the same functions are made once, and it says how long that took.
        """
        has_functions = any(waiting.function for waiting in batch)
        is_lasting = any(waiting.is_lasting for waiting in batch) or not batch
        was_away = away_s is not None and away_s >= RENEW_EVERY_S
        if away_s is None:
            self._in_doubt = None
        with self._engine.connect() as connection, pipelined(connection):
            begin(connection, is_alone=has_functions or was_away, is_lasting=is_lasting)
            n_before = n_changes(connection)
            if has_functions and self._in_doubt is not None:
                if self._is_made(connection, self._in_doubt[0]):
                    return self._in_doubt[1]
                self._in_doubt = None
            if away_s is not None and was_away:
                _spare_owners(connection, away_s)
            _write_rows(connection, batch)
            is_sole = len(batch) == 1
            if has_functions and not is_sole:
                sync(connection)  # an error of what is not theirs is not to be the first function's
            results = {id(each): self._call(connection, each.function, is_sole=is_sole) for each in batch if each.function}
            if is_sole and any(error for _, error in results.values()):
                return results
            if not is_lasting:
                commit(connection)
                return results
            is_read_only = len(results) == len(batch) and not self._is_on_server and n_changes(connection) == n_before
            if is_read_only:
                return results  # there is nothing to make durable, and the ledger's state is what it was
            self._commit(connection, results, has_functions=has_functions)
        self._in_doubt = None
        self.n_commits += 1
        return results

    def _is_made(self, connection: Connection, commit_id: str) -> bool:
        word = select(WRITERS.c.commit_id).where(WRITERS.c.writer_id == self._id)
        return bool(connection.execute(word).scalar() == commit_id)

    def close(self) -> None:
        """Take back this writer's word."""
        if self._has_word:
            with self._engine.begin() as connection:
                connection.execute(delete(WRITERS).where(WRITERS.c.writer_id == self._id))

    def _commit(self, connection: Connection, results: Mapping[int, Result], *, has_functions: bool) -> None:
        commit_id = secrets.token_hex(16)
        if has_functions and self._is_on_server:
            moment_us = time.time_ns() // 1000
            if not self._has_word:
                later(connection, delete(WRITERS).where(WRITERS.c.committed_at_us < moment_us - _KEPT_US))
            row = {"writer_id": self._id, "commit_id": commit_id, "committed_at_us": moment_us}
            later(connection, self._leave_word, row)
            self._has_word = True
            self._in_doubt = commit_id, results
        # last, so that on a server its row is held no longer than the commit takes
        later(connection, self._set_state, state_row(commit_id))
        commit(connection)

    def _call(self, connection: Connection, function: Callable[[Connection], Any], *, is_sole: bool) -> Result:
        """A function's result, or its error, and then nothing of what it wrote: where it is alone the transaction is undone."""
        try:
            with contextlib.nullcontext() if is_sole else connection.begin_nested():
                return function(connection), None
        except SQLAlchemyError as error:
            if is_passing(error):
                raise  # the transaction is gone with it
            return None, self._explain(error)
        except Exception as error:  # noqa: BLE001 - it belongs to the caller, and the others' writes must stand
            return None, error


def _write_rows(connection: Connection, batch: Sequence[Waiting]) -> None:
    """One executemany for each statement, its rows in one order in every process: two never wait for each other's."""
    by_statement: dict[int, tuple[Executable, list[dict[str, Any]]]] = {}
    for waiting in batch:
        for write in waiting.writes:
            by_statement.setdefault(id(write.statement), (write.statement, []))[1].extend(write.rows)
    for statement, rows in by_statement.values():
        later(connection, statement, sorted(rows, key=_place))


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    return row.get("request_key") or row["id"], row.get("ask_index", 0)


def _spare_owners(connection: Connection, away_s: float) -> None:
    """Give a new span of life to every owner that had not expired when the server went away: none could say that it lives."""
    moment_us = now_us(connection)
    lived_us = moment_us - int(away_s * 1e6)
    renewed_us = expiry_us(moment_us)
    is_it = OWNERS.c.expires_at_us.between(lived_us, renewed_us)
    connection.execute(update(OWNERS).where(is_it).values(expires_at_us=renewed_us))


_Found = TypeVar("_Found")

MAX_WRITES_PER_COMMIT = 2_000
N_FOR_PAUSE, SHARE_FOR_COMMIT, MOST_PAUSE_S, PAUSE_STEP_S = 32, 16, 0.1, 0.01
"""With so many attempts under way more rows will come: a commit waits for one of 16 of them, 0.1 s at most. At a judge's latency
it would else hold one row, at the price of a hundred. That is a 32nd of the latency; who waits so long is not in flight."""
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
        max_away_s: float,
    ) -> None:
        self._transactions = Transactions(engine, explain)
        self._explain = explain
        self._folder = folder
        self._reserve_bytes = reserve_bytes
        self._max_away_s = max_away_s
        self.n_under_way = 0  # attempts begun here whose end will be written here
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="salon-ledger", daemon=True)
        self._thread.start()

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
        until_s = time.monotonic() + MOST_PAUSE_S
        while self.n_under_way >= N_FOR_PAUSE and not self._is_closed and time.monotonic() < until_s:
            if self._queue.qsize() + 1 >= self.n_under_way // SHARE_FOR_COMMIT:
                return
            time.sleep(PAUSE_STEP_S)

    def _write(self, batch: list[Waiting]) -> None:
        """Commit a batch and tell its callers. A server that goes away is waited for: what was bought is to be stored."""
        backoff = Backoff(self._max_away_s)
        while batch:
            try:
                batch = self._without_spending(batch)
                away_s = backoff.waited_s if backoff.n_waits else None
                results = self._transactions.make(batch, away_s) if batch else NO_RESULTS
            except Exception as cause:  # noqa: BLE001 - whatever it is, those who wait must hear of it
                error = self._explain(cause)
                is_over = not is_passing(cause) or backoff.is_over
            else:
                _resolve(batch, None, results)
                return
            if is_over:
                functions = [waiting for waiting in batch if waiting.function]
                _resolve(functions or batch, error)
                batch = [waiting for waiting in batch if not waiting.function] if functions else []  # bought: stored without them
            else:
                backoff.wait()

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
            _set_results([waiting], error, results)
        else:
            by_loop.setdefault(waiting.done.get_loop(), []).append(waiting)
    for loop, of_loop in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_set_results, of_loop, error, results)


def _set_results(batch: list[Waiting], error: StoreError | None, results: Mapping[int, Result]) -> None:
    for waiting in batch:
        if waiting.done.done():
            continue  # a cancelled caller; its rows are stored all the same
        result, own_error = results.get(id(waiting), (None, None))
        failed = error or own_error
        if failed is not None:
            waiting.done.set_exception(failed)
        else:
            waiting.done.set_result(result)
