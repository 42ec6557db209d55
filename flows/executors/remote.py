"""Shards in other processes: what is sent to them, how long is waited, and what becomes of those whose worker died."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from flows.executors.base import In, Out, ShardCall, StageTask, Submitted, Threads
from flows.executors.local import LocalExecutor
from flows.executors.pools import LOST_MOST, GivenUpError, Pool, Shipped, WorkerLostError
from flows.executors.worker import FlowLease, WorkerCall
from flows.prefect_server import server_url
from schemas.errors import StoppedError
from tasks.context import StageContext
from tasks.ledger.mutex import heartbeat
from tasks.ledger.open_ledgers import opened
from tasks.publish.identity import code_version
from tasks.stopping import check_not_stopped

POLL_S = 0.05
CHECK_S = 5.0  # how often who waits for a shard looks whether there is still somebody to wait for
log = logging.getLogger("salon.workers")


class RemoteExecutor(LocalExecutor):
    """Shards in a pool's workers, at most `n_submitted` of them submitted and not yet told of.

    Each is a task in one of the threads `waiting`, which waits for the worker: what Prefect does for a run in another process
    (a TLS context, its settings anew) costs five times as much CPU as the rest of the run. A shard that spends money is told
    when the flow ends, and is waited for until it has stored what was under way, `drain_s` at most. Shards that carry pictures
    are worked on in the threads `here`.
    """

    is_remote = True

    def __init__(
        self, here: Threads, waiting: Threads, n_submitted: int, pool: Pool, secret_names: tuple[str, ...], drain_s: float
    ) -> None:
        super().__init__(here, waiting, n_submitted)
        self.n_processes = pool.n
        self._waiting, self._pool, self._secret_names, self._drain_s = waiting, pool, secret_names, drain_s

    def run(self, calls: Iterable[ShardCall[In, Out]]) -> Iterator[Out]:
        """Run the calls and yield their results in order. Raises what a shard raises, StoreError, StoppedError."""
        waiting: deque[Submitted[Any]] = deque()
        shipped = _Shipments(self._pool, self._secret_names, self._lose)
        is_followed = False
        with ExitStack() as leases:
            try:
                for call in calls:
                    check_not_stopped()
                    if call.spends_money and not is_followed:
                        is_followed = True
                        ledger = leases.enter_context(opened(call.context.ledger_url))
                        leases.enter_context(heartbeat(ledger, call.context.ids.run_id))
                    if call.carries_pictures:
                        waiting.append(self._threads.submit(call.task, call.context, call.shard))
                    else:
                        waiting.append(self._waiting.submit(shipped.task_of(call), call.context, call.shard))
                    if len(waiting) == self._n_submitted:
                        yield _result(waiting)
                while waiting:
                    yield _result(waiting)
                check_not_stopped()
            finally:
                leases.close()  # from now on shards that spend money store what is under way, and end
                self._drain(waiting, shipped)

    def _lose(self) -> None:
        self.n_lost += 1

    def _drain(self, waiting: Iterable[Submitted[Any]], shipped: "_Shipments") -> None:
        """Take back what has not begun, and let the rest end by itself."""
        shipped.take_back()
        until_s = time.monotonic() + self._drain_s
        while any(not future.done() for future in waiting) and time.monotonic() < until_s:
            time.sleep(POLL_S)
        shipped.leave()


class _Shipments:
    """The shards of one stage, worked on in workers while threads here wait for them."""

    def __init__(self, pool: Pool, secret_names: tuple[str, ...], on_lost: Callable[[], None]) -> None:
        self._pool, self._secret_names, self._on_lost = pool, secret_names, on_lost
        self._code = code_version() if pool.has_other_code else None
        self._tasks: dict[tuple[str, bool], StageTask[..., Any]] = {}
        self._is_over = False
        self._lock = threading.Lock()
        self._under_way: dict[threading.Event, Shipped | None] = {}  # what a thread waits for, and what can be taken back

    def task_of(self, call: ShardCall[Any, Any]) -> StageTask[..., Any]:
        """A task with the name and parameters of the call's own, whose work is done in a worker."""
        task = call.task
        known = task.name, call.spends_money
        if known not in self._tasks:
            lease = FlowLease(call.context.ledger_url, call.context.ids.run_id) if call.spends_money else None
            where = (task.work.__module__, task.work.__name__)
            function = WorkerCall(*where, self._secret_names, lease, self._code, server_url())

            def ship(context: StageContext, shard: Any) -> Any:
                return self._run(task.name, function, context, shard)

            self._tasks[known] = replace(task, work=ship)
        return self._tasks[known]

    def take_back(self) -> None:
        """Submit nothing more. What spends money ends by itself: Dask would no longer wait for a shard that it cancelled."""
        with self._lock:
            self._is_over = True
            for submitted in self._under_way.values():
                if submitted is not None:
                    submitted.cancel()

    def leave(self) -> None:
        """Wait no longer."""
        with self._lock:
            for has_ended in self._under_way:
                has_ended.set()

    def _run(self, name: str, function: WorkerCall, context: StageContext, shard: Any) -> Any:
        """The result of a shard; it is shipped again when its worker dies."""
        for n_lost in range(1, LOST_MOST + 1):
            try:
                return self._result(name, function, context, shard)
            except WorkerLostError:
                log.warning("a worker died: resubmitting its shard of %r (%d of %d)", name, n_lost, LOST_MOST)
        raise GivenUpError(
            f"a shard of {name!r} lost its worker {LOST_MOST} times; if memory is short, lower workers.n or "
            "limits.shard_size. Replies already paid for are stored; run the same command again to continue"
        )

    def _result(self, name: str, function: WorkerCall, context: StageContext, shard: Any) -> Any:
        has_ended = threading.Event()
        self._check_not_over(name)
        submitted = self._pool.submit(function, context, shard)  # long, where a pool is made anew
        with self._lock:
            self._under_way[has_ended] = None if function.lease else submitted
        try:
            submitted.add_done_callback(lambda _: has_ended.set())
            while not has_ended.wait(CHECK_S):
                self._pool.check()
            self._check_not_over(name)
            return self._pool.result(submitted)
        except Exception:
            with self._lock:
                self._on_lost()
            raise
        finally:
            with self._lock:
                del self._under_way[has_ended]

    def _check_not_over(self, name: str) -> None:
        if self._is_over:
            raise StoppedError(f"{name!r} was stopped; run the same command again to continue")


def _result(waiting: deque[Submitted[Any]]) -> Any:
    """The result of the shard that was submitted first."""
    while not waiting[0].done():
        check_not_stopped()
        time.sleep(POLL_S)
    return waiting.popleft().result()
