"""A shard's requests, judged: what a Prefect task or another machine's worker calls. Shards of a process share an event loop.

Two loops would hand the interpreter's lock to each other at every send. It is there while a shard needs it, and gone after the
last: nothing is left to a fork or to the interpreter's end.
"""

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from schemas.benchmark import Limits
from schemas.records import PlannedPart
from schemas.tables import REQUESTS, SAMPLES
from tasks.context import StageContext
from tasks.judge.admission import open_admission
from tasks.judge.engine import OnReply, Shard, judge_requests
from tasks.judge.outcome import Outcome
from tasks.judge.provider.base import provider_of
from tasks.judge.work_queue import PartPictures
from tasks.ledger.ledger import opened

_Found = TypeVar("_Found")

STOP_POLL_S = 0.1
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
            tasks[0].add_done_callback(lambda task: _hand_over(done, task))

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


@dataclass(frozen=True, slots=True)
class JudgeShard:
    """One part of a plan to ask within these limits. `on_reply` hears of each reply once it is durable, in the judging thread."""

    part: PlannedPart
    limits: Limits
    on_reply: OnReply | None = None


def judge_shard(context: StageContext, shard: JudgeShard, stop: threading.Event | None = None) -> Outcome:
    """Ask what the ledger lacks of a part's requests. Shards with one `context.ids.run_id` share `limits.max_usd`.

    When `stop` is set, replies under way are stored and it returns. Raises MissingKeyError, ProviderError, StoreError.
    """
    part, ids = shard.part, context.ids
    requests = context.lake.read_part(REQUESTS, ids.plan_id, part.index)
    with opened(context.ledger_url) as ledger:
        keys = requests["request_key"]
        known = ledger.known(keys)
        if len(known) == keys.n_unique() and not ledger.reasks_due(keys):
            return Outcome(n_requests=len(known), n_cached=len(known))
        _keep_what_is_loaded()
        pictures = PartPictures(context.lake.part(SAMPLES, ids.dataset_id, part.samples_part))
        rubric, judge = context.rubrics[part.rubric_id], context.judge(part.judge_model)

        async def work() -> Outcome:
            provider = provider_of(judge)(judge, shard.limits.concurrency, shard.limits.deadline_s)
            stopping = asyncio.Event()
            watcher = asyncio.create_task(_watch(stop, stopping)) if stop is not None else None
            asked = Shard(requests, pictures, ledger, provider, rubric, shard.limits, ids.plan_id, shard.on_reply)
            try:
                async with open_admission(ledger, provider, rubric, shard.limits, ids.run_id) as admission:
                    return await judge_requests(asked, admission, stopping)
            finally:
                if watcher is not None:
                    watcher.cancel()
                await provider.close()

        try:
            return LOOP.run(work())
        finally:
            pictures.close()


@cache
def _keep_what_is_loaded() -> None:
    """Once in a process: the libraries' hundreds of thousands of objects stay, and a collection need not walk over them."""
    gc.freeze()


async def _watch(stop: threading.Event, stopping: asyncio.Event) -> None:
    while not stop.is_set():  # noqa: ASYNC110 - the event belongs to another thread
        await asyncio.sleep(STOP_POLL_S)
    stopping.set()
