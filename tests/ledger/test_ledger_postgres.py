"""What only PostgreSQL can get wrong: several machines at once, a server that goes away, a database that does not sync."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect, select, text, update
from sqlalchemy.engine import Connection

from schemas.errors import StoreError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.ledger.ledger import Ledger
from tasks.ledger.statements import insert_where_absent
from tasks.ledger.tables import LEDGER_META, METADATA
from tests.support.servers.postgres import at_once

KEY = "a" * 64


def reply(key: str = KEY, answer: str = "first") -> JudgeReply:
    return JudgeReply(key, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text=answer)


def in_database(address: str, *statements: str) -> Any:
    """The last statement's first value, on a connection of its own."""
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        found = [connection.execute(text(statement)) for statement in statements][-1]
        value = found.scalar() if found.returns_rows else None
    engine.dispose()
    return value


def test_every_table_is_made(address: str) -> None:
    with Ledger(address) as ledger:
        ledger.known([])
    engine = create_engine(address)
    assert set(METADATA.tables) <= set(inspect(engine).get_table_names())
    engine.dispose()


def test_a_shared_database_keeps_its_other_tables(address: str) -> None:
    in_database(address, "create table photos (id integer)")
    with Ledger(address) as ledger:
        assert ledger.store([reply()]) == 1
    assert in_database(address, "select count(*) from photos") == 0


def test_twelve_processes_may_make_it_at_once(address: str) -> None:
    def make() -> None:
        with Ledger(address) as ledger:
            ledger.known([])

    at_once(*[make] * 12)


def _count_up(connection: Connection) -> None:
    """Reads, then writes what it read and one more: right only for the one writer there is."""
    connection.execute(insert_where_absent(connection.engine, LEDGER_META), {"name": "n", "value": "0"})
    n = int(connection.execute(select(LEDGER_META.c.value).where(LEDGER_META.c.name == "n")).scalar_one())
    connection.execute(update(LEDGER_META).where(LEDGER_META.c.name == "n").values(value=str(n + 1)))


def test_alone_is_alone_among_machines_too(address: str) -> None:
    def work() -> None:
        with Ledger(address) as ledger:
            for _ in range(25):
                ledger.alone_now(_count_up)

    with Ledger(address) as ledger:
        ledger.known([])
    at_once(*[work] * 4)
    assert in_database(address, "select value from ledger_meta where name = 'n'") == "100"


def test_the_same_replies_stored_in_two_orders_do_not_lock_each_other_out(address: str) -> None:
    with Ledger(address) as one, Ledger(address) as other:
        for batch in range(10):
            replies = [reply(f"{batch:032x}{index:032x}") for index in range(400)]
            at_once(lambda found=replies: one.store(found), lambda found=replies[::-1]: other.store(found))
        assert in_database(address, "select count(*) from replies") == 4_000


def test_who_waits_too_long_for_another_is_told(address: str) -> None:
    with Ledger(address, busy_timeout_ms=200) as ledger:
        ledger.store([reply()])
        engine = create_engine(address)
        with engine.begin() as holder:
            holder.execute(text("set idle_in_transaction_session_timeout = 10000"))  # whatever happens, the test ends
            holder.execute(text("lock table attempts in access exclusive mode"))
            with pytest.raises(StoreError, match="another process has locked it"):
                asyncio.run(ledger.begin(KEY, 0, "judge"))
        engine.dispose()
        asyncio.run(ledger.begin(KEY, 0, "judge"))  # and goes on when it is free


def test_a_database_that_does_not_sync_is_made_to(address: str) -> None:
    in_database(address, f"alter database {address.rpartition('/')[2]} set synchronous_commit = off")
    with Ledger(address) as ledger:
        assert ledger.alone_now(lambda connection: connection.execute(text("show synchronous_commit")).scalar()) == "on"


def _how(connection: Connection) -> str:
    return str(connection.execute(text("show synchronous_commit")).scalar_one())


def test_what_need_not_last_waits_for_no_disk_and_what_stands_beside_it_does(address: str) -> None:
    async def together(ledger: Ledger) -> list[str]:
        slow = asyncio.create_task(ledger.alone(lambda connection: connection.execute(text("select pg_sleep(0.3)")) and None))
        await asyncio.sleep(0.1)
        both = asyncio.gather(ledger.alone(_how), ledger.alone(_how, is_lasting=False))  # one transaction, once the slow one ends
        await slow
        return [*await both, await ledger.alone(_how, is_lasting=False), await ledger.alone(_how)]

    with Ledger(address) as ledger:
        assert asyncio.run(together(ledger)) == ["on", "on", "off", "on"]


def test_connections_the_server_cut_are_made_anew(address: str) -> None:
    with Ledger(address) as ledger:
        ledger.store([reply()])
        others = "pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        in_database(address, f"select pg_terminate_backend(pid) from {others}")
        assert ledger.store([reply("b" * 64)]) == 1
        assert ledger.known([KEY, "b" * 64]) == {KEY, "b" * 64}


def test_a_server_that_is_away_says_so_without_the_password() -> None:
    with pytest.raises(StoreError, match="check that the server runs") as raised:
        Ledger("postgresql+psycopg://salon:hidden@127.0.0.1:1/ledger", max_away_s=0.2).known([KEY])
    assert "hidden" not in str(raised.value)
