"""Play simulated worlds by their seeds (`python -m benchmarks.simulations.protocol`): engine, claims, limits, ledger, batches.

Violations with the faults they need, runs a second, and how often each fault struck. `--mutation NAME` or `all` breaks the
protocol on purpose: each must be found. `--replay SEED` prints one world's history. See docs/torture.md.
"""

import argparse
import logging
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from tests.simulation.mutations import MUTATIONS, break_protocol

N_AT_ONCE = 50


@dataclass
class Tally:
    """What came of some seeds. `broken`: by seed; `cpu_s`: processor seconds."""

    n: int = 0
    cpu_s: float = 0.0
    virtual_s: float = 0.0
    n_paid: int = 0
    n_excused: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    worlds: Counter[str] = field(default_factory=Counter)
    broken: dict[int, str] = field(default_factory=dict)


def _begin(mutation: str | None, folder: str | None = None) -> None:
    tempfile.tempdir = folder  # a worker that is ended takes nothing away that it put there
    os.environ["POLARS_MAX_THREADS"] = "1"
    logging.disable(logging.WARNING)
    if mutation is not None:
        break_protocol(mutation)


def _played(seeds: range, *, until_broken: bool) -> Tally:
    from tests.simulation.play import play_seed

    tally, began_s = Tally(), time.process_time()
    for seed in seeds:
        played = play_seed(seed)
        tally.n += 1
        tally.virtual_s += played.virtual_s
        tally.n_paid += played.n_paid
        tally.n_excused += played.n_excused
        tally.fired += played.fired
        tally.worlds.update(set(played.fired))
        if played.broken is not None:
            tally.broken[seed] = played.broken
            if until_broken:
                break
    tally.cpu_s = time.process_time() - began_s
    return tally


def _replayed(seed: int) -> str:
    from tests.simulation.play import play_seed, shrunk

    played = play_seed(seed)
    return (shrunk(played) if played.broken else played).history


def tallies(first: int, n: int, n_processes: int, mutation: str | None) -> Iterator[Tally]:
    """The seeds from the first on, some at a time, as they are done."""
    context = multiprocessing.get_context("spawn")
    parts = [range(at, min(at + N_AT_ONCE, first + n)) for at in range(first, first + n, N_AT_ONCE)]
    with tempfile.TemporaryDirectory() as folder, context.Pool(n_processes, _begin, (mutation, folder)) as pool:
        yield from pool.imap_unordered(partial(_played, until_broken=mutation is not None), parts)


def campaign(first: int, n: int, n_processes: int) -> bool:
    """Play the seeds of Salon as it is; whether all promises were kept."""
    total, began_s = Tally(), time.monotonic()
    for tally in tallies(first, n, n_processes, None):
        for name in ("n", "cpu_s", "virtual_s", "n_paid", "n_excused", "fired", "worlds"):
            setattr(total, name, getattr(total, name) + getattr(tally, name))
        for seed, broken in tally.broken.items():
            total.broken[seed] = broken
            print(f"seed {seed}: {broken}\n    python -m benchmarks.simulations.protocol --replay {seed}", flush=True)
    wall_s = time.monotonic() - began_s
    hours = f"{total.virtual_s / 3600:,.1f} h of virtual time"
    print(f"{total.n:,} runs, {len(total.broken)} violations; {hours}, {total.n_paid:,} replies billed")
    per_cpu = f"{total.n / total.cpu_s:.1f} a second of processor time"
    print(f"{wall_s:,.0f} s on {n_processes} processes, {total.n / wall_s:.1f} runs/s; {per_cpu}")
    print(f"bought twice where no lease can help (sleep, no ledger, a server's clock that was set): {total.n_excused:,}")
    print(f"{'fault':<16}{'struck':>10}{'worlds':>10}")
    from tests.simulation.scenario import FAULTS

    for kind in FAULTS:
        print(f"{kind:<16}{total.fired[kind]:>10,}{total.worlds[kind]:>10,}")
    return not total.broken


def find(mutation: str, first: int, most: int, n_processes: int) -> bool:
    """Play seeds until the mutation is found."""
    n, began_s = 0, time.monotonic()
    for tally in tallies(first, most, n_processes, mutation):
        n += tally.n
        if tally.broken:
            seed, broken = min(tally.broken.items())
            print(
                f"{mutation:<46} found within {n:>6,} runs, {time.monotonic() - began_s:>5.0f} s: seed {seed}, {broken:.90}",
                flush=True,
            )
            return True
    print(f"{mutation:<46} NOT FOUND in {n:,} runs", flush=True)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--mutation", choices=[*MUTATIONS, "all"])
    parser.add_argument("--replay", type=int, metavar="SEED")
    asked = parser.parse_args()
    if asked.replay is not None:
        _begin(asked.mutation)
        print(_replayed(asked.replay))
        return 0
    if asked.mutation is None:
        return int(not campaign(asked.first, asked.seeds, asked.processes))
    names = list(MUTATIONS) if asked.mutation == "all" else [asked.mutation]
    found = [find(name, asked.first, asked.seeds, asked.processes) for name in names]
    print(f"{sum(found)} of {len(found)} found")
    return int(not all(found))


if __name__ == "__main__":
    sys.exit(main())
