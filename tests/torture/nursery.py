"""Runs the pipeline in forked children that are killed or refused on command. A program of its own, spoken to in JSON.

Started with faults.c preloaded. Everything heavy is imported once, so that a child costs what its run costs. One line in is one
child; one line out says how it ended.
"""

import ctypes
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import great_expectations  # noqa: F401 - so that children need not import it

from flows.run.fan_out import in_this_process
from flows.run.opening import open_run
from flows.run.pipeline import run_pipeline
from flows.telling.progress import Reporter
from schemas.errors import SalonError
from tasks.stopping import heeding_sigterm
from tasks.validate import expecting  # noqa: F401

KINDS = ("write", "fsync", "rename", "connect")
ACTIONS = ("fail", "kill", "full", "trace")


def main() -> None:
    """Answer commands until standard input ends."""
    for line in sys.stdin:
        command = json.loads(line)
        siblings = [command | {"said": f"{command['said']}-{number}"} for number in range(command.get("n_at_once", 1))]
        started = [(_fork(sibling), sibling, time.monotonic()) for sibling in siblings]
        _strike_from_outside(started[0][0], command)
        print(json.dumps([_end(*child) for child in started]), flush=True)


def _fork(command: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        _child(command)
    return child


def _end(child: int, command: dict[str, Any], started_s: float) -> dict[str, Any]:
    _, status, usage = os.wait4(child, 0)
    said = Path(command["said"]).read_text(errors="replace") if Path(command["said"]).exists() else ""
    end = {"code": os.waitstatus_to_exitcode(status), "wall_s": time.monotonic() - started_s, "said": said[-2000:]}
    return end | {"cpu_s": usage.ru_utime + usage.ru_stime, "counts": _counts(command)}


def _strike_from_outside(child: int, command: dict[str, Any]) -> None:
    """kill -9 or SIGTERM after a while, from this side."""
    if "after_s" not in command:
        return
    time.sleep(command["after_s"])
    os.kill(child, signal.Signals[command["signal"]])


def _child(command: dict[str, Any]) -> None:
    code = 70
    said = os.open(command["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    try:
        random.seed()
        _arm(command)
        code = _run(command)
    except SalonError as error:
        print(error)
        code = error.exit_code
    except BaseException as error:  # noqa: BLE001 - whatever it is, the other side is to hear of it
        print(f"{type(error).__name__}: {error}")
    finally:
        _tell_counts(command)
        os._exit(code)


def _run(command: dict[str, Any]) -> int:
    run = open_run(Path(command["file"]), judge_url=command["judge_url"])
    with heeding_sigterm():
        summary = run_pipeline(run, in_this_process, Reporter())
    print(f"{summary.outcome} {summary.published.publication_id} asked {summary.asked.n_asked}")
    return 1 if summary.n_blocked else 0


def _arm(command: dict[str, Any]) -> None:
    if "kind" in command:
        ctypes.CDLL(None).fault_arm(
            command["root"].encode(), KINDS.index(command["kind"]), ACTIONS.index(command["action"]), ctypes.c_long(command["n"])
        )
    if "point" in command:
        hook = _killer(command["point"], command["event"], command["nth"])
        threading.setprofile(hook)
        sys.setprofile(hook)


def _killer(point: str, event: str, nth: int) -> Any:
    """A profile hook that kills the process at the nth call, or return, of the named function of ours or of the interpreter."""
    left = [nth]

    def hook(frame: FrameType, what: str, function: Any) -> None:
        if what != event:
            return
        name = getattr(function, "__qualname__", "") if what.startswith("c_") else frame.f_code.co_qualname
        if name == point:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def _tell_counts(command: dict[str, Any]) -> None:
    if "kind" in command:
        library = ctypes.CDLL(None)
        library.fault_count.restype = ctypes.c_long
        counts = {kind: library.fault_count(number) for number, kind in enumerate(KINDS)}
        Path(command["said"] + ".counts").write_text(json.dumps(counts))


def _counts(command: dict[str, Any]) -> dict[str, int]:
    path = Path(command["said"] + ".counts")
    return json.loads(path.read_text()) if path.exists() else {}


if __name__ == "__main__":
    main()
