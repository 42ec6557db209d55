"""What shards judged at the same time in one process share: an event loop. What is done in it is shard.py.

Two loops would hand the interpreter's lock to each other at every send. It is there while a shard needs it, and gone after the
last: nothing is left to a fork or to the interpreter's end.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

_Found = TypeVar("_Found")

INTERRUPTIBLE_S = 0.2
"""A lock is waited for in such bits: where a library took over Ctrl+C's signal, a whole wait would not notice it."""


class SharedLoop:
    """An event loop in a thread of its own, for as long as somebody runs something in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._running: tuple[threading.Thread, asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def run(self, work: Coroutine[Any, Any, _Found]) -> _Found:
        """What the coroutine returns or raises, in the caller's context.

        An interrupt of the waiting caller cancels it, as often as it comes, and is raised when the coroutine has ended.
        """
        done: Future[_Found] = Future()
        tasks: list[asyncio.Task[_Found]] = []

        def start() -> None:
            tasks.append(asyncio.get_running_loop().create_task(work))
            tasks[0].add_done_callback(lambda task: _settle(done, task))

        def cancel() -> None:
            tasks[0].cancel()

        loop = self._enter()
        try:
            loop.call_soon_threadsafe(start)  # in the caller's context
            return _wait(done, lambda: loop.call_soon_threadsafe(cancel))
        finally:
            self._leave()

    def _enter(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._running is None:
                started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
                thread = threading.Thread(target=asyncio.run, args=(_stay(started),), name="salon-judging", daemon=True)
                thread.start()
                self._running = (thread, *started.result())
            self._n_inside += 1
            return self._running[1]

    def _leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0 and self._running is not None:
                thread, loop, end = self._running
                loop.call_soon_threadsafe(end.set)
                thread.join()
                self._running = None


async def _stay(started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    end = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), end))
    await end.wait()


def _settle(done: Future[_Found], task: asyncio.Task[_Found]) -> None:
    if task.cancelled():
        done.set_exception(asyncio.CancelledError())
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())


def _wait(done: Future[_Found], cancel: Callable[[], object]) -> _Found:
    interrupt: BaseException | None = None
    while True:
        try:
            done.exception(INTERRUPTIBLE_S)  # waits; the work's own error is returned
            break
        except TimeoutError:
            continue
        except BaseException as error:  # noqa: BLE001 - raised below
            interrupt = error
            cancel()
    if interrupt is not None:
        raise interrupt
    return done.result()


LOOP = SharedLoop()
