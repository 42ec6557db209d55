"""infra/systemd and infra/cron: a night without a Prefect server, by the very command lines that stand there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from flows.commands.serving import WORKER_GRACE_S
from flows.serving.deployment_files import INFRA
from schemas.benchmark.nightly import Nightly
from tests.flows.conftest import judge_url as judge_url  # noqa: PLC0414  the judge of the flows' tests
from tests.support.night_world import World, write_benchmark

pytestmark = pytest.mark.slow

ROOT = INFRA.parent
UNITS = sorted((INFRA / "systemd").iterdir())
SERVICE = (INFRA / "systemd" / "salon-nightly@.service").read_text()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, judge_url: str) -> Path:
    """A machine's folders below one of ours: /opt/salon with the command, /etc/salon with a benchmark, /var/lib/salon."""
    root = tmp_path_factory.mktemp("machine")
    for folder in ("opt/salon/.venv/bin", "etc/salon", "var/lib/salon"):
        (root / folder).mkdir(parents=True)
    command = root / "opt/salon/.venv/bin/salon"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m flows "$@"\n')
    command.chmod(0o755)
    World(root / "etc/salon").make(1)
    write_benchmark(root / "etc/salon", judge_url, "geneval.toml")
    (root / "etc/salon/keys.env").write_text("EXAMPLE_KEY='zq7 of nobody'\n")
    return root


def _on(machine: Path, line: str) -> str:
    """The line with the machine's folders in place of the root's."""
    return re.sub(r"(?<![\w/.])/(opt|etc|var)/", lambda found: f"{machine}/{found[1]}/", line)


def _run(line: str, *, shell: bool) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    command = ["/bin/sh", "-c", line] if shell else shlex.split(line)
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_the_lines_as_they_stand_run_a_night_and_find_it_done(installed: Path) -> None:
    (line,) = re.findall(r"^ExecStart=(.+)$", SERVICE, re.MULTILINE)
    night = _run(_on(installed, line.replace("%i", "geneval")), shell=False)
    assert night.returncode == 0, night.stderr
    assert "the night of " in night.stdout
    lock, said = installed / "var/lib/salon/geneval.lock", installed / "var/lib/salon/geneval.log"
    (cron,) = re.findall(r"^\S+ \S+ \* \* \*  salon  (.+)$", (INFRA / "cron" / "salon").read_text(), re.MULTILINE)
    again = _run(_on(installed, cron), shell=True)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", ""), "cron mails what is printed"
    assert "nothing was sent" in said.read_text()
    said.write_text("what the night that is at it has said")
    held = _run(_on(installed, f"flock {lock} sh -c {shlex.quote(_on(installed, cron))}"), shell=True)
    assert (held.returncode, held.stdout) == (0, ""), "another start is at it"
    assert said.read_text() == "what the night that is at it has said"
    (installed / "etc/salon/geneval.toml").write_text("no benchmark")
    mailed = [_run(_on(installed, cron), shell=True).stdout for _ in range(2)]
    assert ["not valid TOML" in mail for mail in mailed] == [True, False], "the same sentence is mailed once"
    (installed / "etc/salon/geneval.toml").write_text('name = "b"')
    assert "sources" in _run(_on(installed, cron), shell=True).stdout, "another one is mailed"
    (installed / "var/lib/salon/geneval.told").write_text(f"2026-01-01\n{said.read_text().splitlines()[-1]}\n")
    assert "sources" in _run(_on(installed, cron), shell=True).stdout, "and so is the same one on another night"
    assert said.read_text().startswith("what the night that is at it has said"), "nothing of a night is overwritten"


def test_the_alert_is_posted_though_the_network_is_away_at_first(tmp_path: Path) -> None:
    (line,) = re.findall(r"^ExecStart=(.+)$", (INFRA / "systemd" / "salon-alert@.service").read_text(), re.MULTILINE)
    (tmp_path / "journalctl").write_text("#!/bin/sh\necho the judge is down\n")
    (tmp_path / "journalctl").chmod(0o755)
    posted: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200 if len(posted) > 1 else 503)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Receiver, bind_and_activate=False) as server:
        server.server_bind()  # not listening yet: connections are refused
        environment = os.environ | {
            "PATH": f"{tmp_path}:{os.environ['PATH']}", "SALON_ALERT_URL": f"http://127.0.0.1:{server.server_port}/"
        }  # fmt: skip
        assert "--retry-delay 60" in line
        command = shlex.split(line.replace("--retry-delay 60", "--retry-delay 1").replace("%i", "geneval"))
        alert = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        assert alert.stderr is not None
        assert all("Failed to connect" in alert.stderr.readline() for _ in range(2)), "it gave up at once"
        server.server_activate()
        for _ in range(2):
            server.handle_request()
        assert alert.wait(30) == 0, alert.stderr.read()
        alert.stderr.close()
    assert posted == [b"the judge is down\n"] * 2


def test_the_units_are_valid_and_say_the_same_as_the_code() -> None:
    assert "RestartPreventExitStatus=1 2 3\n" in SERVICE
    for unit in UNITS:
        for seconds in re.findall(r"TimeoutStopSec=(\d+)", unit.read_text()):
            assert int(seconds) > WORKER_GRACE_S
    for name in ("salon-nightly@.service", "salon-worker.service"):
        lines = (INFRA / "systemd" / name).read_text().splitlines()
        assert {"SuccessExitStatus=143", "StateDirectory=salon", "Environment=HOME=/var/lib/salon"} <= set(lines), "seen to fail"
        assert "RestartForceExitStatus=143 SIGTERM" in lines, "a SIGTERM of others would pass for a night that is done"
    hour, minute = re.findall(r"(\d+):(\d+):00 UTC", (INFRA / "systemd" / "salon-nightly@.timer").read_text())[0]
    assert Nightly().schedule == f"{int(minute)} {int(hour)} * * *"
    boot = (INFRA / "systemd" / "salon-nightly-boot@.timer").read_text()
    assert {"OnBootSec=5min", "Unit=salon-nightly@%i.service"} <= set(boot.splitlines()), "a reboot at 02:10 lost the night"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for unit in UNITS:  # its programs are not installed here, and an instance has a name
        text = unit.read_text().replace("/opt/salon/.venv/bin/salon", "/bin/true").replace("User=salon\n", "")
        (tmp_path / unit.name.replace("@.", "@geneval.")).write_text(text)
    files = [str(file) for file in tmp_path.iterdir()]
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False)
    ours = [line for line in checked.stderr.splitlines() if "salon" in line]
    assert (checked.returncode, ours) == (0, []), checked.stderr
    (moment,) = re.findall(r"^OnCalendar=(.+)$", (INFRA / "systemd" / "salon-nightly@.timer").read_text(), re.MULTILINE)
    calendar = ["systemd-analyze", "calendar", "--base-time=2026-03-28 12:00:00 UTC", moment]
    told = subprocess.run(calendar, capture_output=True, text=True, check=True, env=os.environ | {"TZ": "Europe/Berlin"})
    assert "2026-03-29 02:00:00 UTC" in told.stdout, "also in the night in which clocks are put forward"
