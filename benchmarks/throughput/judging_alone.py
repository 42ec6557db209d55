"""Salon's judge stage alone, as a run calls it: ingest, plan and the imports are done before and not counted."""

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.throughput.workers import prepare
from flows.executors.choose import opened_executor
from flows.run.context import RunContext, open_run
from flows.run.judging import judge
from tasks.judge.provider.base import provider_of


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmark", type=Path)
    parser.add_argument("output", type=Path, help="where the stage's CPU seconds are written")
    given = parser.parse_args()
    ids, parts = prepare(given.benchmark)
    stage = open_run(given.benchmark)
    provider_of(stage.benchmark.judges[0])
    with opened_executor(stage) as executor:
        run = RunContext.of(stage, executor).having(dataset_id=ids.dataset_id, plan_id=ids.plan_id, run_id="alone")
        cpu_s, began_s = time.process_time(), time.perf_counter()
        asked = judge(run, parts)
        used = {"cpu_s": time.process_time() - cpu_s, "wall_s": time.perf_counter() - began_s, "n_answered": asked.n_answered}
    given.output.write_text(json.dumps(used), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
