"""The rows of `runs`: what every run bought stands in one, also of a run that ended while it asked. Their sum is the bill."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.lake.reading import Lake
from tasks.publish.machine_tables import runs
from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

REPLY = Play(body=completion("Reasoning: plain.\nScore: 3"))
USD = 900 * 2e-6 + 12 * 8e-6  # of a reply, as the provider reports it
REFUSED, UNREACHABLE = Play(status=401, body=b'{"error": {"message": "no such key"}}'), Play(reset=True)


@pytest.mark.parametrize(
    "end", [pytest.param(REFUSED, id="key refused"), pytest.param(UNREACHABLE, id="unreachable", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("runner", ["local", pytest.param("processes", marks=pytest.mark.slow)])
def test_what_was_bought_before_the_end_has_its_row(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch, end: Play, runner: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, provider.url, limits="deadline_s = 5")
    provider.script.extend([REPLY] * 10)
    provider.then = end
    assert salon("run", file, "--runner", runner).code == 3
    provider.then = REPLY
    assert salon("run", file, "--runner", runner).code == 0
    assert salon("run", file, "--runner", runner).code == 0
    rows = runs(Lake(tmp_path / "lake"))
    assert rows["outcome"].to_list() == ["stopped", "published", "unchanged"]
    assert rows["publication_id"].is_null().to_list() == [True, False, False]
    assert rows["cost_usd"].fill_null(0).to_list() == pytest.approx([10 * USD, (N_SAMPLES - 10) * USD, 0])
    assert rows["n_cached"].to_list() == [0, 10, N_SAMPLES]
    assert rows["n_asked"][0] > 10, "the attempt that ended it too"


@pytest.mark.slow
def test_what_may_have_been_billed_as_the_provider_restarted_stands_in_the_row_of_the_run_that_went_on(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request is tried once: the first try of the shard ends after eight of them, the second begins two seconds later."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, provider.url, limits="attempts_per_request = 1\nrequests_per_minute = 60000")
    provider.script.extend([REPLY] * 4)
    lost: list[float] = []

    def look() -> None:
        if not provider.script:
            lost.append(time.monotonic())
            provider.then = UNREACHABLE if lost[-1] - lost[0] < 1.5 else REPLY

    provider.on_request = look
    said = salon("run", file)
    assert (said.code, "at least" in said.out) == (0, True), said.out + said.err
    (row,) = runs(Lake(tmp_path / "lake")).to_dicts()
    assert (row["n_asked"], row["is_at_least"], row["cost_usd"]) == (provider.n, True, pytest.approx(N_SAMPLES * USD))
    assert provider.n >= N_SAMPLES + 8


def test_tokens_that_no_reply_reported_are_not_known(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, provider.url)
    provider.script.extend([Play(body=completion("Reasoning: plain.\nScore: 3", usage=None))] * 10)
    provider.then = REFUSED
    assert salon("run", file).code == 3
    (row,) = runs(Lake(tmp_path / "lake")).to_dicts()
    assert [row[name] for name in ("outcome", "n_input_tokens", "n_output_tokens", "cost_usd")] == ["stopped", None, None, None]
