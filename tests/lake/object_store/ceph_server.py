"""A real S3 server for the tests: Ceph's radosgw over one monitor and one object daemon in memory, on loopback. Run it by hand:

    python tests/lake/object_store/ceph_server.py /tmp/ceph     # prints what to set in the environment; ends with its process

Debian: apt-get install --no-install-recommends radosgw ceph-mon ceph-osd
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "monmaptool", "ceph-authtool")
KEY, SECRET, BUCKET = "salontest", "not-a-secret-of-anybody", "lake"
START_S = 120.0
CONFIG = """\
[global]
fsid = 00000000-0000-4000-8000-000000000001
mon host = [v2:127.0.0.1:{mon_port}/0]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd crush chooseleaf type = 0
mon allow pool size one = true
mon allow pool delete = true
mon warn on pool no redundancy = false
osd objectstore = memstore
memstore device bytes = 4294967296
osd heartbeat grace = 600
run dir = {folder}
log file = {folder}/$name.log
admin socket = {folder}/$name.asok
pid file = {folder}/$name.pid
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}/rgw
[mon.a]
public addr = [v2:127.0.0.1:{mon_port}/0]
[client.admin]
keyring = {folder}/keyring
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw thread pool size = 64
rgw enable usage log = false
rgw enable gc threads = false
rgw enable lc threads = false
rgw enable quota threads = false
rgw run sync thread = false
"""


def is_installed() -> bool:
    """Whether every program is there."""
    return all(shutil.which(name) for name in PROGRAMS)


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The address of a server with a bucket of the name BUCKET; it and all it holds are gone afterwards."""
    folder = folder.resolve()
    for name in ("mon", "osd", "rgw"):
        (folder / name).mkdir(parents=True)
    port, mon_port = _free_port(), _free_port()
    config = folder / "ceph.conf"
    config.write_text(CONFIG.format(folder=folder, port=port, mon_port=mon_port))
    started: list[subprocess.Popen[bytes]] = []
    try:
        _start(folder, config, mon_port, started)
        _wait_for(port, started)
        url = f"http://127.0.0.1:{port}"
        _make_bucket(url)
        yield url
    finally:
        for process in reversed(started):
            process.kill()
        for process in started:
            process.wait()


def _start(folder: Path, config: Path, mon_port: int, started: list[subprocess.Popen[bytes]]) -> None:
    def run(*command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_S, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")

    def start(*command: str) -> None:
        with (folder / f"{command[0]}.out").open("wb") as out:
            started.append(subprocess.Popen(command, stdout=out, stderr=out))

    conf = ("-c", str(config))
    fsid, osd_id = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
    monmap, keyring = str(folder / "monmap"), str(folder / "keyring")
    every = ("--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mgr", "allow *")
    run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", *every)
    run("ceph-authtool", keyring, "--gen-key", "-n", "client.admin", *every)
    run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{mon_port}]", monmap)
    run("ceph-mon", *conf, "--mkfs", "-i", "a", "--monmap", monmap, "--keyring", keyring)
    start("ceph-mon", *conf, "-i", "a", "-f")
    run("ceph", *conf, "osd", "new", osd_id)
    run(
        "ceph", *conf, "auth", "get-or-create", "osd.0", "mon", "allow *", "osd", "allow *", "-o", str(folder / "osd" / "keyring")
    )
    run("ceph-osd", *conf, "-i", "0", "--mkfs", "--osd-uuid", osd_id)
    start("ceph-osd", *conf, "-i", "0", "-f")
    run(
        "radosgw-admin", *conf, "user", "create", "--uid=salon", "--display-name=salon",
        f"--access-key={KEY}", f"--secret-key={SECRET}",
    )  # fmt: skip
    start("radosgw", *conf, "-n", "client.admin", "-f")


def _make_bucket(url: str) -> None:
    import boto3

    names = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=url, **names).create_bucket(Bucket=BUCKET)


def _wait_for(port: int, started: list[subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        ended = [process.args for process in started if process.poll() is not None]
        if ended:
            raise RuntimeError(f"{ended} ended while starting")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"no S3 server on port {port} within {START_S:.0f} s")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with running(Path(sys.argv[1])) as address:
        os.write(1, f"SALON_S3_TEST_URL={address}\nAWS_ACCESS_KEY_ID={KEY}\nAWS_SECRET_ACCESS_KEY={SECRET}\n".encode())
        signal.pause()
