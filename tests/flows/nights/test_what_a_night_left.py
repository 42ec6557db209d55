"""A night that was killed or stopped, and the next one: what the ledger has of it counts, what its batch holds is fetched."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from demo.running import running_judge
from tasks.publish.reading import publications
from tests.flows.flow_support import Said, findings
from tests.support.night_world import MODEL, N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

ROOT = str(Path(__file__).parents[3])
BATCHES = '[[models]]\nid = "gpt-4.1"\n[batch]\nvalidating_s = 0.1\nin_progress_s = 4\nfinalizing_s = 0.1\n'
NIGHT = 'checkpoints = "ready.csv"\nn_earlier = {}\n[statistics]\nmin_paired_prompts = 2'


def _ready(folder: Path, n: int) -> None:
    rows = [f"{MODEL},step-{number},2026-01-0{number + 1}" for number in range(n)]
    (folder / "ready.csv").write_text("\n".join(["model,checkpoint,date", *rows]))


def _ended_early(folder: Path, is_so: Callable[[], bool], number: signal.Signals) -> int:
    """The night of the first in a process of its own, which gets a signal; its exit code."""
    night = subprocess.Popen(
        [sys.executable, "-m", "flows", "nightly", "b.toml", "--run-date", "2026-01-01"],
        cwd=folder, env=os.environ | {"PYTHONPATH": ROOT}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until_s = time.monotonic() + 60
    while not is_so():
        assert night.poll() is None
        assert time.monotonic() < until_s
        time.sleep(0.02)
    night.send_signal(number)
    return night.wait(120)


def _n_replies(folder: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{folder}/lake/ledger.db?mode=ro", uri=True)) as ledger:
            return int(ledger.execute("SELECT count(*) FROM replies").fetchone()[0])
    except sqlite3.OperationalError:  # not there yet
        return 0


def _get(url: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"authorization": "Bearer sk-of-nobody"})) as answer:
        return json.load(answer)


def _compared(lake: Path) -> list[tuple[str, str]]:
    (found,) = [one for one in publications(lake) if one.run_date == "2026-01-02"]
    compared = pl.read_parquet(found.folder / "comparisons.parquet").filter(comparison="predecessor", category="__macro__")
    return compared.filter(pl.col("delta").is_not_null()).select("checkpoint_a", "checkpoint_b").unique().rows()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(0)
    World(tmp_path).make(1)
    _ready(tmp_path, 1)
    return tmp_path


def test_a_killed_nights_replies_count_for_the_next(home: Path, salon: Callable[..., Said], provider: Provider) -> None:
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    file = write_benchmark(home, provider.url, nightly=NIGHT.format(1))
    assert _ended_early(home, lambda: _n_replies(home) == N_SAMPLES, signal.SIGKILL) == -signal.SIGKILL
    _ready(home, 2)
    said = salon("nightly", file, "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    assert "is not in this table" not in said.err
    assert _compared(home / "lake") == [("step-1", "step-0")]
    assert provider.n == 2 * N_SAMPLES, "what was stored is not asked again"


@pytest.mark.parametrize("n_earlier", [1, 0])
def test_a_stopped_nights_batch_is_fetched_by_the_next_or_named_by_it(
    home: Path, salon: Callable[..., Said], n_earlier: int
) -> None:
    (home / "scenario.toml").write_text(BATCHES)
    with running_judge(home / "scenario.toml") as url:
        file = write_benchmark(home, url, models=("gpt-4.1",), judge='mode = "batch"', nightly=NIGHT.format(n_earlier))
        is_out = lambda: [one["status"] for one in _get(f"{url}/batches?limit=20")["data"]] == ["in_progress"]  # noqa: E731
        assert _ended_early(home, is_out, signal.SIGTERM) == 143
        _ready(home, 2)
        out = f"{N_SAMPLES} requests are with the Batch API of gpt-4.1 since "
        looked = salon("doctor", file).out
        assert findings(looked)["batches"].startswith(f"wrong: {out}")
        planned = json.loads(salon("plan", file, "--checkpoints", "step-0", "--json").out)
        assert (planned["n_to_ask"], planned["n_handed_over"]) == (N_SAMPLES, N_SAMPLES)
        with_batch = f"with batch {N_SAMPLES} of these are with a Batch API already: they are collected, and not paid for again"
        assert with_batch in " ".join(planned["text"].split())
        assert with_batch in " ".join(salon("backfill", file, "--checkpoints", "step-0", "--dry-run").out.split())
        assert "starts or continues it, --run-date 2026-01-01 the night of 2026-01-01" in " ".join(looked.split())
        said = salon("nightly", file, "--run-date", "2026-01-02")
        told = " ".join(said.err.split())
        assert said.code == 0, told
        fetched_by = "and are no part of this run; `salon nightly FILE --run-date 2026-01-01` fetches them"
        assert (out in told, fetched_by in told) == ((False, False) if n_earlier else (True, True))
        if n_earlier:
            stored = f"0 stored already, {N_SAMPLES} fetched from batches of earlier runs, {N_SAMPLES} sent"
            assert f"requests    {2 * N_SAMPLES}: {stored}" in said.out
            assert _compared(home / "lake") == [("step-1", "step-0")]
        else:
            late = salon("nightly", file, "--run-date", "2026-01-01")
            assert f"{N_SAMPLES} fetched from batches of earlier runs, 0 sent" in late.out, late.err
        assert findings(salon("doctor", file).out)["batches"] == "ok: none is with a provider"
        assert _get(url.removesuffix("/v1") + "/stats")["n_items_by_times_billed"] == {"1": 2 * N_SAMPLES}
