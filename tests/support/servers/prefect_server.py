"""Real Prefect servers: one that the tests of a process share, and one for a block, that can end and start again. No tests."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.run.programs import answers, free_port

START_LIMIT_S = 240.0
"""A machine that does much else at the same time takes its time."""
ANSWER_LIMIT_S = 300.0
"""For all tries of one question to a server."""
QUICK = {
    "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "2",
    "PREFECT_SERVER_SERVICES_SCHEDULER_RECENT_DEPLOYMENTS_LOOP_SECONDS": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "0.3",
    "PREFECT_WORKER_QUERY_SECONDS": "1",
    "PREFECT_WORKER_HEARTBEAT_SECONDS": "2",
}
"""What takes minutes with Prefect's own settings takes seconds: how often one looks, or writes events down."""


class RunningPrefect:
    """A server on a port of its own over the database in `home`; `environment` is that of programs that use it."""

    def __init__(self, home: Path, **settings: str) -> None:
        port = free_port(0)
        self.api, self.home = f"http://127.0.0.1:{port}/api", home
        self._own = _environment(home) | QUICK | settings
        self.environment = self._own | {"PREFECT_API_URL": self.api}
        self._command = [
            sys.executable,
            "-m",
            "prefect",
            "server",
            "start",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--no-ui",
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **settings: str) -> None:
        """Start it, again if it ended, with other settings where some are given, and wait until it answers."""
        self._own |= settings
        log = self.home / "server.log"
        with log.open("ab") as said:
            self._process = subprocess.Popen(self._command, env=self._own, stdout=said, stderr=said, start_new_session=True)
        give_up_s = time.monotonic() + START_LIMIT_S
        while not answers(f"{self.api}/health"):
            assert self._process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < give_up_s, "the Prefect server did not start"
            time.sleep(0.2)

    def stop(self) -> None:
        """End it, and all that it started."""
        if self._process is not None:
            end(self._process)

    def kill(self) -> None:
        """kill -9, the server's own children too."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.fixture(scope="session")
def prefect_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's empty database: ten seconds of CPU, once for all processes of tests."""
    home = tmp_path_factory.getbasetemp().parent / "prefect-tables"
    home.mkdir(exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "is-whole").exists():
            command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "-y"]
            subprocess.run(command, env=_environment(home), check=True, capture_output=True)
            (home / "is-whole").touch()
    return home / "prefect.db"


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory, prefect_tables: Path) -> Iterator[RunningPrefect]:
    """A server. No flow is shown by it that does not ask for `prefect_api`, or is told the address."""
    with running_prefect(tmp_path_factory.mktemp("prefect"), prefect_tables) as server:
        yield server
        with shown_by(server.api):
            tell_what_is_left()


def tell_what_is_left() -> None:
    """Send what Prefect's client still holds: at the process's end it would look for the server a minute long."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    APILogWorker.drain_all(timeout=60)
    EventsWorker.drain_all(timeout=60)


@pytest.fixture
def prefect_api(prefect_server: RunningPrefect) -> Iterator[str]:
    """The address of the server that shows the flows of this test."""
    with shown_by(prefect_server.api):
        yield prefect_server.api


@contextmanager
def shown_by(api: str) -> Iterator[None]:
    """Let this process's flows be those of the server at `api`.

    Prefect's client keeps sending events to the server it first spoke to: what it holds is sent, and it begins anew.
    """
    from prefect.settings import PREFECT_API_URL, temporary_settings

    tell_what_is_left()
    with temporary_settings({PREFECT_API_URL: api}):
        yield


@contextmanager
def running_prefect(folder: Path, tables: Path, **settings: str) -> Iterator[RunningPrefect]:
    """Start a server on a free port over a copy of `tables`; `settings` are variables of its environment beside `QUICK`."""
    home = folder / "prefect-home"
    home.mkdir()
    shutil.copyfile(tables, home / "prefect.db")
    server = RunningPrefect(home, **settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def asked(api: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """What a server answers to a question that changes nothing, a POST where it has a body: asked again while it is too busy."""
    give_up_s = time.monotonic() + ANSWER_LIMIT_S
    while True:
        try:
            return (
                httpx.request("GET" if body is None else "POST", f"{api}/{path}", json=body, timeout=60).raise_for_status().json()
            )
        except (httpx.TransportError, httpx.HTTPStatusError):
            if time.monotonic() > give_up_s:
                raise
            time.sleep(1)


def told(api: str, path: str, body: dict[str, Any]) -> Any:
    """What a server answers to what changes something: waited for long, and said again only where it refused for being busy.

    With SQLite under it Prefect answers 503 where its tables are locked: nothing was changed, and its own clients ask again.
    """
    give_up_s = time.monotonic() + ANSWER_LIMIT_S
    while (answer := httpx.post(f"{api}/{path}", json=body, timeout=ANSWER_LIMIT_S)).status_code == 503:
        if time.monotonic() > give_up_s:
            break
        time.sleep(1)
    return answer.raise_for_status().json()


def _environment(home: Path) -> dict[str, str]:
    """Nothing of the settings of who runs the tests."""
    own = {"PREFECT_HOME": str(home), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")} | own


def end(process: subprocess.Popen[bytes], patience_s: float = 10.0) -> None:
    """Tell a program that leads a session of its own to stop, and end what is left of the session."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
