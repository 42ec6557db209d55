"""Measure what a judgement costs as their number grows: synthetic replies through parse, checks, aggregation and publication.

    python -m benchmarks.growth --judgements 1000000 10000000 [--rubric alignment] [--shard-size 5000]

Samples, plan and replies are written into a lake through its store; each size is then read, checked, counted and published in a
process of its own, once with all of it to do and once under the next date. CPU and memory are of that process and its children.
"""

import argparse
import json
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.growth_parts.lake import IDS, opened, planned_parts, write_lake
from benchmarks.growth_parts.usage import Usage, folder_or_temporary, measured_apart

DATES = {"first": date(2026, 1, 1), "next day": date(2026, 1, 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rubric", default="alignment", choices=["alignment", "composition"])
    parser.add_argument("--shard-size", type=int, default=5_000)
    parser.add_argument("--folder", type=Path, help="where the synthetic lakes stand and stay; default: a temporary folder")
    parser.add_argument("--run", choices=DATES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        return measure(arguments)
    with folder_or_temporary(arguments.folder) as folder:
        for n_judgements in arguments.judgements:
            lake = folder / f"lake-{n_judgements}-{arguments.rubric}"
            if not lake.is_dir():
                write_lake(lake, n_judgements, arguments.rubric, arguments.shard_size)
            sizes = {"judgements": n_judgements, "rubric": arguments.rubric, "shard_size": arguments.shard_size}
            if not all(measured_apart("benchmarks.growth", **sizes, folder=lake, run=name) for name in DATES):
                return 1
    return 0


def measure(arguments: argparse.Namespace) -> int:
    """Parse to publication under one date; CPU seconds and peak memory after each stage."""
    usage = Usage()
    from flows.run import pipeline, stages
    from flows.run.context import RunContext
    from schemas.records import Plan

    (n_judgements,) = arguments.judgements
    run = RunContext.of(opened(arguments.folder, arguments.rubric, arguments.shard_size, DATES[arguments.run])).having(**IDS)
    planned = Plan(IDS["plan_id"], planned_parts(n_judgements, arguments.rubric, arguments.shard_size))
    usage.say("start")
    began = time.monotonic()
    run = run.having(reading_id=stages.read(run, planned))
    usage.say("parse")
    stage_names = {"_check": "check", "tables_of": "aggregate"}  # what is left is publishing
    with usage.of(pipeline, stage_names):
        published, cells = pipeline.finish(run)
    said: dict[str, Any] = {
        "judgements": n_judgements, "run": arguments.run, "wall_s": round(time.monotonic() - began, 1), "means": cells.height,
        "publication": published.publication_id[:12], **usage.told(n_judgements),
    }  # fmt: skip
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
