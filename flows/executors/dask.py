"""A Dask cluster as a pool: this machine's own, or one that runs already. The only file that knows Dask, an optional extra."""

import logging
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from threading import current_thread, main_thread
from typing import Any
from uuid import uuid4

import dask
from distributed import KilledWorker, WorkerPlugin
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from prefect_dask.task_runners import DaskTaskRunner

from flows.executors.pools import GivenUpError, Pool, Shipped, WorkerLostError
from flows.executors.worker import WorkerCall, ignore_of_terminal, keep_clean
from schemas.errors import InputError
from tasks.context import StageContext
from tasks.publish.identity import code_version

CONNECT_LIMIT_S = 30.0
_OWN: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": 0,  # the flow itself hands on what a worker that died was doing, and counts
    "distributed.worker.memory.terminate": False,  # a worker amid paid requests is not killed for a guess at its memory
}


class Prepared(WorkerPlugin):
    """Runs in every worker before its first task, in those that replace a dead one too."""

    name = "salon"

    def __init__(self, secret_names: tuple[str, ...], *, is_own: bool) -> None:
        self.secret_names, self.is_own = secret_names, is_own

    def setup(self, worker: Any) -> None:  # noqa: ARG002 - Dask's signature
        """No secret in what the worker says. One of our own ends with its flow, and by nothing that all of a terminal get."""
        keep_clean(self.secret_names)
        if self.is_own and current_thread() is main_thread():
            ignore_of_terminal()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which systemd sends to all of a service


class DaskPool:
    """A connected cluster, which starts its workers anew by itself."""

    def __init__(self, client: Any, n: int, address: str | None) -> None:
        self._client, self.n, self._address = client, n, address
        self.has_other_code = address is not None

    def check(self) -> None:
        """A client that lost its scheduler for good answers nobody any more."""
        if self._client.status not in ("running", "connecting"):
            raise self._gone()

    def submit(self, function: WorkerCall, context: StageContext, shard: Any) -> Shipped:
        """Have a worker make the call."""
        self.check()
        key = f"{function.name}-{uuid4().hex}"  # never that of a call before, which Dask would answer with its result
        submitted: Shipped = self._client.submit(function, context, shard, key=key, pure=False)
        return submitted

    def result(self, submitted: Any) -> Any:
        """What a shard that has ended gave, or its error."""
        try:
            return submitted.result()
        except KilledWorker as error:
            raise WorkerLostError from error
        except (CommClosedError, CancelledError, FutureCancelledError) as error:
            raise self._gone() from error

    def _gone(self) -> GivenUpError:
        return GivenUpError(
            f"the Dask scheduler at {self._address or 'this machine'} is gone; replies already paid for are "
            "stored. Its workers end with it: start all of them again, then run the same command again to continue"
        )


@contextmanager
def dask_pool(n: int | None, address: str | None, secret_names: tuple[str, ...]) -> Iterator[Pool]:
    """A cluster of `n` processes of this machine, or the one at `address`. Raises InputError where nobody works there."""
    with ExitStack() as opened:
        if address is None:
            opened.enter_context(dask.config.set(_OWN))
            # TLS with a certificate of the moment: a scheduler runs what it is sent, and other users may reach loopback.
            own = {"n_workers": n, "threads_per_worker": 1, "processes": True, "dashboard_address": None, "security": True}
            own["silence_logs"] = logging.CRITICAL  # the flow tells how a shard ended, one that it stopped included
            runner = opened.enter_context(DaskTaskRunner(cluster_kwargs=own))
            client = runner.client
        else:
            runner = opened.enter_context(DaskTaskRunner(address=address, client_kwargs={"timeout": CONNECT_LIMIT_S}))
            client = _connected(runner, address)
            _check_code(client, address)
        workers = client.scheduler_info(n_workers=-1)["workers"]
        _check_threads(workers, address)
        client.register_plugin(Prepared(secret_names, is_own=address is None))
        yield DaskPool(client, n or len(workers), address)


def _connected(runner: Any, address: str) -> Any:
    try:
        client = runner.client
        client.wait_for_workers(1, timeout=CONNECT_LIMIT_S)
    except (OSError, TimeoutError) as error:
        raise InputError(
            f'workers.address = "{address}": no Dask scheduler with a worker answers there ({error}); start them with '
            f"`dask scheduler` and `dask worker {address} --nthreads 1`, or leave the address out"
        ) from error
    return client


def _check_code(client: Any, address: str) -> None:
    """Scheduler and workers alike: a scheduler unpacks what it hands on. A worker that comes later is checked by its shards."""
    try:
        found = {client.run_on_scheduler(code_version), *client.run(code_version).values()}
    except Exception as error:  # whatever it makes of a module that it lacks
        raise InputError(
            f'workers.address = "{address}": its scheduler or a worker cannot import Salon ({error}); start all of them with '
            "PYTHONPATH=<this checkout>, in the same environment"
        ) from error
    if found != {code_version()}:
        raise InputError(
            f'workers.address = "{address}": its scheduler or a worker runs a different version of '
            "Salon's code than this command; bring all to one version and restart them"
        )


def _check_threads(workers: Mapping[str, Any], address: str | None) -> None:
    several = [name for name, said in workers.items() if said["nthreads"] != 1]
    if several:
        raise InputError(
            f'workers.address = "{address}": {len(several)} of its {len(workers)} workers have several threads; a process works '
            "on one shard at a time, so start them with `dask worker --nthreads 1 --nworkers N`"
        )
