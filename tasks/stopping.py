"""The one event that says this process was told to stop (SIGTERM), and who sets it. Every stage heeds it at least once a second.

What is under way with a judge is waited for and stored (tasks/judge/shard.py); all else ends at the next check.
"""

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from importlib import import_module

from schemas.errors import StoppedError

STOP = threading.Event()
HEED_EVERY_S = 0.1


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


def import_heeding(name: str) -> None:
    """Import a heavy library in a thread of its own, and heed STOP meanwhile. Raises StoppedError, and what the import raises.

    An import cannot be left in the middle: the thread goes on, dies with the process, and who imports the library later waits
    for it.
    """
    loaded: Future[None] = Future()

    def load() -> None:
        try:
            import_module(name)
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            loaded.set_exception(error)
        else:
            loaded.set_result(None)

    threading.Thread(target=load, name=f"import {name}", daemon=True).start()
    while not loaded.done():
        check_not_stopped()
        wait([loaded], HEED_EVERY_S)
    loaded.result()
