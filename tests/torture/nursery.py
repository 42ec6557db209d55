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

KINDS = ("write", "fsync", "rename", "connect", "bytes")
ACTIONS = ("fail", "kill", "full", "trace")


def main() -> None:
    """Answer commands until standard input ends."""
    for line in sys.stdin:
        command = json.loads(line)
        siblings = [command | {"said": f"{command['said']}-{number}"} for number in range(command.get("n_at_once", 1))]
        started = [(*_fork(sibling), sibling, time.monotonic()) for sibling in siblings]
        struck = _strike_from_outside(*started[0][:2], command)
        ends = [_end(child, ready, sibling, started_s) for child, ready, sibling, started_s in started]
        ends[0] |= {"is_struck": struck is not None, "after_signal_s": None, "cpu_after_signal_s": None}
        if struck is not None:
            ends[0] |= {"after_signal_s": time.monotonic() - struck[0], "cpu_after_signal_s": ends[0]["cpu_s"] - struck[1]}
        print(json.dumps(ends), flush=True)
    os._exit(0)  # without the libraries' farewells


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
    os.close(ready)
    said = Path(command["said"]).read_text(errors="replace") if Path(command["said"]).exists() else ""
    end = {"code": os.waitstatus_to_exitcode(status), "wall_s": time.monotonic() - started_s, "said": said[-2000:]}
    return end | {"cpu_s": usage.ru_utime + usage.ru_stime} | _counts(command)


def _strike_from_outside(child: int, ready: int, command: dict[str, Any]) -> tuple[float, float] | None:
    """kill -9 or SIGTERM after a while, from this side. When, and the child's CPU seconds by then; None where it had ended."""
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
    return time.monotonic(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _child(command: dict[str, Any], ready: int) -> None:
    code = 70
    said = os.open(command["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    try:
        random.seed()
        _arm(command)
        code = _run(command, ready)
    except SalonError as error:
        print(error)
        code = error.exit_code
    except BaseException as error:  # noqa: BLE001 - whatever it is, the other side is to hear of it
        print(f"{type(error).__name__}: {error}")
    finally:
        _tell_counts(command)
        os._exit(code)


def _run(command: dict[str, Any], ready: int) -> int:
    with heeding_sigterm():
        os.write(ready, b".")
        run = open_run(Path(command["file"]), judge_url=command["judge_url"])
        summary = run_pipeline(run, in_this_process, _Told())
    print(f"{summary.outcome} {summary.published.publication_id} asked {summary.asked.n_asked}")
    return 1 if summary.n_blocked else 0


class _Told(Reporter):
    """A reporter that has it written down, between the system's calls, when a reply is acknowledged."""

    def advance(self, stage: str, n: int = 1) -> None:
        """One more of the stage; a reply when the stage is judging."""
        if stage == "judge" and n:
            ctypes.CDLL(None).fault_note(b"acknowledged", b"", b"")
        super().advance(stage, n)


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
        library.fault_count.restype = library.fault_struck_at_ns.restype = ctypes.c_long
        counts = {kind: library.fault_count(number) for number, kind in enumerate(KINDS)}
        told = {"counts": counts, "struck_at_ns": library.fault_struck_at_ns()}
        Path(command["said"] + ".counts").write_text(json.dumps(told))


def _counts(command: dict[str, Any]) -> dict[str, Any]:
    path = Path(command["said"] + ".counts")
    return dict(json.loads(path.read_text())) if path.exists() else {"counts": {}, "struck_at_ns": 0}


if __name__ == "__main__":
    main()
