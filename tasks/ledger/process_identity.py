"""Who holds claims: a process known by its machine, number and start, so that a dead one is seen dead at once. No SQL here."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

EXPIRES_AFTER_S = 60.0
"""An owner that has not said for so long that it lives counts as gone, wherever it ran."""
RENEW_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """A process. `host` is None where a process cannot be looked up from another: then only time tells."""

    host: str | None
    pid: int
    started: str


@cache
def this_process() -> Process:
    """The running process. Linux: the machine's boot and the space its process numbers are counted in name the host."""
    pid = os.getpid()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        host = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return Process(None, pid, "")
    return Process(host, pid, _started(pid) or "")


os.register_at_fork(after_in_child=this_process.cache_clear)


def is_dead(owner: Process) -> bool:
    """Whether the owner ran on this machine and its process is no more; False where that cannot be told from here."""
    here = this_process()
    if here.host is None or owner.host != here.host:
        return False
    return _started(owner.pid) != owner.started


def _started(pid: int) -> str | None:
    """When the process began, in clock ticks since the machine did: a number used again is another process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # from field 3 on; the name before it may hold spaces and brackets
    return None if fields[0] in "ZX" else fields[19]  # killed and not yet waited for is dead
