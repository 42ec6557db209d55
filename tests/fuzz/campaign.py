"""The fuzzer's long form, `make fuzz`: every surface for so many seconds of CPU, in a process of its own. Short: test_fuzz.py.

    python -m tests.fuzz.campaign --seconds 10 [--inputs 1000000] [--seed 1] [--only "reply"]

A line for each surface: inputs, the slowest one's CPU seconds and the memory above the beginning, held against
schemas/input_budget.py, and each kind of fault with the steps that show it. Exit code 1 where there is one. Grown inputs first: a
seed's pieces repeated to MAX_BYTES.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from schemas.input_budget import TABLE
from tests.fuzz.mutating import MAX_BYTES, Step, mutated
from tests.fuzz.stored import COMMANDS, SPOILED, surface
from tests.fuzz.surface import Surface, fault_of
from tests.fuzz.surfaces import SURFACES

N_STEPS, N_LINES = 5, 20_000


def drawn(draw: random.Random) -> tuple[int, list[Step]]:
    """Which seed, and what becomes of it."""
    steps = [_step(draw) for _ in range(draw.randint(1, N_STEPS))]
    return draw.getrandbits(8), steps


def _step(draw: random.Random) -> Step:
    return draw.getrandbits(20), draw.getrandbits(20), draw.getrandbits(20), draw.getrandbits(20)


def shortened(attacked: Surface, which: int, steps: list[Step], folder: Path) -> list[Step]:
    """The steps that are needed for the same kind of fault, one after the other left out."""
    kind = type(fault_of(attacked, attacked.mend(mutated(attacked.seeds, which, steps)), folder))
    for place in reversed(range(len(steps))):
        fewer = steps[:place] + steps[place + 1 :]
        if type(fault_of(attacked, attacked.mend(mutated(attacked.seeds, which, fewer)), folder)) is kind:
            steps = fewer
    return steps


def grown(attacked: Surface, draw: random.Random) -> list[bytes]:
    """Pieces of the seeds repeated up to MAX_BYTES: what grows with the square of its input shows here.

    And up to N_LINES: a row takes some 0.1 ms, be it two bytes, and the budget is none of files with 100,000 of them.
    """
    found = []
    for seed in attacked.seeds:
        for _ in range(4):
            at = draw.randrange(len(seed))
            piece = seed[at : at + draw.randint(1, 40)]
            content = (seed[:at] + piece * (MAX_BYTES // len(piece)) + seed[at:])[:MAX_BYTES]
            found.append(b"\n".join(content.split(b"\n", N_LINES)[:N_LINES]))
    return found


def attack(name: str, attacked: Surface, seconds: float, n_most: int | None, seed: int) -> bool:
    """Print what came of one surface; whether a fault or a budget was found. It ends after `seconds`, or after so many inputs."""
    draw, seen, n_inputs, slowest_s = random.Random(f"{seed} {name}"), dict[object, str](), 0, 0.0
    budget, before_mb = next(row for row in TABLE if row.name.startswith(attacked.kind)), _memory_mb("VmRSS")
    with tempfile.TemporaryDirectory() as place:
        folder, started_s = Path(place), time.process_time()
        waiting = [attacked.mend(one) for one in grown(attacked, draw)]
        while waiting or (n_inputs < n_most if n_most else time.process_time() - started_s < seconds):
            which, steps = drawn(draw)
            content = waiting.pop() if waiting else attacked.mend(mutated(attacked.seeds, which, steps))
            began_s = time.process_time()
            error = fault_of(attacked, content, folder)
            slowest_s, n_inputs = max(slowest_s, time.process_time() - began_s), n_inputs + 1
            if error is not None:
                where = traceback.extract_tb(error.__traceback__)[-1]
                kind = type(error).__name__, where.name
                if kind not in seen:
                    seen[kind] = f"{error!r:.200}; seed {which}, steps {shortened(attacked, which, steps, folder)}"
    taken_mb = _memory_mb("VmHWM") - before_mb
    is_over = slowest_s > budget.cpu_s or taken_mb > budget.rss_mb
    said = f"{slowest_s:6.2f} of {budget.cpu_s:g} s  {taken_mb:5.0f} of {budget.rss_mb} MB  {len(seen)} faults"
    print(f"{name:36} {n_inputs:9,} inputs  {said}", flush=True)
    for kind, said in seen.items():
        print(f"    {kind}: {said}", flush=True)
    return bool(seen) or is_over


def _memory_mb(name: str) -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith(name)).split()[1]) / 1024


def main() -> int:
    """Attack every surface that is asked for; 1 where something was found."""
    parser = argparse.ArgumentParser(description="Mutated input for every reader, for so many seconds of CPU each.")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--inputs", type=int, help="so many in place of so many seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--alone", help="one surface, in this process")
    given = parser.parse_args()
    if given.alone:
        return int(attack(given.alone, surface(given.alone), given.seconds, given.inputs, given.seed))
    n_bad = 0
    for name in filter(lambda name: given.only in name, [*SURFACES, *SPOILED, *COMMANDS]):
        options = ["--alone", name, "--seconds", str(given.seconds), "--seed", str(given.seed)]
        options += ["--inputs", str(given.inputs)] if given.inputs else []
        code = subprocess.run([sys.executable, "-m", "tests.fuzz.campaign", *options], check=False).returncode
        if code not in (0, 1):
            print(f"{name}: its process ended with {code}", flush=True)
        n_bad += code != 0
    print(f"{n_bad} surfaces with faults, or over their budget")
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())
