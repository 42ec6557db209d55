"""One worker process beside two, and memory at 400 in flight with ten times the items: what the judging itself scales like.

    python -m benchmarks.throughput.several [--judgements 4000] [--repetitions 3] [--memory-items 800]

Ingest and plan are done before and not counted. Of the repetitions those with the least CPU count.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.throughput.material import make_pictures, write_benchmark, write_items
from benchmarks.throughput.workers import Worked, work
from demo.running import running_judge

PLAIN = Path(__file__).parents[2] / "docs" / "examples" / "scenarios" / "plain.toml"
N_AT_ONCE, N_FOR_MEMORY = 200, 400


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=4000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--memory-items", type=int, default=800, help="and ten times as many; 0 leaves memory out")
    given = parser.parse_args()
    console = Console(soft_wrap=True)
    with tempfile.TemporaryDirectory() as name, running_judge(PLAIN) as base_url:
        folder = Path(name)
        make_pictures(folder, max(given.judgements, given.memory_items * 10))
        sizes = (given.judgements // 4, given.judgements)
        cpu_s: dict[tuple[int, int], list[float]] = {(k, n): [] for k in (1, 2) for n in sizes}
        for _ in range(given.repetitions):
            for (n_processes, n), found in cpu_s.items():
                found.append(sum(each.cpu_s for each in judged(folder, base_url, n, n_processes, N_AT_ONCE)))
        one, two = ((sizes[1] - sizes[0]) / (min(cpu_s[k, sizes[1]]) - min(cpu_s[k, sizes[0]])) for k in (1, 2))
        console.print(
            f"Judgements a second of client CPU: {one:.0f} with one worker process, {two:.0f} with two ({two / one:.2f} of it), "
            f"{N_AT_ONCE} at once in all; a worker's start is not counted (slope between {sizes[0]} and {sizes[1]} judgements)."
        )
        for n in (given.memory_items, given.memory_items * 10) if given.memory_items else ():
            (worker,) = judged(folder, base_url, n, 1, N_FOR_MEMORY)
            above = (worker.peak_bytes - worker.idle_bytes) / 1e6
            console.print(
                f"{n} items, {N_FOR_MEMORY} in flight: peak {above:.0f} MB above the idle {worker.idle_bytes / 1e6:.0f} MB."
            )
    return 0


def judged(folder: Path, base_url: str, n: int, n_processes: int, n_at_once: int) -> list[Worked]:
    """The first n items judged from nothing, in a lake that is gone afterwards."""
    output = Path(tempfile.mkdtemp(dir=folder))
    try:
        benchmark = write_benchmark(output, write_items(folder, n), base_url, n_at_once)
        workers = work(benchmark, n_processes, n_at_once)
    finally:
        shutil.rmtree(output)
    n_answered = sum(each.n_answered for each in workers)
    if n_answered != n:
        raise RuntimeError(f"{n_answered} of {n} were answered")
    return workers


if __name__ == "__main__":
    sys.exit(main())
