"""One process at a time does a night, on all machines that share the ledger: on SQLite and on PostgreSQL alike."""

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import delete, insert, update
from sqlalchemy.engine import Connection

from schemas.errors import StoppedError
from tasks.ledger.ledger import Ledger
from tasks.ledger.mutex import _prefix, mutex
from tasks.ledger.open_ledgers import opened
from tasks.ledger.process_identity import Process, this_process
from tasks.ledger.statements import now_us
from tasks.ledger.tables import OWNERS
from tasks.stopping import STOP
from tests.support.servers.postgres import running_postgres, why_not

NIGHT = "nightly x"


@contextmanager
def night(url: str, name: str = NIGHT) -> Iterator[None]:
    with opened(url) as ledger, mutex(ledger, name):
        yield


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('night')}/ledger.db"
        return
    missing = why_not()
    if missing is not None:
        pytest.skip(missing)
    with running_postgres() as server:
        yield server.new_database()


def _stand_in(url: str, *, host: str | None, pid: int, lives_s: float) -> str:
    """A row as another process leaves it that does the night; its id."""
    owner_id = f"{_prefix('alone', NIGHT)}{os.urandom(6).hex()}"

    def add(connection: Connection) -> None:
        row = {"owner_id": owner_id, "host": host, "pid": pid, "process_started": "1"}
        connection.execute(insert(OWNERS), [row | {"expires_at_us": now_us(connection) + int(lives_s * 1e6)}])

    with Ledger(url) as ledger:
        ledger.alone_now(add)
    return owner_id


def _remove(url: str, owner_id: str) -> None:
    with Ledger(url) as ledger:
        ledger.alone_now(lambda connection: connection.execute(delete(OWNERS).where(OWNERS.c.owner_id == owner_id)).rowcount)


def test_one_at_a_time(ledger_url: str) -> None:
    inside, most, lock = 0, 0, threading.Lock()

    def work(_: int) -> None:
        nonlocal inside, most
        with night(ledger_url):
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.05)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert most == 1


def test_another_benchmark_waits_for_nobody(ledger_url: str) -> None:
    with night(ledger_url), night(ledger_url, "nightly y"):
        pass


@pytest.mark.parametrize(
    ("host", "lives_s"), [("another machine", -1.0), ("here", 60.0)], ids=["silent for a minute", "dead on this machine"]
)
def test_who_is_gone_is_not_waited_for(ledger_url: str, host: str, lives_s: float) -> None:
    here = this_process().host if host == "here" else host
    owner_id = _stand_in(ledger_url, host=here, pid=2**22 + 1, lives_s=lives_s)  # no process has so high a number
    with night(ledger_url):
        pass
    _remove(ledger_url, owner_id)


def test_another_machine_is_waited_for(ledger_url: str) -> None:
    owner_id = _stand_in(ledger_url, host="another machine", pid=1, lives_s=60.0)
    is_in, waited_for = threading.Event(), list[Process]()

    def enter() -> None:
        with opened(ledger_url) as ledger, mutex(ledger, NIGHT, waited_for.append):
            is_in.set()

    waiting = threading.Thread(target=enter)
    waiting.start()
    assert not is_in.wait(1.5)
    _remove(ledger_url, owner_id)
    assert is_in.wait(120)
    waiting.join()
    assert waited_for == [Process("another machine", 1, "1")], "said once"


def test_told_to_stop_while_waiting(ledger_url: str) -> None:
    owner_id = _stand_in(ledger_url, host="another machine", pid=1, lives_s=60.0)
    STOP.set()
    try:
        with pytest.raises(StoppedError), night(ledger_url):
            pass
    finally:
        STOP.clear()
        _remove(ledger_url, owner_id)


def test_a_jump_of_the_clock_takes_no_night_from_a_process_that_lives(ledger_url: str) -> None:
    entered = threading.Event()

    def another() -> None:
        with night(ledger_url):
            entered.set()

    with ThreadPoolExecutor(1) as pool:
        with night(ledger_url):
            with Ledger(ledger_url) as ledger:  # as a clock that is days ahead sees the row
                ledger.alone_now(lambda connection: connection.execute(update(OWNERS).values(expires_at_us=0)).rowcount)
            waiting = pool.submit(another)
            assert not entered.wait(2)
        waiting.result(30)
    assert entered.is_set()
