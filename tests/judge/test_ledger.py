"""The ledger: what is acknowledged is on the disk, the first reply stays, and what is not a ledger is refused."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from schemas.errors import InputError, StoreError
from schemas.records import JudgeReply
from schemas.statuses import ReplyOrigin, ReplyStatus
from schemas.tables import REPLIES, conform
from tasks.judge import ledger_reading, ledger_tables
from tasks.judge.ledger import Ledger

KEY = "a" * 64


def reply(key: str = KEY, **changes: Any) -> JudgeReply:
    return replace(JudgeReply(key, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text="first"), **changes)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


async def ask(ledger: Ledger, answer: JudgeReply, **options: Any) -> str | None:
    attempt_id = await ledger.begin(answer.request_key, answer.ask_index, answer.judge_model)
    return await ledger.finish(attempt_id, answer, **options)


def test_an_attempt_is_on_the_disk_before_begin_returns_and_a_reply_before_finish_does(ledger: Ledger, tmp_path: Path) -> None:
    async def run() -> None:
        attempt_id = await ledger.begin(KEY, 0, "judge")
        assert rows(tmp_path / "ledger.db", "select request_key, status from attempts") == [(KEY, None)]
        await ledger.finish(attempt_id, reply())
        assert rows(tmp_path / "ledger.db", "select status from attempts") == [("answered",)]
        assert rows(tmp_path / "ledger.db", "select reply_text from replies") == [(b"first",)]

    asyncio.run(run())


def test_every_commit_is_synced(ledger: Ledger) -> None:
    ledger.known([])
    assert ledger._engine is not None
    with ledger._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_the_first_reply_stays(ledger: Ledger) -> None:
    asyncio.run(ask(ledger, reply()))
    asyncio.run(ask(ledger, reply(text="second")))
    assert ledger.store([reply(text="third"), reply("b" * 64)]) == 1
    assert ledger.replies([KEY])["reply_text"].to_list() == ["first"]


def test_two_hundred_callers_share_commits(ledger: Ledger, tmp_path: Path) -> None:
    commits = 0

    async def run() -> None:
        nonlocal commits
        ledger.known([])
        writer = ledger._open()
        before = writer.n_commits
        await asyncio.gather(*(ask(ledger, reply(f"{index:064x}")) for index in range(200)))
        commits = writer.n_commits - before

    asyncio.run(run())
    assert rows(tmp_path / "ledger.db", "select count(*), count(ended_at_us) from attempts") == [(200, 200)]
    assert commits < 100  # 400 if each were alone


def test_it_survives_being_closed_and_opened(ledger: Ledger, tmp_path: Path) -> None:
    asyncio.run(ask(ledger, reply()))
    ledger.close()
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as again:
        assert again.known([KEY, "b" * 64]) == {KEY}


@settings(max_examples=15, deadline=None)
@given(st.text(max_size=40) | st.just("\x00 null and \U0001f600") | st.none())
def test_a_reply_is_kept_verbatim_and_fits_the_lake(tmp_path_factory: pytest.TempPathFactory, text: str | None) -> None:
    with Ledger(f"sqlite:///{tmp_path_factory.mktemp('l')}/ledger.db") as ledger:
        ledger.store([reply(text=text, n_input_tokens=3, cost_usd=0.5)])
        found = ledger.replies([KEY])
    conform(found, REPLIES)
    assert found["reply_text"].to_list() == [text]
    assert found.select("n_input_tokens", "cost_usd", "origin").rows() == [(3, 0.5, "asked")]


def test_only_final_replies_are_stored(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="not final"):
        ledger.store([reply(status=ReplyStatus.RATE_LIMITED)])


def test_failures_and_interrupted_attempts_are_told_apart(ledger: Ledger) -> None:
    async def run() -> None:
        first = await ledger.begin(KEY, 0, "judge")
        await ledger.fail(first, ReplyStatus.SERVER_ERROR, "HTTP 500")
        second = await ledger.begin(KEY, 0, "judge")
        await ledger.fail(second, ReplyStatus.RATE_LIMITED, "HTTP 429")
        await ledger.begin("b" * 64, 0, "judge")  # and then the process was killed
        await ask(ledger, reply("c" * 64))

    asyncio.run(run())
    keys = [KEY, "b" * 64, "c" * 64, "d" * 64]
    found = ledger.last_failures(keys).rows()
    assert found == [
        (KEY, 0, "rate_limited", "HTTP 429", 2),
        ("b" * 64, 0, "timed_out", ledger_reading.NEVER_ENDED, 1),
    ]
    assert ledger.n_attempts(keys) == {(KEY, 0): 2, ("b" * 64, 0): 1, ("c" * 64, 0): 1}


def test_a_reask_is_owed_until_its_reply_is_there(ledger: Ledger) -> None:
    async def run() -> None:
        opened = await ask(ledger, reply(), is_reasked=True)
        assert opened is not None
        assert ledger.reasks_due([KEY]) == {KEY}
        await ledger.finish(opened, reply(ask_index=1, text="second"))

    asyncio.run(run())
    assert ledger.reasks_due([KEY]) == set()
    assert sorted(ledger.replies([KEY])["reply_text"]) == ["first", "second"]


def test_more_keys_than_one_query_takes(ledger: Ledger) -> None:
    keys = [f"{index:064x}" for index in range(ledger_reading.KEYS_PER_QUERY * 2 + 7)]
    assert ledger.store([reply(key) for key in keys]) == len(keys)
    assert ledger.known(keys) == set(keys)
    assert ledger.replies([*keys, "f" * 64]).height == len(keys)
    assert ledger.replies([]).schema == ledger.replies(keys).schema


def _foreign_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("create table photos (id)")
    connection.commit()
    connection.close()


def _newer_ledger(path: Path) -> None:
    with Ledger(f"sqlite:///{path}") as ledger:
        ledger.known([])
    connection = sqlite3.connect(path)
    connection.execute("update ledger_meta set value = '99'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "advice"),
    [
        (lambda path: path.write_bytes(b"not a database at all" * 100), "not a Salon ledger"),
        (_foreign_database, "holds photos"),
        (_newer_ledger, "version 99"),
        (lambda path: path.mkdir(), "check the folder"),
    ],
    ids=["text-file", "other-database", "newer-version", "folder"],
)
def test_what_is_not_a_ledger_is_refused_with_advice(tmp_path: Path, spoil: Callable[[Path], object], advice: str) -> None:
    path = tmp_path / "ledger.db"
    spoil(path)
    with pytest.raises(StoreError, match=advice):
        Ledger(f"sqlite:///{path}").known([KEY])


@pytest.mark.parametrize("url", ["ledger.db", "nosuch://x", "", "sqlite+nosuch:///x"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="write sqlite:///"):
        Ledger(url)


def test_a_locked_ledger_says_so_and_asks_nothing(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path}/ledger.db", busy_timeout_ms=50) as ledger:
        ledger.known([])
        holder = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
        holder.execute("begin immediate")
        with pytest.raises(StoreError, match="another process holds it"):
            asyncio.run(ledger.begin(KEY, 0, "judge"))
        holder.execute("rollback")
        holder.close()
        asyncio.run(ledger.begin(KEY, 0, "judge"))  # and goes on when it is free


def test_a_nearly_full_disk_stops_spending_and_still_takes_replies(ledger: Ledger, tmp_path: Path) -> None:
    attempt_id = asyncio.run(ledger.begin(KEY, 0, "judge"))
    with Ledger(f"sqlite:///{tmp_path}/ledger.db", reserve_bytes=2**62) as full:
        with pytest.raises(StoreError, match="nothing more is asked: free space"):
            asyncio.run(full.begin("b" * 64, 0, "judge"))
        asyncio.run(full.finish(attempt_id, reply()))
    assert ledger.known([KEY]) == {KEY}
    assert ledger.n_attempts([KEY, "b" * 64]) == {(KEY, 0): 1}


def test_two_processes_worth_of_ledgers_are_made_and_written_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    failures: list[BaseException] = []

    def work(start: int) -> None:
        try:
            with Ledger(url) as ledger:
                ledger.store([reply(f"{index:064x}") for index in range(start, start + 50)])
        except BaseException as error:  # noqa: BLE001 - the test reports it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 25, 50, 75)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Ledger(url) as ledger:
        assert len(ledger.known([f"{index:064x}" for index in range(200)])) == 125


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as raised:
        Ledger(f"sqlite:///file:{tmp_path}/missing/x.db?mode=ro&uri=true&password=hidden").known([KEY])
    assert "cannot be used" in str(raised.value)
    with pytest.raises(InputError) as refused:
        Ledger("nosuch://user:hidden@host/db")
    assert "hidden" not in str(refused.value)


def test_the_tables_and_statements_are_also_postgresql() -> None:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    for table in ledger_tables.METADATA.sorted_tables:
        assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=dialect))
    statement = postgresql.insert(ledger_tables.REPLIES).on_conflict_do_nothing()
    assert "ON CONFLICT DO NOTHING" in str(statement.compile(dialect=dialect))
    for select in (ledger_reading._KNOWN, ledger_reading._REASKS, ledger_reading._UNANSWERED, ledger_reading._REPLIES):
        assert "SELECT" in str(select.compile(dialect=dialect))


def test_time_and_size_stay_small(ledger: Ledger, tmp_path: Path) -> None:
    started = time.process_time()
    ledger.store([reply(f"{index:064x}") for index in range(5_000)])
    ledger.close()
    assert (tmp_path / "ledger.db").stat().st_size / 5_000 < 1_000  # bytes a reply, beyond a few of text
    assert time.process_time() - started < 5
    assert isinstance(ledger.replies([KEY]), pl.DataFrame)
