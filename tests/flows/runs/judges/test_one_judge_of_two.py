"""One of two judges ends the run: what is said of the other, and that its table is published when that one is left out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.flow_support import Said, cells_of
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

REPLY = Play(body=completion("Reasoning: plain.\nScore: 3"))
REFUSED = Play(status=401, body=b'{"error": {"message": "no such key"}}')
MODELS = ("answering", "refusing")


@pytest.mark.parametrize("is_whole", [True, False], ids=["one has all its replies", "neither"])
def test_who_is_complete_is_said_and_can_be_published_alone(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(0)
    provider.then = REPLY
    if is_whole:
        assert salon("run", write_benchmark(tmp_path, provider.url, models=MODELS[:1])).code == 0
    provider.then = REFUSED
    said = salon("run", write_benchmark(tmp_path, provider.url, models=MODELS))
    assert said.code == 3
    told = f"Complete, with every reply stored: answering ({N_SAMPLES} of {N_SAMPLES}). To publish without refusing, take its"
    assert (told in said.err) == ("Complete" in said.err) == is_whole, said.err
    if is_whole:
        again = salon("run", write_benchmark(tmp_path, provider.url, models=MODELS[:1]))
        assert f"requests    {N_SAMPLES}: {N_SAMPLES} stored already, 0 sent" in again.out
        assert set(cells_of(tmp_path / "lake")["judge_model"]) == {"answering"}


def test_who_changed_its_model_is_the_one_to_leave_out_and_nothing_is_asked_beside_it(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(0)
    provider.then = REPLY
    assert salon("run", write_benchmark(tmp_path, provider.url, models=["answering"])).code == 0
    provider.script.extend([REPLY] * (N_SAMPLES - 1))
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3", model="judge-2026-06-01"))
    said = salon("run", write_benchmark(tmp_path, provider.url, models=["answering", "changing"]))  # all its replies are stored
    assert (said.code, provider.n) == (3, 2 * N_SAMPLES)
    counts = f"answering ({N_SAMPLES} of {N_SAMPLES})"
    mixed = "Stored replies of changing are by several models, and such cells are not published. Complete, with every reply"
    told = f"{mixed} stored: {counts}. To publish without changing, take its [[judges]] out"
    assert told in " ".join(said.err.split())

    provider.then = REPLY
    said = salon("run", write_benchmark(tmp_path, provider.url, models=["answering", "changing", "late"]))
    assert (said.code, provider.n) == (2, 2 * N_SAMPLES)
    assert "judge changing: 1 of its stored replies are by judge-2026-06-01" in " ".join(said.err.split())
    assert salon("run", write_benchmark(tmp_path, provider.url, models=["answering", "late"])).code == 0
    assert provider.n == 3 * N_SAMPLES
