"""A ledger is made, carried to a next version and refused as its version says: whole or not at all, with every reply it holds.

What a next version does is shown by two made up here.
"""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import BigInteger, Column, Connection, LargeBinary, MetaData, String, Table, create_engine, text

from schemas.errors import StoreError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.ledger.connection import open_engine, parse_url
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import METADATA, SCHEMA, Schema, add_column
from tests.support.servers.postgres import at_once

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RELEASED = ROOT / "tests" / "contract" / "golden" / "ledger-0.1.0.db"
KEYS = [f"{index:064x}" for index in range(3)]
N_NOW = int(SCHEMA.version)
BETWEEN, LAST = str(N_NOW + 1), str(N_NOW + 2)


def _next() -> Schema:
    metadata = MetaData()
    for table in METADATA.tables.values():
        table.to_metadata(metadata)
    for column in _added():
        metadata.tables["replies"].append_column(column)
    Table("models", metadata, Column("model", String(64), primary_key=True), Column("since_us", BigInteger))
    return Schema(LAST, metadata, (*SCHEMA.migrations, (SCHEMA.version, _to_between), (BETWEEN, _to_last)))


def _added() -> list[Column[Any]]:
    return [Column("n_thought_tokens", BigInteger), Column("service_tier", LargeBinary)]


def _to_between(connection: Connection) -> None:
    for column in _added():
        add_column(connection, "replies", column)


def _to_last(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE models (model VARCHAR(64) NOT NULL PRIMARY KEY, since_us BIGINT)")


NEXT = _next()


@pytest.fixture
def address(each_address: str) -> str:
    return each_address


def open_with(address: str, schema: Schema = SCHEMA, busy_timeout_ms: int = 30_000) -> None:
    open_engine(parse_url(address), busy_timeout_ms, schema).dispose()


def written(address: str) -> str:
    """A ledger of today with a reply to each key."""
    with Ledger(address) as ledger:
        ledger.store([JudgeReply(key, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text=f"Score: {key}") for key in KEYS])
    return address


def execute(address: str, statement: str) -> list[tuple[Any, ...]]:
    engine = create_engine(address)
    try:
        with engine.begin() as connection:
            found = connection.execute(text(statement))
            return [tuple(row) for row in found] if found.returns_rows else []
    finally:
        engine.dispose()


def version_of(address: str) -> str:
    return str(execute(address, "select value from ledger_meta where name = 'version'")[0][0])


def differences(address: str, schema: Schema) -> list[Any]:
    engine = create_engine(address)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        found = compare_metadata(context, schema.metadata)
    engine.dispose()
    return found


def n_replies(address: str) -> int:
    return int(execute(address, "select count(*) from replies where reply_text is not null")[0][0])


def test_the_ledger_of_release_0_1_0_is_carried_forward(tmp_path: Path) -> None:
    """Its tables are derived from the lake's `replies`; a reply of before has no digest."""
    shutil.copyfile(RELEASED, tmp_path / "ledger.db")
    address = f"sqlite:///{tmp_path}/ledger.db"
    n_before = n_replies(address)
    open_with(address)
    assert (version_of(address), differences(address, SCHEMA)) == (SCHEMA.version, [])
    assert execute(address, "select count(*) from replies where reply_sha256 is null") == [(n_before,)]
    assert n_before > 0


ADDED_SINCE_3 = {"replies": ["reply_sha256"], "batches": ["budget_id"], "batch_lines": ["reserved"]}


def test_the_steps_from_version_3_lead_to_the_tables_declared(address: str) -> None:
    """In each kind of database: the released ledger is SQLite's."""
    written(address)
    for table, columns in ADDED_SINCE_3.items():
        for column in columns:
            execute(address, f"alter table {table} drop column {column}")
    execute(address, "update ledger_meta set value = '3' where name = 'version'")
    open_with(address)
    assert (version_of(address), n_replies(address), differences(address, SCHEMA)) == (SCHEMA.version, 3, [])


def test_a_new_ledger_has_the_tables_declared(address: str) -> None:
    assert differences(written(address), SCHEMA) == []


@pytest.mark.parametrize(("version", "advice"), [("9", "a newer one"), ("", "a newer one"), ("2", "with commit ca92e04")])
def test_a_version_that_is_not_known_is_refused_and_left_alone(address: str, version: str, advice: str) -> None:
    written(address)
    execute(address, f"update ledger_meta set value = '{version}' where name = 'version'")
    with pytest.raises(StoreError, match=rf"has version {version}, but this Salon reads version {SCHEMA.version}; .*{advice}"):
        Ledger(address).known([])
    assert version_of(address) == version


def test_a_next_version_keeps_every_reply(address: str) -> None:
    written(address)
    with Ledger(address) as ledger:
        before = ledger.state()
    open_with(address, NEXT)
    assert (version_of(address), n_replies(address)) == (LAST, 3)
    assert differences(address, NEXT) == []
    assert execute(address, "select value from ledger_meta where name = 'state'") != [(before,)]
    with pytest.raises(StoreError, match=f"has version {LAST}, but this Salon reads version {N_NOW}"):
        Ledger(address).known([])


def test_a_next_version_goes_on_from_the_one_between(address: str) -> None:
    written(address)
    open_with(address, Schema(BETWEEN, METADATA, NEXT.migrations[:-1]))
    open_with(address, NEXT)
    assert differences(address, NEXT) == []


def test_eight_that_open_it_at_once_carry_it_forward_once(address: str) -> None:
    written(address)
    at_once(*[lambda: open_with(address, NEXT)] * 8)
    assert (differences(address, NEXT), n_replies(address)) == ([], 3)


_KILLED = """
import os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from tests.ledger import test_migrations as here

address, schema = sys.argv[1], here.SCHEMA if sys.argv[2] == "made" else here.NEXT

def open_and_die(nth):
    seen = 0
    def count(connection, cursor, statement, parameters, context, executemany):
        nonlocal seen
        if statement.lstrip()[:6].upper() in ("ALTER ", "CREATE", "UPDATE", "INSERT"):
            seen += 1
            if seen == nth:
                os.kill(os.getpid(), signal.SIGKILL)
    event.listen(Engine, "after_cursor_execute", count)
    here.open_with(address, schema)

for nth in range(1, 60):
    child = os.fork()
    if child == 0:
        try:
            open_and_die(nth)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    print("killed" if os.WIFSIGNALED(status) else "whole", flush=True)
    if not os.WIFSIGNALED(status):
        break
"""


@pytest.mark.parametrize(("what", "n_least"), [("made", 12), ("carried forward", 4)])
def test_a_kill_at_any_statement_leaves_all_or_nothing(address: str, what: str, n_least: int) -> None:
    """After each kill the next process finds the ledger as it was: were a statement committed by itself, it would fail."""
    if what != "made":
        written(address)
    command = [sys.executable, "-c", _KILLED, address, what]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    *killed, last = ended.stdout.split()
    assert (set(killed), last) == ({"killed"}, "whole"), ended.stderr
    assert len(killed) >= n_least
    assert differences(address, SCHEMA if what == "made" else NEXT) == []
    assert what == "made" or n_replies(address) == 3


def test_a_next_version_waits_for_who_writes(tmp_path: Path) -> None:
    address = written(f"sqlite:///{tmp_path}/ledger.db")
    holder = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    holder.execute("begin immediate")
    with pytest.raises(StoreError, match="another process has locked it"):
        open_with(address, NEXT, busy_timeout_ms=50)
    holder.rollback()
    holder.close()
    open_with(address, NEXT)
    assert n_replies(address) == 3
