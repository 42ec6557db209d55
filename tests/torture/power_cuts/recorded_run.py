"""One run of a benchmark as strace watches it: FILE URL MARKS. Each reply that is acknowledged is a write to the file MARKS."""

import os
import sys
import threading
from pathlib import Path

from power_cuts.recording import MARK

from flows.observability.progress import Reporter
from flows.run.context import RunContext, open_run
from flows.run.pipeline import run_pipeline


class _Marking(Reporter):
    def __init__(self, marks: Path) -> None:
        super().__init__()
        self._descriptor = os.open(marks, os.O_WRONLY | os.O_CREAT)

    def advance(self, stage: str, n: int = 1) -> None:
        """One more of the stage; in the judging thread a reply (the main thread tells of those that were stored before)."""
        if stage == "judge" and threading.current_thread() is not threading.main_thread():
            os.write(self._descriptor, MARK)
        super().advance(stage, n)


if __name__ == "__main__":
    file, url, marks = sys.argv[1:]
    run_pipeline(RunContext.of(open_run(Path(file), judge_url=url), reporter=_Marking(Path(marks))))
