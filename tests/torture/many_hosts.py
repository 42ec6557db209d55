"""The demo benchmark over hosts that share nothing but addresses, and what happens when its flow or its scheduler is lost.

    python tests/torture/many_hosts.py [--delay-ms 20] [--only whole flow scheduler]

`whole`: a run and its verification, and how fast it judged. `flow`: the host of the flow ends amid the run, and the same command
is given at once on another. `scheduler`: its link is cut amid the run, until the run has ended; then the same command.
Packets between hosts take `--delay-ms` there and back. Exit code 1 where a question that was answered is asked again. Needs
root, Linux' namespaces, PostgreSQL; where they are not there it says so, and runs nothing.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hosts import ADDRESS, ROOT, RUN_LIMIT_S, SALON, Hosts, running_hosts
from network_faults import why_not

from demo import paint

BENCHMARK = """\
lake = "s3://lake/{name}"
ledger = "postgresql+psycopg://salon@{ledger}/postgres"
runner = "dask"
workers = {{ address = "tcp://{scheduler}:8786" }}
"""
COUNTED = """
import json, sys; from sqlalchemy import create_engine, text
with create_engine(sys.argv[1]).connect() as ledger:
    row = ledger.execute(text("SELECT count(*), count(DISTINCT request_key), count(ended_at_us), "
        "(max(ended_at_us) - min(started_at_us)) / 1e6 FROM attempts")).one()
    print(json.dumps([*map(float, row), ledger.execute(text("SELECT count(*) FROM replies")).scalar_one()]))
"""
LEDGER = f"postgresql+psycopg://salon@{ADDRESS['ledger']}/postgres"
ASKED = "import urllib.request; print(urllib.request.urlopen('http://{judge}:8000/stats').read().decode())"
SLOWLY = "requests_per_minute = 1800"  # a run that can be disturbed
N_BEFORE = 300  # questions asked when it is


def file_for(pictures: Path, name: str, limits: str = "") -> Path:
    """The demo's benchmark file with its lake, ledger, workers and judge elsewhere."""
    text = (ROOT / "demo" / "benchmark.toml").read_text().replace('lake = "../lake/"', BENCHMARK.format(name=name, **ADDRESS))
    text = text.replace("[[judges]]\n", f'[[judges]]\nbase_url = "http://{ADDRESS["judge"]}:8000/v1"\n')
    file = pictures / f"{name}.toml"
    file.write_text(f"{text}\n{limits}\n")
    return file


def whole(hosts: Hosts, file: Path) -> None:
    """A run, verified on a host that had no part in it."""
    said = hosts.salon("flow", "run", str(file), "--run-date", "2026-01-01")
    found = re.search(r"^publication (\w+)", said, re.MULTILINE)
    assert found, said
    print(said, hosts.salon("reader", "verify", found[1], "--lake", f"s3://lake/{file.stem}"), sep="\n")


def flow(hosts: Hosts, file: Path) -> None:
    """The flow's host ends; another one goes on at once, while workers still follow the dead flow."""
    _started(hosts, file).kill()
    began_s = time.monotonic()
    hosts.salon("reader", "run", str(file), "--run-date", "2026-01-01")
    print(f"the flow's host ended; the next one was done after {time.monotonic() - began_s:.0f} s")


def scheduler(hosts: Hosts, file: Path) -> None:
    """Nobody hears of the scheduler any more, and nobody is told so."""
    running = _started(hosts, file)
    began_s = time.monotonic()
    hosts.network.lost.add(ADDRESS["scheduler"])
    code, cut_s = running.wait(RUN_LIMIT_S), time.monotonic() - began_s
    print(f"the scheduler's link was cut; the run ended with {code} after {cut_s:.0f} s: {hosts.said('flow')[-300:]}")
    hosts.network.lost.clear()
    hosts.start_workers()
    hosts.salon("flow", "run", str(file), "--run-date", "2026-01-01")
    print(f"all was done after {time.monotonic() - began_s:.0f} s")


def _started(hosts: Hosts, file: Path) -> "subprocess.Popen[bytes]":
    """A run that has asked some of its questions."""
    running = hosts.start("flow", *SALON, "run", str(file), "--run-date", "2026-01-01")
    while json.loads(hosts.run("reader", sys.executable, "-c", ASKED.format(**ADDRESS)))["n_requests"] < N_BEFORE:
        assert running.poll() is None, hosts.said("flow")
        time.sleep(0.2)
    return running


SCENES = {"whole": whole, "flow": flow, "scheduler": scheduler}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay-ms", type=float, default=0.0, help="there and back")
    parser.add_argument("--only", nargs="*", choices=list(SCENES), default=list(SCENES))
    given = parser.parse_args()
    if reason := why_not():
        print(f"not run: {reason}")
        return 0
    pictures, is_once = Path(tempfile.mkdtemp(prefix="salon-pictures-")), []
    try:
        paint(pictures)
        for name in given.only:
            file = file_for(pictures, name, "" if name == "whole" else SLOWLY)
            with running_hosts(pictures, given.delay_ms / 2000) as hosts:
                began_s = time.monotonic()
                SCENES[name](hosts, file)
                took_s = time.monotonic() - began_s
                n, n_keys, n_ended, judged_s, n_replies = json.loads(hosts.run("reader", sys.executable, "-c", COUNTED, LEDGER))
            print(
                f"{name}, {given.delay_ms:g} ms: {took_s:.1f} s; {n_replies:.0f} replies in {judged_s:.1f} s, "
                f"{n:.0f} attempts of which {n - n_ended:.0f} have no end",
                flush=True,
            )
            is_once.append(n_replies == n_keys and n - n_keys <= n - n_ended)
        return int(not all(is_once))
    finally:
        shutil.rmtree(pictures)


if __name__ == "__main__":
    sys.exit(main())
