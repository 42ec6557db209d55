"""Rows of `runs` whose ledger was out of use when they ended: what the process heard, and marked as that."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import delete

from tasks.lake.reading import Lake
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import OWNERS
from tasks.publish.machine_tables import runs
from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.provider import Play, Provider, completion

USD = 900 * 2e-6 + 12 * 8e-6  # of a reply, as the provider reports it


def test_what_was_bought_until_the_ledger_went_has_its_row(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setenv("SALON_STORE_WAIT_S", "0.5")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"), delay_s=0.2)
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, provider.url, limits="shard_size = 10")
    address = postgres.new_database()
    file.write_text(f'ledger = "{address}"\n{file.read_text()}')

    def harm() -> None:
        while provider.n < 14:
            time.sleep(0.01)
        postgres.stop()

    harming = threading.Thread(target=harm)
    harming.start()
    try:
        said = salon("run", file)
    finally:
        harming.join()
        postgres.start()
    assert said.code == 3
    assert "never retrieved" not in said.err
    n_first = provider.n
    (row,) = runs(Lake(tmp_path / "lake")).to_dicts()
    assert (row["outcome"], row["asked_by"], row["is_at_least"]) == ("stopped", "run", True)
    assert row["n_asked"] == n_first < N_SAMPLES
    assert row["cost_usd"] == pytest.approx(n_first * USD)
    assert row["n_requests"] == N_SAMPLES
    monkeypatch.setenv("SALON_STORE_WAIT_S", "60")
    with Ledger(address) as ledger:  # this process lives: those of one that ended are taken over at once
        ledger.alone_now(lambda connection: connection.execute(delete(OWNERS)) and None)
    assert salon("run", file).code == 0
    assert provider.n == N_SAMPLES, "each was bought once"
    last = runs(Lake(tmp_path / "lake")).row(-1, named=True)
    assert (last["outcome"], last["is_at_least"], last["n_asked"]) == ("published", False, N_SAMPLES - n_first)


def test_a_run_whose_judge_may_have_worked_for_nothing_says_at_least(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.script.append(Play(body=b"<html>login</html>"))
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    World(tmp_path).make(0)
    said = salon("run", write_benchmark(tmp_path, provider.url))
    assert (said.code, provider.n) == (0, N_SAMPLES + 1)
    assert f"{N_SAMPLES + 1} sent; at least $" in " ".join(said.out.split())
    assert "; up to 1 more may have been billed ($" in " ".join(said.out.split())
    (row,) = runs(Lake(tmp_path / "lake")).to_dicts()
    assert (row["is_at_least"], row["n_asked"]) == (True, N_SAMPLES + 1)
