"""The one event that says this process was told to stop (SIGTERM, a lost terminal, Ctrl-C), and who sets it.

Every stage heeds it at least once a second. What is under way with a judge is waited for and stored (tasks/judge/shard.py); all
else ends at the next check.
"""

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TypeVar

from schemas.errors import StoppedError

T = TypeVar("T")

STOP = threading.Event()
SIGNALLED = threading.Event()
"""A signal set STOP, for the call that heeded it and no later one of the process. Who sets STOP clears it only without this."""
HEED_EVERY_S = 0.1
_INTERRUPTED_S = 5.0  # what a call that was interrupted gets to end, before what it uses is closed


def check_not_stopped() -> None:
    """Raise StoppedError where the process was told to stop."""
    if STOP.is_set():
        raise StoppedError("told to stop; replies in flight are stored; run the same command again to continue")


@contextmanager
def heeding_sigterm(on_stop: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Let SIGTERM set STOP while the block runs, in place of Prefect's own handler, which would drop replies under way.

    So does SIGHUP, a terminal that was closed or lost, unless it is ignored (nohup); and Ctrl-C, which interrupts all the same.
    `on_stop` is called in a thread of its own when the first comes. Raises StoppedError at the block's end too: who told it to
    stop is answered with 143 even where the last step was done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_outermost = getattr(signal.getsignal(signal.SIGTERM), "__module__", None) != __name__
    if is_outermost and SIGNALLED.is_set():
        SIGNALLED.clear()
        STOP.clear()

    def stop(*_: object) -> None:
        SIGNALLED.set()
        if not STOP.is_set():
            STOP.set()
            threading.Thread(target=on_stop, name="salon-stopping", daemon=True).start()  # the handler may be amid a print

    def interrupt(*_: object) -> None:
        stop()
        raise KeyboardInterrupt

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, stop)}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hung_up(stop))
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
        check_not_stopped()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def hung_up(stop: Callable[[], None]) -> Callable[..., None]:
    """A handler of SIGHUP: what is printed goes nowhere where its terminal is gone, since each write there fails; then `stop`."""

    def handle(*_: object) -> None:
        for output in (1, 2):
            with suppress(OSError):  # one that is closed
                if stat.S_ISCHR(os.fstat(output).st_mode) and not os.isatty(output):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), output)
        stop()

    return handle


def import_heeding(name: str) -> None:
    """Import a heavy library, and heed STOP meanwhile. Raises StoppedError, and what the import raises.

    An import cannot be left in the middle: its thread goes on, dies with the process, and who imports the library later waits
    for it.
    """
    heeding_stop(f"import {name}", lambda: import_module(name))


def heeding_stop(name: str, do: Callable[[], T], interrupt: Callable[[], object] | None = None) -> T:
    """What a library's long call gives, made in a thread of its own: this one hears signals, which that would not.

    Told to stop, or interrupted, it calls `interrupt`, if there is one, and sees the call end. Raises StoppedError, and what the
    call raises.
    """
    done: Future[T] = Future()

    def call() -> None:
        try:
            result = do()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=call, name=name, daemon=True).start()
    try:
        while not done.done():
            check_not_stopped()
            wait([done], HEED_EVERY_S)
    except BaseException:  # a signal's too
        if interrupt is not None:
            interrupt()
            wait([done], _INTERRUPTED_S)
        raise
    return done.result()
