"""Shards in other processes: what is sent to them, how long is waited, and what becomes of those whose worker died."""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import Any

from prefect import Task
from prefect.futures import PrefectFuture
from prefect.settings import PREFECT_API_URL
from prefect.task_runners import ThreadPoolTaskRunner

from flows.executors.base import Elsewhere
from flows.executors.pools import LOST_MOST, GivenUpError, Pool, Submitted, WorkerLostError
from flows.executors.worker import AtWorker, Line
from schemas.errors import StoppedError
from tasks.ingest.samples import OpenShard
from tasks.judge.shard import AskShard
from tasks.ledger.ledger import opened
from tasks.ledger.mutex import heartbeat
from tasks.publish.code_version import code_version
from tasks.stopping import check_not_stopped

POLL_S = 0.05
CHECK_S = 5.0  # how often who waits for a shard looks whether there is still somebody to wait for
log = logging.getLogger("salon.workers")


class AtWorkers(Elsewhere):
    """Shards in a pool's workers, at most `n_submitted` of them submitted and not yet told of.

    Each is a Prefect task run in a thread of the flow's process, which waits for the worker: what Prefect does for a run in
    another process (a TLS context, its settings anew) costs five times as much CPU as the rest of the run.
    A call that asks a judge spends money: its shard is told when the flow ends, whatever ends it, and is waited for until it has
    stored what was under way, at most `drain_s`. A call whose samples carry their pictures stays in the flow's process.
    """

    def __init__(self, pool: Pool, n_submitted: int, ledger_url: str, secret_names: tuple[str, ...], drain_s: float) -> None:
        self.n_at_once = pool.n
        self._pool, self._n_submitted = pool, n_submitted
        self._ledger_url, self._secret_names, self._drain_s = ledger_url, secret_names, drain_s

    def __call__(self, task: Task[..., Any], calls: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
        """Run the calls and yield their results in order. Raises what a shard raises, StoreError, StoppedError."""
        waiting: deque[PrefectFuture[Any]] = deque()
        code = code_version() if self._pool.has_other_code else None
        where = (task.fn.__module__, task.fn.__qualname__)
        function = AtWorker(*where, self._secret_names, code=code, api_url=PREFECT_API_URL.value())
        errands = _Errands(self._pool, function, self._ledger_url, task.name)
        sent = errands.as_task(task)
        is_followed = False
        threads: Any = ThreadPoolTaskRunner(max_workers=self._n_submitted)
        with threads, ExitStack() as line:
            try:
                for call in calls:
                    check_not_stopped()
                    run_id = _spending_run(call)
                    if run_id is not None and not is_followed:
                        is_followed = True
                        line.enter_context(heartbeat(line.enter_context(opened(self._ledger_url)), run_id))
                    if len(waiting) == self._n_submitted:
                        yield _result(waiting)
                    waiting.append(task.submit(**call) if _has_pictures(call) else threads.submit(sent, dict(call)))
                while waiting:
                    yield _result(waiting)
                check_not_stopped()
            finally:
                line.close()  # from now on shards that ask store what is under way, and end
                self._drain(waiting, errands)

    def _drain(self, waiting: Iterable[PrefectFuture[Any]], errands: "_Errands") -> None:
        """Take back what has not begun, and let the rest end by itself."""
        errands.take_back()
        until_s = time.monotonic() + self._drain_s
        while any(not _is_done(future) for future in waiting) and time.monotonic() < until_s:
            time.sleep(POLL_S)
        errands.leave()


class _Errands:
    """The calls of one stage, made in workers while threads here wait for them."""

    def __init__(self, pool: Pool, function: AtWorker, ledger_url: str, name: str) -> None:
        self._pool, self._function, self._ledger_url, self._name = pool, function, ledger_url, name
        self._is_over = False
        self._lock = threading.Lock()
        self._under_way: dict[threading.Event, Submitted | None] = {}  # what a thread waits for, and what can be taken back

    def as_task(self, task: Task[..., Any]) -> Task[..., Any]:
        """The task with the same name and parameters, whose work is done in a worker."""
        sent: Any = copy(task)
        sent.fn = wraps(task.fn)(lambda **call: self._run(call))
        return sent  # type: ignore[no-any-return]

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

    def _run(self, call: Mapping[str, Any]) -> Any:
        """The result of a call; it is made again when its worker dies."""
        run_id = _spending_run(call)
        line = Line(self._ledger_url, run_id) if run_id is not None else None
        function = replace(self._function, line=line)
        for n_lost in range(1, LOST_MOST + 1):
            try:
                return self._result(function, call)
            except WorkerLostError:
                log.warning("a worker died: its shard of %r is submitted again (%d of %d)", self._name, n_lost, LOST_MOST)
        raise GivenUpError(
            f"a shard of {self._name!r} lost its worker {LOST_MOST} times; where it lacks memory, lower workers.n or "
            "limits.shard_size. What was bought is stored, and the same command goes on from here"
        )

    def _result(self, function: AtWorker, call: Mapping[str, Any]) -> Any:
        has_ended = threading.Event()
        self._check_not_over()
        submitted = self._pool.submit(function, call)  # long, where a pool is made anew
        with self._lock:
            self._under_way[has_ended] = None if function.line else submitted
        try:
            submitted.add_done_callback(lambda _: has_ended.set())
            while not has_ended.wait(CHECK_S):
                self._pool.check()
            self._check_not_over()
            return self._pool.result(submitted)
        finally:
            with self._lock:
                del self._under_way[has_ended]

    def _check_not_over(self) -> None:
        if self._is_over:
            raise StoppedError(f"{self._name!r} was told to stop; the same command goes on from here")


def _spending_run(call: Mapping[str, Any]) -> str | None:
    """The run whose money a call spends; None where it asks no judge."""
    run_id: str = call["context"].ids.run_id if isinstance(call.get("shard"), AskShard) else ""
    return run_id or None


def _has_pictures(call: Mapping[str, Any]) -> bool:
    return any(isinstance(value, OpenShard) and value.samples.has_pictures for value in call.values())


def _is_done(future: PrefectFuture[Any]) -> bool:
    return bool(future.wrapped_future.done())  # type: ignore[attr-defined]  # Prefect's future is one around a thread's


def _result(waiting: deque[PrefectFuture[Any]]) -> Any:
    """The result of the shard that was submitted first."""
    while not _is_done(waiting[0]):
        check_not_stopped()
        time.sleep(POLL_S)
    return waiting.popleft().result()
