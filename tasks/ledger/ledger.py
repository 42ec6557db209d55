"""The ledger: what was asked and what was bought, durable. Tables are in tables.py, group commit in group_commit.py.

An attempt's row is durable before its request is sent. A final reply is durable before anyone is told of it, and the first
one stored for (request_key, ask_index) stays. The first attempt of a re-ask is opened in the transaction that stores the
unreadable reply, so that a killed run knows which re-asks it still owes.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Self, TypeVar

import polars as pl
from sqlalchemy import bindparam, insert, update
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.expression import Executable

from schemas.errors import StoreError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyStatus
from tasks.lake.object_store.settings import store_wait_s
from tasks.ledger import queries
from tasks.ledger.backoff import MAX_AWAY_S, retried
from tasks.ledger.connection import BUSY_TIMEOUT_MS, explain, open_engine, parse_url
from tasks.ledger.full_disk import ROOM
from tasks.ledger.group_commit import RESERVE_BYTES, GroupCommit
from tasks.ledger.pipelining import MAX_SILENT_S
from tasks.ledger.process_identity import HERE, Machine
from tasks.ledger.sqlite_files import sqlite_file
from tasks.ledger.statements import insert_where_absent
from tasks.ledger.tables import ATTEMPTS, REPLIES
from tasks.ledger.transactions import Write

_Found = TypeVar("_Found")

END = (
    update(ATTEMPTS)
    .where(ATTEMPTS.c.attempt_id == bindparam("id"))
    .values(ended_at_us=bindparam("at"), status=bindparam("how"), detail=bindparam("why"))
)


class Ledger:
    """A ledger at a SQLAlchemy URL. Nothing is opened before the first call; StoreError where it cannot be used.

    A server that goes away is waited for, `max_away_s` for each thing that is asked of it (default: 60 s, or SALON_STORE_WAIT_S).
    One that says nothing for `max_silent_s` is taken for one that is away.
    """

    def __init__(
        self,
        url: str,
        *,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        reserve_bytes: int = RESERVE_BYTES,
        max_away_s: float | None = None,
        max_silent_s: float = MAX_SILENT_S,
        machine: Machine = HERE,
    ) -> None:
        self.machine = machine
        self._busy_timeout_ms = busy_timeout_ms
        self._max_away_s = store_wait_s(MAX_AWAY_S) if max_away_s is None else max_away_s
        self._max_silent_s = max_silent_s
        self._reserve_bytes = reserve_bytes
        self._url = parse_url(url)
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._writer: GroupCommit | None = None
        self._in_turn: GroupCommit | None = None
        self._insert: Executable = insert(REPLIES)
        self._begin: Executable = insert(ATTEMPTS)

    # --- asking ---------------------------------------------------------------------------------------------------
    async def begin(self, request_key: str, ask_index: int, judge_model: str) -> str:
        """Record an attempt; when this returns, its row is durable and the request may be sent."""
        row = queries.attempt_row(request_key, ask_index, judge_model, self.machine)
        writer = self._open()
        await writer.commit(Write(self._begin, [row], opens=True))
        writer.n_under_way += 1
        return str(row["attempt_id"])

    async def fail(self, attempt_id: str, status: ReplyStatus, detail: str | None) -> None:
        """Record that an attempt ended without a final reply."""
        writer = self._open()
        writer.end_attempt()
        await writer.commit(Write(END, [queries.end_row(attempt_id, status, detail, self.machine)]))

    async def finish(self, attempt_id: str, reply: JudgeReply, *, is_reasked: bool = False) -> str | None:
        """Store a final reply; when this returns it is durable. With `is_reasked`, the id of the re-ask's first attempt."""
        writer = self._open()
        ended = Write(END, [queries.end_row(attempt_id, reply.status, reply.error_detail, self.machine)])
        writes = [ended, Write(self._insert, [queries.received_row(reply, self.machine)])]
        reask = None
        if is_reasked:
            reask = queries.attempt_row(reply.request_key, reply.ask_index + 1, reply.judge_model, self.machine)
            writes.append(Write(self._begin, [reask]))
        else:
            writer.end_attempt()
        with ROOM.waiting():
            await writer.commit(*writes)
        return str(reask["attempt_id"]) if reask else None

    def store(self, replies: Sequence[JudgeReply]) -> int:
        """Store replies that were not asked for here. Returns how many were new; an earlier reply stays."""
        return self.store_rows([queries.received_row(reply, self.machine) for reply in replies])

    def store_rows(self, rows: Sequence[dict[str, Any]]) -> int:
        """The same from rows of the ledger's own `replies` (see queries.py)."""
        if not rows:
            return 0
        writer = self._open()
        keys = {row["request_key"] for row in rows}
        n_before = self._read(queries.n_stored, keys)
        writer.commit_now(Write(self._insert, rows))
        return self._read(queries.n_stored, keys) - n_before

    def digests(self, keys: Iterable[str]) -> dict[tuple[str, int], str | None]:
        """reply_sha256 of what is stored for these keys, by (request_key, ask_index)."""
        return self._read(queries.digests, set(keys))

    async def forget_rejected(self, keys: Iterable[str]) -> int:
        """Take back the rejections of these requests, so that they are asked again; how many. Their attempts stay recorded."""
        return await self.alone(partial(queries.forget_rejected, keys=list(keys)))

    def forget_rejected_now(self, keys: Iterable[str], ask_index: int | None = None) -> int:
        """The same for callers without an event loop, or of one ask. Where there is none, nothing is written."""
        found = list(keys)
        return self.alone_now(partial(queries.forget_rejected, keys=found, ask_index=ask_index)) if self.rejections(found) else 0

    # --- what processes share: claims, limits, budgets, batches --------------------------------------------------
    async def alone(self, function: Callable[[Connection], _Found], *, is_lasting: bool = True) -> _Found:
        """Run a short function as the only writer of the ledger; when this returns, what it wrote is durable.

        Not `is_lasting`: others see what it wrote, a crash of the server may undo it, a lost answer may repeat it, and the
        ledger's state does not change for it. For what is true for a second.
        """
        return await self._for_functions().alone(function, is_lasting=is_lasting)

    def alone_now(self, function: Callable[[Connection], _Found], *, changes_state: bool = True) -> _Found:
        """The same for callers without an event loop.

        Not `changes_state`: it writes nothing that a snapshot of the replies holds, and the ledger's state stays what it was.
        """
        return self._for_functions().alone_now(function, changes_state=changes_state)

    async def look(self, function: Callable[[Connection], _Found]) -> _Found:
        """What a function finds that writes nothing, without being alone; the event loop goes on meanwhile."""
        found: _Found = await self.machine.in_thread(self.read, function)
        return found

    # --- reading --------------------------------------------------------------------------------------------------
    def read(self, function: Callable[[Connection], _Found]) -> _Found:
        """What a function finds that writes nothing."""
        return self._read(lambda connection, _: function(connection), ())

    def state(self) -> str | None:
        """A word that is another after every lasting write but those of who is there, in every copy; None before the first."""
        return self._read(queries.state, ())

    def known(self, keys: Iterable[str]) -> set[str]:
        """Those of the request keys that have a final reply."""
        return set(self._read(queries.known, keys))

    def replies(self, keys: Iterable[str]) -> pl.DataFrame:
        """Every stored reply to these requests, in the columns of the lake's `replies`."""
        return self._read(queries.replies, keys)

    def reasks_due(self, keys: Iterable[str]) -> set[str]:
        """Requests whose first reply could not be read and whose re-ask was opened and has no reply yet."""
        return set(self._read(queries.reasks_due, keys))

    def n_left(self, keys: pl.Series) -> int:
        """How many of these requests, each named once, have no final reply or are owed a re-ask."""
        known = self.known(keys)
        return len(keys) - len(known) + len(self.reasks_due(known))

    def rejections(self, keys: Iterable[str]) -> Counter[str]:
        """How many of these requests were rejected, by what the provider said of it."""
        return self._read(queries.rejections, keys)

    def last_failures(self, keys: Iterable[str]) -> pl.DataFrame:
        """(request_key, ask_index, status, error_detail, n_attempts) of the last attempt of every ask without a final reply."""
        return self._read(queries.last_failures, keys)

    def n_attempts(self, keys: Iterable[str]) -> dict[tuple[str, int], int]:
        """Attempts recorded so far, by (request_key, ask_index)."""
        return self._read(queries.n_attempts, keys)

    def close(self) -> None:
        """Write what is waiting and let go of the database. A later call opens it again."""
        with self._lock:
            for writer in (self._writer, self._in_turn):
                if writer is not None:
                    writer.close()
            if self._engine is not None:
                self._engine.dispose()
            self._writer = self._in_turn = self._engine = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> GroupCommit:
        with self._lock:
            if self._writer is None:
                self._engine = self._opened()
                # Where the rows stand there already, they may be written again: a commit whose answer was lost.
                self._insert = insert_where_absent(self._engine, REPLIES)
                self._begin = insert_where_absent(self._engine, ATTEMPTS)
                file = sqlite_file(self._url)
                folder = None if file is None else file.parent
                explained = partial(explain, self._url)
                make = partial(GroupCommit, self._engine, explained, folder, self._reserve_bytes, self._max_away_s, self.machine)
                self._writer = make()
                # On a server rows need not wait for their turn: only functions do. A file has one writer at a time anyway.
                self._in_turn = self._writer if self._engine.dialect.name == "sqlite" else make()
            return self._writer

    def _for_functions(self) -> GroupCommit:
        writer = self._open()
        return self._in_turn or writer

    def _opened(self) -> Engine:
        """An engine. A server that is not there may be restarting: it is waited for as one that goes away later."""
        engine = retried(
            lambda: open_engine(self._url, self._busy_timeout_ms, silent_s=self._max_silent_s),
            self._max_away_s,
            self._url.host,
            self.machine,
        )
        return engine if self.machine is HERE else engine.execution_options(machine=self.machine)

    def _read(self, function: Callable[[Connection, Sequence[str]], _Found], keys: Iterable[str]) -> _Found:
        self._open()
        engine, listed = self._engine, list(keys)
        if engine is None:
            raise StoreError("the ledger was closed while it was read; run the same command again")

        def read() -> _Found:
            with engine.connect() as connection:
                return function(connection, listed)

        try:
            return retried(read, self._max_away_s, machine=self.machine)
        except SQLAlchemyError as error:
            raise explain(self._url, error) from error
