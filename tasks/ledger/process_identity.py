"""Who holds claims: a process known by its machine, number and start, so that a dead one is seen dead at once. No SQL here.

And what a process has of its machine: clocks, chance, threads, the sight of other processes. It is handed in with the ledger.
"""

import asyncio
import os
import platform
import queue
import random
import secrets
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import psutil

EXPIRES_AFTER_S = 60.0
"""An owner that has not said for so long that it lives counts as gone, wherever it ran."""
RENEW_EVERY_S = 10.0


def expiry_us(moment_us: int) -> int:
    """The moment up to which an owner that says now that it lives counts as living; microseconds."""
    return moment_us + int(EXPIRES_AFTER_S * 1e6)


@dataclass(frozen=True, slots=True)
class Process:
    """A process. `host` is None where a process cannot be looked up from another: then only time tells."""

    host: str | None
    pid: int
    started: str


@cache
def this_process() -> Process:
    """The running process."""
    pid = os.getpid()
    return Process(_host(), pid, _started(pid))


os.register_at_fork(after_in_child=this_process.cache_clear)


def lives(owner: Process) -> bool | None:
    """Whether the owner's process lives on this machine; None where that cannot be told from here."""
    here = this_process()
    if here.host is None or owner.host != here.host:
        return None
    try:
        return _started(owner.pid) == owner.started
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return None


def is_paused(owner: Process) -> bool:
    """Whether the owner's process, which lives on this machine, was told to stop and may go on (SIGSTOP, a debugger)."""
    try:
        return psutil.Process(owner.pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    except psutil.Error:
        return False


class Joinable(Protocol):
    """A thread that was started."""

    def join(self) -> None:
        """Wait for its end."""


def _started_thread(function: Callable[[], None], name: str) -> Joinable:
    thread = threading.Thread(target=function, name=name, daemon=True)
    thread.start()
    return thread


@dataclass(frozen=True, slots=True)
class Machine:
    """What a process has of its machine. By default the one it runs on; a simulation hands in another.

    `monotonic_s` and `time_ns` are the clocks nobody sets and the one that tells the day; `wait` and `result` are how a thread
    waits for an event and for what another one makes.
    """

    monotonic_s: Callable[[], float] = time.monotonic
    time_ns: Callable[[], int] = time.time_ns
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform
    getrandbits: Callable[[int], int] = random.getrandbits
    token_hex: Callable[[int], str] = secrets.token_hex
    this_process: Callable[[], Process] = this_process
    lives: Callable[[Process], bool | None] = lives
    is_paused: Callable[[Process], bool] = is_paused
    queue: Callable[[], "queue.SimpleQueue[Any]"] = queue.SimpleQueue
    start: Callable[[Callable[[], None], str], Joinable] = _started_thread
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait
    result: Callable[["Future[Any]"], Any] = Future.result
    in_thread: Callable[..., Awaitable[Any]] = asyncio.to_thread

    def is_dead(self, owner: Process) -> bool:
        """Whether the owner ran on this machine and its process is no more; False where that cannot be told from here.

        A row of another machine, container or boot is believed until it expires; so is one whose process may not be looked at.
        """
        return self.lives(owner) is False


HERE = Machine()


@dataclass(slots=True)
class Doubts:
    """Rows of other owners that are over, and since when: one object for each that looks at them.

    On this machine a clock that was set, or a pause, makes a living owner's row look over: it is let renew it for as long as a
    row lasts by a clock that nobody sets, and for as long as it is paused. Only time in which it was looked at counts: while
    nobody looked it may have been paused, and only now go on.
    """

    machine: Machine = HERE
    _since: dict[str, tuple[int, float, float]] = field(default_factory=dict)

    def is_gone(self, owner_id: str, owner: Process, expires_at_us: int, moment_us: int) -> bool:
        """Whether an owner whose row ends at `expires_at_us` counts as gone at `moment_us`."""
        is_alive = self.machine.lives(owner)
        if is_alive is False or (expires_at_us < moment_us and not is_alive):
            return True
        if expires_at_us >= moment_us:
            self._since.pop(owner_id, None)
            return False
        now_s = self.machine.monotonic_s()
        said, since_s, looked_s = self._since.get(owner_id, (None, 0.0, 0.0))
        if said != expires_at_us or self.machine.is_paused(owner) or now_s - looked_s > RENEW_EVERY_S:
            since_s = now_s
        self._since[owner_id] = (expires_at_us, since_s, now_s)
        return now_s - since_s > EXPIRES_AFTER_S


def _host() -> str | None:
    """Where process numbers are counted. Linux: the machine's boot and the space of the numbers. macOS: the machine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        node = uuid.getnode()
        is_drawn = bool(node >> 40 & 1)  # no network card was found: another process would draw another number
        return f"{node:012x} {platform.node()}"[:128] if psutil.MACOS and not is_drawn else None


def _started(pid: int) -> str:
    """When the process began, in clock ticks since the machine did: a number used again is another process.

    Elsewhere than on Linux psutil tells it by a clock that can be set, and a living process must not be taken for another: there
    the number alone counts. Raises psutil.Error; a process that was killed and not yet waited for is none.
    """
    while True:
        process, boot_s = psutil.Process(pid), psutil.boot_time()
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            raise psutil.NoSuchProcess(pid)
        if not psutil.LINUX:
            return ""
        started_s = process.create_time() - boot_s
        if psutil.boot_time() == boot_s:  # else the clock was set this moment
            return str(round(started_s * os.sysconf("SC_CLK_TCK")))
