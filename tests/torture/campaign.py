"""The long form of the crash tests: hundreds of kills, every call failing in turn, full disks, stops. Prints what it counted.

python tests/torture/campaign.py [--kills 500] [--rounds 5] [--stops 100] [--sizes 20] [--writes-every 7]
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from checks import Watch, cells
from points import POINTS
from rig import Nursery, Recorder, make_world, nursery

KILLS_A_LAKE = 20


class Campaign:
    """Runs series of faults over fresh lakes, and keeps what went wrong."""

    def __init__(self, folder: Path, children: Nursery, recorder: Recorder) -> None:
        self.folder, self.children, self.recorder = folder, children, recorder
        self.wrong: list[str] = []
        self.reference, self.run_s = self._reference()

    def _reference(self) -> tuple[pl.DataFrame, float]:
        file = self._world()
        end = self.children.run(file, self.recorder.url)
        assert end["code"] == 0, end
        return cells(file.parent / "lake"), float(end["wall_s"])

    def _world(self) -> Path:
        shutil.rmtree(self.folder / "world", ignore_errors=True)
        return make_world(self.folder / "world")

    def over_one_lake(self, about: str, faults: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """One fault after the other, then a run without; everything checked after each."""
        file = self._world()
        watch = Watch(file.parent / "lake", self.recorder)
        ends: list[dict[str, Any]] = []
        for fault in faults:
            ends.append(self.children.run(file, self.recorder.url, **fault) | {"fault": fault})
            self.wrong += [f"{about}, {fault}: {sentence}" for sentence in watch.after(ends[-1])]
        last = self.children.run(file, self.recorder.url)
        self.wrong += [f"{about}, at the end: {sentence}" for sentence in watch.at_the_end(last, self.reference)]
        return ends


def kills(campaign: Campaign, n: int) -> str:
    """kill -9 at random times over whole runs."""
    ends: list[dict[str, Any]] = []
    while len(ends) < n:
        faults = [{"after_s": random.uniform(0, campaign.run_s), "signal": "SIGKILL"} for _ in range(KILLS_A_LAKE)]
        ends += campaign.over_one_lake("kill at random", faults)
    return f"{sum(end['code'] == -9 for end in ends)} of {len(ends)} runs killed at random times"


def points(campaign: Campaign, rounds: int) -> str:
    """Every named point, several times, each time in another order."""
    reached: Counter[str] = Counter()
    for _ in range(rounds):
        order = random.sample(POINTS, len(POINTS))
        for start in range(0, len(order), 3):  # few on one lake: what is complete is not reached again
            some = order[start : start + 3]
            faults = [{"point": point.name, "event": point.event, "nth": point.nth} for point in some]
            ends = campaign.over_one_lake("named point", faults)
            reached.update(point.about for point, end in zip(some, ends, strict=True) if end["code"] == -9)
    return (
        f"{sum(reached.values())} kills at {len(POINTS)} named points, the rarest {min(reached[p.about] for p in POINTS)} times"
    )


def faults(campaign: Campaign, writes_every: int) -> str:
    """The Nth call of each kind fails, for N = 1, 2, 3 … until a run makes fewer calls."""
    said: list[str] = []
    for kind, step in (("connect", 1), ("rename", 1), ("fsync", 1), ("write", writes_every)):
        codes: Counter[int] = Counter()
        n = 1
        while True:
            (end,) = campaign.over_one_lake("failing call", [{"kind": kind, "action": "fail", "n": n}])
            codes[end["code"]] += 1
            if end["counts"].get(kind, n) < n:
                break
            n += step
        said.append(f"{kind}: {codes.total()} runs up to call {n}, exit codes {dict(sorted(codes.items()))}")
    return "; ".join(said)


def full_disks(campaign: Campaign, n_sizes: int) -> str:
    """The disk fills up after so many bytes; spending must stop with it."""
    file = campaign._world()
    campaign.children.run(file, campaign.recorder.url)
    n_bytes = sum(path.stat().st_size for path in (file.parent / "lake").rglob("*") if path.is_file())
    codes: Counter[int] = Counter()
    for index in range(n_sizes):
        room = {"kind": "write", "action": "full", "n": int(n_bytes * (index + 0.5) / n_sizes)}
        (end,) = campaign.over_one_lake("full disk", [room])
        codes[end["code"]] += 1
    return f"{n_sizes} sizes up to {n_bytes:,} bytes, exit codes {dict(sorted(codes.items()))}"


def stops(campaign: Campaign, n: int) -> str:
    """SIGTERM at random times: exit 143, nothing paid twice."""
    codes: Counter[int] = Counter()
    longest_s = 0.0
    for _ in range(-(-n // 10)):
        n_before = len(campaign.recorder.billed)
        times = [random.uniform(0.05, campaign.run_s * 0.8) for _ in range(10)]
        ends = campaign.over_one_lake("SIGTERM", [{"after_s": after_s, "signal": "SIGTERM"} for after_s in times])
        codes.update(end["code"] for end in ends)
        longest_s = max(longest_s, *(end["wall_s"] - end["fault"]["after_s"] for end in ends if end["code"] == 143))
        n_paid = len(campaign.recorder.billed) - n_before
        if n_paid != 40:
            campaign.wrong.append(f"SIGTERM: {n_paid} replies paid for 40 samples")
    return f"{n} stops, exit codes {dict(sorted(codes.items()))}, longest from signal to exit {longest_s:.1f} s"


def _series(campaign: Campaign, asked: argparse.Namespace) -> Iterator[tuple[str, str]]:
    yield "random kills", kills(campaign, asked.kills)
    yield "named points", points(campaign, asked.rounds)
    yield "SIGTERM", stops(campaign, asked.stops)
    yield "full disk", full_disks(campaign, asked.sizes)
    yield "failing calls", faults(campaign, asked.writes_every)


def main() -> int:
    """Run the series; 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("kills", 500), ("rounds", 5), ("stops", 100), ("sizes", 20), ("writes-every", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as scratch, nursery(Path(scratch)) as children:
        campaign = Campaign(Path(scratch), children, recorder)
        for about, said in _series(campaign, asked):
            print(f"{time.strftime('%H:%M:%S')}  {about:<14} {said}; wrong so far: {len(campaign.wrong)}", flush=True)
    recorder.close()
    print("\n".join(campaign.wrong))
    return 1 if campaign.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
