"""Ending what `salon serve` and `salon worker` started: runs drain first, nothing is left, and nothing else is touched."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.run.programs import LocalServer, Program, ProgramOptions, free_port
from schemas.errors import StoreError
from tests.support.processes import mentioning

# A worker with one run under it, each in a session of its own as Prefect's are. Both write down when they end.
RUN = """
import signal, sys, time
def end(*_):
    time.sleep(float(sys.argv[2]))
    open(sys.argv[1], "a").write("run\\n"); sys.exit(143)
signal.signal(signal.SIGTERM, end)
open(sys.argv[1] + ".up", "w").close()
time.sleep(60)
"""
WORKER = """
import signal, subprocess, sys, time
def end(*_):
    open(sys.argv[1], "a").write("worker\\n"); sys.exit(0)
signal.signal(signal.SIGTERM, end)
subprocess.Popen([sys.executable, "-c", sys.argv[3], sys.argv[1], sys.argv[2], "prefect.engine"], start_new_session=True)
time.sleep(60)
"""


KILLED = """
import os, signal, sys
from pathlib import Path
from flows.run.programs import LocalServer
up = Path(sys.argv[1]) / "up"
local = LocalServer(up.parent).__enter__()
local.start("p", [sys.executable, "-c", "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(60)", str(up)], up.exists)
os.kill(os.getpid(), signal.SIGKILL)
"""


def started(folder: Path, drain_s: float, grace_s: float) -> tuple[Program, Path]:
    said = folder / "said"
    process = subprocess.Popen([sys.executable, "-c", WORKER, str(said), str(drain_s), RUN], start_new_session=True)
    deadline = time.monotonic() + 30
    while not said.with_suffix(".up").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return Program("worker", process, ProgramOptions(grace_s=grace_s)), said


def test_runs_drain_before_their_worker_is_told(tmp_path: Path) -> None:
    program, said = started(tmp_path, drain_s=0.6, grace_s=30)
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "prefect.engine"])
    program.stop()
    assert said.read_text().split() == ["run", "worker"]
    assert not mentioning(str(said))
    assert other.poll() is None, "a run of somebody else's worker goes on"
    other.kill()
    other.wait()


def test_what_does_not_end_in_its_time_is_ended(tmp_path: Path) -> None:
    program, said = started(tmp_path, drain_s=50, grace_s=0.5)
    began = time.monotonic()
    program.stop()
    assert said.read_text().split() == ["worker"]
    assert not mentioning(str(said))
    assert time.monotonic() - began < 40


def test_the_latest_program_ends_first_and_a_failed_start_ends_them_all(tmp_path: Path) -> None:
    end = "import signal, sys, time; f = lambda *_: (open(sys.argv[1], 'a').write(sys.argv[2] + ' '), sys.exit(0)); "
    end += "signal.signal(signal.SIGTERM, f); open(sys.argv[1] + sys.argv[2], 'w').close(); time.sleep(60)"
    said = tmp_path / "said"
    with pytest.raises(StoreError, match=r"(?s)third did not start.*no such thing"):
        _start_three(tmp_path, [sys.executable, "-c", end, str(said)])
    assert said.read_text().split() == ["second", "first"]


def _start_three(folder: Path, command: list[str]) -> None:
    with LocalServer(folder) as local:
        for name in ("first", "second"):
            local.start(name, [*command, name], (folder / f"said{name}").exists)
        local.start("third", [sys.executable, "-c", "import sys; sys.exit('no such thing')"], lambda: False)


def test_a_program_hears_of_our_death(tmp_path: Path) -> None:
    """Killed outright, `salon serve` ends nothing itself: the kernel tells what it started."""
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=Path(__file__).parents[2], check=False)
    assert (tmp_path / "up").exists()
    deadline = time.monotonic() + 10
    while mentioning(str(tmp_path / "up")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not mentioning(str(tmp_path / "up"))


def test_a_port_that_is_taken_is_left_alone() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert free_port(taken.getsockname()[1]) != taken.getsockname()[1]
