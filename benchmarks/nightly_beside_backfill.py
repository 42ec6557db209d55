"""A nightly and a backfill at once on one limit: how much slower the night gets, and how much of the limit is used.

`python -m benchmarks.nightly_beside_backfill` (about two minutes; --ledger takes a PostgreSQL database). The provider counts
requests in windows of 60 s; night and backfill are processes of their own that share lake and ledger, first the night alone, on a
lake of its own, then both. Moments are those of the ledger's attempts. Exit code 1 where a number is missed.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from rich.console import Console
from rich.table import Table
from sqlalchemy import select

from benchmarks.throughput.measuring import said_by
from demo.running import running_judge
from flows.backfill import AT_ONCE, run_backfill
from flows.executors.base import Executor, ShardCall
from flows.night_opening import open_night
from flows.nightly import run_night
from flows.observability.progress import Reporter
from flows.partitions.ends import check_failures
from flows.partitions.plan import open_backfill, plan_backfill
from flows.run.context import RunContext
from schemas.tables.stored import JUDGEMENTS
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import ATTEMPTS
from tasks.publish.reading import find_publication

NIGHT = date(2026, 3, 1)
PER_MINUTE = 1800
N_CHECKPOINTS, N_EACH, N_NIGHT = 20, 75, 360
N_BEFORE_THE_NIGHT = 300  # requests the backfill has sent when the night begins
MOST_GROWTH, LEAST_SHARE = 0.10, 0.95
SCENARIO = """
[answer]
mode = "canned"
text = "Reasoning: drawn as asked.\\nScore: 3"
prompt_tokens = 900
completion_tokens = 20
[latency]
median_s = {latency_s}
sigma = 0.4
[limits]
kind = "window"
requests_per_minute = {per_minute}
"""
BENCHMARK = """
name = "beside"
ledger = "{ledger}"
[[sources]]
reader = "manifest"
path = "{made}/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "alignment"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
mode = "online"
[limits]
requests_per_minute = {per_minute}
[nightly]
schedule = "0 2 * * *"
n_earlier = 0
"""


@dataclass(frozen=True)
class Asked:
    """What a process asked: when each attempt was begun and ended, seconds of one clock; wall and CPU seconds of it all."""

    attempts: list[tuple[float, float]]
    wall_s: float
    cpu_s: float

    @property
    def asking_s(self) -> float:
        """From the first request to the last reply."""
        return max(end for _, end in self.attempts) - self.attempts[0][0]


def make_world(folder: Path) -> None:
    """Twenty past checkpoints and the newest, of one-coloured pictures: every request is another."""
    for number in range(N_CHECKPOINTS + 1):
        made = folder / "made" / "m" / f"step-{number}"
        made.mkdir(parents=True)
        rows = []
        for sample in range(N_NIGHT if number == N_CHECKPOINTS else N_EACH):
            Image.new("RGB", (16, 16), (number, sample % 256, sample // 256)).save(made / f"{sample}.png")
            rows.append({"image": f"{sample}.png", "prompt": f"picture {sample}"})
        (made / "manifest.jsonl").write_text("\n".join(map(json.dumps, rows)))


def write_benchmark(folder: Path, name: str, url: str, ledger: str) -> Path:
    """The benchmark file in a folder of its own, so that its lake is too."""
    (folder / name).mkdir()
    filled = BENCHMARK.format(url=url, ledger=ledger, made=folder / "made", per_minute=PER_MINUTE)
    (folder / name / "b.toml").write_text(filled)
    return folder / name / "b.toml"


class Threads(Executor):
    """As many shards at a time as there are checkpoints asked."""

    def __init__(self, n_at_once: int) -> None:
        self.n_at_once = n_at_once

    def run(self, calls: Iterable[ShardCall[Any, Any]]) -> Iterator[Any]:
        with ThreadPoolExecutor(self.n_at_once) as pool:
            yield from pool.map(lambda call: call.task.work(call.context, call.shard), calls)


def ask_night(file: Path, start: Any, results: Any) -> None:
    """The night, once `start` is set; what it asked goes into `results`."""
    run = open_night(file, NIGHT)
    start.wait()
    began_s = time.monotonic()
    summary = run_night(RunContext.of(run))
    wall_s = time.monotonic() - began_s
    plan_id = find_publication(run.lake.root, summary.publication_id).provenance()["identities"]["plan_id"]
    keys = set(run.lake.scan(JUDGEMENTS, plan_id).collect()["request_key"])
    results.put(("night", Asked(attempts(run.ledger_url, keys), wall_s, time.process_time())))


def ask_backfill(file: Path, start: Any, results: Any) -> None:
    """The twenty checkpoints. Planned before `start`, as all is that a backfill does before it asks."""
    run = open_backfill(file, NIGHT)
    planned = plan_backfill(run, [f"step-{number}" for number in range(N_CHECKPOINTS)], None, Reporter())
    results.put(("planned", len(planned.open)))
    start.wait()
    began_s = time.monotonic()
    check_failures(run_backfill(RunContext.of(run, Threads(AT_ONCE)), planned))
    wall_s = time.monotonic() - began_s
    ids = [one.plan.plan_id for one in planned.open]
    keys = {key for plan_id in ids for key in run.lake.scan(JUDGEMENTS, plan_id).collect()["request_key"]}
    results.put(("backfill", Asked(attempts(run.ledger_url, keys), wall_s, time.process_time())))


def attempts(ledger_url: str, keys: set[str]) -> list[tuple[float, float]]:
    """When the attempts of these requests began and ended, in order."""
    columns = select(ATTEMPTS.c.request_key, ATTEMPTS.c.started_at_us, ATTEMPTS.c.ended_at_us)
    with Ledger(ledger_url) as ledger:
        rows = ledger.read(lambda connection: connection.execute(columns).all())
    return sorted((start / 1e6, end / 1e6) for key, start, end in rows if key in keys and end is not None)


def measure(folder: Path, url: str, ledger: str | None) -> tuple[Asked, Asked, Asked, dict[str, Any]]:
    """The night alone, the night beside the backfill, the backfill, and what the provider counted of the last two."""
    context = multiprocessing.get_context("spawn")
    found: dict[str, Any] = {}
    alone = write_benchmark(folder, "alone", url, f"sqlite:///{folder}/alone/ledger.db")
    results, night_may = context.Queue(), context.Event()
    night_may.set()
    _run(context, ask_night, alone, night_may, results, found, "night")
    by_itself = found.pop("night")
    both = write_benchmark(folder, "both", url, ledger or f"sqlite:///{folder}/both/ledger.db")
    night_may, backfill_may = context.Event(), context.Event()
    filling = context.Process(target=ask_backfill, args=(both, backfill_may, results), daemon=True)
    filling.start()
    _until("planned", results, found)
    asking = context.Process(target=ask_night, args=(both, night_may, results), daemon=True)
    asking.start()
    time.sleep(5)  # its libraries are loaded by then
    said_by(url, "/stats/reset", "POST")
    backfill_may.set()
    while said_by(url, "/stats")["n_requests"] < N_BEFORE_THE_NIGHT:
        time.sleep(0.05)
    night_may.set()
    _until("night", results, found)
    _until("backfill", results, found)
    filling.join()
    asking.join()
    return by_itself, found["night"], found["backfill"], said_by(url, "/stats")


def _run(context: Any, target: Any, file: Path, start: Any, results: Any, found: dict[str, Any], name: str) -> None:
    process = context.Process(target=target, args=(file, start, results), daemon=True)
    process.start()
    _until(name, results, found)
    process.join()


def _until(name: str, results: Any, found: dict[str, Any]) -> None:
    while name not in found:
        said, value = results.get(timeout=300)
        found[said] = value


def used_share(begun_s: list[float]) -> float:
    """What was sent from the first to the last request, as a share of what was allowed."""
    return (len(begun_s) - 1) / (PER_MINUTE / 60 * (begun_s[-1] - begun_s[0]))


def idle(begun_s: list[float], least_s: float = 0.25) -> list[tuple[float, float]]:
    """(when, how long) nothing was sent for longer than `least_s`, in seconds since the first request."""
    return [(before - begun_s[0], after - before) for before, after in pairwise(begun_s) if after - before > least_s]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledger", help="a PostgreSQL database for night and backfill together; default: SQLite")
    parser.add_argument("--latency-s", type=float, default=0.5, help="the provider's median latency")
    arguments = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        make_world(folder)
        (folder / "scenario.toml").write_text(SCENARIO.format(latency_s=arguments.latency_s, per_minute=PER_MINUTE))
        with running_judge(folder / "scenario.toml") as url:
            alone, night, backfill, stats = measure(folder, url, arguments.ledger)
    begun_s = sorted(start for start, _ in [*night.attempts, *backfill.attempts])
    share, growth = used_share(begun_s), night.asking_s / alone.asking_s - 1
    n_twice = sum(n for times, n in stats["n_items_by_times_billed"].items() if times != "1")
    night_s = night.attempts[0][0] - begun_s[0], night.attempts[-1][0] - begun_s[0]
    table = Table("what", "found", "asked", box=None, title=f"{len(begun_s)} requests, {PER_MINUTE} a minute")
    table.add_row("the night's asking, alone and beside", f"{alone.asking_s:.2f} s, {night.asking_s:.2f} s", "")
    table.add_row("it grows by", f"{growth:+.1%}", f"≤ {MOST_GROWTH:.0%}")
    table.add_row("the whole night, alone and beside", f"{alone.wall_s:.2f} s, {night.wall_s:.2f} s", "")
    table.add_row("share of the limit used, first to last request", f"{share:.1%}", f"≥ {LEAST_SHARE:.0%}")
    table.add_row("over", f"{begun_s[-1] - begun_s[0]:.1f} s; the night's requests {night_s[0]:.1f} s to {night_s[1]:.1f} s", "")
    pauses = ", ".join(f"{long_s:.2f} s at {at_s:.1f}" for at_s, long_s in idle(begun_s))
    table.add_row("nothing sent for more than 0.25 s", pauses or "never", "")
    table.add_row("429", str(stats["n_429"]), "")
    table.add_row("bought twice", str(n_twice), "0")
    table.add_row("CPU of night and backfill", f"{night.cpu_s:.1f} s, {backfill.cpu_s:.1f} s", "")
    Console(width=130).print(table)
    return int(growth > MOST_GROWTH or share < LEAST_SHARE or n_twice > 0)


if __name__ == "__main__":
    sys.exit(main())
