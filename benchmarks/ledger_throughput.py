"""The ledger on SQLite beside the ledger on PostgreSQL, in one run: how long a commit takes, and what a judgement costs.

    python -m benchmarks.ledger_throughput [--judgements 4000] [--repetitions 3] [--processes 1 4] [--postgresql URL]

Each judgement waits for two commits: its attempt before it would be sent, its reply after. Both databases sync every commit.
Alone, one caller waits for one commit after another; in groups, 200 callers (shared among the processes) wait at once.
Without `--postgresql` a private server is started where its programs are installed; with `--delay-ms 20` also behind a relay,
that far away there and back. Of the repetitions the quickest counts.
"""

import argparse
import asyncio
import multiprocessing
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from benchmarks.simulate_workers import server_cpu_s
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.ledger.ledger import Ledger
from tests.support.servers.network_delay import distant
from tests.support.servers.postgres import PostgresServer, running_postgres, why_not

TEXT = "Reasoning: a canned answer.\nScore: 3"
N_CALLERS = 200
N_ALONE = 100


@dataclass(frozen=True, slots=True)
class Job:
    address: str
    n_judgements: int
    n_callers: int
    start_s: float  # of the machine's monotonic clock


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one run: its span on the monotonic clock, CPU seconds of the process, its commits."""

    start_s: float
    end_s: float
    cpu_s: float
    n_commits: int


@dataclass(frozen=True, slots=True)
class Row:
    per_s: float
    commit_ms: float
    cpu_ms: float
    server_ms: float | None
    waits_per_commit: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=4000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 4], help="how many write at once")
    parser.add_argument("--postgresql", metavar="URL", help="postgresql+psycopg://…, a database that may be filled")
    parser.add_argument("--delay-ms", type=float, nargs="*", default=[], help="the private server as far away, there and back")
    given = parser.parse_args()
    console = Console(width=130)
    with ExitStack() as stack:
        folder, server = Path(stack.enter_context(TemporaryDirectory())), None
        databases: dict[str, Callable[[], str]] = {"SQLite": lambda: f"sqlite:///{folder / uuid4().hex}.db"}
        if given.postgresql:
            databases["PostgreSQL"] = lambda: given.postgresql
        elif (reason := why_not()) is None:
            server = stack.enter_context(running_postgres(is_synced=True))
            databases["PostgreSQL"] = server.new_database
            for delay_ms in given.delay_ms:
                far = partial(far_database, stack, server, delay_ms / 1000)
                databases[f"PostgreSQL, {delay_ms:g} ms away"] = far
        else:
            console.print(f"PostgreSQL is left out: {reason}")
        headings = (
            "processes",
            "judgements/s",
            "rows/s",
            "waits a commit",
            "CPU ms each",
            "of the server",
            "ms a commit alone",
        )
        table = Table("database", *headings, title=f"{given.judgements:,} judgements, two rows each", title_justify="left")
        for n_processes in given.processes:
            for name, new in databases.items():
                its_server = server if name.startswith("PostgreSQL") else None
                rows = [measured(new(), given.judgements, n_processes, its_server) for _ in range(given.repetitions)]
                table.add_row(name, str(n_processes), *shown(max(rows, key=lambda row: row.per_s), rows))
        console.print(table)
        for name, new in databases.items():
            console.print(f"{name}: {reading(new()):.1f} s to store 50,000 replies at once and read them back")
    return 0


def far_database(stack: ExitStack, server: PostgresServer, delay_s: float) -> str:
    return stack.enter_context(distant(server.new_database(), delay_s))[0]


def shown(best: Row, rows: list[Row]) -> list[str]:
    server = "" if best.server_ms is None else f"{best.server_ms:.3f}"
    alone = f"{min(row.commit_ms for row in rows):.1f}"
    return [f"{best.per_s:,.0f}", f"{2 * best.per_s:,.0f}", f"{best.waits_per_commit:.1f}", f"{best.cpu_ms:.3f}", server, alone]


def measured(address: str, n: int, n_processes: int, server: PostgresServer | None) -> Row:
    with Ledger(address) as ledger:
        ledger.known([])  # its tables are made
    context = multiprocessing.get_context("spawn")
    with context.Pool(n_processes) as pool:
        pool.map(abs, range(n_processes), chunksize=1)

        def run(n_judgements: int, n_callers: int) -> list[Measured]:
            job = Job(address, n_judgements, n_callers, time.monotonic() + 2.0)
            return pool.map(work, [job] * n_processes, chunksize=1)

        alone = run(N_ALONE, 1)
        used_s = server_cpu_s(server) if server else 0.0
        found = run(n // n_processes, N_CALLERS // n_processes)
        used_s = (server_cpu_s(server) if server else 0.0) - used_s
    wall_s = max(each.end_s for each in found) - min(each.start_s for each in found)
    n_made = n // n_processes * n_processes
    return Row(
        n_made / wall_s,
        sum(each.end_s - each.start_s for each in alone) / n_processes / N_ALONE / 2 * 1000,
        sum(each.cpu_s for each in found) / n_made * 1000,
        used_s / n_made * 1000 if server else None,
        n_made * 2 / sum(each.n_commits for each in found),
    )


def work(job: Job) -> Measured:
    return asyncio.run(judged(job))


async def judged(job: Job) -> Measured:
    """Judgements recorded by callers that each wait for their own."""
    left = iter([uuid4().hex * 2 for _ in range(job.n_judgements)])

    async def call(ledger: Ledger) -> None:
        for key in left:
            attempt_id = await ledger.begin(key, 0, "judge")
            await ledger.finish(attempt_id, reply(key))

    with Ledger(job.address) as ledger:
        ledger.known([])
        writer: Any = ledger._open()  # noqa: SLF001
        await asyncio.sleep(max(0.0, job.start_s - time.monotonic()))
        n_commits, used_s, start_s = writer.n_commits, time.process_time(), time.monotonic()
        await asyncio.gather(*(call(ledger) for _ in range(job.n_callers)))
        return Measured(start_s, time.monotonic(), time.process_time() - used_s, writer.n_commits - n_commits)


def reading(address: str) -> float:
    keys = [uuid4().hex * 2 for _ in range(50_000)]
    with Ledger(address) as ledger:
        started = time.perf_counter()
        ledger.store([reply(key) for key in keys])
        assert ledger.replies(keys).height == len(keys)
        return time.perf_counter() - started


def reply(key: str) -> JudgeReply:
    return JudgeReply(
        key, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text=TEXT, n_input_tokens=1000, n_output_tokens=12
    )


if __name__ == "__main__":
    sys.exit(main())
