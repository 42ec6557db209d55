"""The one event that says this process was told to stop (SIGTERM), and who sets it. Every stage heeds it at least once a second.

What is under way with a judge is waited for and stored (tasks/judge/shard.py); all else ends at the next check.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder

from schemas.errors import StoppedError

STOP = threading.Event()


def check_not_stopped() -> None:
    """Raise StoppedError where the process was told to stop."""
    if STOP.is_set():
        raise StoppedError("told to stop; replies under way are stored, and the same command goes on from here")


@contextmanager
def heeding_sigterm() -> Iterator[None]:
    """Let SIGTERM set STOP while the block runs, in place of Prefect's own handler, which would drop replies under way.

    Raises StoppedError at the block's end too: who told it to stop is answered with 143 even where the last step was done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: STOP.set())
    try:
        yield
        check_not_stopped()
    finally:
        signal.signal(signal.SIGTERM, before)


class _Heeding(MetaPathFinder):
    """Asked first for every module that is imported; it finds none."""

    def find_spec(self, *_: object) -> None:
        check_not_stopped()


@contextmanager
def heeding_in_imports() -> Iterator[None]:
    """Heed STOP between the thousand modules of a heavy library. What is half imported then is of no use: the run ends.

    Raises StoppedError.
    """
    heeding = _Heeding()
    sys.meta_path.insert(0, heeding)
    try:
        yield
    finally:
        sys.meta_path.remove(heeding)
