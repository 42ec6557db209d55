"""A mutex beside a process that says nothing for a while: one that is paused, on this machine, still has its turn."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

from tasks.ledger import process_identity
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
from tasks.ledger.mutex import clearing, in_use, mutex
from tasks.ledger.process_identity import HERE
from tasks.ledger.tables import OWNERS


@pytest.mark.parametrize("waiting", [lambda ledger: mutex(ledger, "a night"), lambda ledger: in_use(ledger, "a night")])
def test_a_turn_of_a_paused_process_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: Callable[[Ledger], object]
) -> None:
    """Its row is over, and has been for longer than a living one's may be."""
    monkeypatch.setattr(process_identity, "EXPIRES_AFTER_S", 0.2)
    with (
        Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child,
        mutex(ledger, "a night"),
        clearing(ledger, "a night") as nobody,
    ):
        assert nobody is None
        child.send_signal(signal.SIGSTOP)
        started = process_identity._started(child.pid)
        of_the_child = {"pid": child.pid, "process_started": started, "expires_at_us": 1}
        ledger.alone_now(lambda connection: connection.execute(update(OWNERS).values(of_the_child)) and None)
        has_turn = threading.Event()

        def wait() -> None:
            with waiting(ledger):  # type: ignore[attr-defined]
                has_turn.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not has_turn.wait(1.5)
        child.kill()
        assert has_turn.wait(10), "a process that is gone is seen so at once"
        waiter.join()


def test_where_the_clock_was_set_a_living_mutex_is_not_swept(tmp_path: Path) -> None:
    """Who takes claims sweeps rows that are over; one that is, by a clock an hour ahead, may be a night's that goes on."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ahead = replace(HERE, time_ns=lambda: time.time_ns() + 3600 * 10**9)
    with Ledger(url) as ledger, Ledger(url, machine=ahead) as elsewhen, mutex(ledger, "a night"):
        asyncio.run(Claims(elsewhen).take(["0" * 64]))
        names = ledger.read(lambda connection: connection.execute(select(OWNERS.c.owner_id)).scalars().all())
        assert sum(name.startswith("alone-") for name in names) == 1
