"""A night's money: `max_usd` is the night's, however often it is started; the next night has its own."""

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows.observability.alerting import BUDGET_REACHED
from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

USD = 900 * 2e-6 + 12 * 8e-6  # of a reply, as the provider reports it
MAX_USD = "0.03"
PARAMETERS = "parameters = { max_tokens = 600 }"  # the worst case of a request is some four replies


def test_starts_of_one_night_share_its_money_and_more_goes_on(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch, sent: list[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    provider.script.append(Play(body=completion("Reasoning: plain.\nScore: 3", usage=None)))  # nobody knows what it cost
    World(tmp_path).make(0)
    for made in (tmp_path / "made").rglob("*"):
        os.utime(made, (time.time() - 7 * 86_400,) * 2)
    file = write_benchmark(tmp_path, provider.url, judge=PARAMETERS)
    before, tonight = (f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}" for days in (3, 2))

    def started(night: str, max_usd: str) -> Said:
        said = salon("nightly", file, "--run-date", night, "--max-usd", max_usd)
        assert provider.n * USD <= n_nights * float(MAX_USD)
        return said

    n_nights = 1
    first = started(before, MAX_USD)
    assert (first.code, "is reached" in first.err, sent.count(BUDGET_REACHED)) == (1, True, 1)
    n_first = provider.n
    assert 0 < n_first < N_SAMPLES
    assert salon("run", file, "--run-date", before, "--max-usd", "0.001").code == 1  # of its date, and no start at it
    again = started(before, MAX_USD)
    assert provider.n == n_first, "the night's money is spent"
    told = " ".join(again.err.split())
    assert "of this night is reached: earlier starts spent $0.0" in told
    assert f"2 runs of the night of {before} ended, together: {n_first:,} requests sent, at least $0.0" in told

    n_nights = 2
    started(tonight, MAX_USD)
    assert n_first < provider.n < N_SAMPLES, "another night has its own"
    assert salon("nightly", file, "--run-date", before, "--max-usd", "1").code == 0
    assert provider.n == N_SAMPLES


def test_a_night_that_failed_says_why_where_the_table_of_runs_cannot_be_read(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider
) -> None:
    """Found before, it would have ended the night at its beginning."""
    provider.then = Play(401, b'{"error": {"message": "no such key"}}', delay_s=2.0)
    World(tmp_path).make(1)

    def cut_while_it_asks() -> None:
        while not provider.n:
            time.sleep(0.05)
        runs = tmp_path / "lake" / "runs"
        runs.mkdir(parents=True, exist_ok=True)
        (runs / "0.parquet").write_bytes(b"cut")

    cutting = threading.Thread(target=cut_while_it_asks)
    cutting.start()
    said = salon("nightly", write_benchmark(tmp_path, provider.url))
    cutting.join()
    assert (said.code, "no such key" in said.err) == (3, True)
