"""The long form of the crash tests: hundreds of kills, every call failing in turn, full disks, stops. Prints what it counted.

python tests/torture/campaign.py [--kills 500] [--rounds 5] [--stops 100] [--sizes 20] [--writes-every 1] [--log FILE]

What was done is in the log, a line for each lake; the same command goes on from there. What each series does is series.py.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jobs import Job
from series import Done, all_series
from summary import summary
from worlds import Worker


class Campaign:
    """Works through jobs, some at once, and writes down each as it is done."""

    def __init__(self, folder: Path, log: Path, n_workers: int) -> None:
        self.folder, self.log, self.n_workers = folder, log, n_workers
        self.done: Done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        self._lock = threading.Lock()
        self._shapes: set[str] = set()
        self._printed_s = 0.0

    def work(self, jobs: Iterator[Job]) -> None:
        """Take jobs until there are none, or a worker fails."""
        errors: list[BaseException] = []
        threads = [threading.Thread(target=self._worker, args=(number, jobs, errors)) for number in range(self.n_workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _worker(self, number: int, jobs: Iterator[Job], errors: list[BaseException]) -> None:
        try:
            with Worker(self.folder / f"worker-{number}", self._shapes) as worker:
                while not errors and (job := self._next(jobs)):
                    self._note(worker.run(job))
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            errors.append(error)

    def _next(self, jobs: Iterator[Job]) -> Job | None:
        with self._lock:
            return next(jobs, None)

    def _note(self, record: dict[str, Any]) -> None:
        with self._lock:
            self.done.append(record)
            with self.log.open("a") as log:
                log.write(json.dumps(record) + "\n")
            for sentence in record["wrong"]:
                print(f"WRONG: {sentence}", flush=True)
            if time.monotonic() - self._printed_s > 60:
                self._printed_s = time.monotonic()
                print(time.strftime("%H:%M:%S"), *summary(self.done), sep="\n  ", flush=True)


def _by_turns(series: Iterable[Iterator[Job]]) -> Iterator[Job]:
    """One job of each series after the other: a campaign that is stopped half-way has done some of each."""
    left = list(series)
    while left:
        for jobs in tuple(left):
            job = next(jobs, None)
            if job is None:
                left.remove(jobs)
            else:
                yield job


def main() -> int:
    """Run the series; 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("kills", 500), ("rounds", 5), ("stops", 100), ("sizes", 20), ("writes-every", 1), ("workers", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--log", type=Path, default=Path("torture.jsonl"), help="what was done; a second start goes on from it")
    parser.add_argument("--folder", type=Path, help="where the lakes stand (default: the system's temporary folder)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as scratch:
        campaign = Campaign(Path(scratch), asked.log, asked.workers)
        campaign.work(_by_turns(all_series(asked, campaign.done)))
    print(*summary(campaign.done), sep="\n")
    wrong = [sentence for record in campaign.done for sentence in record["wrong"]]
    print(f"{len(wrong)} things were wrong", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
