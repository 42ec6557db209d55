"""Salon's `run` as the command runs it, with the process's CPU seconds at each stage's start and end written down."""

import argparse
import json
import sys
import time
from pathlib import Path

from flows import cli
from flows.observability.progress import Reporter


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmark", type=Path)
    parser.add_argument("stages", type=Path, help="where the stages' CPU seconds are written")
    given = parser.parse_args()
    cpu_s: dict[str, float] = {}
    note_stages(cpu_s)
    code = cli.run(["run", str(given.benchmark)])
    given.stages.write_text(json.dumps(cpu_s), encoding="utf-8")
    return code


def note_stages(cpu_s: dict[str, float]) -> None:
    """Every thread of this process counts; what runs beside a stage (Prefect's own threads) is in its figure."""
    start, finish = Reporter.start, Reporter.finish

    def started(self: Reporter, stage: str, total: int) -> None:
        cpu_s[stage] = cpu_s.get(stage, 0.0) - time.process_time()
        start(self, stage, total)

    def finished(self: Reporter, stage: str) -> None:
        finish(self, stage)
        cpu_s[stage] += time.process_time()

    Reporter.start, Reporter.finish = started, finished  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
