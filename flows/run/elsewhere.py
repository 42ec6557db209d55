"""Shards in other processes: what is sent to them, how long is waited, and what becomes of those whose worker died."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from typing import Any

from prefect import Task
from prefect.futures import PrefectFuture

from flows.run.at_worker import AtWorker, Line
from flows.run.fan_out import Elsewhere
from flows.run.pools import LOST_MOST, Pool
from schemas.errors import StoreError
from tasks.ingest.prefect_tasks import SampleList
from tasks.judge.precedence import going_first
from tasks.publish.code_version import code_version
from tasks.stopping import check_not_stopped

POLL_S = 0.05
log = logging.getLogger("salon.workers")


@dataclass(slots=True)
class _Shard:
    """One call: where it runs, and how many workers it has lost."""

    call: Mapping[str, Any]
    future: PrefectFuture[Any]
    n_lost: int = 0

    @property
    def is_done(self) -> bool:
        """Whether there is a result, or will be none."""
        return bool(self._inner.done())

    @property
    def error(self) -> BaseException | None:
        """Why there is no result at all; a task that failed has one, which says so."""
        try:
            error: BaseException | None = self._inner.exception()
        except (CancelledError, asyncio.CancelledError) as cancelled:
            return cancelled
        return error

    def cancel(self) -> None:
        """Take it back, if it has not begun."""
        self._inner.cancel()

    @property
    def _inner(self) -> Any:
        return self.future.wrapped_future  # type: ignore[attr-defined]  # Prefect's future is one around the pool's own


class AtWorkers(Elsewhere):
    """Shards in a pool's workers, at most `n_submitted` of them submitted and not yet told of.

    A call with a `run_id` spends money: its shard is told when the flow ends, whatever ends it, and is waited for until it has
    stored what was under way, at most `drain_s`. A call whose samples carry their pictures stays in the flow's process.
    """

    def __init__(self, pool: Pool, n_submitted: int, ledger_url: str, secret_names: tuple[str, ...], drain_s: float) -> None:
        self.n_at_once = pool.n
        self._pool, self._n_submitted = pool, n_submitted
        self._ledger_url, self._secret_names, self._drain_s = ledger_url, secret_names, drain_s

    def __call__(self, task: Task[..., Any], calls: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
        """Run the calls and yield their results in order. Raises StoreError where a shard's workers die again and again."""
        waiting: deque[_Shard] = deque()
        is_followed = False
        with ExitStack() as line:
            try:
                for call in calls:
                    check_not_stopped()
                    if "run_id" in call and not is_followed:
                        is_followed = True
                        line.enter_context(going_first(self._ledger_url, [call["run_id"]]))
                    if len(waiting) == self._n_submitted:
                        yield self._result(task, waiting)
                    waiting.append(_Shard(call, self._submit(task, call)))
                while waiting:
                    yield self._result(task, waiting)
                check_not_stopped()
            finally:
                line.close()  # from now on shards that ask store what is under way, and end
                self._drain(waiting)

    def _submit(self, task: Task[..., Any], call: Mapping[str, Any]) -> PrefectFuture[Any]:
        if any(isinstance(value, SampleList) and value.has_pictures for value in call.values()):
            future: PrefectFuture[Any] = task.submit(**call)
            return future
        there: Any = copy(task)
        line = Line(self._ledger_url, call["run_id"]) if "run_id" in call else None
        code = code_version() if self._pool.has_other_code else None
        # Whatever refers to the function itself would send its code, and the locks that this names, along.
        there.fn = there.__wrapped__ = AtWorker(task.fn.__module__, task.fn.__qualname__, self._secret_names, line, code)
        return self._pool.submit(there, call)

    def _result(self, task: Task[..., Any], waiting: deque[_Shard]) -> Any:
        """The first shard's result; it and others whose worker died are submitted again until then."""
        while True:
            while not waiting[0].is_done:
                check_not_stopped()
                time.sleep(POLL_S)
            if not self._pool.is_lost(waiting[0].error):
                return waiting.popleft().future.result()
            check_not_stopped()
            self._pool.renew()
            for shard in waiting:
                if shard.is_done and self._pool.is_lost(shard.error):
                    self._submit_again(task, shard)

    def _submit_again(self, task: Task[..., Any], shard: _Shard) -> None:
        shard.n_lost += 1
        if shard.n_lost > LOST_MOST:
            raise StoreError(
                f"a shard of {task.name!r} lost its worker {shard.n_lost} times; where it lacks memory, lower workers.n or "
                "limits.shard_size. What was bought is stored, and the same command goes on from here"
            )
        log.warning("a worker died: its shard of %r is submitted again (%d of %d)", task.name, shard.n_lost, LOST_MOST)
        shard.future = self._submit(task, shard.call)

    def _drain(self, waiting: deque[_Shard]) -> None:
        """Let shards that ask end by themselves; others are taken back."""
        until_s = time.monotonic() + self._drain_s
        for shard in waiting:
            if "run_id" not in shard.call:
                shard.cancel()
        while any(not shard.is_done for shard in waiting if "run_id" in shard.call) and time.monotonic() < until_s:
            time.sleep(POLL_S)
