"""The one event that says this process was told to stop (SIGTERM), and who sets it. Every stage heeds it between shards."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from schemas.errors import StoppedError

STOP = threading.Event()


def check_not_stopped() -> None:
    """Raise StoppedError where the process was told to stop."""
    if STOP.is_set():
        raise StoppedError("told to stop; replies under way are stored, and the same command goes on from here")


@contextmanager
def heeding_sigterm() -> Iterator[None]:
    """Let SIGTERM set STOP while the block runs, in place of Prefect's own handler, which would drop replies under way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: STOP.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
