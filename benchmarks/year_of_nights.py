"""Measure what a night costs as nights pile up: files left behind, CPU seconds of each stage, and of questions about one night.

    python -m benchmarks.year_of_nights [--nights 30 365] [--folder FOLDER] [--questions]

Two real nights of the demo's pictures and judge (169 samples, alignment and composition, 48 anchors, shards of 100), then copies
of the second under later dates, through the lake's own store; then one more real night, told apart by stage. With --questions the
folder's lake, written before, is only asked; `strace -f -e trace=openat` around that says which files are opened.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.growth_parts.nights import FIRST, NAME, copy_night, make_world, read_template, real_night
from benchmarks.growth_parts.usage import Usage, folder_or_temporary
from demo.running import running_judge
from flows.night_opening import open_night
from flows.nights.anchors import freeze
from flows.nights.drift import nightly_publications, write_drift
from flows.nights.record import notes
from flows.partitions import shown
from flows.partitions.table import read_partitions
from flows.run import pipeline
from tasks.context import StageContext
from tasks.publish import publication
from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.machine_tables import runs
from tasks.publish.reading import current, find_publication
from tasks.publish.report.index import write_index

STAGES: Mapping[Any, Mapping[str, str]] = {
    shown: {"read_partitions": "partitions"},
    pipeline: {
        "_check": "check",
        "tables_of": "aggregate",
        "record_run": "runs",
        "note_night": "note",
        "write_drift": "drift and duckdb",
        "write_index": "index",
    },
    publication: {"publish": "publish"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, nargs="+", default=[30, 365])
    parser.add_argument("--folder", type=Path, help="where the world stands and stays; default: a temporary folder")
    parser.add_argument("--questions", action="store_true", help="ask the lake that stands in the folder")
    arguments = parser.parse_args()
    if arguments.questions:
        ask(open_night(arguments.folder / f"{NAME}.toml", FIRST + timedelta(max(arguments.nights) - 1)))
        return 0
    with folder_or_temporary(arguments.folder) as folder, running_judge() as url:
        measure(folder, url, sorted(arguments.nights))
    return 0


def measure(folder: Path, url: str, nights: list[int]) -> None:
    """Write the nights and run a real one behind each number of them that is asked for."""
    file = folder / f"{NAME}.toml"
    if not file.exists():
        make_world(folder, url)
        freeze(real_night(file, 0, 0), 24)
        real_night(file, 1, 1)
    template = read_template(open_night(file, FIRST + timedelta(1)))
    done = len(notes(template.run.lake.root, NAME))
    for n_nights in nights:
        for number in range(done, n_nights - 1):
            copy_night(template, number)
        done, usage = n_nights, Usage()
        with ExitStack() as stack:
            for module, names in STAGES.items():
                stack.enter_context(usage.of(module, names))
            run = real_night(file, n_nights - 1, 2)
        print(json.dumps({"nights": n_nights, "cpu_s": usage.told(1)["cpu_s"], "files": files_below(run.lake.root)}), flush=True)
        ask(run)


def ask(run: StageContext) -> None:
    """CPU seconds of each question, in this process, on its second asking: what a library loads is no cost of the lake."""
    root, name = run.lake.root, run.benchmark.name
    questions: dict[str, Callable[[], object]] = {
        "current": lambda: current(root, name), "find_publication": lambda: find_publication(root, current(root).publication_id),
        "runs": lambda: runs(run.lake), "nights": lambda: nightly_publications(root, name),
        "partitions": lambda: read_partitions(run), "drift and duckdb": lambda: write_drift(root, name, run.rubrics),
        "duckdb": lambda: write_duckdb(root, name), "index": lambda: write_index(root),
    }  # fmt: skip
    told = {}
    for question, asked in questions.items():
        began_s = time.process_time()
        asked()
        told[question] = round(time.process_time() - began_s, 2)
    print(json.dumps({"questions_cpu_s": told}), flush=True)


def files_below(root: Path) -> dict[str, int]:
    """Files of a lake by its first folders."""
    names = ["/".join(path.relative_to(root).parts[:1]) for path in root.rglob("*") if path.is_file()]
    return dict(Counter(names).most_common()) | {"all": len(names)}


if __name__ == "__main__":
    sys.exit(main())
