"""The processes that shards run in: a pool of this machine's own, or a Dask cluster. What is done in them is at_worker.py."""

from collections.abc import Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Protocol

from prefect import Task
from prefect.futures import PrefectFuture
from prefect.task_runners import ProcessPoolTaskRunner

from flows.run.at_worker import begin_process

LOST_MOST = 20
"""Workers that one shard may lose. A machine that fails now and then costs a few; a shard that kills each of them is given up."""


class Pool(Protocol):
    """Worker processes. `n` of them work at the same time; `has_other_code` where theirs may differ from this process's."""

    n: int
    has_other_code: bool

    def submit(self, task: Task[..., Any], call: Mapping[str, Any]) -> PrefectFuture[Any]:
        """Run the task in a worker."""

    def is_lost(self, error: BaseException | None) -> bool:
        """Whether a shard ended so because its worker did."""

    def renew(self) -> None:
        """After a shard was lost: see to it that workers are there again."""


class ProcessPool:
    """Prefect's own process pool. When one of its processes dies, all leave, having finished their requests, and others start."""

    has_other_code = False

    def __init__(self, n: int, secret_names: tuple[str, ...]) -> None:
        self.n = n
        self._runner: Any = ProcessPoolTaskRunner(n, initializer=begin_process, initargs=(secret_names,))
        self._runner.__enter__()

    def submit(self, task: Task[..., Any], call: Mapping[str, Any]) -> PrefectFuture[Any]:
        """Run the task in a worker."""
        future: PrefectFuture[Any] = self._runner.submit(task, dict(call))
        return future

    def is_lost(self, error: BaseException | None) -> bool:
        """Whether a shard ended so because a process did: then the whole pool is broken."""
        return isinstance(error, BrokenProcessPool)

    def renew(self) -> None:
        """A pool that broke takes nothing more."""
        before, self._runner = self._runner, self._runner.duplicate()
        before.__exit__(None, None, None)
        self._runner.__enter__()

    def close(self) -> None:
        """Wait for what the processes do, and end them."""
        self._runner.__exit__(None, None, None)


@contextmanager
def process_pool(n: int, secret_names: tuple[str, ...]) -> Iterator[Pool]:
    """Processes of this machine for as long as the block lasts."""
    pool = ProcessPool(n, secret_names)
    try:
        yield pool
    finally:
        pool.close()
