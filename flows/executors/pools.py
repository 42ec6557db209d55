"""The processes that shards run in: a pool of this machine's own, or a Dask cluster. What is done in them is worker.py."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Protocol

from flows.executors.worker import WorkerCall, begin_process
from schemas.errors import StoreError
from tasks.context import StageContext

LOST_MOST = 20
"""Workers that one shard may lose. A machine that fails now and then costs a few; a shard that kills each of them is given up."""


class WorkerLostError(Exception):
    """A shard has no result because its worker died; workers are there again."""


class GivenUpError(StoreError):
    """Trying a shard again at once helps nothing: it lost too many workers, or nobody is left who hands it to one."""

    may_pass = False


class Shipped(Protocol):
    """What stands for a shard that was handed to a pool."""

    def add_done_callback(self, fn: Callable[[Any], Any]) -> Any:
        """Call `fn` when the shard ends, or has ended."""

    def cancel(self) -> Any:
        """Take it back, if it has not begun."""


class Pool(Protocol):
    """Worker processes. `n` of them work at the same time; `has_other_code` where theirs may differ from this process's.

    Its methods are called in several threads at a time.
    """

    n: int
    has_other_code: bool

    def check(self) -> None:
        """Raise GivenUpError where nobody is left who could tell how a shard ended."""

    def submit(self, function: WorkerCall, context: StageContext, shard: Any) -> Shipped:
        """Have a worker make the call. Raises as `result` does."""

    def result(self, submitted: Shipped) -> Any:
        """What a shard that has ended gave, or its error. Raises WorkerLostError, GivenUpError."""


class ProcessPool:
    """Processes of this machine. When one dies, Python gives up all: they finish their requests and leave, and others start."""

    has_other_code = False

    def __init__(self, n: int, secret_names: tuple[str, ...]) -> None:
        self.n = n
        self._secret_names = secret_names
        self._renewing = threading.Lock()
        self._executor = self._started()

    def check(self) -> None:
        """Python itself tells of a process that died."""

    def submit(self, function: WorkerCall, context: StageContext, shard: Any) -> Shipped:
        """Have a worker make the call."""
        with self._renewing:
            try:
                return self._executor.submit(function, context, shard)
            except BrokenProcessPool:
                self._renew()
                return self._executor.submit(function, context, shard)

    def result(self, submitted: Any) -> Any:
        """What a shard that has ended gave, or its error."""
        try:
            return submitted.result()
        except BrokenProcessPool as error:
            raise WorkerLostError from error

    def close(self) -> None:
        """Wait for what the processes do, and end them."""
        self._executor.shutdown(cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        """Spawned, never forked: threads hold locks here, and what talks to a bucket does not survive a fork."""
        return ProcessPoolExecutor(self.n, get_context("spawn"), begin_process, (self._secret_names,))

    def _renew(self) -> None:
        self._executor.shutdown()
        self._executor = self._started()


@contextmanager
def process_pool(n: int, secret_names: tuple[str, ...]) -> Iterator[Pool]:
    """Processes of this machine for as long as the block lasts."""
    pool = ProcessPool(n, secret_names)
    try:
        yield pool
    finally:
        pool.close()
