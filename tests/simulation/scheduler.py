"""One event loop for all simulated processes: virtual time, the next process drawn from a seed. What they do is not said here.

Within a process callbacks keep asyncio's order; between processes any order may come. A killed process's callbacks are dropped
at whatever it waits for, a paused one's wait.
"""

import asyncio
import contextlib
import queue
from asyncio import events
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any

from sqlalchemy.util import await_only, greenlet_spawn

from tasks.ledger.process_identity import Process
from tests.simulation.scenario import Fault

MOST_STEPS = 20_000
MOST_S = 5_000.0


class StuckError(Exception):
    """Nobody can go on, or nobody comes to an end."""


@dataclass(eq=False, slots=True)
class Node:
    """A simulated process. `absent_s`: how long it was paused or without its ledger, in all; `cut_s`: without its ledger."""

    name: str
    host: int = 0
    identity: Process = field(default_factory=lambda: Process("world", 0, ""))
    is_dead: bool = False
    is_paused: bool = False
    n_effects: int = 0
    absent_s: float = 0.0
    cut_s: float = 0.0
    ledger_cut: bool = False
    provider_cut: bool = False
    losing: list[str] = field(default_factory=list)  # what becomes of its next commits and replies
    waiting: list[Fault] = field(default_factory=list)  # for it to do so much
    died: "asyncio.Future[None]" = field(default_factory=asyncio.Future)


WORLD = Node("world", died=None)  # type: ignore[arg-type] # it never does
NODE: ContextVar[Node] = ContextVar("node", default=WORLD)


class Callback(asyncio.TimerHandle):
    """A handle without what asyncio keeps for debugging: two of them are made at each step."""

    __slots__ = ()

    def __init__(self, callback: Callable[..., object], args: Sequence[Any], context: Context | None, when: float = 0.0) -> None:
        self._callback, self._args, self._when = callback, args, when
        self._context = copy_context() if context is None else context
        self._cancelled = self._scheduled = False

    def cancel(self) -> None:
        self._cancelled, self._callback, self._args = True, None, None  # type: ignore[assignment] # as asyncio's own does


class Scheduler(asyncio.AbstractEventLoop):
    """What asyncio asks of a loop, with `now_s` moved on to the next timer when nobody has anything to do."""

    def __init__(self, draw: Random) -> None:
        self.now_s = 1000.0
        self.n_steps = 0
        self.tasks: list[asyncio.Task[Any]] = []
        self.errors: list[BaseException] = []
        self.broken: Exception | None = None  # ends the run, whoever would catch it
        self._draw = draw
        self._ready: dict[Node, deque[Callback]] = defaultdict(deque)
        self._timers: list[tuple[float, int, Callback]] = []
        self._n_timers = 0
        self.get_debug = bool  # type: ignore[method-assign] # False: every future asks

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        """What the coroutine returns or raises. Raises StuckError."""
        events._set_running_loop(self)
        try:
            task = self.create_task(main)
            while not task.done() and self.broken is None:
                self._step()
            if self.broken is not None:
                raise self.broken
            return task.result()
        finally:
            self._end()
            events._set_running_loop(None)

    def _step(self) -> None:
        while self._timers and self._timers[0][0] <= self.now_s:
            self._put(heappop(self._timers)[2])
        able = [node for node, handles in self._ready.items() if handles and not node.is_paused]
        if not able:
            if not self._timers or self._timers[0][0] > 1000.0 + MOST_S:
                raise StuckError("nobody can go on" if not self._timers else f"not over after {MOST_S:,.0f} s")
            self.now_s = max(self.now_s, self._timers[0][0])
            return
        self.n_steps += 1
        if self.n_steps > MOST_STEPS:
            raise StuckError(f"not over after {MOST_STEPS:,} steps and {self.now_s - 1000:,.0f} s")
        node = able[0] if len(able) == 1 else able[self._draw.randrange(len(able))]
        handle = self._ready[node].popleft()
        if handle._cancelled:
            return
        try:
            handle._context.run(handle._callback, *handle._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as asyncio's own handles do
            self.errors.append(error)

    def _put(self, handle: Callback) -> None:
        if handle._cancelled:
            return
        node = handle._context.get(NODE, WORLD)
        if not node.is_dead:
            self._ready[node].append(handle)

    def drop(self, node: Node) -> None:
        """Nothing of a killed process is ever run again."""
        node.is_dead = True
        if not node.died.done():
            node.died.set_result(None)
        self._ready.pop(node, None)

    def _end(self) -> None:
        """What was killed, or is left, is taken apart, so that no garbage collection does so in the next run."""
        self._ready.clear()
        self._timers.clear()
        for task in self.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined] # asyncio's own way, for tasks meant to be dropped
            if task.done():
                if not task.cancelled():
                    task.exception()
            else:
                with contextlib.suppress(BaseException):
                    task.get_coro().close()  # type: ignore[union-attr] # none of ours is eager
        self.tasks.clear()

    # --- what asyncio asks ----------------------------------------------------------------------------------------
    def time(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = Callback(callback, args, context)
        self._put(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = Callback(callback, args, context, when)
        self._n_timers += 1
        heappush(self._timers, (when, self._n_timers, handle))
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now_s + delay, callback, *args, context=context)

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        self.tasks.append(task)
        return task

    def start(self, node: Node, work: Callable[[], Coroutine[Any, Any, Any]]) -> "asyncio.Task[Any]":
        """A process's main task."""
        context = copy_context()
        context.run(NODE.set, node)
        return self.create_task(work(), context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context.get("exception") or RuntimeError(str(context.get("message"))))

    def is_closed(self) -> bool:
        return False


class Joined:
    """A simulated thread: a greenlet that waits in virtual time."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._task = asyncio.get_running_loop().create_task(greenlet_spawn(function))

    def join(self) -> None:
        """Wait for its end, itself a thread."""
        await_only(self._task)


def of_world() -> Context:
    """The context of what is nobody's."""
    context = copy_context()
    context.run(NODE.set, WORLD)
    return context


class ThreadQueue:
    """A queue between simulated threads of one process."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._more: asyncio.Future[None] | None = None

    def put(self, item: Any) -> None:
        self._items.append(item)
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    def get(self) -> Any:
        while not self._items:
            self._more = asyncio.get_running_loop().create_future()
            await_only(self._more)
        return self._items.popleft()

    def get_nowait(self) -> Any:
        if not self._items:
            raise queue.Empty
        return self._items.popleft()

    def qsize(self) -> int:
        return len(self._items)


def waited(event: Any, seconds: float) -> bool:
    """How a simulated thread waits for an event."""
    if not event.is_set():
        await_only(asyncio.sleep(seconds))
    return bool(event.is_set())


def result_of(future: "Future[Any]") -> Any:
    """How it waits for what another one makes."""
    return await_only(asyncio.wrap_future(future))
