"""Shards in other processes: how much of a limit four Dask workers use, what kills cost, and what Prefect costs a judgement.

    python -m benchmarks.runners [--only rate kills overhead] [--runner dask] [--workers 4] [--seconds 60]

`rate`: `salon run` with its shards in worker processes, the ledger on PostgreSQL, one limit of 1,800 requests a minute at the
mock provider. `kills`: the same, and every 5 s a worker is killed -9; the command is given again until it publishes.
`overhead`: CPU of the flow, its workers and the Prefect server for one task run of a stage, divided by 500. All servers are this
command's own, on loopback. Exit code 1 where a number is missed.
"""

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.runner_world import (
    BURST,
    JUDGE,
    PER_MINUTE,
    attempts_cut_off,
    count,
    environment,
    provider,
    start,
    wait,
    worker_pids,
    write_world,
)
from benchmarks.throughput.measuring import said_by
from flows.run.programs import LocalServer, ProgramOptions, answers, free_port
from tests.support.servers.postgres import running_postgres

FROM_S, TO_S = 10, 60  # of a run's seconds, those in which the rate is taken
KILL_EVERY_S = 5.0
N_IDLE = (40, 240)  # task runs of the two runs whose difference is the price of one


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=["rate", "kills", "overhead"], default=["rate", "kills", "overhead"])
    parser.add_argument("--runner", choices=["processes", "dask"], default="dask")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long workers are killed")
    given = parser.parse_args()
    is_met = []
    with TemporaryDirectory() as folder, prefect_server(Path(folder)) as server:
        if set(given.only) - {"overhead"}:
            with running_postgres(is_synced=True) as postgres:
                if "rate" in given.only:
                    is_met.append(rate(Path(folder) / "rate", postgres.new_database(), server, given.runner, given.workers))
                if "kills" in given.only:
                    killed = Path(folder) / "kills"
                    is_met.append(kills(killed, postgres.new_database(), server, given.runner, given.workers, given.seconds))
        if "overhead" in given.only:
            is_met.append(overhead(Path(folder), server))
    return int(not all(is_met))


def rate(folder: Path, ledger: str, server: "Server", runner: str, n_workers: int) -> bool:
    """A run of two thousand requests: what the provider let through from the 10th to the 60th second, and its 429s."""
    with provider(folder, BURST) as url:
        write_world(folder, url, ledger, runner, n_workers, n_samples=PER_MINUTE * (TO_S + 12) // 60 + BURST, shard_size=120)
        process = start(folder, server.url)
        process.communicate()
        stats = said_by(url, "/stats")
    n = sum(n for second, n, _ in stats["by_second"] if FROM_S <= second < TO_S)
    share, share_429 = n / ((TO_S - FROM_S) * PER_MINUTE / 60), stats["n_429"] / max(stats["n_requests"], 1)
    table = Table(
        "replies", "of the allowed rate", "429 %", "while paused", "exit code", title=f"{n_workers} workers of {runner}"
    )
    table.add_row(
        str(stats["n_answers_billed"]), f"{share:.3f}", f"{share_429:.2%}", str(stats["n_to_paused_key"]), str(process.returncode)
    )
    Console().print(table)
    return share >= 0.95 and share_429 <= 0.01 and process.returncode == 0


def kills(folder: Path, ledger: str, server: "Server", runner: str, n_workers: int, seconds: float) -> bool:
    """Workers killed -9 every five seconds; then, by the provider's count and the ledger's, what was lost or paid twice."""
    draws, n_killed, n_commands = random.Random(8), 0, 0
    n_samples = int(PER_MINUTE / 60 * seconds) + BURST
    with provider(folder, BURST) as url:
        write_world(folder, url, ledger, runner, n_workers, n_samples, shard_size=120)
        code, until_s = None, 0.0
        while code != 0 and n_commands < 5:
            n_commands += 1
            process = start(folder, server.url)
            while process.poll() is None:
                if not until_s and said_by(url, "/stats")["n_requests"] >= BURST:
                    until_s = time.monotonic() + seconds
                if time.monotonic() < until_s and (found := worker_pids(process.pid)):
                    os.kill(draws.choice(found), signal.SIGKILL)
                    n_killed += 1
                wait(process, KILL_EVERY_S if until_s else 0.1)
            code = process.returncode
        stats = said_by(url, "/stats")
    n_open, n_replies = attempts_cut_off(ledger), count(ledger, "replies")
    n_twice = stats["n_answers_billed"] - stats["n_items"]
    names = ("killed", "commands", "asked", "stored", "lost", "paid twice", "cut off", "429", "exit code")
    table = Table(*names, title=f"a worker of {runner} killed -9 every {KILL_EVERY_S:g} s for {seconds:g} s")
    n_lost = n_samples - n_replies
    shown = (n_killed, n_commands, n_samples, n_replies, n_lost, n_twice, n_open)
    table.add_row(*map(str, shown), f"{stats['n_429'] / stats['n_requests']:.2%}", str(code))
    Console().print(table)
    return code == 0 and n_lost == 0 and n_twice <= n_open and n_killed > 0


def overhead(folder: Path, server: "Server") -> bool:
    """CPU of one task run for each runner, and a 500th of it."""
    table = Table("runner", "flow ms", "workers ms", "server ms", "a judgement, ms", title="CPU of a task run; shards of 500")
    is_met = True
    for runner in ("local", "processes", "dask"):
        few, many = (idle_run(folder, runner, n, server) for n in N_IDLE)
        each = [(much - little) * 1000 / (N_IDLE[1] - N_IDLE[0]) for little, much in zip(few, many, strict=True)]
        table.add_row(runner, *(f"{ms:.1f}" for ms in each), f"{sum(each) / 500:.3f}")
        is_met &= sum(each) / 500 <= 0.2
    Console().print(table)
    return is_met


def idle_run(folder: Path, runner: str, n: int, server: "Server") -> tuple[float, float, float]:
    """CPU seconds of the flow, its workers and the server in a run of `n` task runs that do nothing, in the folder."""
    before_s = server.cpu_s()
    command = [sys.executable, "-c", f"from benchmarks.runners import be_idle; be_idle({runner!r}, {n})"]
    quiet = {"PREFECT_LOGGING_LEVEL": "CRITICAL"}
    said = subprocess.run(command, cwd=folder, env=environment(server.url) | quiet, stdout=subprocess.PIPE, check=True).stdout
    time.sleep(5)  # the server writes down what it was told
    flow_s, workers_s = json.loads(said.splitlines()[-1])
    return flow_s, workers_s, server.cpu_s() - before_s


def be_idle(runner: str, n: int) -> None:
    """In a process of its own: a flow of `n` shards that do nothing, given what a shard that asks is given."""
    from datetime import date

    from prefect import flow

    from flows.executors.base import ShardCall, stage_task
    from flows.executors.choose import opened_executor
    from rubrics.loading import SHIPPED, load_rubric
    from schemas.benchmark.file import Benchmark, Limits
    from schemas.records import PlannedPart
    from tasks.context import StageContext
    from tasks.judge.shard import JudgeShard
    from tasks.lake.reading import Lake

    idle = stage_task("idle", "ask {shard.part.judge_model}, {shard.part.rubric_id}, shard {shard.part.index}")(do_nothing)
    rubric = load_rubric(SHIPPED / "alignment")
    settings = {"name": "idle", "sources": [{"reader": "manifest", "path": "m"}], "rubrics": [{"id": "alignment"}]}
    file = Benchmark.model_validate(settings | {"judges": [{"model": JUDGE}], "runner": runner, "workers": {"n": 2}})
    run = StageContext(file, {rubric.id: rubric}, Lake(Path("lake")), "sqlite:///unused.db", date(2026, 1, 1))
    run = run.having(dataset_id="d" * 64, plan_id="e" * 64)

    def idle_flow() -> int:
        with opened_executor(run) as executor:
            shards = (JudgeShard(PlannedPart(index, index, rubric.id, JUDGE, 500), Limits()) for index in range(n))
            return sum(executor.run(ShardCall(idle, run, shard) for shard in shards))

    assert flow(name="idle")(idle_flow)() == n
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps([own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime]))


def do_nothing(context: Any, shard: Any) -> int:  # noqa: ARG001
    """What a shard does here."""
    return 1


@dataclass(frozen=True)
class Server:
    """A Prefect server of our own."""

    url: str
    pid: int

    def cpu_s(self) -> float:
        return sum(psutil.Process(self.pid).cpu_times()[:4])


@contextmanager
def prefect_server(folder: Path) -> Iterator[Server]:
    """A Prefect server on a free port, its database in the folder."""
    with ExitStack() as stack:
        local = stack.enter_context(LocalServer(folder / "prefect"))
        port = free_port(0)
        command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
        own = {"PREFECT_HOME": str(folder / "prefect"), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
        own["PREFECT_SERVER_UI_STATIC_DIRECTORY"] = str(folder / "prefect" / "ui")
        health = f"http://127.0.0.1:{port}/api/health"
        program = local.start("server", command, lambda: answers(health), ProgramOptions(own))
        yield Server(f"http://127.0.0.1:{port}/api", program.process.pid)


if __name__ == "__main__":
    sys.exit(main())
