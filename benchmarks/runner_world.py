"""A benchmark, a provider with one limit and the processes of a run, for measuring runners, and for their tests."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import create_engine, text

from demo.running import running_judge

ROOT = Path(__file__).resolve().parents[1]
JUDGE = "gpt-4.1-2025-04-14"
PER_MINUTE, BURST = 1800, 30


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC"
BENCHMARK = """\
name = "runners"
ledger = "{ledger}"
runner = "{runner}"
[workers]
n = {n_workers}
[[sources]]
reader = "manifest"
path = "manifest.jsonl"
model = "painter"
checkpoint = "one"
[[rubrics]]
id = "alignment"
[[judges]]
model = "{judge}"
base_url = "{url}"
api_key_env = "SALON_NO_KEY"
price = {{ input_usd_per_million = 0, output_usd_per_million = 0 }}
[limits]
shard_size = {shard_size}
"""
SCENARIO = """\
[answer]
mode = "canned"
text = "Reasoning: it stands there as asked. Score: 3"
prompt_tokens = 900
completion_tokens = 12
[[models]]
id = "{judge}"
[latency]
median_s = 0.4
sigma = 0.4
[limits]
requests_per_minute = {per_minute}
burst_requests = {burst}
[stats]
items = "content"
"""


def write_world(folder: Path, url: str, ledger: str, runner: str, n_workers: int, n_samples: int, shard_size: int) -> Path:
    """A benchmark file and its samples: one small picture under many prompts."""
    (folder / "dot.png").write_bytes(base64.b64decode(PNG))
    rows = ({"image": "dot.png", "prompt": f"a dot, the {number}th", "item_id": str(number)} for number in range(n_samples))
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    filled = BENCHMARK.format(
        ledger=ledger, runner=runner, n_workers=n_workers, judge=JUDGE, url=url, shard_size=shard_size
    )  # fmt: skip
    (folder / "b.toml").write_text(filled)
    return folder / "b.toml"


@contextmanager
def provider(folder: Path, burst: int, per_minute: int = PER_MINUTE) -> Iterator[str]:
    """The mock provider with one limit; its base_url."""
    folder.mkdir(parents=True, exist_ok=True)
    scenario = folder / "scenario.toml"
    scenario.write_text(SCENARIO.format(judge=JUDGE, per_minute=per_minute, burst=burst))
    with running_judge(scenario) as url:
        yield url


def environment(api_url: str | None) -> dict[str, str]:
    return os.environ | ({"PREFECT_API_URL": api_url} if api_url else {}) | {"PYTHONPATH": str(ROOT)}


def start(folder: Path, api_url: str | None, *more: str, terminal: int | None = None) -> "subprocess.Popen[bytes]":
    """`salon run` of the folder's file, shown by a Prefect server or by none; what it says goes to said.txt, or to a terminal."""
    command = [sys.executable, "-m", "flows", "run", "b.toml", "--run-date", "2026-03-04", *more]
    if terminal is not None:  # its own, as a login gives one
        own: dict[str, Any] = {"preexec_fn": lambda: os.login_tty(terminal), "pass_fds": [terminal]}
        return subprocess.Popen(command, cwd=folder, env=environment(api_url), **own)
    with (folder / "said.txt").open("ab") as said:
        return subprocess.Popen(command, cwd=folder, env=environment(api_url), stdout=said, stderr=said)


def wait(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def worker_pids(flow_pid: int) -> list[int]:
    """The worker processes under a flow's process, by what multiprocessing calls them."""
    processes = psutil.process_iter(["ppid", "cmdline"])
    children = [each for each in processes if each.info["ppid"] == flow_pid]
    return [each.pid for each in children if "multiprocessing.spawn" in " ".join(each.info["cmdline"] or ())]


def count(ledger: str, table: str, where: str = "1 = 1") -> int:
    engine = create_engine(ledger)
    try:
        with engine.connect() as connection:
            return int(connection.execute(text(f"SELECT count(*) FROM {table} WHERE {where}")).scalar_one())
    finally:
        engine.dispose()


def attempts_cut_off(ledger: str) -> int:
    """Attempts without an end: what was in flight when its process was killed."""
    return count(ledger, "attempts", "ended_at_us IS NULL")
