"""The ledger on SQLite beside the ledger on PostgreSQL: judgements a second, and what they cost this process.

    python -m benchmarks.ledger_throughput [--judgements 4000] [--repetitions 3] [--postgresql URL]

Each judgement waits for two commits: its attempt before it would be sent, its reply after. Both databases sync every commit.
Without `--postgresql` a private server is started where its programs are installed. Of the repetitions the best counts.
"""

import argparse
import asyncio
import resource
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from schemas.records import JudgeReply
from schemas.statuses import ReplyOrigin, ReplyStatus
from tasks.judge.ledger import Ledger
from tests.judge.postgres_support import running_postgres, why_not

TEXT = "Reasoning: a canned answer.\nScore: 3"


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: judgements a second, milliseconds of CPU of this process for each, judgements a commit (two waits each)."""

    per_s: float
    cpu_ms: float
    per_commit: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=4000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 50, 200, 400], help="how many wait at once")
    parser.add_argument("--postgresql", metavar="URL", help="postgresql+psycopg://…, a database that may be filled")
    given = parser.parse_args()
    console = Console()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        databases: dict[str, Callable[[], str]] = {"SQLite": lambda: f"sqlite:///{folder / uuid4().hex}.db"}
        if given.postgresql:
            databases["PostgreSQL"] = lambda: given.postgresql
        elif (reason := why_not()) is None:
            databases["PostgreSQL"] = stack.enter_context(running_postgres(is_synced=True)).new_database
        else:
            console.print(f"PostgreSQL is left out: {reason}")
        table = Table(title="judgements/s · CPU ms each · judgements a commit", title_justify="left")
        for heading in ("at once", *databases):
            table.add_column(heading, justify="right")
        for n_callers in given.callers:
            n = given.judgements if n_callers > 1 else given.judgements // 20
            best: dict[str, Measured | None] = dict.fromkeys(databases)
            for _ in range(given.repetitions):
                for name, new in databases.items():
                    found = asyncio.run(judged(new(), n, n_callers))
                    before = best[name]
                    best[name] = found if before is None or found.per_s > before.per_s else before
            shown = (f"{each.per_s:,.0f} · {each.cpu_ms:.3f} · {each.per_commit:.1f}" for each in best.values() if each)
            table.add_row(str(n_callers), *shown)
        console.print(table)
        for name, new in databases.items():
            console.print(f"{name}: {reading(new()):.1f} s to store 50,000 replies at once and read them back")
    return 0


async def judged(address: str, n: int, n_callers: int) -> Measured:
    """n judgements recorded by n_callers that each wait for their own."""
    left = iter([uuid4().hex * 2 for _ in range(n)])

    async def call(ledger: Ledger) -> None:
        for key in left:
            attempt_id = await ledger.begin(key, 0, "judge")
            await ledger.finish(attempt_id, reply(key))

    with Ledger(address) as ledger:
        ledger.known([])  # opened, and its tables made
        n_commits, cpu_s, started = ledger._open().n_commits, _cpu_s(), time.perf_counter()  # noqa: SLF001
        await asyncio.gather(*(call(ledger) for _ in range(n_callers)))
        wall_s, cpu_s = time.perf_counter() - started, _cpu_s() - cpu_s
        return Measured(n / wall_s, cpu_s / n * 1000, n / (ledger._open().n_commits - n_commits))  # noqa: SLF001


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


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
