"""Hosts of this machine: store, ledger, judge, Dask scheduler, workers, flow and reader. What is run on them: many_hosts.py.

A host is a network of its own with one address (network_faults.py), its own process numbers, and its own /tmp, in which its
program's caches and data are. All they share are addresses, the programs, and the pictures that a source names, at the same path.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from network_faults import NetworkFaults

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("store", "ledger", "judge", "scheduler", "worker-1", "worker-2", "flow", "reader")
ADDRESS = {name: f"10.77.0.{number}" for number, name in enumerate(NAMES, 2)}
SALON = (sys.executable, "-m", "flows")
START_LIMIT_S, RUN_LIMIT_S = 90.0, 600.0
POSTGRES = """
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1); install -d -o postgres /tmp/data; cd /tmp
as="setpriv --reuid=postgres --regid=postgres --clear-groups"
$as $bin/initdb -D /tmp/data -A trust -U salon -E UTF8 --locale=C >/dev/null
echo "host all all 10.77.0.0/24 trust" >> /tmp/data/pg_hba.conf
exec $as $bin/postgres -D /tmp/data -h {ledger} -k ""
"""
JUDGE = "from aiohttp import web; from demo.server import make_app; web.run_app(make_app(), host='{judge}', port=8000)"
BUCKET = "import boto3; boto3.client('s3').create_bucket(Bucket='lake')"
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT),
    "HOME": "/tmp",
    "OPENAI_API_KEY": "no-key-is-needed",
    "AWS_ENDPOINT_URL": f"http://{ADDRESS['store']}:9000",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "word",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "DO_NOT_TRACK": "1",
}


@dataclass
class Hosts:
    """The hosts, joined by links, and the programs that run on them."""

    folder: Path
    pictures: Path
    network: NetworkFaults
    programs: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def start(self, name: str, *command: str) -> "subprocess.Popen[bytes]":
        """A program on a host, in a space of process numbers and a /tmp of its own, which end with it."""
        kept = "".join(f'mkdir -p "$0{place}"; mount --bind {place} "$0{place}"\n' for place in self._below_tmp())
        mounts = (
            f'hostname {name}; ip link set lo up; set -e; mount -t tmpfs tmpfs "$0"; mkdir -p -m 1777 "$0/tmp"\n{kept}'
            'mount --rbind "$0/tmp" /tmp; cd /tmp; exec "$@"'
        )
        place = self.folder / f"host-{name}"
        place.mkdir(exist_ok=True)
        spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"]
        whole = ["ip", "netns", "exec", f"salon-{name}", *spaces, "sh", "-c", mounts, str(place), *command]
        with (self.folder / f"{name}.txt").open("ab") as said:
            program = subprocess.Popen(whole, env={"PATH": os.environ["PATH"]} | ENVIRONMENT, stdout=said, stderr=said)
        self.programs.append(program)
        return program

    def start_workers(self) -> None:
        """Two hosts with a worker each."""
        at = f"tcp://{ADDRESS['scheduler']}:8786"
        for name in ("worker-1", "worker-2"):
            own = ("--host", ADDRESS[name], "--nthreads", "1", "--no-dashboard")
            self.start(name, sys.executable, "-m", "dask", "worker", at, *own)

    def run(self, name: str, *command: str) -> str:
        """What a program says that ends by itself. Raises RuntimeError where it fails."""
        before = len(self.said(name))
        code = self.start(name, *command).wait(RUN_LIMIT_S)
        if code:
            raise RuntimeError(f"{command} on {name} ended with {code}: {self.said(name)[before:]}")
        return self.said(name)[before:]

    def salon(self, name: str, *words: str) -> str:
        """A command of Salon's on a host."""
        return self.run(name, *SALON, *words)

    def said(self, name: str) -> str:
        """Everything said on a host so far."""
        path = self.folder / f"{name}.txt"
        return path.read_text() if path.exists() else ""

    def _below_tmp(self) -> list[Path]:
        return [place for place in (ROOT, self.pictures) if place.is_relative_to("/tmp")]


@contextmanager
def running_hosts(pictures: Path, delay_s: float) -> Iterator[Hosts]:
    """All hosts with their servers, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="salon-hosts-", dir="/run") as folder, ExitStack() as stack:
        network = stack.enter_context(NetworkFaults(ADDRESS, delay_s))
        hosts, python = Hosts(Path(folder), pictures, network), sys.executable
        stack.callback(lambda: [(one.kill(), one.wait()) for one in hosts.programs])
        hosts.start("store", str(Path(python).with_name("moto_server")), "-H", ADDRESS["store"], "-p", "9000")
        hosts.start("ledger", "sh", "-c", POSTGRES.format(**ADDRESS))
        hosts.start("judge", python, "-c", JUDGE.format(**ADDRESS))
        hosts.start("scheduler", python, "-m", "dask", "scheduler", "--host", ADDRESS["scheduler"], "--no-dashboard")
        hosts.start_workers()
        for name, port in (("store", 9000), ("ledger", 5432), ("judge", 8000), ("scheduler", 8786)):
            _await(hosts, name, port)
        hosts.run("flow", python, "-c", BUCKET)
        yield hosts


def _await(hosts: Hosts, name: str, port: int) -> None:
    """Wait until a server answers the flow's host."""
    until_s = time.monotonic() + START_LIMIT_S
    asked = f"import socket; socket.create_connection(('{ADDRESS[name]}', {port}), 2)"
    while True:
        try:
            hosts.run("flow", sys.executable, "-c", asked)
        except RuntimeError as error:
            if time.monotonic() > until_s:
                raise RuntimeError(f"{name} does not answer: {hosts.said(name)}") from error
            time.sleep(0.5)
        else:
            return
