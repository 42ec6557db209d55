"""`salon worker` around a double of Prefect's worker that takes its time: every way out ends it too, and only after its runs."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.processes import hearing_hangups, mentioning

ROOT = Path(__file__).parents[3]
DOUBLE = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("told to stop", flush=True), time.sleep(2), os._exit(0)))
print("ready", flush=True)
time.sleep(600)
"""
COMMAND = """
import sys
from flows import cli
from flows.commands import serving
from flows.serving import deploying
deploying.named_server = lambda: None
serving._worker_command = lambda pool: [sys.executable, double]
cli.main()
"""


@pytest.mark.parametrize(
    ("sent", "code"),
    [(("INT", "INT"), 143), (("TERM", "INT", "TERM"), 143), (("HUP",), 143), (("KILL",), -9)],
    ids=["Ctrl-C twice", "TERM, and impatience", "its terminal is closed", "killed"],
)
def test_no_way_out_leaves_the_worker(sent: tuple[str, ...], code: int, tmp_path: Path) -> None:
    if sent == ("KILL",) and shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) tells a program that its starter was killed; it is not installed")
    double = tmp_path / "double.py"
    double.write_text(DOUBLE)
    command = [sys.executable, "-c", f"double = {str(double)!r}\n{COMMAND}", "worker"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with hearing_hangups():
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        for name in sent:
            process.send_signal(signal.Signals[f"SIG{name}"])
            time.sleep(0.5)
        assert process.wait(60) == code
        give_up_s = time.monotonic() + (10 if sent == ("KILL",) else 0)
        while (left := mentioning(f"python\0{double}")) and time.monotonic() < give_up_s:
            time.sleep(0.1)
        assert not left
        assert "told to stop" in process.stdout.read()
    finally:
        process.stdout.close()
        process.kill()
        process.wait()
