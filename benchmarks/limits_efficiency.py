"""How much of a provider's limits is used, and at how many 429s: Salon's allowance and client against `salon serve-judge`.

`python -m benchmarks.limits_efficiency [--only NAME ...]` (about eight minutes). The provider is a process of its own, each
client another; clients of one row share one ledger. Exit code 1 where a number is missed. What is measured is the
provider's own count: GET /stats and its `by_second`.
"""

import argparse
import asyncio
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.throughput.measuring import said_by
from demo.running import running_judge
from schemas.benchmark.judges import Judge
from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.exchange import NOTHING_SAID
from tasks.judge.provider.openai.client import OpenAIProvider
from tasks.judge.rate_limit.concurrency import AdaptiveConcurrency
from tasks.judge.rate_limit.limiter import RateLimiter
from tasks.judge.rate_limit.store import limiter_id
from tasks.ledger.ledger import Ledger

MODEL = "gpt-4.1-2025-04-14"
N_INPUT, N_OUTPUT = 900, 100
SCENARIO = """
[answer]
mode = "canned"
text = "Score: 3"
prompt_tokens = {n_input}
completion_tokens = {n_output}
[[models]]
id = "{model}"
[latency]
median_s = {latency_s}
sigma = 0.4
[limits]
{limits}
{changes}
"""
BUCKET = "requests_per_minute = 1800\nburst_requests = 30"
TOKENS = "tokens_per_minute = 1_800_000\nburst_tokens = 30_000"
WINDOW = 'kind = "window"\nrequests_per_minute = 1800'
HALF = "[[changes]]\nat_s = 30\nrequests_per_minute = 900"
STEADY = (10, 70)
"""Seconds of a long run in which the rate is taken."""


@dataclass(frozen=True)
class Case:
    name: str
    limits: str
    n_processes: int = 1
    n_items: int | None = None  # None: for 71 s
    runs_before: int = 0  # on the same ledger: the limits are then known
    least_share: float = 0.95
    most_ratio: float | None = None  # of the ideal time
    changes: str = ""
    given: tuple[int | None, int | None] = (None, None)
    latency_s: float = 0.1


CASES = (
    Case("600 items, header only", BUCKET, n_items=600, most_ratio=1.10),
    Case("600 items, burst known", BUCKET, n_items=600, most_ratio=1.05, runs_before=1),
    Case("600 items, limit in the file", BUCKET, n_items=600, most_ratio=1.05, given=(1800, None)),
    Case("1 process", BUCKET),
    Case("4 processes", BUCKET, n_processes=4),
    Case("4 processes, replies take 3 s", BUCKET, n_processes=4, latency_s=3.0),
    Case("4 processes, tokens a minute", TOKENS, n_processes=4),
    Case("4 processes, windows of 60 s", WINDOW, n_processes=4),
    Case("4 processes, halved after 30 s", BUCKET, n_processes=4, changes=HALF),
)


@dataclass(frozen=True)
class Job:
    base_url: str
    ledger: str
    case: Case
    n_items: int | None
    first_item: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="cases whose names hold one of these")
    parser.add_argument("--concurrency", type=int, default=64)
    arguments = parser.parse_args()
    table = Table("case", "replies", "429", "429 %", "while paused", "time / ideal", "of the rate", "CPU ms", "", title="limits")
    n_missed = 0
    for case in CASES:
        if arguments.only and not any(name in case.name for name in arguments.only):
            continue
        row, is_met = measure(case, arguments.concurrency)
        n_missed += not is_met
        table.add_row(case.name, *row, "ok" if is_met else "MISSED")
    Console(width=130).print(table)
    return int(n_missed > 0)


def measure(case: Case, concurrency: int) -> tuple[list[str], bool]:
    with TemporaryDirectory() as folder, provider(case, Path(folder)) as base_url:
        ledger = f"sqlite:///{folder}/ledger.db"
        for number in range(case.runs_before + 1):
            time.sleep(3 * number)  # the provider's bucket is full again
            said_by(base_url, "/stats/reset", "POST")
            cpu_s = run(base_url, ledger, case, number, concurrency)
        stats = said_by(base_url, "/stats")
    n_429, n_sent = stats["n_429"], stats["n_requests"]
    share_429 = n_429 / n_sent
    ratio = rate = None
    if case.n_items is not None:
        ideal_s = (case.n_items - 30) / 30 + case.latency_s
        ratio = (stats["last_answer_s"] - stats["first_request_s"]) / ideal_s
    else:
        rate = used_share(stats["by_second"], case)
    is_met = share_429 <= 0.01 and not stats["n_to_paused_key"]
    is_met &= ratio is None or case.most_ratio is None or ratio <= case.most_ratio
    is_met &= rate is None or rate >= case.least_share
    shown = [str(n_sent - n_429), str(n_429), f"{share_429:.2%}", str(stats["n_to_paused_key"])]
    shown += [f"{ratio:.3f}" if ratio else "", f"{rate:.3f}" if rate else "", f"{cpu_s * 1000 / n_sent:.2f}"]
    return shown, is_met


def used_share(by_second: list[list[int]], case: Case) -> float:
    """What was let through from the 10th to the 70th second, as a share of what was allowed (halved: from 10 s after it)."""
    start_s, rate = (40, 15) if case.changes else (STEADY[0], 30)
    n = sum(n for second, n, _ in by_second if start_s <= second < STEADY[1])
    return n / ((STEADY[1] - start_s) * rate)


def provider(case: Case, folder: Path) -> AbstractContextManager[str]:
    path = folder / "scenario.toml"
    filled = {"n_input": N_INPUT, "n_output": N_OUTPUT, "model": MODEL, "latency_s": case.latency_s}
    path.write_text(SCENARIO.format(**filled, limits=case.limits, changes=case.changes), encoding="utf-8")
    return running_judge(path)


def run(base_url: str, ledger: str, case: Case, number: int, concurrency: int) -> float:
    """Run the processes of a case to their end; CPU seconds of all of them, start-up left out."""
    context = multiprocessing.get_context("spawn")
    with Ledger(ledger) as opened:
        opened.known([])  # made before the processes meet on it
    share = None if case.n_items is None else case.n_items // case.n_processes
    jobs = [Job(base_url, ledger, case, share, (number * 100 + index) * 1_000_000) for index in range(case.n_processes)]
    results: Any = context.SimpleQueue()
    start = context.Barrier(case.n_processes)
    processes = [context.Process(target=work, args=(job, concurrency, start, results)) for job in jobs]
    for process in processes:
        process.start()
    cpu_s = sum(results.get() for _ in processes)
    for process in processes:
        process.join()
    return cpu_s


def work(job: Job, concurrency: int, start: Any, results: Any) -> None:
    start.wait(120)
    before = resource.getrusage(resource.RUSAGE_SELF)
    asyncio.run(ask_all(job, concurrency))
    after = resource.getrusage(resource.RUSAGE_SELF)
    results.put(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


async def ask_all(job: Job, n_workers: int) -> None:
    client = OpenAIProvider(Judge(model=MODEL, base_url=job.base_url, api_key_env="SALON_NO_KEY"), n_workers, 60.0)
    stopping = asyncio.Event()
    with Ledger(job.ledger) as ledger:
        limiter = RateLimiter(ledger, limiter_id(client.endpoint, "", MODEL), *job.case.given)
        concurrency = AdaptiveConcurrency(n_workers)
        items = iter(range(job.first_item, job.first_item + (job.n_items or 10**6)))
        workers = [asyncio.create_task(ask_some(items, client, limiter, concurrency, stopping)) for _ in range(n_workers)]
        if job.n_items is None:
            await asyncio.sleep(STEADY[1] + 1)
            stopping.set()
        await asyncio.gather(*workers)
    await client.close()


async def ask_some(
    items: Iterator[int],
    client: OpenAIProvider,
    limiter: RateLimiter,
    concurrency: AdaptiveConcurrency,
    stopping: asyncio.Event,
) -> None:
    """One worker, as the engine's are: a place, the rate limiter, the request, what was heard."""
    n_tokens = N_INPUT + N_OUTPUT
    for item in items:
        asked = [{"role": "user", "content": str(item)}]
        status = ReplyStatus.RATE_LIMITED
        while status == ReplyStatus.RATE_LIMITED:
            if not await concurrency.acquire(stopping):
                return
            await limiter.wait(n_tokens, stopping)
            if stopping.is_set():
                concurrency.release(None, ReplyStatus.NOT_ASKED)
                return
            answer = await client.ask(client.payload({"max_tokens": N_OUTPUT}, asked, []))
            status = answer.status
            if answer.limits != NOTHING_SAID or status == ReplyStatus.ANSWERED:
                limiter.hear(answer.limits)
            concurrency.release(answer.latency_s, status)
            if status == ReplyStatus.RATE_LIMITED:
                await limiter.pause(answer.retry_after_s or 1.0)


if __name__ == "__main__":
    sys.exit(main())
