"""Runs the pipeline in forked children that are killed or refused on command. A program of its own, spoken to in JSON.

Started with faults.c preloaded. Everything heavy is imported once, so that a child costs what its run costs; with --bare the
children import what a run imports late themselves, as after a program's start. One line in is one child; one line out says
how it ended.
"""

import ctypes
import gc
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from arming import arm, counts_told, tell_counts

from flows.observability.progress import Reporter
from flows.run.context import RunContext, open_run
from flows.run.pipeline import run_pipeline
from schemas.errors import SalonError
from tasks.stopping import heeding_sigterm

LEAVING_NS = 50_000_000  # a child that ends so soon after a signal, and with 0, had left its last step when it came


def main() -> None:
    """Answer commands until standard input ends."""
    if "--bare" not in sys.argv:
        _import_the_rest()
    gc.freeze()  # a child is over before there is much to collect, and what is shared with it stays shared
    gc.disable()
    for line in sys.stdin:
        command = json.loads(line)
        siblings = [command | {"said": f"{command['said']}-{number}"} for number in range(command.get("n_at_once", 1))]
        started = [(*_fork(sibling), sibling, time.monotonic()) for sibling in siblings]
        struck = _strike_from_outside(*started[0][:2], command)
        ends = [_end(child, ready, sibling, started_s) for child, ready, sibling, started_s in started]
        if struck is not None and ends[0]["code"] == 0 and ends[0]["ended_ns"] - struck[0] < LEAVING_NS:
            struck = None
        ends[0] |= {"is_struck": struck is not None, "signal_ns": None, "cpu_after_signal_s": None}
        if struck is not None:
            ends[0] |= {"signal_ns": struck[0], "cpu_after_signal_s": ends[0]["cpu_s"] - struck[1]}
        print(json.dumps(ends), flush=True)
    os._exit(0)  # without the libraries' farewells


def _import_the_rest() -> None:
    """What a run imports, or compiles, when it comes to it. Nothing here starts a thread: forks are made after it."""
    import duckdb  # noqa: F401
    import great_expectations  # noqa: F401
    import psycopg  # noqa: F401
    import scipy.special  # noqa: F401
    import vl_convert  # noqa: F401
    from PIL import Image

    from tasks.publish.report import charts, environment  # noqa: F401

    Image.init()
    pages = environment._environment()
    for template in pages.list_templates(filter_func=lambda name: name.endswith(".html.j2")):
        pages.get_template(template)


def _fork(command: dict[str, Any]) -> tuple[int, int]:
    """A child, and a pipe it writes to once it would heed a signal."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(command, writing)
    os.close(writing)
    return child, reading


def _end(child: int, ready: int, command: dict[str, Any], started_s: float) -> dict[str, Any]:
    _, status, usage = os.wait4(child, 0)
    ended_ns = time.time_ns()
    os.close(ready)
    said = Path(command["said"]).read_text(errors="replace") if Path(command["said"]).exists() else ""
    end = {"code": os.waitstatus_to_exitcode(status), "wall_s": time.monotonic() - started_s, "said": said[-2000:]}
    return end | {"ended_ns": ended_ns, "cpu_s": usage.ru_utime + usage.ru_stime} | counts_told(command)


def _strike_from_outside(child: int, ready: int, command: dict[str, Any]) -> tuple[int, float] | None:
    """kill -9 or SIGTERM after a while, from this side. When (ns since 1970), and the child's CPU seconds by then.

    None where it had ended.
    """
    if "after_s" not in command:
        return None
    os.read(ready, 1)
    deadline_s = time.monotonic() + command["after_s"]
    while time.monotonic() < deadline_s:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            return None
        time.sleep(0.002)
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].split()
    os.kill(child, signal.Signals[command["signal"]])
    return time.time_ns(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _child(command: dict[str, Any], ready: int) -> None:
    code = 70
    said = os.open(command["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # where no run heeds it, as the console script
    try:
        random.seed()
        arm(command)
        code = _run(command, ready)
    except SalonError as error:
        print(error)
        code = error.exit_code
    except BaseException as error:  # noqa: BLE001 - whatever it is, the other side is to hear of it
        print(f"{type(error).__name__}: {error}")
    finally:
        tell_counts(command)
        os._exit(code)


def _run(command: dict[str, Any], ready: int) -> int:
    with heeding_sigterm():
        os.write(ready, b".")
        run = open_run(Path(command["file"]), judge_url=command["judge_url"])
        summary = run_pipeline(RunContext.of(run, reporter=_Told()))
    print(f"{summary.outcome} {summary.published.publication_id} asked {summary.asked.n_asked}")
    return 1 if summary.is_blocked else 0


class _Told(Reporter):
    """A reporter that has it written down, between the system's calls, when a reply is acknowledged."""

    def advance(self, stage: str, n: int = 1) -> None:
        """One more of the stage; a reply when the stage is judging."""
        if stage == "judge" and n:
            ctypes.CDLL(None).fault_note(b"acknowledged", b"", b"")
        super().advance(stage, n)


if __name__ == "__main__":
    main()
