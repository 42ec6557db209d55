"""A run that is killed, or told to stop, and is started again: the same table, and nothing acknowledged is bought twice."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from flow_support import Said, cells_of, runs_of

from demo import paint
from demo.running import running_judge

BENCHMARK = """\
name = "killed"
lake = "{lake}/"
[[sources]]
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "alignment"
[[rubrics]]
id = "composition"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
[limits]
concurrency = 8
shard_size = 60
"""


def _start(folder: Path, name: str, api: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PREFECT_API_URL": api}
    command = [sys.executable, "-m", "flows", "run", f"{name}.toml", "--run-date", "2026-03-04"]
    root = str(Path(__file__).parents[2])
    return subprocess.Popen(
        command, cwd=folder, env=environment | {"PYTHONPATH": root}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def _n_billed(url: str) -> int:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as answer:
        return int(json.load(answer)["n_requests"])


def _stop_after(folder: Path, api: str, url: str, n_billed: int, how: signal.Signals) -> tuple[int, str]:
    """Start the run, and send the signal once the judge was asked so often. The exit code, and what it said."""
    stopped = _start(folder, "stopped", api)
    while _n_billed(url) < n_billed:
        assert stopped.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.01)
    stopped.send_signal(how)
    said, _ = stopped.communicate(timeout=60)
    return stopped.returncode, said.decode()


def test_a_killed_and_a_stopped_run_goes_on_and_ends_with_the_same_table(
    tmp_path: Path, prefect_api: str, salon: Callable[..., Said]
) -> None:
    paint(tmp_path)
    with running_judge() as url:
        for name in ("whole", "stopped"):
            (tmp_path / f"{name}.toml").write_text(BENCHMARK.format(lake=name, url=url))
        assert salon("run", str(tmp_path / "whole.toml"), "--run-date", "2026-03-04").code == 0
        n_whole = _n_billed(url)
        code, said = _stop_after(tmp_path, prefect_api, url, n_whole + 200, signal.SIGKILL)
        assert code == -signal.SIGKILL, said
        n_at_kill = _n_billed(url)
        code, said = _stop_after(tmp_path, prefect_api, url, n_whole + 450, signal.SIGTERM)
        assert code == 143, said
        n_at_stop = _n_billed(url)
        again = _start(tmp_path, "stopped", prefect_api)
        said, _ = again.communicate(timeout=120)
        assert again.returncode == 0, said.decode()
        n_last = _n_billed(url) - n_at_stop
    last = runs_of(tmp_path / "stopped").row(-1, named=True)
    assert n_last == n_whole - last["n_cached"]  # nothing the ledger held was asked again
    n_paid_twice = n_at_stop + n_last - 2 * n_whole
    assert 0 <= n_paid_twice <= 8  # at most what was in flight at the kill; SIGTERM drains
    assert last["n_cached"] >= n_at_stop - n_whole - 8
    assert n_at_kill > n_whole
    columns = ["cell_id", "estimate", "se", "ci_low", "ci_high", "n_scored", "n_failed", "status", "reason"]
    first, second = (cells_of(tmp_path / name, "killed").select(columns) for name in ("whole", "stopped"))
    assert first.equals(second)
