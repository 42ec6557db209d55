"""What a backfill cost is in `runs` also where it published nothing: its money ended, its judge did, or it was told to stop."""

import os
import signal
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tasks.lake.reading import Lake
from tasks.publish.machine_tables import runs
from tasks.stopping import STOP
from tests.flows.flow_support import Said
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))
UNCOUNTED = Play(body=completion("Reasoning: plain.\nScore: 3", usage=None))
REFUSED = Play(401, b'{"error": {"message": "no such key"}}')
USD = 900 * 2e-6 + 12 * 8e-6  # of a reply, as the provider reports it
N_BOUGHT = 7


@pytest.mark.parametrize("ended_by", ["money", "a refused key", "a signal"])
def test_a_backfill_that_publishes_nothing_has_its_row(
    tmp_path: Path, provider: Provider, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, ended_by: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    world, more = World(tmp_path), list[str]()
    for number in range(2):
        world.make(number)
    file = write_benchmark(tmp_path, provider.url, limits="attempts_per_request = 1", judge="parameters = { max_tokens = 100 }")
    provider.then = GOOD
    if ended_by == "money":
        more = ["--max-usd", "0.04"]
    elif ended_by == "a refused key":
        provider.script, provider.then = deque([GOOD] * N_BOUGHT + [UNCOUNTED]), REFUSED
    else:
        provider.then = replace(GOOD, delay_s=0.3)  # on a busy machine the signal is heard late
        provider.on_request = lambda: os.kill(os.getpid(), signal.SIGTERM) if provider.n == N_BOUGHT else None
    try:
        said = salon("backfill", file, "--all", "--at-once", "1", *more)
    finally:
        STOP.clear()
    assert said.code == {"money": 3, "a refused key": 3, "a signal": 143}[ended_by], said.err
    (row,) = runs(Lake(tmp_path / "lake")).to_dicts()
    assert (row["outcome"], row["asked_by"], row["publication_id"]) == ("stopped", "backfill", None)
    n_answered = N_BOUGHT if ended_by == "a refused key" else provider.n
    assert 0 < n_answered < N_SAMPLES
    assert row["cost_usd"] == pytest.approx(n_answered * USD)
    assert row["n_asked"] == provider.n
    least, n_uncounted = ("at least ", 1) if ended_by == "a refused key" else ("", 0)
    said_usd = f"{provider.n:,} requests sent, {least}${row['cost_usd']:.2g}"
    assert f"{said_usd}; no new table" in " ".join(said.err.split())
    provider.then, provider.on_request = GOOD, None
    assert salon("backfill", file, "--all").code == 0
    listed = " ".join(salon("backfill", file, "--list").out.split())
    n_asked = runs(Lake(tmp_path / "lake"))["n_asked"].sum()
    assert f"${(2 * N_SAMPLES - n_uncounted) * USD:.2g} in 2 backfills, {n_asked} requests sent" in listed


@pytest.mark.parametrize("ended_by", ["an outage that is over", "an outage", "a signal"])
def test_what_checkpoints_share_is_counted_once(
    tmp_path: Path, scoring: Provider, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, ended_by: str
) -> None:
    monkeypatch.setattr("flows.partitions.outage_backoff.FIRST_WAIT_S", 0.5)
    for name in ("step-1", "step-2", "step-3"):
        make_folder(tmp_path, name, n_as=N_PROMPTS)
    file = write_file(tmp_path, scoring.url)
    file.write_text(file.read_text().replace("concurrency = 4", "concurrency = 4\nattempts_per_request = 1"))
    more = ["--patience-minutes", "0.02"] if ended_by == "an outage" else ["--patience-minutes", "1"]
    if ended_by == "a signal":
        scoring.on_request = lambda: os.kill(os.getpid(), signal.SIGTERM) if scoring.n == 5 else None
    else:
        n_down = 24 if ended_by == "an outage that is over" else 1000
        scoring.script = deque([GOOD] * 6 + [Play(503, b"upstream connect error")] * n_down)
    try:
        said = salon("backfill", file, "--all", *more)
    finally:
        STOP.clear()
    assert said.code in {"an outage that is over": (0, 3), "an outage": (3,), "a signal": (143,)}[ended_by], said.err
    (row,) = runs(Lake(tmp_path / "lake")).to_dicts()
    n_answered = {"an outage that is over": N_PROMPTS, "an outage": 6, "a signal": scoring.n}[ended_by]
    assert (row["n_asked"], row["cost_usd"]) == (scoring.n, pytest.approx(n_answered * USD))
    if ended_by != "a signal":
        listed = " ".join(salon("backfill", file, "--list").out.split())
        assert f"in 1 backfill, {scoring.n} requests sent" in listed
