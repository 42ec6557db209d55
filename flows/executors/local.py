"""Shards in threads of the flow's own process, with Prefect or without, or one after the other. Other processes are remote.py."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Final, Self

from flows.executors.base import Executor, In, Out, P, ShardCall, StageTask, Submitted, Threads
from schemas.benchmark.file import Limits
from schemas.errors import SalonError
from tasks.stopping import STOP, check_not_stopped

RETRY_DELAYS_S: Final = (2.0, 10.0)
N_THREADS = 2  # one prepares or stores while the other waits
N_SUBMITTED = 4  # shards: those at work, and as many ahead
MOST_ASKING, N_AHEAD = 64, 128


class PlainThreads(Threads):
    """At most `n` threads, for a run that no Prefect server shows. Not `is_retrying`: what may pass is left to the caller."""

    def __init__(self, n: int, *, is_retrying: bool = True) -> None:
        self._is_retrying = is_retrying
        self._pool = ThreadPoolExecutor(n, thread_name_prefix="salon-shard")

    def __enter__(self) -> Self:
        """Begin to take tasks."""
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for what has begun; the rest is not begun."""
        self._pool.shutdown(cancel_futures=True)

    def submit(self, task: StageTask[P, Out], *inputs: P.args, **named: P.kwargs) -> Submitted[Out]:
        """Run a task as soon as a thread is free, in the caller's context."""
        work = partial(tried, task) if self._is_retrying else task.work
        return self._pool.submit(partial(copy_context().run, work, *inputs, **named))

    def more(self, n: int) -> Threads:
        """So many others."""
        return PlainThreads(n, is_retrying=self._is_retrying)


def tried(task: StageTask[P, Out], *inputs: P.args, **named: P.kwargs) -> Out:
    """The result of a task, tried again as often as it says where it failed of something that may pass."""
    for delay_s in RETRY_DELAYS_S[: task.n_retries]:
        try:
            return task.work(*inputs, **named)
        except SalonError as error:
            if not error.may_pass or STOP.wait(delay_s):
                raise
    return task.work(*inputs, **named)


def n_asking(limits: Limits) -> int:
    """Shards that ask at the same time: two whose last replies are to come, and as many as fill all places meanwhile."""
    return min(MOST_ASKING, 3 + -(-5 * limits.concurrency // (4 * limits.shard_size)))


@contextmanager
def asking_executor(limits: Limits) -> "Iterator[LocalExecutor]":
    """Shards that ask, in threads of a worker's own process: they overlap, and who called the worker tries it again."""
    with PlainThreads(n_asking(limits), is_retrying=False) as threads:
        yield LocalExecutor(threads, threads)


class LocalExecutor(Executor):
    """Submits shards to threads, never more than `n_submitted` waiting: memory does not grow with them.

    Shards that spend money wait for a judge. They have threads of their own, `asking`, and hold nothing while they wait: up to
    `n_ahead` are submitted, so that one reply that is late keeps no thread without work.
    """

    def __init__(self, threads: Threads, asking: Threads, n_submitted: int = N_SUBMITTED, n_ahead: int = N_AHEAD) -> None:
        self._threads, self._n_submitted = threads, n_submitted
        self._asking, self._n_ahead = asking, n_ahead

    def run(self, calls: Iterable[ShardCall[In, Out]]) -> Iterator[Out]:
        """Run the calls and yield their results in order."""
        waiting: deque[Submitted[Out]] = deque()
        for call in calls:
            check_not_stopped()
            threads, n_most = (self._asking, self._n_ahead) if call.spends_money else (self._threads, self._n_submitted)
            waiting.append(threads.submit(call.task, call.context, call.shard))
            if len(waiting) >= n_most:  # before the next call is made: what it is may follow from this result
                yield self._first(waiting)
        while waiting:
            yield self._first(waiting)
        check_not_stopped()

    @staticmethod
    def _first(waiting: "deque[Submitted[Out]]") -> Out:
        """The result that is due. Interrupted (Ctrl-C), see all end first: what comes of requests in flight is the run's too."""
        try:
            return waiting[0].result()
        except KeyboardInterrupt:
            for one in waiting:
                with suppress(Exception):  # told to stop, most of them
                    one.result()
            raise
        finally:
            waiting.popleft()

    def once(self, task: StageTask[P, Out], *inputs: P.args, **named: P.kwargs) -> Out:
        """The result of a stage that is one call."""
        return self._threads.submit(task, *inputs, **named).result()

    def beside(self, n: int) -> Threads:
        """So many threads more."""
        return self._threads.more(n)


class InProcessExecutor(Executor):
    """Runs shards one after the other: for `salon plan`, which shows itself nowhere."""

    def run(self, calls: Iterable[ShardCall[In, Out]]) -> Iterator[Out]:
        """Run the calls and yield their results in order."""
        for call in calls:
            check_not_stopped()
            yield call.task.work(call.context, call.shard)

    def once(self, task: StageTask[P, Out], *inputs: P.args, **named: P.kwargs) -> Out:
        """The result of a stage that is one call."""
        return task.work(*inputs, **named)

    def beside(self, n: int) -> Threads:
        """So many threads."""
        return PlainThreads(n)
