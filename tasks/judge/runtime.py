"""The event loop that all shards of a process share, and what is kept in it from shard to shard. What that is, is session.py's.

Two loops would hand the interpreter's lock to each other at every send. The loop is there while somebody uses or holds it, and
gone after the last: nothing is left to the interpreter's end.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Hashable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from typing import Any, TypeVar

_Found = TypeVar("_Found")

INTERRUPTIBLE_S = 0.2
"""A lock is waited for in such bits: where a library took over Ctrl+C's signal, a whole wait would not notice it."""


class SharedLoop:
    """An event loop in a thread of its own, begun with the first work and ended with the last who works in it or holds it."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """As at first. In a forked process: the parent's thread is not there, and what it keeps is the parent's to close."""
        self._lock = threading.Lock()
        self._n_inside = 0
        self._running: tuple[threading.Thread, asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._kept: dict[Hashable, asyncio.Task[Any]] = {}
        self._closing = AsyncExitStack()

    def run(self, work: Coroutine[Any, Any, _Found]) -> _Found:
        """What the coroutine returns or raises, in the caller's context.

        An interrupt of the waiting caller cancels it, as often as it comes, and is raised when the coroutine has ended.
        """
        done: Future[_Found] = Future()
        tasks: list[asyncio.Task[_Found]] = []

        def start() -> None:
            tasks.append(asyncio.get_running_loop().create_task(work))
            tasks[0].add_done_callback(lambda task: _hand_over(done, task))

        def cancel() -> None:
            tasks[0].cancel()

        with self.held():
            try:
                loop = self._started()
            except BaseException:
                work.close()
                raise
            loop.call_soon_threadsafe(start)  # in the caller's context
            return _wait(done, lambda: loop.call_soon_threadsafe(cancel))

    @contextmanager
    def held(self) -> Iterator[None]:
        """While the block runs the loop does not end between two works, and what they keep stays: connections, ramps, limits."""
        with self._lock:
            self._n_inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0 and self._running is not None:
                    thread, loop, end = self._running
                    loop.call_soon_threadsafe(end.set)
                    thread.join()
                    self._running = None

    async def kept(self, key: Hashable, make: Callable[[], AbstractAsyncContextManager[_Found]]) -> _Found:
        """What `make` opens, once for all who ask by this key until the loop ends, and is closed then. For works of this loop."""
        if key not in self._kept:
            self._kept[key] = asyncio.create_task(self._closing.enter_async_context(make()))
            self._kept[key].add_done_callback(lambda task: self._drop_failed(key, task))
        task: asyncio.Task[_Found] = self._kept[key]
        return await asyncio.shield(task)

    def _drop_failed(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        """Who asks next tries again, also where nobody waited any more."""
        if (task.cancelled() or task.exception() is not None) and self._kept.get(key) is task:
            del self._kept[key]

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._running is None:
                started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
                thread = threading.Thread(target=self._run_loop, args=(started,), name="salon-judging", daemon=True)
                thread.start()
                self._running = (thread, *started.result())
            return self._running[1]

    def _run_loop(self, started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
        stay = self._stay(started)
        try:
            asyncio.run(stay)
        except BaseException as error:
            if started.done():
                raise
            stay.close()
            started.set_exception(error)  # no loop without descriptors: who waits for it would wait for ever

    async def _stay(self, started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
        end = asyncio.Event()
        async with AsyncExitStack() as self._closing:
            started.set_result((asyncio.get_running_loop(), end))
            await end.wait()
            self._kept.clear()


def _hand_over(done: Future[_Found], task: asyncio.Task[_Found]) -> None:
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
os.register_at_fork(after_in_child=LOOP.forget)
