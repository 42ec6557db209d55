"""Worker processes that judge shards of one plan against one ledger, each as a Prefect worker would: CPU and memory of each.

Not the whole `run`: ingest and plan are done before, nothing is published after.
"""

import multiprocessing
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from flows.executors.local import n_asking
from flows.run import stages
from flows.run.context import RunContext, open_run
from schemas.identities import RunIds
from schemas.records import PlannedPart
from tasks.judge.runtime import LOOP
from tasks.judge.shard import JudgeShard, judge_shard


@dataclass(frozen=True, slots=True)
class Worked:
    """What one worker did and used; imports and the opening of the plan are before its count."""

    n_answered: int
    cpu_s: float
    wall_s: float
    idle_bytes: int
    peak_bytes: int


def prepare(benchmark: Path) -> tuple[RunIds, tuple[PlannedPart, ...]]:
    """Ingest and plan in this process: what was made, and the plan's parts."""
    run = RunContext.of(open_run(benchmark))
    run = run.having(dataset_id=stages.ingest(run).dataset_id)
    planned = stages.plan(run)
    return run.having(plan_id=planned.plan_id).ids, planned.parts


def work(benchmark: Path, n_processes: int, n_at_once: int) -> list[Worked]:
    """Judge the plan's shards with n processes, n_at_once requests in flight in all."""
    ids, parts = prepare(benchmark)
    shares = [[part for index, part in enumerate(parts) if index % n_processes == number] for number in range(n_processes)]
    with ProcessPoolExecutor(n_processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        each = -(-n_at_once // n_processes)
        return list(pool.map(_worker, *zip(*((benchmark, ids, share, each) for share in shares), strict=True)))


def _worker(benchmark: Path, ids: RunIds, parts: Sequence[PlannedPart], n_at_once: int) -> Worked:
    """As many shards at a time as a run has."""
    run = replace(open_run(benchmark), ids=ids)
    limits = run.benchmark.limits.model_copy(update={"concurrency": n_at_once})
    n_threads = n_asking(limits)
    idle_bytes = _reset_peak()
    cpu_s, started = time.process_time(), time.perf_counter()
    waiting, answered = list(reversed(parts)), [0]
    lock = threading.Lock()

    def judge() -> None:
        while waiting:
            with lock:
                part = waiting.pop() if waiting else None
            if part is not None:
                n = judge_shard(run, JudgeShard(part, limits)).n_answered
                with lock:
                    answered[0] += n

    threads = [threading.Thread(target=judge) for _ in range(n_threads)]
    with LOOP.held():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return Worked(answered[0], time.process_time() - cpu_s, time.perf_counter() - started, idle_bytes, _status_bytes("VmHWM"))


def _reset_peak() -> int:
    """Resident bytes now; the peak counts anew from here (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return _status_bytes("VmRSS")


def _status_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
