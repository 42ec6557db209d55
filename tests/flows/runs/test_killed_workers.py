"""What a worker process had bought when it was killed: it stands in the run's row and at its end, as in the ledger."""

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.runner_world import worker_pids
from flows.run.bought import with_what_was_lost
from flows.run.context import RunContext, open_run
from tasks.judge.outcome import Outcome
from tasks.plan.dataset import known_plan
from tasks.publish.reading import current
from tests.flows.flow_support import Said, runs_of
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

USD = 900 * 2e-6 + 12 * 8e-6  # of a reply, as the provider reports it


@pytest.mark.parametrize("command", ["run", "backfill"])
def test_the_row_has_what_a_killed_worker_bought(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"), delay_s=0.6)
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, provider.url, limits="requests_per_minute = 6000")
    file.write_text(f'runner = "processes"\nworkers = {{ n = 1 }}\n{file.read_text()}')

    def harm() -> None:
        while provider.n < N_SAMPLES // 2:
            time.sleep(0.01)
        os.kill(worker_pids(os.getpid())[0], signal.SIGKILL)

    harming = threading.Thread(target=harm, daemon=True)
    harming.start()
    said = salon(command, file, *(["--all"] if command == "backfill" else []))
    assert said.code == 0, said.err
    harming.join()
    with closing(sqlite3.connect(tmp_path / "lake" / "ledger.db")) as ledger:
        (n_replies,) = ledger.execute("SELECT count(*) FROM replies").fetchone()
        n_sent, n_without_end = ledger.execute("SELECT count(*), sum(ended_at_us IS NULL) FROM attempts").fetchone()
    assert n_replies == N_SAMPLES
    (row,) = runs_of(tmp_path / "lake").to_dicts()
    assert (row["outcome"], row["n_requests"], row["n_cached"], row["n_asked"]) == ("published", N_SAMPLES, 0, n_sent)
    assert row["cost_usd"] == pytest.approx(N_SAMPLES * USD)
    assert row["is_at_least"] == bool(n_without_end)
    assert row["cost_usd"] <= provider.n * USD <= row["cost_usd"] + n_without_end * USD
    assert f"{N_SAMPLES}: 0 stored already, {n_sent} sent; {'at least ' * bool(n_without_end)}$0.0" in said.out
    if n_without_end:
        assert f"; up to {n_without_end} more may have been billed without a reply" in said.out


@pytest.mark.parametrize(("ahead_s", "n_found"), [(-60, N_SAMPLES), (60, 0)], ids=["as this machine's", "behind it"])
def test_what_came_back_counts_whatever_clock_its_worker_had(
    ahead_s: int, n_found: int, tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, provider.url)
    assert salon("run", file).code == 0
    ids = current(tmp_path / "lake").provenance()["identities"]
    run = RunContext.of(open_run(file)).having(dataset_id=ids["dataset_id"], plan_id=ids["plan_id"])
    plan = known_plan(run.stage)
    assert plan is not None
    told = Outcome(n_requests=N_SAMPLES, n_cached=N_SAMPLES - 2, n_asked=3, n_replies=2, n_input_tokens=1800, cost_usd=2 * USD)
    told.n_by_status["answered"] = 2
    found = with_what_was_lost(run, told, datetime.now(UTC) + timedelta(seconds=ahead_s), plan.parts)
    assert found.n_asked == max(3, n_found)
    assert found.n_input_tokens == max(1800, 900 * n_found)
    assert found.cost_usd == pytest.approx(max(2, n_found) * USD)
    assert found.n_replies == found.n_answered == max(2, n_found)
    assert found.n_left == 0
