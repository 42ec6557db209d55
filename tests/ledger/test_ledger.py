"""The ledger on SQLite and PostgreSQL: the first reply stays, what is told of is stored, what is no ledger is refused."""

import asyncio
import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints
from uuid import uuid4

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, inspect, select, text
from sqlalchemy.engine import Connection

from schemas.errors import InputError, StoreError
from schemas.records import REPLY_FIELDS, JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from schemas.tables.stored import REPLIES as LAKE_REPLIES
from schemas.tables.table import conform
from tasks.judge.provider.exchange import NOTHING_SAID
from tasks.judge.rate_limit.limiter import POLL_S, RateLimiter
from tasks.ledger import queries
from tasks.ledger.connection import without_password
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened
from tasks.ledger.queries import stored_row
from tasks.ledger.statements import insert_where_absent
from tasks.ledger.tables import CLAIMS, REPLIES
from tests.support.cpu import takes_at_most
from tests.support.rights import without_roots_rights

ROOT = Path(__file__).parents[2]
KEY = "a" * 64


def reply(key: str = KEY, **changes: Any) -> JudgeReply:
    return replace(JudgeReply(key, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text="first"), **changes)


@pytest.fixture
def address(each_address: str) -> str:
    return each_address


@pytest.fixture
def ledger(each_ledger: Ledger) -> Ledger:
    return each_ledger


def rows(address: str, sql: str) -> list[tuple[Any, ...]]:
    """What another connection sees."""
    engine = create_engine(address)
    try:
        with engine.begin() as connection:
            found = connection.execute(text(sql))
            return [tuple(row) for row in found] if found.returns_rows else []
    finally:
        engine.dispose()


async def ask(ledger: Ledger, answer: JudgeReply, **options: Any) -> str | None:
    attempt_id = await ledger.begin(answer.request_key, answer.ask_index, answer.judge_model)
    return await ledger.finish(attempt_id, answer, **options)


def test_an_attempt_is_stored_before_begin_returns_and_a_reply_before_finish_does(ledger: Ledger, address: str) -> None:
    async def run() -> None:
        attempt_id = await ledger.begin(KEY, 0, "judge")
        assert rows(address, "select request_key, status from attempts") == [(KEY, None)]
        await ledger.finish(attempt_id, reply())
        assert rows(address, "select status from attempts") == [("answered",)]
        assert rows(address, "select reply_text from replies") == [(b"first",)]

    asyncio.run(run())


def test_every_commit_to_sqlite_is_synced(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger, contextlib.ExitStack() as stack:
        ledger.known([])
        assert ledger._engine is not None
        connection = stack.enter_context(ledger._engine.connect())
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA temp_store").scalar() == 2, "MEMORY: a full TMPDIR undoes no transaction"


def test_the_first_reply_stays(ledger: Ledger) -> None:
    asyncio.run(ask(ledger, reply()))
    asyncio.run(ask(ledger, reply(text="second")))
    assert ledger.store([reply(text="third"), reply("b" * 64)]) == 1
    assert ledger.replies([KEY])["reply_text"].to_list() == ["first"]


def test_rows_that_come_one_by_one_share_commits_while_many_attempts_are_under_way(ledger: Ledger) -> None:
    """At a judge's latency replies come apart: without a wait for more each would have a commit of its own."""

    async def run() -> int:
        keys = [f"{index:064x}" for index in range(160)]
        attempts = await asyncio.gather(*(ledger.begin(key, 0, "judge") for key in keys))
        before, ends = ledger._open().n_commits, []
        for key, attempt_id in zip(keys[:80], attempts, strict=False):
            ends.append(asyncio.create_task(ledger.finish(attempt_id, reply(key))))
            await asyncio.sleep(0.005)
        await asyncio.gather(*ends)
        return ledger._open().n_commits - before

    assert asyncio.run(run()) <= 80 / 3


def test_two_hundred_callers_share_commits(ledger: Ledger, address: str) -> None:
    commits = 0

    async def run() -> None:
        nonlocal commits
        ledger.known([])
        writer = ledger._open()
        before = writer.n_commits
        await asyncio.gather(*(ask(ledger, reply(f"{index:064x}")) for index in range(200)))
        commits = writer.n_commits - before

    asyncio.run(run())
    assert rows(address, "select count(*), count(ended_at_us) from attempts") == [(200, 200)]
    assert commits < 100  # 400 if each were alone


def test_it_survives_being_closed_and_opened(ledger: Ledger, address: str) -> None:
    asyncio.run(ask(ledger, reply()))
    ledger.close()
    with Ledger(address) as again:
        assert again.known([KEY, "b" * 64]) == {KEY}


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])  # every example has a key of its own
@given(st.text(max_size=40) | st.just("\x00 null and \U0001f600") | st.none())
def test_a_reply_is_kept_verbatim_and_fits_the_lake(ledger: Ledger, text: str | None) -> None:
    key = uuid4().hex * 2
    ledger.store([reply(key, text=text, n_input_tokens=3, cost_usd=0.5)])
    found = ledger.replies([key])
    conform(found, LAKE_REPLIES)
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
        ("b" * 64, 0, "timed_out", queries.NEVER_ENDED, 1),
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


def test_of_stored_replies_only_rejections_are_taken_back(ledger: Ledger) -> None:
    kinds = (ReplyStatus.ANSWERED, ReplyStatus.FILTERED, ReplyStatus.REJECTED)
    given = {f"{n}" * 64: status for n, status in enumerate(kinds)}
    ledger.store([reply(key, status=status) for key, status in given.items()])
    assert ledger.forget_rejected_now(given) == 1
    assert ledger.known(given) == {key for key, status in given.items() if status is not ReplyStatus.REJECTED}


def test_more_keys_than_one_query_takes(ledger: Ledger) -> None:
    keys = [f"{index:064x}" for index in range(queries.KEYS_PER_QUERY * 2 + 7)]
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
        (lambda path: path.write_bytes(bytes(4095) + b"x"), "not a Salon ledger"),
        (lambda path: path.write_bytes(bytes(70_000)), "not a Salon ledger"),
    ],
    ids=["text-file", "other-database", "newer-version", "folder", "zeros-and-a-byte", "more-zeros-than-a-page"],
)
def test_what_is_not_a_ledger_is_refused_with_advice(tmp_path: Path, spoil: Callable[[Path], object], advice: str) -> None:
    path = tmp_path / "ledger.db"
    spoil(path)
    with pytest.raises(StoreError, match=advice):
        Ledger(f"sqlite:///{path}").known([KEY])


def test_a_ledger_damaged_inside_is_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(f"sqlite:///{path}") as ledger:
        ledger.known([])
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(byte ^ 0xFF for byte in content[4096:]))
    with pytest.raises(StoreError, match=r"malformed; the file is damaged\. Restore it from a backup; or move it") as raised:
        Ledger(f"sqlite:///{path}").known([KEY])
    assert "not a Salon ledger" not in str(raised.value)


def test_a_page_of_zeros_is_a_ledger_whose_making_was_cut_off(tmp_path: Path) -> None:
    """What a power cut may leave while the first page is written: there was nothing in it yet."""
    (tmp_path / "ledger.db").write_bytes(bytes(4096))
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        assert ledger.known([KEY]) == set()


def test_a_group_may_write_a_ledger_that_was_made_under_its_umask(tmp_path: Path) -> None:
    before = os.umask(0o007)
    try:
        with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
            ledger.known([])
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("ledger.db*")}
    finally:
        os.umask(before)
    assert modes == {"ledger.db": 0o660, "ledger.db-shm": 0o660, "ledger.db-wal": 0o660}


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db-wal"])
def test_who_may_not_write_a_ledger_is_told_of_which_file_and_leaves_none(tmp_path: Path, name: str) -> None:
    """SQLite would give the files beside it to whoever opens it, and they would lock out its owner."""
    ledger_file = tmp_path / "ledger.db"
    with Ledger(f"sqlite:///{ledger_file}") as ledger:
        ledger.known([])
    (tmp_path / name).touch()
    (tmp_path / name).chmod(0o440)
    there = sorted(tmp_path.iterdir())
    opening = f"from tasks.ledger.ledger import Ledger; Ledger('sqlite:///{ledger_file}').known([])"
    ended = subprocess.run(
        [sys.executable, "-c", opening], cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=without_roots_rights
    )
    command = f"chmod u+rwX {tmp_path / name}"
    assert f"this user may not write {tmp_path / name} (of {ledger_file.owner()}, -r--r-----); {command}" in ended.stderr
    assert sorted(tmp_path.iterdir()) == there


@pytest.mark.parametrize(
    ("group", "mode", "told"),
    [
        (0, 0o777, "(of user 12345, -rw-r-----) to share the ledger with its group, their owner runs: chmod g+rwX {file};"),
        (12345, 0o777, "(of user 12345, -rw-r-----) this user is not in the group 12345: to share the ledger,"),
        (12345, 0o755, "(of user 12345, -rw-r-----) and {folder} (of user 12345, drwxr-xr-x) this user is not in the group"),
    ],
    ids=["of its group", "of no such group", "nor may write its folder"],
)
def test_who_shares_a_ledger_is_told_what_its_owner_runs(tmp_path: Path, group: int, mode: int, told: str) -> None:
    ledger_file = tmp_path / "ledger.db"
    ledger_file.touch()
    ledger_file.chmod(0o640)
    tmp_path.chmod(mode)
    asked = (
        "from pathlib import Path; from tasks.ledger.sqlite_files import not_writable; "
        f"print(*not_writable(Path('{ledger_file}')))"
    )
    if os.geteuid() != 0:
        pytest.skip("another user is needed")
    os.chown(ledger_file, 12345, group)
    os.chown(tmp_path, 12345, group)
    ended = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True, preexec_fn=without_roots_rights
    )
    assert told.format(file=ledger_file, folder=tmp_path) in ended.stdout
    assert "docs/security.md" in ended.stdout


def test_the_locks_of_a_ledger_that_was_just_made_are_kept(tmp_path: Path) -> None:
    """Closing any file of it in this process would undo them, and the next to close would take its -wal away."""
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.known([])
        with Ledger(f"sqlite:////{tmp_path}/ledger.db") as other:
            other.known([])
        subprocess.run(
            [
                sys.executable,
                "-c",
                f"import sqlite3; sqlite3.connect('{tmp_path}/ledger.db').execute('SELECT 1 FROM ledger_meta')",
            ],
            check=True,
        )
        assert (tmp_path / "ledger.db-wal").exists()


@pytest.mark.parametrize("url", ["ledger.db", "nosuch://x", "", "sqlite+nosuch:///x"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="write sqlite:///"):
        Ledger(url)


def test_a_host_that_nobody_knows_is_told_soon() -> None:
    """A server that restarts is waited for; a name that was never known is most often mistyped."""
    began = time.monotonic()
    with pytest.raises(StoreError, match=r"resolve host 'db\.invalid'.*check db\.invalid, the host's name in `ledger`"):
        Ledger("postgresql+psycopg://salon@db.invalid/salon").known(["a"])
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_postgresql_without_a_driver_is_taken_by_the_one_that_salon_brings(scheme: str, address: str) -> None:
    with Ledger(address.replace("postgresql+psycopg", scheme)) as ledger:
        assert ledger.known([KEY]) == set()


def test_a_locked_ledger_says_so_and_asks_nothing(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path}/ledger.db", busy_timeout_ms=50) as ledger:
        ledger.known([])
        holder = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
        holder.execute("begin immediate")
        with pytest.raises(StoreError, match="another process has locked it"):
            asyncio.run(ledger.begin(KEY, 0, "judge"))
        holder.execute("rollback")
        holder.close()
        asyncio.run(ledger.begin(KEY, 0, "judge"))  # and goes on when it is free


def test_a_nearly_full_disk_stops_spending_and_still_takes_replies(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    attempt_id = asyncio.run(ledger.begin(KEY, 0, "judge"))
    with Ledger(f"sqlite:///{tmp_path}/ledger.db", reserve_bytes=2**62) as full:
        with pytest.raises(StoreError, match="no more requests are sent: free space"):
            asyncio.run(full.begin("b" * 64, 0, "judge"))
        asyncio.run(full.finish(attempt_id, reply()))
    assert ledger.known([KEY]) == {KEY}
    assert ledger.n_attempts([KEY, "b" * 64]) == {(KEY, 0): 1}
    ledger.close()


def test_four_ledgers_are_made_and_written_at_once(address: str) -> None:
    failures: list[BaseException] = []

    def work(start: int) -> None:
        try:
            with Ledger(address) as ledger:
                ledger.store([reply(f"{index:064x}") for index in range(start, start + 50)])
        except BaseException as error:  # noqa: BLE001 - the test reports it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 25, 50, 75)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Ledger(address) as ledger:
        assert len(ledger.known([f"{index:064x}" for index in range(200)])) == 125


def test_a_password_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError) as raised:
        Ledger(f"sqlite:///file:{tmp_path}/missing/x.db?mode=ro&uri=true&password=hidden").known([KEY])
    assert "cannot be used" in str(raised.value)
    assert "hidden" not in str(raised.value)
    shown = without_password("postgresql://host/db?user=me&password=hidden&sslpassword=hidden&sslmode=require")
    assert shown == "postgresql://host/db?sslmode=require&user=me"
    with pytest.raises(InputError) as refused:
        Ledger("nosuch://user:hidden@host/db")
    assert "hidden" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["missing"]  # the file's folder; of its URI none is made


def test_time_and_size_stay_small(ledger: Ledger, address: str) -> None:
    assert takes_at_most(60, lambda: ledger.store([reply(uuid4().hex * 2) for _ in range(5_000)]))
    assert isinstance(ledger.replies([KEY]), pl.DataFrame)
    ledger.close()
    size = "pg_total_relation_size('replies')" if address.startswith("postgresql") else "page_count * page_size"
    table = "" if address.startswith("postgresql") else " from pragma_page_count, pragma_page_size"
    assert rows(address, f"select {size}{table}")[0][0] / 5_000 < 1_000  # bytes a reply, beyond a few of text


def _count(connection: Connection) -> int:
    return int(connection.execute(text("select count(*) from claims")).scalar_one())


def _claim(connection: Connection, key: str = KEY) -> int:
    connection.execute(insert_where_absent(connection.engine, CLAIMS), [{"request_key": key, "owner_id": "o"}])
    return _count(connection)


def test_a_turn_that_only_reads_commits_nothing_and_leaves_the_state(ledger: Ledger) -> None:
    assert ledger.alone_now(_claim) == 1
    state = ledger.state()
    assert [ledger.alone_now(_count) for _ in range(5)] == [1] * 5
    assert ledger.alone_now(_claim) == 1  # it is there already: nothing changes
    assert ledger.state() == state
    assert ledger.alone_now(partial(_claim, key="b" * 64)) == 2
    assert ledger.state() != state


def test_a_key_without_limits_is_only_read(ledger: Ledger, address: str) -> None:
    """Told by the database: SQLite's count of others' commits; PostgreSQL's transactions that wrote, deleted or locked a row."""

    def state(other: Connection) -> object:
        if address.startswith("sqlite"):
            return other.execute(text("select data_version from pragma_data_version")).scalar_one()
        marks = "count(*), sum(xmin::text::bigint), sum(xmax::text::bigint)"
        return [other.execute(text(f'select {marks} from "{name}"')).one() for name in sorted(inspect(other).get_table_names())]

    async def run() -> list[object]:
        allowance, stopping = RateLimiter(ledger, "key"), asyncio.Event()
        await allowance.wait(10, stopping)
        allowance.hear(NOTHING_SAID)
        await asyncio.sleep(POLL_S)
        await allowance.wait(10, stopping)
        states = []
        engine = create_engine(address, isolation_level="AUTOCOMMIT")
        with engine.connect() as other:
            for _ in range(4):
                states.append(state(other))
                await asyncio.sleep(POLL_S * 1.2)
                await allowance.wait(10, stopping)
            states.append(state(other))
            await allowance.pause(0.1)  # and this writes
            states.append(state(other))
        engine.dispose()
        return states

    first, *quiet, last = asyncio.run(run())
    assert all(one == first for one in quiet)
    assert last != first


def test_a_grant_leaves_the_state(ledger: Ledger) -> None:
    ledger.store([reply()])
    state = ledger.state()
    asyncio.run(RateLimiter(ledger, "key", 600).wait(10, asyncio.Event()))
    assert ledger.state() == state


def test_what_need_not_last_leaves_the_state_and_is_seen_by_all(ledger: Ledger, address: str) -> None:
    ledger.store([reply()])
    state = ledger.state()
    assert asyncio.run(ledger.alone(_claim, is_lasting=False)) == 1
    assert ledger.state() == state
    assert rows(address, "select count(*) from claims") == [(1,)]


def test_a_reply_beside_a_function_that_only_reads_is_stored(ledger: Ledger) -> None:
    async def run() -> list[Any]:
        attempt_id = await ledger.begin(KEY, 0, "judge")
        return list(await asyncio.gather(*(ledger.alone(_count) for _ in range(3)), ledger.finish(attempt_id, reply())))

    assert asyncio.run(run()) == [0, 0, 0, None]
    assert ledger.known([KEY]) == {KEY}


def test_what_a_function_wrote_before_it_failed_is_undone(ledger: Ledger) -> None:
    def fail(connection: Connection) -> None:
        _claim(connection)
        raise LookupError("on purpose")

    with pytest.raises(LookupError):
        ledger.alone_now(fail)
    assert ledger.alone_now(_count) == 0


def test_a_fault_of_salons_own_is_not_said_to_be_the_ledgers(tmp_path: Path) -> None:
    """A number that no column holds: nothing that who runs Salon could mend in the database."""
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        with pytest.raises(OverflowError):
            ledger.store([reply(n_input_tokens=2**70)])
        ledger.store([reply()])
        assert ledger.known([KEY]) == {KEY}


def test_a_ledger_is_open_while_somebody_uses_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with opened(url) as first:
        with opened(url) as second:
            assert second is first
            assert first.known([]) == set()
        assert first.alone_now(lambda _: "still open") == "still open"
        writer = first._writer
    assert first._writer is None
    assert writer is not None
    with pytest.raises(StoreError, match="closed"):
        writer.commit_now()
    with opened(url) as third:
        assert third is not first


def test_every_column_of_a_reply_is_written_and_read_back(ledger: Ledger) -> None:
    """Whatever columns JudgeReply declares: a new one is written and read without another line."""
    made: dict[str, Any] = {"request_key": KEY, "status": ReplyStatus.ANSWERED, "origin": ReplyOrigin.BATCH}
    of_type = {pa.string(): str, pa.int64(): len, pa.float64(): lambda name: len(name) / 4}
    for attribute, of in REPLY_FIELDS.items():
        if attribute not in made and attribute != "received_at":
            made[attribute] = of_type[of.arrow_type](of.name)
    ledger.store([JudgeReply(**made)])
    (found,) = ledger.replies([KEY]).to_dicts()
    assert abs(found.pop("received_at") - datetime.now(UTC)) < timedelta(minutes=10)
    assert found == {REPLY_FIELDS[attribute].name: value for attribute, value in made.items()}
    (row,) = ledger.read(lambda connection: connection.execute(select(REPLIES)).mappings().all())
    assert [*row] == [*REPLIES.columns.keys()]
    assert row == stored_row(ledger.replies([KEY]).row(0, named=True))


def test_a_replys_types_are_those_of_its_columns() -> None:
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), datetime: pa.timestamp("us", tz="UTC")}
    for attribute, hint in get_type_hints(JudgeReply).items():
        of, said = REPLY_FIELDS[attribute], get_args(hint) or (hint,)
        assert of.is_nullable == (NoneType in said), attribute
        assert kinds.get(said[0], pa.string()) == of.arrow_type, attribute
        assert of.values in (None, said[0]), attribute


def test_a_forked_process_opens_a_ledger_of_its_own(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with opened(url) as ledger:
        ledger.store([reply()])
        child = os.fork()
        if child == 0:
            with opened(url) as own:
                os._exit(0 if own is not ledger and own.store([reply("b" * 64)]) == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert ledger.known([KEY, "b" * 64]) == {KEY, "b" * 64}
