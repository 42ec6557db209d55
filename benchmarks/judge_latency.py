"""Salon's judge stage beside a script on AsyncOpenAI with aiohttp, at a judge that takes its time: in flight, connections, CPU.

    python -m benchmarks.judge_latency [--judgements 4000] [--latencies 0 0.6 3] [--allowed 400 1000] [--only salon]

The server is the mock provider in a process of its own; an answer takes `latency` seconds, log-normal, give or take a fifth.
Pictures are of 3 KB: what is measured is waiting, not sending. The two take turns. `in flight` is the server's own count, looked
at ten times a second: its mean between the ramp's end (the first time it stands at 95 % of the most seen) and the last request
begun. `ideal` is judgements x latency / allowed. A script's CPU is that of its process, less that of a run with one item.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.throughput.material import INSTRUCTIONS, MODEL, make_pictures, write_benchmark, write_items
from benchmarks.throughput.measuring import measure, said_by
from demo.running import running_judge

SAMPLE_S = 0.1
REPOSITORY = Path(__file__).parents[1]
SIGMA = 0.1
"""Of the latency's logarithm: 95 of 100 answers come within a fifth of the median."""
SCENARIO = """\
[answer]
mode = "canned"
text = "Reasoning: a canned answer.\\nScore: 3"
prompt_tokens = 1000
completion_tokens = 12
[stats]
items = "sample"
[latency]
median_s = {median_s}
sigma = {sigma}
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """One run as the server saw it, and the client's CPU."""

    who: str
    n: int
    wall_s: float
    cpu_s: float
    n_connections: int
    in_flight: Sequence[tuple[float, int, int]]  # (seconds, in flight, requests begun)

    @property
    def steady(self) -> float:
        """Mean in flight after the ramp and before the tail."""
        most = max(n for _, n, _ in self.in_flight)
        start = next(index for index, (_, n, _) in enumerate(self.in_flight) if n >= 0.95 * most)
        held = [n for _, n, begun in self.in_flight[start:] if begun < self.n] or [most]
        return mean(held)

    def ramp_s(self, allowed: int) -> float:
        """Seconds until 95 % of what is allowed are in flight; infinite where they never are."""
        return next((at for at, n, _ in self.in_flight if n >= 0.95 * allowed), float("inf"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=4000)
    parser.add_argument("--latencies", type=float, nargs="+", default=[0.0, 0.6, 3.0])
    parser.add_argument("--allowed", type=int, nargs="+", default=[400, 1000])
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--only", choices=["salon", "script"])
    parser.add_argument("--trace", action="store_true", help="print what was in flight, second by second")
    given = parser.parse_args()
    print("who     latency  allowed   wall s  x ideal  ramp s  in flight  of allowed  connections  CPU ms each")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_pictures(folder, given.judgements, is_small=True)
        started = {who: _script_start_s(folder) if who == "script" else 0.0 for who in ("script", "salon")}
        for latency_s in given.latencies:
            scenario = folder / "scenario.toml"
            scenario.write_text(SCENARIO.format(median_s=latency_s, sigma=SIGMA), encoding="utf-8")
            with running_judge(scenario) as base_url:
                for allowed in given.allowed:
                    for _ in range(given.repetitions):
                        for who in [given.only] if given.only else ["script", "salon"]:
                            seen = _run(who, folder, base_url, given.judgements, allowed)
                            _say(seen, latency_s, allowed, started[who])
                            if given.trace:
                                print("   ", " ".join(str(n) for _, n, _ in seen.in_flight[:: int(1 / SAMPLE_S)]))
    return 0


def _say(seen: Seen, latency_s: float, allowed: int, start_s: float) -> None:
    ideal_s = seen.n * latency_s / allowed
    print(
        f"{seen.who:8}{latency_s:7.1f}{allowed:9}{seen.wall_s:9.1f}{seen.wall_s / ideal_s if ideal_s else float('nan'):9.2f}"
        f"{seen.ramp_s(allowed):8.1f}{seen.steady:11.0f}{seen.steady / allowed:12.2f}{seen.n_connections:13}"
        f"{(seen.cpu_s - start_s) / seen.n * 1000:13.2f}",
        flush=True,
    )


def _run(who: str, folder: Path, base_url: str, n: int, allowed: int) -> Seen:
    """One run in a folder of its own, looked at from the server's side meanwhile."""
    output = Path(tempfile.mkdtemp(dir=folder))
    items = write_items(folder, n)
    said_by(base_url, "/stats/reset", "POST")
    watch = _Watch(base_url)
    watch.start()
    try:
        if who == "script":
            usage = measure(_script(items, base_url, allowed, output), output, {})
            cpu_s = usage.client_cpu_s
        else:
            file, used = write_benchmark(output, items, base_url, allowed), output / "used.json"
            command = [sys.executable, "-m", "benchmarks.throughput.judging_alone", str(file), str(used)]
            subprocess.run(command, check=True, cwd=REPOSITORY)
            cpu_s = json.loads(used.read_text(encoding="utf-8"))["cpu_s"]
    finally:
        watch.is_over.set()
        watch.join()
        shutil.rmtree(output)
    said = said_by(base_url, "/stats")
    if said["by_status"].get("200", 0) < n:
        raise RuntimeError(f"the server's answers: {said['by_status']}")
    began_s = said["first_request_s"]
    rows = [(at_s - began_s, *counts) for at_s, *counts in watch.rows if began_s <= at_s <= said["last_answer_s"]]
    found = [(float(at_s), int(in_flight), int(begun)) for at_s, in_flight, begun in rows]
    return Seen(who, n, said["last_answer_s"] - began_s, cpu_s, said["n_connections"], found or [(0.0, 1, 0)])


def _script(items: Path, base_url: str, allowed: int, output: Path) -> list[str]:
    script = REPOSITORY / "benchmarks" / "throughput" / "openai_script.py"
    return [sys.executable, str(script), str(items), str(INSTRUCTIONS), base_url, MODEL, str(allowed), str(output), "--aiohttp"]


def _script_start_s(folder: Path) -> float:
    """CPU seconds of a script that asks once."""
    with tempfile.TemporaryDirectory(dir=folder) as name, running_judge(REPOSITORY / "docs/examples/scenarios/plain.toml") as url:
        return measure(_script(write_items(folder, 1), url, 1, Path(name)), Path(name), {}).client_cpu_s


class _Watch(threading.Thread):
    """Looks at what is in flight until it is over."""

    def __init__(self, base_url: str) -> None:
        super().__init__(daemon=True)
        self.is_over, self.rows, self._base_url = threading.Event(), list[tuple[float, int, int]](), base_url

    def run(self) -> None:
        while not self.is_over.wait(SAMPLE_S):
            said = said_by(self._base_url, "/stats")
            self.rows.append((time.time(), said["n_in_flight"], said["n_requests"]))


if __name__ == "__main__":
    sys.exit(main())
