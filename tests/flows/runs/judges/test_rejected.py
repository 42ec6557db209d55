"""Requests that the provider rejects amid others: what it said stands wherever a user looks, and they are asked again."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import completion

SAYS = "At most 0 image(s) <img src=x onerror=alert(1)> \x1b[31mred"
SHOWN = "At most 0 image(s) <img src=x onerror=alert(1)>"


@pytest.mark.parametrize("retry", [("run", "--run-date", "2026-03-04"), ("backfill", "--all")], ids=["run", "backfill"])
def test_what_the_provider_says_is_shown_and_what_it_rejected_is_asked_again(
    tmp_path: Path, salon: Callable[..., Said], provider: Any, retry: tuple[str, ...]
) -> None:
    """The first publication has nothing but blocked cells: `table`, `explain` and `open` show it all the same."""
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, provider.url, limits="attempts_per_request = 1")
    file.write_text(file.read_text().replace("concurrency = 4", "concurrency = 1"))
    answer = provider.play(body=completion("Reasoning: as asked.\nScore: 4", model="salon-demo-judge"))
    rejection = provider.play(status=400, body=json.dumps({"error": {"message": SAYS}}).encode())
    provider.script.extend([rejection, answer] * (N_SAMPLES // 2))
    command = ("run", file, "--run-date", "2026-03-04")
    said = salon(*command)
    assert said.code == 1, said.err
    assert provider.n == N_SAMPLES

    planned = salon("plan", file)
    shown = " ".join(planned.out.split())
    assert f"{N_SAMPLES // 2} requests; the provider's message: HTTP 400: {SHOWN}" in shown
    assert "--retry rejected" in planned.out
    assert salon("table").code == 0
    explained = salon("explain", "demo-painter/step-0/alignment/score")
    assert explained.code == 0, explained.err
    assert f"HTTP 400: {SHOWN}" in explained.out
    page = Path(salon("open").out.strip())
    assert "&lt;img src=x onerror=alert(1)&gt;" in page.read_text()
    assert "<img src=x" not in page.read_text()
    health = pl.read_parquet(page.with_name("health.parquet")).filter(measure="n_said")
    assert health["value"].to_list() == [N_SAMPLES / 2]
    assert health["word"][0].startswith(f"HTTP 400: {SHOWN}")
    assert "\x1b" not in planned.out + explained.out

    provider.then = answer
    assert salon(*command).code == 1  # final: nothing is asked
    assert provider.n == N_SAMPLES
    with closing(sqlite3.connect(tmp_path / "lake" / "ledger.db")) as ledger, ledger:  # as a clock two days ahead had it
        ledger.execute("UPDATE replies SET received_at_us = received_at_us + 2 * 86400 * 1000000")
    again = salon(retry[0], file, *retry[1:], "--retry", "rejected")
    assert again.code == 0, again.err
    assert provider.n == N_SAMPLES * 3 // 2
    shutil.rmtree(tmp_path / "lake" / "publish")
    (tmp_path / "lake" / "ledger.db").unlink()  # the lake holds a rejection and a reply of the same requests
    assert salon(*command).code == 0
    assert provider.n == N_SAMPLES * 3 // 2
