"""A Dask scheduler and workers as processes of a test's own, each started as on a machine of its own. No tests here."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
START_LIMIT_S = 60.0
_DASK = [sys.executable, "-m", "dask.__main__"]


@dataclass(frozen=True)
class Cluster:
    """Its address, and its processes."""

    address: str
    scheduler: "subprocess.Popen[bytes]"
    workers: list["subprocess.Popen[bytes]"]


@contextmanager
def running_cluster(
    folder: Path, n_workers: int, environment_of: Callable[[int], Mapping[str, str]] = lambda _: {}
) -> Iterator[Cluster]:
    """A scheduler on loopback and `n_workers` workers with these additions to their environments; killed when the block ends."""
    said, log = folder / "scheduler.json", (folder / "cluster.txt").open("ab")
    own = os.environ | {"PYTHONPATH": str(ROOT)}

    def start(*words: str, **more: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([*_DASK, *words, "--no-dashboard"], env=own | more, cwd=folder, stdout=log, stderr=log)

    processes = [start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(said))]
    try:
        until_s = time.monotonic() + START_LIMIT_S
        while not said.exists():
            assert processes[0].poll() is None, (folder / "cluster.txt").read_text()
            assert time.monotonic() < until_s, "the Dask scheduler did not start"
            time.sleep(0.05)
        address = json.loads(said.read_bytes())["address"]
        worker = ("worker", address, "--nthreads", "1", "--no-nanny")
        processes += [start(*worker, **environment_of(number)) for number in range(n_workers)]
        yield Cluster(address, processes[0], processes[1:])
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
        log.close()
