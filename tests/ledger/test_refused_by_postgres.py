"""A PostgreSQL server that is there and lets nobody in: what no waiting mends is told at once, the rest is waited for."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from schemas.errors import RefusedLedgerError, StoreError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.ledger.backoff import is_passing
from tasks.ledger.ledger import Ledger
from tests.support.servers.postgres import running_postgres, why_not

ANSWERED = JudgeReply("f" * 64, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED)
RULES = """\
host all salon,sleeper,crowded,nobody_known,guest 127.0.0.1/32 trust
host all keyed 127.0.0.1/32 scram-sha-256
"""
ROLES = (
    "create role keyed login password 'right'", "create role sleeper nologin", "create role uninvited login",
    "create role crowded login connection limit 0", "create database made",
    "create database shared owner keyed", "create role guest login",
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Host and port of a server of several roles, each let in in a way of its own."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with running_postgres() as running:
        where = f"host=127.0.0.1 port={running.port} user=salon dbname=postgres"
        with psycopg.connect(where, autocommit=True) as connection:
            for statement in ROLES:
                connection.execute(statement.encode())
            (rules,) = connection.execute("show hba_file").fetchone() or ("",)
            Path(rules).write_text(RULES)
            connection.execute("select pg_reload_conf()")
        give_up_s = time.monotonic() + 30
        while "no pg_hba.conf entry" not in _said(f"host=127.0.0.1 port={running.port} user=uninvited dbname=made"):
            assert time.monotonic() < give_up_s
            time.sleep(0.05)
        yield f"127.0.0.1:{running.port}"


def _said(where: str) -> str:
    try:
        psycopg.connect(where).close()
    except psycopg.OperationalError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("user", "database", "says"),
    [
        ("keyed:wrong-secret", "made", 'password authentication failed for user "keyed"'),
        ("keyed", "made", "no password supplied"),
        ("nobody_known", "made", 'role "nobody_known" does not exist'),
        ("salon", "never_made", 'database "never_made" does not exist'),
        ("sleeper", "made", 'role "sleeper" is not permitted to log in'),
        ("uninvited", "made", "no pg_hba.conf entry"),
    ],
    ids=["wrong password", "no password", "unknown role", "missing database", "no login", "not let in"],
)
def test_what_no_waiting_mends_is_told_at_once(
    server: str, user: str, database: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", "/nowhere")
    began_s = time.monotonic()
    with pytest.raises(RefusedLedgerError, match=r"PGPASSWORD or ~/\.pgpass") as told:
        Ledger(f"postgresql+psycopg://{user}@{server}/{database}", max_away_s=60).known([])
    assert time.monotonic() - began_s < 20
    assert says in str(told.value)
    assert "wrong-secret" not in str(told.value)


@pytest.fixture
def owners(server: str) -> Iterator[Ledger]:
    """A ledger of the role `keyed`, and all that is its own ended once more."""
    with Ledger(f"postgresql+psycopg://keyed:right@{server}/shared", max_away_s=3) as ledger:
        ledger.known([])
        yield ledger


@pytest.mark.usefixtures("owners")
def test_who_may_not_look_is_not_told_that_the_ledger_is_of_another_version(server: str) -> None:
    with pytest.raises(RefusedLedgerError, match=r"permission denied.*grant this user USAGE") as told:
        Ledger(f"postgresql+psycopg://guest@{server}/shared").known([])
    assert (told.value.exit_code, told.value.may_pass) == (2, False)


def test_a_reply_paid_for_is_kept_where_its_user_is_let_in_no_more(server: str, owners: Ledger) -> None:
    """The password is changed while requests are in flight: finish() tells it as any failure to store."""
    attempt_id = asyncio.run(owners.begin("f" * 64, 0, "judge"))
    with _unlike(server, "password 'another'", "password 'right'"), pytest.raises(StoreError, match="authentication failed"):
        asyncio.run(owners.finish(attempt_id, ANSWERED))


@pytest.mark.slow
def test_a_server_that_takes_no_writes_is_waited_for_and_named(server: str, owners: Ledger) -> None:
    """As a standby does not until it takes over."""
    attempt_id = asyncio.run(owners.begin("e" * 64, 0, "judge"))
    read_only, both = "set default_transaction_read_only = on", "set default_transaction_read_only = off"
    with _unlike(server, read_only, both), pytest.raises(StoreError, match="name the server that takes writes"):
        asyncio.run(owners.finish(attempt_id, replace(ANSWERED, request_key="e" * 64)))
    with _unlike(server, read_only, both, for_s=1.0):
        asyncio.run(owners.finish(attempt_id, replace(ANSWERED, request_key="e" * 64)))
    assert owners.known(["e" * 64])


@contextmanager
def _unlike(server: str, altered: str, then: str, for_s: float | None = None) -> Iterator[None]:
    """What the server lets the role `keyed` do changes, and its connections end; for the block, or for so long."""
    host, port = server.split(":")

    def alter(what: str) -> None:
        with psycopg.connect(f"host={host} port={port} user=salon dbname=shared", autocommit=True) as connection:
            connection.execute(f"alter role keyed {what}".encode())
            connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'keyed'")

    alter(altered)
    later = threading.Timer(for_s or 0, alter, [then])
    if for_s:
        later.start()
    try:
        yield
    finally:
        later.join() if for_s else alter(then)


def test_a_server_that_is_full_is_waited_for_and_what_it_says_is_told(server: str, caplog: pytest.LogCaptureFixture) -> None:
    began_s = time.monotonic()
    with pytest.raises(StoreError, match="too many connections"):
        Ledger(f"postgresql+psycopg://crowded@{server}/made", max_away_s=1.0).known([])
    assert time.monotonic() - began_s > 1.0
    (told,) = [record.getMessage() for record in caplog.records if "waiting for it" in record.getMessage()]
    assert "too many connections for role" in told


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("FATAL:  the database system is starting up", True),
        ("FATAL:  the database system is shutting down", True),
        ("FATAL:  sorry, too many clients already", True),
        ("Connection refused\n\tIs the server running on that host?", True),
        ('FATAL:  password authentication failed for user "a"', False),
        ('FATAL:  Peer authentication failed for user "a"', False),
        ('multiple: - host ::1: Connection refused - host 127.0.0.1: FATAL:  database "a" does not exist', False),
    ],
    ids=["starts", "ends", "full", "is not there", "password", "peer", "one of two addresses"],
)
def test_what_is_said_at_connect(said: str, passes: bool) -> None:
    error = OperationalError(None, None, psycopg.OperationalError(f"connection failed: {said}"))
    assert is_passing(error) is passes
