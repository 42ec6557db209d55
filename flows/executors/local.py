"""Shards in threads of the flow's own process, with Prefect or without, or one after the other. Other processes are remote.py."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Self

from flows.executors.base import Executor, In, Out, P, ShardCall, StageTask, Submitted, Threads
from schemas.errors import SalonError
from tasks.stopping import STOP, check_not_stopped

RETRY_DELAYS_S: Final = (2.0, 10.0)


class PlainThreads(Threads):
    """At most `n` threads, for a run that no Prefect server shows."""

    def __init__(self, n: int) -> None:
        self._pool = ThreadPoolExecutor(n, thread_name_prefix="salon-shard")

    def __enter__(self) -> Self:
        """Begin to take tasks."""
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for what has begun; the rest is not begun."""
        self._pool.shutdown(cancel_futures=True)

    def submit(self, task: StageTask[..., Out], *inputs: Any) -> Submitted[Out]:
        """Run a task as soon as a thread is free."""
        return self._pool.submit(tried, task, *inputs)


def tried(task: StageTask[..., Out], *inputs: Any) -> Out:
    """The result of a task, tried again as often as it says where it failed of something that may pass."""
    for delay_s in RETRY_DELAYS_S[: task.n_retries]:
        try:
            return task.work(*inputs)
        except SalonError as error:
            if not error.may_pass or STOP.wait(delay_s):
                raise
    return task.work(*inputs)


class LocalExecutor(Executor):
    """Submits shards to threads, never more than `n_submitted` waiting: memory does not grow with them."""

    n_at_once = 2  # one prepares or stores while the other waits for the judge

    def __init__(self, threads: Threads, n_submitted: int) -> None:
        self._threads, self._n_submitted = threads, n_submitted

    def run(self, calls: Iterable[ShardCall[In, Out]]) -> Iterator[Out]:
        """Run the calls and yield their results in order."""
        waiting: deque[Submitted[Out]] = deque()
        for call in calls:
            check_not_stopped()
            if len(waiting) == self._n_submitted:
                yield waiting.popleft().result()
            waiting.append(self._threads.submit(call.task, call.context, call.shard))
        while waiting:
            yield waiting.popleft().result()
        check_not_stopped()

    def once(self, task: StageTask[P, Out], *inputs: P.args, **_: P.kwargs) -> Out:
        """The result of a stage that is one call."""
        return self._threads.submit(task, *inputs).result()


class InProcessExecutor(Executor):
    """Runs shards one after the other: for `salon plan`, which shows itself nowhere.

    `n_at_once`: more than one where others like it work beside it, and share the limits of one process.
    """

    def __init__(self, n_at_once: int = 1) -> None:
        self.n_at_once = n_at_once

    def run(self, calls: Iterable[ShardCall[In, Out]]) -> Iterator[Out]:
        """Run the calls and yield their results in order."""
        for call in calls:
            check_not_stopped()
            yield call.task.work(call.context, call.shard)

    def once(self, task: StageTask[P, Out], *inputs: P.args, **named: P.kwargs) -> Out:
        """The result of a stage that is one call."""
        return task.work(*inputs, **named)
