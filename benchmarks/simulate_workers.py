"""Many workers on one key's limits: how much of the rate they use, how often they pass it, and what it costs the database.

    python -m benchmarks.simulate_workers [--workers 1 4 16 100] [--rates 500 5000 50000] [--seconds 60] [--processes 2]

Each worker has a ledger of its own on one PostgreSQL server that syncs its commits, and asks for its share by the allowance's
real code; what it may send costs nothing and is noted. Afterwards the moments of all of them are played to the mock
provider's bucket, filled with a second's worth: what that would refuse would have been a 429. Workers stand in a few
processes, as many as there are cores: their CPU is the client's, shown for each request, the server's beside it.
"""

import argparse
import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg
from rich.console import Console
from rich.table import Table

from demo.mock_provider.rate_limits import KeyLimits
from demo.mock_provider.scenario import Limits
from tasks.judge.rate_limit.limiter import RateLimiter
from tasks.ledger.ledger import Ledger
from tests.support.servers.postgres import PostgresServer, running_postgres, why_not

LATENCY_S = 0.2
WARM_UP_S = 10.0
N_TOKENS = 1000


@dataclass(frozen=True)
class Job:
    address: str
    n_workers: int
    n_callers: int  # of one worker: more than the rate needs, so that somebody always waits
    rate: int
    start_s: float  # of the machine's monotonic clock
    end_s: float


@dataclass(frozen=True)
class Found:
    """Of the measured seconds: when requests were sent, by worker, and CPU seconds of the process."""

    sent_s: list[list[float]]
    cpu_s: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16, 100])
    parser.add_argument("--rates", type=int, nargs="+", default=[500, 5_000, 50_000], help="requests a minute")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2)
    given = parser.parse_args()
    console = Console(width=130)
    if (reason := why_not()) is not None:
        console.print(f"nothing to simulate on: {reason}")
        return 2
    headings = (
        "a minute",
        "workers",
        "of the rate",
        "429s",
        "least · most of a worker",
        "transactions/s",
        "ms CPU each: client",
        "server",
    )
    table = Table(*headings, title=f"{given.seconds:.0f} s after {WARM_UP_S:.0f} s", title_justify="left")
    with running_postgres(is_synced=True, n_connections=3 * max(given.workers) + 20) as server:
        for rate in given.rates:
            for n_workers in given.workers:
                table.add_row(f"{rate:,}", str(n_workers), *measured(server, rate, n_workers, given.seconds, given.processes))
    console.print(table)
    return 0


def measured(server: PostgresServer, rate: int, n_workers: int, seconds: float, n_processes: int) -> list[str]:
    address = server.new_database()
    with Ledger(address) as ledger:
        ledger.known([])
    n_processes = min(n_workers, n_processes)
    n_callers = max(4, round(rate / 60 * (LATENCY_S + 1.0) / n_workers * 1.5))
    start_s = time.monotonic() + 3.0 + 0.05 * n_workers
    shares = [n_workers // n_processes + (index < n_workers % n_processes) for index in range(n_processes)]
    jobs = [Job(address, share, n_callers, rate, start_s, start_s + WARM_UP_S + seconds) for share in shares]
    context = multiprocessing.get_context("spawn")
    with context.Pool(n_processes) as pool, watched(server, address, start_s + WARM_UP_S, seconds) as cost:
        found = pool.map(work, jobs, chunksize=1)
    by_worker = [[s for s in sent if s >= start_s + WARM_UP_S] for each in found for sent in each.sent_s]
    n = sum(map(len, by_worker))
    refused = n_refused([s for each in found for sent in each.sent_s for s in sent], rate, start_s + WARM_UP_S)
    fair = n / n_workers or 1
    return [
        f"{n / (rate / 60 * seconds):.3f}",
        f"{refused / max(n, 1):.2%}",
        f"{min(map(len, by_worker)) / fair:.2f} · {max(map(len, by_worker)) / fair:.2f}",
        f"{cost['n_transactions'] / seconds:,.0f}",
        f"{sum(each.cpu_s for each in found) / max(n, 1) * 1000:.2f}",
        f"{cost['cpu_s'] / max(n, 1) * 1000:.2f}",
    ]


def n_refused(sent_s: list[float], rate: int, from_s: float) -> int:
    """How many of these a bucket of a second's worth would have refused."""
    bucket = KeyLimits(Limits(requests_per_minute=rate, burst_requests=max(1, rate // 60)), min(sent_s))
    return sum(bucket.admit(N_TOKENS, moment) is not None and moment >= from_s for moment in sorted(sent_s))


@contextmanager
def watched(server: PostgresServer, address: str, start_s: float, seconds: float) -> Iterator[dict[str, float]]:
    """Transactions and CPU of the server in the measured seconds, looked at from a thread."""
    import threading

    cost: dict[str, float] = {}

    def watch() -> None:
        time.sleep(max(0.0, start_s - time.monotonic()))
        before = n_transactions(server, address), server_cpu_s(server)
        time.sleep(max(0.0, start_s + seconds - time.monotonic()))
        after = n_transactions(server, address), server_cpu_s(server)
        cost.update(n_transactions=after[0] - before[0], cpu_s=after[1] - before[1])

    thread = threading.Thread(target=watch)
    thread.start()
    yield cost
    thread.join()


def n_transactions(server: PostgresServer, address: str) -> float:
    """Committed and rolled back, of the ledger's database."""
    name = address.rpartition("/")[2]
    with psycopg.connect(host="127.0.0.1", port=server.port, user="salon", dbname="postgres") as connection:
        found: Any = connection.execute(
            "select xact_commit + xact_rollback from pg_stat_database where datname = %s", (name,)
        ).fetchone()
        return float(found[0])


def server_cpu_s(server: PostgresServer) -> float:
    """CPU seconds of the server's processes, of those that have ended too."""
    own = psutil.Process(server.process.pid)
    spent_s = sum(own.cpu_times()[:4])  # of the children it has seen end too
    for child in own.children():
        with suppress(psutil.NoSuchProcess):
            spent_s += sum(child.cpu_times()[:2])
    return spent_s


def work(job: Job) -> Found:
    """A process with some of the workers."""
    return asyncio.run(send(job))


async def send(job: Job) -> Found:
    ledgers = [Ledger(job.address) for _ in range(job.n_workers)]
    sent_s: list[list[float]] = [[] for _ in ledgers]
    for ledger in ledgers:
        await ledger.alone(lambda _: None)  # opened
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()

    async def call(allowance: RateLimiter, sent: list[float]) -> None:
        while True:
            await allowance.wait(N_TOKENS, stopping)
            if stopping.is_set():
                return
            sent.append(time.monotonic())
            await asyncio.sleep(LATENCY_S)

    await asyncio.sleep(max(0.0, job.start_s - time.monotonic()))
    allowances = [RateLimiter(ledger, "key", job.rate) for ledger in ledgers]
    pairs = list(zip(allowances, sent_s, strict=True))
    callers = [asyncio.create_task(call(*pair)) for pair in pairs for _ in range(job.n_callers)]
    used_s = [0.0, 0.0]
    loop.call_later(WARM_UP_S, lambda: used_s.__setitem__(0, time.process_time()))
    await asyncio.sleep(job.end_s - time.monotonic())
    used_s[1] = time.process_time()
    stopping.set()
    await asyncio.gather(*callers)
    for ledger in ledgers:
        ledger.close()
    return Found(sent_s, used_s[1] - used_s[0])


if __name__ == "__main__":
    sys.exit(main())
