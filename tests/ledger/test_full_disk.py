"""A ledger whose disk is full, SQLite's and PostgreSQL's: what was bought waits for room, or is kept, and it is told.

SQLite's file may grow no further (RLIMIT_FSIZE). PostgreSQL raises what it raises on a full disk from a trigger, while a table
`no_room` is there.
"""

import asyncio
import gc
import logging
import resource
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest
from sqlalchemy import create_engine, delete, insert, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.errors import StoreError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.lake.reading import Lake
from tasks.ledger.full_disk import is_full, root_of
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import CLAIMS, OWNERS
from tests.support.asking import ask_shard
from tests.support.contexts import plan_part
from tests.support.servers.postgres import PostgresServer

KEYS = [f"{index:064x}" for index in range(40)]
FULL = """\
create function no_room() returns trigger language plpgsql as $$ begin
  if to_regclass('no_room') is not null then
    raise exception using errcode = 'disk_full', message = 'could not extend file "base/1/2": No space left on device';
  end if;
  return new;
end $$;
"""


class _Server:
    """The rows of some tables of a ledger on a server find no room, until `free`."""

    def __init__(self, address: str, *tables: str) -> None:
        self._engine = create_engine(address, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        self._do(FULL)
        for table in tables:
            self._do(f"create trigger full_disk before insert on {table} for each row execute function no_room()")

    def fill(self) -> None:
        self._do("create table no_room ()")

    def free(self) -> None:
        self._do("drop table if exists no_room")

    def _do(self, statement: str) -> None:
        with self._engine.connect() as connection:
            connection.exec_driver_sql(statement)


class _File:
    """No file of this process grows beyond the size of this one's log, until `free`."""

    def __init__(self, address: str, *_: str) -> None:
        self._log, self._before = Path(f"{address.removeprefix('sqlite:///')}-wal"), resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._log.stat().st_size, self._before[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


@pytest.fixture
def disk(each_address: str) -> Iterator[_Server | _File]:
    """Of a ledger that was opened: its log holds the tables."""
    with Ledger(each_address) as ledger:
        ledger.known(KEYS)
        made = (_File if each_address.startswith("sqlite") else _Server)(each_address, "replies", "attempts")
        ledger.alone_now(lambda connection: connection.execute(insert(CLAIMS), {"request_key": "x", "owner_id": "o"}) and None)
        try:
            yield made
        finally:
            made.free()


def _reply(key: str, said: str = "1") -> JudgeReply:
    return JudgeReply(key, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text=said)


def _told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "salon.ledger"]


async def _begun(ledger: Ledger, n: int) -> list[str]:
    return list(await asyncio.gather(*(ledger.begin(key, 0, "judge") for key in KEYS[:n])))


@pytest.mark.slow
def test_what_was_bought_waits_for_room_and_it_is_told_once(
    disk: _Server | _File, each_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(ledger: Ledger) -> None:
        begun = await _begun(ledger, 8)
        disk.fill()
        threading.Timer(1.2, disk.free).start()
        finished = [ledger.finish(attempt_id, _reply(key, "x" * 50_000)) for attempt_id, key in zip(begun, KEYS, strict=False)]
        waiting = asyncio.gather(*finished, ledger.begin(KEYS[30], 0, "judge"))
        while not waiting.done():  # what takes no room goes on meanwhile, on a server
            await asyncio.sleep(0.05)
            await ledger.alone(lambda _: None)
        await waiting

    with Ledger(each_address, max_away_s=30) as ledger:
        asyncio.run(work(ledger))
        assert ledger.known(KEYS) == set(KEYS[:8])
    first, last = _told(caplog)
    assert "the ledger's disk is full: 8 paid replies wait for space so far, at most 30 s, and no more requests are sent" in first
    assert "if there is space, check that its files can be written" in first
    assert "has space again after" in last


@pytest.mark.slow
def test_where_new_attempts_find_no_room_what_was_bought_is_stored(address: str) -> None:
    async def work(ledger: Ledger) -> list[Any]:
        (attempt_id,) = await _begun(ledger, 1)
        room.fill()
        held = (ledger.begin(KEYS[1], 0, "judge"), ledger.finish(attempt_id, _reply(KEYS[0])))
        return list(await asyncio.gather(*held, return_exceptions=True))

    with Ledger(address, max_away_s=0.3) as ledger:
        ledger.known([])
        room = _Server(address, "attempts")
        began, finished = asyncio.run(work(ledger))
        assert ledger.known(KEYS) == {KEYS[0]}
    assert finished is None
    assert "the disk is full; free space" in str(began)


@pytest.mark.slow
def test_a_full_disk_is_no_server_that_does_not_answer(address: str, caplog: pytest.LogCaptureFixture) -> None:
    """Where a function is undone beside others the rollback's own error comes last: the pipeline was aborted."""

    async def work(ledger: Ledger) -> list[Any]:
        def takes_room(connection: Connection) -> None:
            connection.execute(insert(CLAIMS), [{"request_key": ledger.machine.token_hex(8), "owner_id": "o"}])
            connection.execute(text("select 1")).all()

        slow = asyncio.ensure_future(ledger.alone(lambda connection: connection.execute(text("select pg_sleep(0.3)")) and None))
        await asyncio.sleep(0.1)
        held = await asyncio.gather(*(ledger.alone(takes_room) for _ in range(4)), return_exceptions=True)  # in one transaction
        await slow
        return list(held)

    with Ledger(address, max_away_s=1.0) as ledger:
        ledger.known([])
        _Server(address, "claims").fill()
        held = asyncio.run(work(ledger))
    assert [type(one) for one in held] == [StoreError] * 4
    assert [str(one) for one in held if "the disk is full; free space" not in str(one)] == []
    assert ["the ledger's disk is full" in one for one in _told(caplog)] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("is_away", [False, True], ids=["full", "away"])
def test_a_run_whose_ledger_stays_unwritable_keeps_what_it_paid_for_and_buys_nothing_twice(
    provider: Any, judge: Judge, rubric: Rubric, make_samples: Callable[..., pl.DataFrame], address: str,
    store_samples: Callable[..., tuple[Lake, str]], postgres: PostgresServer, is_away: bool, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("SALON_STORE_WAIT_S", "0.5")
    samples = make_samples(60)
    lake, _ = store_samples(samples)
    requests = plan_part(samples, rubric, judge)[1]
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.2)
    told: list[str] = []

    def run() -> Any:
        limits = Limits(concurrency=8, deadline_s=5)
        return ask_shard(lake, requests, rubric, judge, address, limits, on_reply=lambda reply: told.append(reply.request_key))

    with Ledger(address) as ledger:
        ledger.known([])
        disk = _Server(address, "replies", "attempts")
    fail, mend = (postgres.stop, postgres.start) if is_away else (disk.fill, disk.free)

    def harm() -> None:
        while provider.n <= 20:
            time.sleep(0.01)
        fail()

    harming = threading.Thread(target=harm)
    harming.start()
    try:
        with pytest.raises(
            StoreError, match=r"[1-9]\d* paid replies wait in .*unstored: running the same command again stores them first"
        ) as ended:
            run()
        harming.join()
        assert len(set(told)) == len(told) == provider.n, "each that was billed is on a disk"
        with pytest.raises(StoreError, match="paid replies wait in"):
            run()
    finally:
        mend()
    assert ended.value.may_pass
    with Ledger(
        address
    ) as ledger:  # else they are waited for, as those of a process that lives, where they could not be released
        ledger.alone_now(lambda connection: connection.execute(delete(OWNERS)) and None)
    n_before = provider.n
    outcome = run()
    assert (outcome.n_cached, outcome.n_answered) == (n_before, 60 - n_before)
    assert Counter(Counter(provider.seen).values()) == {1: 60}
    assert list((lake.root / "unstored").iterdir()) == []
    gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio" and record.levelno >= logging.ERROR] == []


class _WithState(psycopg.Error):
    def __init__(self, said: str, state: str | None) -> None:
        super().__init__(said)
        self.sqlstate = state


def _of_sqlite(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        pytest.param(_WithState("could not extend file", "53100"), True, id="PostgreSQL, disk_full"),
        pytest.param(_WithState("could not write: Disk quota exceeded", "XX000"), True, id="PostgreSQL, EDQUOT"),
        pytest.param(_WithState("out of memory", "53200"), False, id="PostgreSQL, memory"),
        pytest.param(_WithState("could not read block: Input/output error", "58030"), False, id="PostgreSQL, a broken disk"),
        pytest.param(_of_sqlite(sqlite3.SQLITE_FULL), True, id="SQLite, ENOSPC"),
        pytest.param(_of_sqlite(sqlite3.SQLITE_IOERR_WRITE), True, id="SQLite, EDQUOT"),
        pytest.param(_of_sqlite(sqlite3.SQLITE_IOERR_READ), False, id="SQLite, a broken disk"),
        pytest.param(_of_sqlite(sqlite3.SQLITE_CONSTRAINT_TRIGGER), False, id="SQLite, the words alone"),
    ],
)
def test_which_errors_say_that_there_is_no_room(raised: Exception, expected: bool) -> None:
    error = DBAPIError("insert", {}, raised)
    assert is_full(error) is expected
    later = OperationalError("rollback to savepoint", {}, sqlite3.OperationalError("no such savepoint: sa_1"))
    later.__context__ = error
    assert is_full(later) is expected
    assert root_of(later) is error
