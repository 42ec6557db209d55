"""Which processes run a flow's shards: the benchmark file's `runner`, or what a flow is asked for instead. How is pools.py."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from flows.executors.base import Executor, Threads
from flows.executors.lake_use import lake_in_use
from flows.executors.local import N_AHEAD, N_SUBMITTED, N_THREADS, LocalExecutor, PlainThreads, n_asking
from flows.observability.metrics import metered
from flows.observability.progress import current
from flows.prefect_server import is_in_flow_run
from schemas.benchmark.file import Runner
from schemas.errors import InputError
from tasks.context import StageContext

DRAIN_S = 30.0  # beside a request's deadline, for a shard to store its replies and end


@contextmanager
def opened_executor(run: StageContext, runner: Runner | None = None, n_submitted: int | None = None) -> Iterator[Executor]:
    """What runs the shards of a flow, for as long as the block lasts; `runner` stands in place of the file's own.

    `n_submitted`: shards submitted and not yet told of, at most. Raises InputError as check_runner does.
    """
    check_runner(run, runner)
    from tasks.judge.runtime import LOOP
    from tasks.ledger.open_ledgers import opened

    with (
        opened(run.ledger_url),  # once for all stages
        lake_in_use(run),
        LOOP.held(),
        metered(run.benchmark.name, run.run_date.isoformat(), current()),
    ):
        yield from _executors(run, runner, n_submitted)


def _executors(run: StageContext, runner: Runner | None, n_submitted: int | None) -> Iterator[Executor]:
    chosen, said = runner or run.benchmark.runner, run.benchmark.workers
    if chosen == "local":
        asking = _threads(n_submitted or n_asking(run.benchmark.limits))
        with _threads(N_THREADS) as threads, asking:
            yield LocalExecutor(threads, asking, N_SUBMITTED, n_submitted or N_AHEAD)
        return
    from flows.executors.pools import process_pool
    from flows.executors.remote import RemoteExecutor

    names = tuple(sorted({judge.api_key_env for judge in run.benchmark.judges if not judge.recorded}))
    n = said.n or n_processors()
    if chosen == "processes":
        workers = process_pool(n, names)
    else:
        from flows.executors.dask import dask_pool

        workers = dask_pool(said.n if said.address else n, said.address, names)
    with workers as pool:
        n_submitted = n_submitted or 2 * pool.n + 2
        with _threads(N_THREADS) as here, _threads(n_submitted) as waiting:
            drain_s = run.benchmark.limits.deadline_s + DRAIN_S
            yield RemoteExecutor(here, waiting, n_submitted, pool, names, drain_s)


def n_processors(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Processors that this process may use, at least 1: by its affinity, which macOS has none of, and its container's quota."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or no quota: "max"
        allowed_us, period_us = map(int, quota.read_text(encoding="ascii").split())
        n = min(n, math.ceil(allowed_us / period_us))
    return n


def _threads(n: int) -> Threads:
    """Threads that Prefect shows where this is a flow run of a server's; else plain ones."""
    if not is_in_flow_run():
        return PlainThreads(n)
    from flows.executors.prefect_threads import PrefectThreads

    return PrefectThreads(n)


def check_runner(run: StageContext, runner: Runner | None = None) -> None:
    """Raise InputError, before anything is started, where the runner lacks its extra, or a ledger for its machines."""
    chosen = runner or run.benchmark.runner
    if chosen != "dask":
        return
    if find_spec("prefect_dask") is None:
        raise InputError(
            'runner = "dask" needs the extra `dask`, which is not installed: '
            "`uv pip install --require-hashes -r requirements/dask.txt`, here and where the workers run"
        )
    address = run.benchmark.workers.address
    if address and run.ledger_url.startswith("sqlite") and not _is_here(address):
        raise InputError(
            f'workers.address = "{address}" may be another machine, but the ledger is a SQLite file, which several machines '
            'cannot share safely; set ledger = "postgresql+psycopg://user@host/database"'
        )


def _is_here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
