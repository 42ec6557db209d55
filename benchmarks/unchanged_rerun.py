"""The same `salon run` again, ingest and all: CPU and memory of all processes when nothing changed, a picture did or some came.

    python -m benchmarks.unchanged_rerun [--judgements 2000 20000] [--large]

Pictures of 3 KB (`--large`: 150 KB) in files that a manifest names; the judge is the mock provider in a process of its own,
answering at once. The first run asks everything; what is read of it is only what it cost. The last column is what each thousand
judgements cost above the smallest size of the same command.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.throughput.material import make_pictures, write_benchmark, write_items
from benchmarks.throughput.measuring import Usage, measure
from demo.running import running_judge

SCENARIO = Path(__file__).parents[1] / "docs/examples/scenarios/plain.toml"
IN_FLIGHT = 200
REST_S = 3.0
"""Of files that changed in the last two seconds nothing is remembered."""
N_MORE = 16
MORE = f"{N_MORE} more pictures"
RUNS = ("first", "again", "a picture touched", "again", "--reread", MORE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--large", action="store_true", help="pictures of 150 KB")
    given = parser.parse_args()
    print("judgements  run                     wall s   CPU s  peak MB  CPU s a thousand more")
    least: dict[int, tuple[int, float]] = {}
    for n in sorted(given.judgements):
        with tempfile.TemporaryDirectory() as name, running_judge(SCENARIO) as base_url:
            folder = Path(name)
            make_pictures(folder, n + N_MORE, is_small=not given.large)
            items = write_items(folder, n)
            file = write_benchmark(folder, items, base_url, IN_FLIGHT)
            for place, run in enumerate(RUNS):
                if run == "a picture touched":
                    (folder / "images" / "00000.jpg").touch()
                elif run == MORE:
                    write_items(folder, n + N_MORE).replace(items)
                if run in {"first", "a picture touched", MORE}:
                    time.sleep(REST_S)
                more = ["--reread"] if run == "--reread" else []
                used = measure([sys.executable, "-m", "flows", "run", str(file), *more], folder, {})
                n_least, cpu_least_s = least.setdefault(place, (n, used.client_cpu_s))
                _say(n, run, used, (used.client_cpu_s - cpu_least_s) / (n - n_least) * 1000 if n > n_least else None)
    return 0


def _say(n: int, run: str, used: Usage, more_s: float | None) -> None:
    said = "" if more_s is None else f"{more_s:10.3f}"
    megabytes = used.peak_tree_bytes / 1e6
    print(f"{n:10,}  {run:22}{used.wall_s:8.1f}{used.client_cpu_s:8.2f}{megabytes:9.0f}{said}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
