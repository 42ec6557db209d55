"""A run that is killed, or told to stop, and is started again: the same table, and nothing acknowledged is bought twice."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from flow_support import cells_of, runs_of

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


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
def test_a_stopped_run_goes_on_and_ends_with_the_same_table(tmp_path: Path, prefect_api: str, how: signal.Signals) -> None:
    paint(tmp_path)
    with running_judge() as url:
        for name in ("whole", "stopped"):
            (tmp_path / f"{name}.toml").write_text(BENCHMARK.format(lake=name, url=url))
        whole = _start(tmp_path, "whole", prefect_api)
        said, _ = whole.communicate(timeout=120)
        assert whole.returncode == 0, said.decode()
        n_whole = _n_billed(url)

        stopped = _start(tmp_path, "stopped", prefect_api)
        while _n_billed(url) < n_whole + 200:
            assert stopped.poll() is None, "the run ended before it could be stopped"
            time.sleep(0.01)
        stopped.send_signal(how)
        said, _ = stopped.communicate(timeout=60)
        assert stopped.returncode == (143 if how == signal.SIGTERM else -signal.SIGKILL), said.decode()
        n_first = _n_billed(url) - n_whole

        again = _start(tmp_path, "stopped", prefect_api)
        said, _ = again.communicate(timeout=120)
        assert again.returncode == 0, said.decode()
        n_second = _n_billed(url) - n_whole - n_first
    last = runs_of(tmp_path / "stopped").row(-1, named=True)
    n_stored_at_stop = last["n_cached"]
    assert n_second == n_whole - n_stored_at_stop  # nothing the ledger held was asked again
    n_paid_twice = n_first + n_second - n_whole
    assert 0 <= n_paid_twice <= (8 if how == signal.SIGKILL else 0)  # at most what was in flight
    columns = ["cell_id", "estimate", "se", "ci_low", "ci_high", "n_scored", "n_failed", "status", "reason"]
    first, second = (cells_of(tmp_path / name, "killed").select(columns) for name in ("whole", "stopped"))
    assert first.equals(second)
