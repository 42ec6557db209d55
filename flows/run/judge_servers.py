"""Judges served on this machine: started, waited for, watched and ended beside a run or for `salon judge-server`."""

import errno
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from flows.run.context import RunContext
from flows.run.programs import LocalServer, Program, ProgramOptions, answers
from schemas.benchmark.file import Benchmark
from schemas.benchmark.judges import Judge
from schemas.errors import InputError, ProviderDownError
from tasks.context import StageContext
from tasks.judge import local_identity
from tasks.lake.atomic_files import write_bytes
from tasks.stopping import SIGNALLED, STOP, check_not_stopped

GRACE_S = 30.0
_WATCH_S = 0.5
OnWait = Callable[[Judge, float], None]


class Servers:
    """The servers that a block started, by judge. Each is started when it is first wanted, and runs until the block ends."""

    def __init__(self, run: StageContext, local: LocalServer, on_wait: OnWait) -> None:
        self._run, self.local, self._on_wait = run, local, on_wait
        self.up: dict[str, Program] = {}

    def start(self, judges: Iterable[Judge]) -> None:
        """Start those that are not up yet, and wait until they answer.

        Raises InputError for an address that is taken or none of this machine, StoreError where one does not come up.
        """
        for judge in judges:
            if judge.id not in self.up:
                self.up[judge.id] = self._started(judge)

    def _started(self, judge: Judge) -> Program:
        assert judge.server is not None
        run, address = self._run, urlsplit(str(judge.base_url))
        host, port = str(address.hostname), address.port or (443 if address.scheme == "https" else 80)
        _check_port(judge, host, port)
        _check_declared(run, judge)
        health = f"{address.scheme}://{address.netloc}{judge.server.health}"

        def waited(seconds: float) -> None:
            check_not_stopped()
            self._on_wait(judge, seconds)

        began_s, command = time.monotonic(), command_of(run.benchmark, judge, port)
        options, limit_s = ProgramOptions(folder=run.benchmark.folder, grace_s=GRACE_S), judge.server.start_limit_s
        program = self.local.start(judge.id, command, lambda: answers(health), options, limit_s=limit_s, on_wait=waited)
        said = {
            "judge": judge.id, "model": judge.model, "deployment": judge.deployment, "base_url": judge.base_url,
            "command": judge.server.command, "process": program.process.pid, "log": str(self.local.log(judge.id)),
            "ready_at": datetime.now(UTC), "started_in_s": round(time.monotonic() - began_s, 1),
        }  # fmt: skip
        place = self.local.folder / f"{judge.id}.json"
        write_bytes(orjson.dumps(said, option=orjson.OPT_INDENT_2) + b"\n", place, run.lake.root / "staging")
        return program


@contextmanager
def serving(run: StageContext, on_wait: OnWait) -> Iterator[Servers]:
    """End exactly the servers that the block starts when it ends, whatever ends it.

    Where one ends by itself meanwhile, the process is told to stop: what is under way is stored, and ProviderDownError says
    which, with its last words.
    """
    with LocalServer(run.lake.root / local_identity.FOLDER) as local:
        servers = Servers(run, local, on_wait)
        with _watched(servers) as ended:
            try:
                yield servers
            finally:
                if ended and not SIGNALLED.is_set():  # told to stop, the servers may be too: by a batch system or a shutdown
                    STOP.clear()  # it was set for this alone
                    raise ProviderDownError(
                        f"the server of judge {ended[0].name} exited unexpectedly (code {ended[0].process.returncode}); replies "
                        f"are stored; run the same command again to continue. {local.ending(ended[0].name)}"
                    )


def servers_of(run: RunContext) -> AbstractContextManager[Servers]:
    """For the block in which a run asks: the judges' servers that it starts, who waits for them is told."""
    return serving(run, lambda one, s: run.reporter.describe("judge", f"waiting for the server of {one.id}, {s:.0f} s"))


def with_run(benchmark: Benchmark, judges: Collection[str]) -> list[Judge]:
    """Those of these judges whose server a run starts."""
    return [one for one in benchmark.judges if one.server and one.server.with_run and one.id in judges]


def served_around(benchmark: Benchmark) -> Benchmark:
    """The benchmark for those who ask within a block that started the servers: other threads and processes start none."""
    return benchmark.model_copy(update={"judges": [one.model_copy(update={"server": None}) for one in benchmark.judges]})


def command_of(benchmark: Benchmark, judge: Judge, port: int) -> list[str]:
    """The program and its arguments, with port, model and weights in their places."""
    assert judge.server is not None
    weights = benchmark.path(judge.server.weights).resolve() if judge.server.weights else Path()
    said = {"{port}": str(port), "{model}": judge.model, "{weights}": str(weights)}
    words = []
    for word in judge.server.command:
        for name, value in said.items():
            word = word.replace(name, value)  # noqa: PLW2901 - one after the other
        words.append(word)
    return words


def _check_port(judge: Judge, host: str, port: int) -> None:
    """Raise InputError where something listens there, which would be asked in the server's place, or nothing can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that a server left a moment ago is free
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise InputError(
                    f"judge {judge.id}: this machine cannot serve at {judge.base_url} ({error.strerror}); give an address and "
                    "port of its own, or start the server there and leave out with_run"
                ) from error
            raise InputError(
                f"judge {judge.id}: {judge.base_url} is taken ({error.strerror}): requests would go to another server. "
                "Stop that one, or use another port in base_url"
            ) from error


def _check_declared(run: StageContext, judge: Judge) -> None:
    """Raise InputError where the file states other weights than those here: replies would be kept under the others' name."""
    said = judge.deployment or ""
    if not said.startswith(local_identity.BEGINNING):
        return  # words of the user's own
    measured = local_identity.of(run.benchmark, judge, run.lake.root)
    if said != measured:
        raise InputError(f'judge {judge.id}: deployment = "{said}", but this machine serves "{measured}"; correct one of them')


@contextmanager
def _watched(servers: Servers) -> Iterator[list[Program]]:
    """The first server that ended by itself, as soon as it did; the process is then told to stop."""
    ended: list[Program] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_WATCH_S):
            ended.extend(program for program in list(servers.up.values()) if not program.is_alive())
            if ended:
                STOP.set()
                return

    watcher = threading.Thread(target=watch, name="judge-servers", daemon=True)
    watcher.start()
    try:
        yield ended
    finally:
        is_over.set()
        watcher.join()
