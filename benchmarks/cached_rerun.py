"""Measure a run that asks nothing: a million cached judgements of one rubric to a published table, CPU and memory by stage.

    python -m benchmarks.cached_rerun --judgements 1000000 [--rubric composition] [--shard-size 500]

The samples table, with pictures of a few bytes, and the ledger's replies are synthetic; everything else is the product: the
stages of `salon run` after ingest, each run in a process of its own. The runs are `fill` (the lake holds samples alone; the
ledger is filled between plan and judge), `again` (the same command the same day: its publication exists) and `next day` (the
same inputs under another date: checks, aggregates, publishes).
"""

import argparse
import json
import sys
import time
from datetime import date
from pathlib import Path

from benchmarks.growth_parts.true_lake import opened, write_replies, write_samples
from benchmarks.growth_parts.usage import Usage, folder_or_temporary, measured_apart
from schemas.tables.stored import SAMPLES
from tasks.lake.reading import Lake

RUNS = {"fill": date(2026, 1, 1), "again": date(2026, 1, 1), "next day": date(2026, 1, 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=1_000_000)
    parser.add_argument("--rubric", default="alignment", choices=["alignment", "composition"])
    parser.add_argument("--shard-size", type=int, default=500)
    parser.add_argument("--folder", type=Path, help="where the synthetic lake stands and stays; default: a temporary folder")
    parser.add_argument("--ledger", help="SQLAlchemy URL of the ledger; default: ledger.db in the lake")
    parser.add_argument("--run", choices=RUNS, help="only this run, in this process")
    arguments = parser.parse_args()
    if arguments.run:
        return measure(arguments)
    with folder_or_temporary(arguments.folder) as folder:
        if not (folder / "lake" / "samples").is_dir():
            write_samples(Lake(folder / "lake"), arguments.judgements, arguments.shard_size)
        given = {name: value for name, value in vars(arguments).items() if value is not None} | {"folder": folder}
        return int(not all(measured_apart("benchmarks.cached_rerun", **given | {"run": name}) for name in RUNS))


def measure(arguments: argparse.Namespace) -> int:
    """One run, with the CPU and the memory of each stage; "start" is what fills the ledger, and no part of the total."""
    usage, began = Usage(), time.monotonic()
    from flows.executors.choose import opened_executor
    from flows.run import judging, pipeline, stages
    from flows.run.context import RunContext
    from tasks.ledger.ledger import Ledger
    from tasks.ledger.snapshot import restore

    lake = arguments.folder / "lake"
    (dataset_id,) = Lake(lake).keys(SAMPLES)
    ids = {"dataset_id": dataset_id, "run_id": "cached"}
    opened_run = opened(lake, arguments.rubric, arguments.shard_size, ids, RUNS[arguments.run], arguments.ledger)
    with opened_executor(opened_run) as executor:
        run = RunContext.of(opened_run, executor)
        usage.say("start up")
        planned = stages.plan(run)
        run = run.having(plan_id=planned.plan_id)
        usage.say("plan")
        if arguments.run == "fill":
            write_replies(run)
            with Ledger(run.ledger_url) as ledger:
                restore(run.lake, ledger)
            usage.say("start")
        asked = judging.judge(run, planned.parts)
        usage.say("judge")
        assert (asked.n_asked, asked.n_cached) == (0, arguments.judgements), asked
        run = run.having(snapshot_id=stages.take_snapshot(run, planned))
        usage.say("snapshot")
        run = run.having(reading_id=stages.read(run, planned))
        usage.say("read")
        published, cells = pipeline.finish(run)
        usage.say("finish")
    found = {"wall_s": round(time.monotonic() - began, 1), "is_new": published.is_new, "means": cells.height}
    print(json.dumps({"run": arguments.run, **found, **usage.told(arguments.judgements)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
