"""A benchmark with a judge of each provider, run by the command: killed and resumed, by batches, within a budget.

All three judges are one program that looks at the pictures, so that what they say must be the same to the last figure.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from demo.running import running_judge
from tests.flows.flow_support import Said, cells_of, runs_of
from tests.support.painting import paint

KEYS = {
    "OPENAI_API_KEY": "sk-of-nobody-111111",
    "ANTHROPIC_API_KEY": "sk-ant-nobody-222222",
    "GEMINI_API_KEY": "AIza-nobody-333333",
}
SCENARIO = """
[[models]]
id = "gpt-4.1-mini"
[[models]]
id = "claude-haiku-4-5"
usd_per_million_input_tokens = 1
usd_per_million_output_tokens = 5
[[models]]
id = "gemini-2.5-flash"
usd_per_million_input_tokens = 0.3
usd_per_million_output_tokens = 2.5
[latency]
median_s = 0.05
[faults]
first_attempts = 2
retry_after_s = [0.01, 0.02]
[faults.shares]
rate_limited = 0.03
error_529 = 0.03
null_200 = 0.03
[batch]
validating_s = 0.1
in_progress_s = 1
finalizing_s = 0.1
"""
BENCHMARK = """\
name = "each"
lake = "{lake}/"
[[sources]]
reader = "geneval"
path = "scenes/demo-painter/step-1000"
model = "demo-painter"
checkpoint = "step-1000"
[[rubrics]]
id = "alignment"
[[judges]]
model = "gpt-4.1-mini"
mode = "{mode}"
base_url = "{origin}/v1"
parameters = {{ temperature = 0, max_tokens = 300 }}
[[judges]]
model = "claude-haiku-4-5"
mode = "{mode}"
provider = "anthropic"
base_url = "{origin}/v1"
parameters = {{ temperature = 0, max_tokens = 300 }}
[[judges]]
model = "gemini-2.5-flash"
mode = "{mode}"
provider = "gemini"
base_url = "{origin}/v1beta"
parameters = {{ generationConfig = {{ temperature = 0, maxOutputTokens = 300 }} }}
[limits]
concurrency = 8
max_usd = {max_usd}
"""
N_EACH = 120


def _stats(origin: str) -> Any:
    with urllib.request.urlopen(f"{origin}/stats") as answer:
        return json.load(answer)


def test_judges_of_all_providers_say_the_same_online_after_a_kill_and_by_batches(
    tmp_path: Path, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    paint(tmp_path)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    with running_judge(tmp_path / "scenario.toml") as url:
        origin = url.removesuffix("/v1")
        for lake, mode in (("online", "online"), ("batch", "batch")):
            (tmp_path / f"{lake}.toml").write_text(BENCHMARK.format(lake=lake, mode=mode, origin=origin, max_usd=5))
        (tmp_path / "poor.toml").write_text(BENCHMARK.format(lake="poor", mode="online", origin=origin, max_usd=0.05))

        planned = salon("plan", "online.toml")
        assert planned.code == 0, planned.err
        assert "?" not in planned.out
        asked = salon("doctor", "online.toml", "--ask")
        assert [line.split()[2] for line in asked.out.splitlines() if line.startswith("ok      judge")] == [
            "gpt-4.1-mini", "claude-haiku-4-5", "gemini-2.5-flash",
        ]  # fmt: skip

        n_before = _stats(origin)["n_requests"]
        root = str(Path(__file__).parents[4])
        killed = subprocess.Popen(
            [sys.executable, "-m", "flows", "run", "online.toml", "--run-date", "2026-03-04"],
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": root}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while _stats(origin)["n_requests"] < n_before + 3 * N_EACH // 2:
            assert killed.poll() is None, "the run ended before it could be killed"
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        online = salon("run", "online.toml", "--run-date", "2026-03-04")
        assert online.code == 0, online.err
        bills = _stats(origin)["n_items_by_times_billed"]
        assert sum(bills.values()) == 3 * N_EACH
        assert sum(n for times, n in bills.items() if times != "1") <= 3 + 24 + 3  # doctor's, and what was in flight

        urllib.request.urlopen(urllib.request.Request(f"{origin}/stats/reset", method="POST"))
        batch = salon("run", "batch.toml", "--run-date", "2026-03-04")
        assert batch.code == 0, batch.err
        billed = _stats(origin)
        assert billed["n_items_by_times_billed"] == {"1": 3 * N_EACH}
        assert runs_of(tmp_path / "batch").row(-1, named=True)["cost_usd"] == pytest.approx(billed["usd"])

        poor = salon("run", "poor.toml", "--run-date", "2026-03-04")
        assert poor.code == 1
        assert _stats(origin)["usd"] - billed["usd"] <= 0.05
    columns = ["dimension", "category", "estimate", "ci_low", "ci_high", "n_scored", "n_failed", "status"]
    boards = [
        cells_of(tmp_path / lake, "each").filter(judge_model=judge).sort("dimension", "category").select(columns)
        for lake in ("online", "batch")
        for judge in ("gpt-4.1-mini", "claude-haiku-4-5", "gemini-2.5-flash")
    ]
    assert boards[0].height > 3
    assert all(board.equals(boards[0]) for board in boards)
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "scenes" not in path.parts)
    assert not [key for key in KEYS.values() if key.encode() in held], "a key is written nowhere"
    assert pl.read_parquet(next((tmp_path / "online" / "publish").rglob("standings.parquet")))["judge_model"].n_unique() == 3
