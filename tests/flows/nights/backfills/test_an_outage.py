"""An outage under a backfill: it is waited for, no other checkpoint is burnt, and when patience ends it says what is left."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flows.partitions.plan import open_backfill
from flows.partitions.table import read_partitions
from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, write_quick
from tests.support.servers.provider import Play, Provider, completion

GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))
N_CHECKPOINTS, N_ANSWERED = 5, 10
DOWN = Play(503, b"upstream connect error")
REFUSED = Play(401, b'{"error": {"message": "no such key"}}')


@pytest.fixture
def file(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five checkpoints, whose judge answers ten requests and then does as `provider.then`; one attempt a request is quick."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.script = deque([GOOD] * N_ANSWERED)
    return write_quick(tmp_path, provider.url, N_CHECKPOINTS)


def _back_after_a_pause(provider: Provider, pause_s: float) -> None:
    """Let the judge answer again once nothing was asked for so long: somebody waited."""
    last_s = [time.monotonic()]

    def look() -> None:
        if provider.n > N_ANSWERED and time.monotonic() - last_s[0] > pause_s:
            provider.then = GOOD
        last_s[0] = time.monotonic()

    provider.on_request = look


@pytest.mark.parametrize("at_once", [1, 4], ids=["one at a time", "four at once"])
def test_an_outage_is_waited_for_and_the_backfill_ends_whole(
    file: Path, provider: Provider, salon: Callable[..., Said], at_once: int
) -> None:
    provider.then = DOWN
    _back_after_a_pause(provider, 3)
    said = salon("backfill", file, "--all", "--at-once", str(at_once))
    assert said.code == 0, said.err
    told = " ".join(said.err.split())
    assert "Waiting for it until " in told
    assert "; next try in 5 s" in told
    assert "is not done" not in told
    assert f"judge: {N_CHECKPOINTS * N_SAMPLES} done" in told
    assert f"backfill: {N_CHECKPOINTS} done" in told
    assert provider.n <= N_CHECKPOINTS * N_SAMPLES + at_once * N_SAMPLES  # each checkpoint under way met it once
    assert set(read_partitions(open_backfill(file))["state"]) == {"done"}


def test_when_patience_ends_the_others_were_not_burnt_and_what_is_left_is_told(
    file: Path, provider: Provider, salon: Callable[..., Said]
) -> None:
    provider.then = replace(DOWN, delay_s=0.2)  # the ten replies are stored before either checkpoint has failed
    said = salon("backfill", file, "--all", "--at-once", "2", "--patience-minutes", "0.1")
    assert said.code == 3, said.err
    told = " ".join(said.err.split())
    assert "Waited 6 s without a reply." in told
    assert f"{N_CHECKPOINTS} of {N_CHECKPOINTS} checkpoints are not done ({N_CHECKPOINTS - 2} were not begun)" in told
    states = read_partitions(open_backfill(file)).group_by("state").len().sort("state")
    assert states.rows() == [("failed", 2), ("planned", N_CHECKPOINTS - 2)]
    n_before = provider.n
    assert n_before <= N_ANSWERED + 4 * N_SAMPLES  # one of the two asked again; both would be 124
    provider.then = GOOD
    assert salon("backfill", file, "--all").code == 0
    assert provider.n == n_before + N_CHECKPOINTS * N_SAMPLES - N_ANSWERED  # nothing is bought twice


def test_a_refused_key_is_not_waited_for(file: Path, provider: Provider, salon: Callable[..., Said]) -> None:
    provider.then = REFUSED
    began_s = time.monotonic()
    said = salon("backfill", file, "--all", "--at-once", "1")
    assert said.code == 3
    assert time.monotonic() - began_s < 60
    assert "is waited for" not in said.err
    rows = read_partitions(open_backfill(file))
    assert rows.filter(pl.col("state") == "failed").height == 1
