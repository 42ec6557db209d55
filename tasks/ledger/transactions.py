"""The transactions of a ledger's one writer: a batch of writes made whole, and a commit whose answer was lost. No queue here."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.expression import Executable

from tasks.ledger.backoff import is_passing
from tasks.ledger.full_disk import is_full
from tasks.ledger.pipelining import begin, commit, later, n_changes, pipelined, sync
from tasks.ledger.process_identity import HERE, RENEW_EVERY_S, Machine, expiry_us
from tasks.ledger.statements import now_us, state_row, upsert
from tasks.ledger.tables import LEDGER_META, OWNERS, WRITERS

Result: TypeAlias = tuple[Any, Exception | None]
NO_RESULTS: Mapping[int, Result] = MappingProxyType({})

_KEPT_US = 86_400 * 1_000_000
"""The word of a process that was killed is swept after a day."""
_WORD = select(WRITERS.c.commit_id).where(WRITERS.c.writer_id == bindparam("id"))
_SWEEP = delete(WRITERS).where(WRITERS.c.committed_at_us < bindparam("long_ago_us"))


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
    changes_state: bool = True

    @property
    def opens(self) -> bool:
        """Whether it comes before money is spent."""
        return any(write.opens for write in self.writes)


class Transactions:
    """The transactions of one writer, one after the other. `n_commits` counts those that wrote."""

    def __init__(self, engine: Engine, explain: Callable[[Exception], Exception], machine: Machine = HERE) -> None:
        self.n_commits = 0
        self._engine, self._explain, self._machine = engine, explain, machine
        self._set_state = upsert(engine, LEDGER_META, is_where_written=True)
        self._leave_word = upsert(engine, WRITERS, is_where_written=True)
        self._is_on_server = engine.dialect.name != "sqlite"
        self._id = machine.token_hex(16)
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
            changes_state = any(waiting.changes_state for waiting in batch) or not batch
            self._commit(connection, results, has_functions=has_functions, changes_state=changes_state)
        self._in_doubt = None
        self.n_commits += 1
        return results

    def _is_made(self, connection: Connection, commit_id: str) -> bool:
        return bool(connection.execute(_WORD, {"id": self._id}).scalar() == commit_id)

    def close(self) -> None:
        """Take back this writer's word."""
        if self._has_word:
            with self._engine.begin() as connection:
                connection.execute(delete(WRITERS).where(WRITERS.c.writer_id == self._id))

    def _commit(self, connection: Connection, results: Mapping[int, Result], *, has_functions: bool, changes_state: bool) -> None:
        commit_id = self._machine.token_hex(16)
        if has_functions and self._is_on_server:
            moment_us = self._machine.time_ns() // 1000
            if not self._has_word:
                later(connection, _SWEEP, {"long_ago_us": moment_us - _KEPT_US})
            row = {"writer_id": self._id, "commit_id": commit_id, "committed_at_us": moment_us}
            later(connection, self._leave_word, row)
            self._has_word = True
            self._in_doubt = commit_id, results
        if changes_state:  # last, so that on a server its row is held no longer than the commit takes
            later(connection, self._set_state, state_row(commit_id))
        commit(connection)

    def _call(self, connection: Connection, function: Callable[[Connection], Any], *, is_sole: bool) -> Result:
        """A function's result, or its error, and then nothing of what it wrote: where it is alone the transaction is undone."""
        try:
            with contextlib.nullcontext() if is_sole else connection.begin_nested():
                return function(connection), None
        except SQLAlchemyError as error:
            if is_passing(error) or is_full(error):
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
