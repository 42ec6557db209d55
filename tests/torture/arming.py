"""A fault put on a child: the library's call that fails, or the function it dies at. Called in the child by process_pool.py."""

import ctypes
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

KINDS = ("write", "fsync", "rename", "connect", "bytes", "send")
ACTIONS = ("fail", "kill", "full", "trace")


def arm(command: dict[str, Any]) -> None:
    """Before the run: the call that is to fail, or the point to die at."""
    if "kind" in command:
        ctypes.CDLL(None).fault_arm(
            command["root"].encode(), KINDS.index(command["kind"]), ACTIONS.index(command["action"]), ctypes.c_long(command["n"])
        )
    if "point" in command:
        hook = _killer(command)
        threading.setprofile(hook)
        sys.setprofile(hook)


def _killer(command: dict[str, Any]) -> Any:
    """A profile hook that kills the process at the nth call, or return, of the named function of ours or of the interpreter."""
    point, event = command["point"], command["event"]
    left = [command["nth"]]

    def hook(frame: FrameType, what: str, function: Any) -> None:
        if what != event:
            return
        name = getattr(function, "__qualname__", "") if what.startswith("c_") else frame.f_code.co_qualname
        if name == point:
            left[0] -= 1
            if left[0] == 0:
                tell_counts(command)
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def tell_counts(command: dict[str, Any]) -> None:
    """Write down what was counted, for counts_told() in the parent."""
    if "kind" in command:
        library = ctypes.CDLL(None)
        library.fault_count.restype = library.fault_struck_at_ns.restype = ctypes.c_long
        counts = {kind: library.fault_count(number) for number, kind in enumerate(KINDS)}
        told = {"counts": counts, "struck_at_ns": library.fault_struck_at_ns()}
        Path(command["said"] + ".counts").write_text(json.dumps(told))


def counts_told(command: dict[str, Any]) -> dict[str, Any]:
    """Counts of calls by kind, and when the first one failed (ns since 1970, 0: none did)."""
    path = Path(command["said"] + ".counts")
    return dict(json.loads(path.read_text())) if path.exists() else {"counts": {}, "struck_at_ns": 0}
