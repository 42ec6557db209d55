"""Starting and ending programs beside Salon, with all that they started. Which: judge_servers.py, flows/commands/serving.py."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from threading import current_thread, main_thread
from types import TracebackType
from typing import Any, Self

import psutil

from schemas.errors import StoreError

START_LIMIT_S = 120.0
POLL_S = 0.2
_LAST_S = 5.0  # what a program gets to end by itself once its runs are over


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How a program runs and ends. `environment` is added to ours; `owner` runs it, None is who we are."""

    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    owner: pwd.struct_passwd | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Program:
    """One running program, in a session of its own so that Ctrl-C does not reach it before we do."""

    name: str
    process: subprocess.Popen[bytes]
    options: ProgramOptions

    def is_alive(self) -> bool:
        """Whether the program itself still runs."""
        return self.process.poll() is None

    def stop(self) -> None:
        """Let the runs under it drain, then tell it to stop; wait for all that is under it, and end what is left.

        The runs go first: a Prefect worker that is told to stop kills its runs at once and leaves them Running on the server.
        """
        deadline, told = time.monotonic() + self.options.grace_s, set[psutil.Process]()
        while (runs := _runs_under(self.process.pid)) and time.monotonic() < deadline:
            _signal(runs - told, signal.SIGTERM)
            told |= runs
            time.sleep(POLL_S)
        ours = _descendants(self.process.pid)
        if self.is_alive():
            self.process.send_signal(self.options.stop_signal)
        if not self._is_over(ours, max(deadline, time.monotonic() + _LAST_S)):
            _signal(_alive(ours), signal.SIGKILL)
            self._is_over(ours, time.monotonic() + _LAST_S)

    def _is_over(self, ours: Iterable[psutil.Process], deadline: float) -> bool:
        """Wait until none of these processes is left, or the time is up; whether none is left."""
        while (is_left := self.is_alive() or bool(_alive(ours))) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return not is_left


@dataclass(slots=True)
class LocalServer:
    """The programs started so far. On leaving the block they end, the latest first, and nothing else does."""

    folder: Path
    programs: list[Program] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with _undisturbed():
            while self.programs:
                self.programs[-1].stop()
                self.programs.pop()

    def log(self, name: str) -> Path:
        """Where a program's output goes."""
        return self.folder / "logs" / f"{name}.log"

    def start(
        self,
        name: str,
        command: list[str],
        is_ready: Callable[[], bool],
        options: ProgramOptions = ProgramOptions(),
        *,
        limit_s: float = START_LIMIT_S,
        on_wait: Callable[[float], None] = lambda _: None,
    ) -> Program:
        """Start one program, its output in logs/, and wait until it is ready. Raises StoreError with the log's end.

        `on_wait` is told now and then for how many seconds it was waited; what it raises ends the wait.
        """
        log = self.log(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            try:
                process = subprocess.Popen(
                    tied_to_us(command, options.stop_signal), env={**os.environ, **options.environment}, cwd=options.folder,
                    stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                    **as_user(options.owner),
                )  # fmt: skip
            except OSError as error:  # where nothing ties it to us, that is of the program itself
                raise StoreError(f"{name} did not start: {command[0]} cannot be run: {error.strerror}") from error
        program = Program(name, process, options)
        self.programs.append(program)
        began_s = time.monotonic()
        while not is_ready():
            waited_s = time.monotonic() - began_s
            if not program.is_alive():
                raise StoreError(f"{name} did not start: it exited with code {process.returncode}; {self.ending(name)}")
            if waited_s > limit_s:
                raise StoreError(f"{name} did not start: it was not ready after {waited_s:.0f} s; {self.ending(name)}")
            on_wait(waited_s)
            time.sleep(POLL_S)
        return program

    def ending(self, name: str) -> str:
        """The last of what a program wrote, for people."""
        with self.log(name).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 800))
            said = log.read().decode(errors="replace").strip()
        return f"{self.log(name)} ends:\n{said or '(nothing)'}"

    def wait(self) -> Program:
        """Wait until one of the programs ends by itself; which."""
        while True:
            for program in self.programs:
                if not program.is_alive():
                    return program
            time.sleep(1.0)


def tied_to_us(command: list[str], stop_signal: signal.Signals = signal.SIGTERM) -> list[str]:
    """The command of a program that is told to stop should this process end without a word: Linux sends it the signal."""
    tied = ["setpriv", "--pdeathsig", stop_signal.name.removeprefix("SIG")] if shutil.which("setpriv") else []
    return [*tied, *command]


def as_user(owner: pwd.struct_passwd | None) -> dict[str, Any]:
    """The options of subprocess that run a program as `owner`."""
    return {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let a signal to stop that comes while the block runs have its effect after it: a second Ctrl-C would leave programs."""
    if current_thread() is not main_thread():
        yield
        return
    came: list[int] = []
    stopping = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [number for number in stopping if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for heard in dict.fromkeys(came):
            signal.raise_signal(heard)


def free_port(wanted: int) -> int:
    """The wanted port of loopback, or any free one where it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that a server left a moment ago is free
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Whether a GET is answered with success."""
    try:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy reaches this machine's loopback
        with direct.open(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):  # such as one that speaks TLS
        return False


def _signal(processes: Iterable[psutil.Process], wanted: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(wanted)  # never to another that was given the same number


def _alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if process.is_running() and not _is_zombie(process)]


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _runs_under(root: int) -> set[psutil.Process]:
    """The flow runs of a Prefect worker, and processes about to become one."""
    return {process for process in _descendants(root) if process.pid != root and _is_run(process)}


def _is_run(process: psutil.Process) -> bool:
    try:
        command = process.cmdline()
    except psutil.Error:
        return False
    return any("prefect.engine" in word or "prefect.runner" in word for word in command)


def _descendants(root: int) -> set[psutil.Process]:
    """A process and all under it: a worker's runs are sessions of their own, but its children."""
    try:
        process = psutil.Process(root)
        return {process, *process.children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()
