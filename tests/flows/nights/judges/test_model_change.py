"""A judge under whose name another model answers than on the night before: told of, or stopped; never compared in silence."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from tasks.publish.reading import current
from tests.flows.flow_support import Said
from tests.support.night_world import MODEL, N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion


def _answers_as(provider: Provider, model: str) -> None:
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3", model=model))


def test_nights_are_held_to_the_model_that_answered(
    salon: Callable[..., Said], tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    world = World(tmp_path)

    def night(number: int, on_change: str = "alert") -> Said:
        folder = tmp_path / "made" / MODEL / f"step-{number}"
        if not folder.exists():
            world.make(number)
            noon = datetime(2026, 3, number, 12, tzinfo=UTC).timestamp()
            os.utime(folder, (noon, noon))
        file = write_benchmark(tmp_path, provider.url, judge=f'on_model_change = "{on_change}"')
        return salon("nightly", file, "--run-date", f"2026-03-0{number}")

    _answers_as(provider, "eye-of-march")
    first = night(1)
    assert (first.code, "answered as" in first.out) == (0, False)
    _answers_as(provider, "eye-of-april")
    told = night(2)
    assert told.code == 0
    assert "answered as eye-of-march on the night before, and as eye-of-april now" in told.out
    compared = pl.read_parquet(current(tmp_path / "lake").folder / "comparisons.parquet").filter(comparison="predecessor")
    assert compared.select("status", "reason").unique().rows() == [("null", "answering_model_differs")]
    assert compared["delta"].null_count() == compared.height > 0

    _answers_as(provider, "eye-of-may")
    n = provider.n
    stopped = night(3, "stop")
    assert stopped.code == 3
    assert "answered as eye-of-april on the nights before, and answers as eye-of-may now" in stopped.err
    assert 'on_model_change = "alert"' in stopped.err
    assert provider.n - n < N_SAMPLES
    n = provider.n
    for _ in range(2):
        again = night(3, "stop")
        assert (again.code, provider.n) == (3, n), "each start would buy some more"
        assert "eye-of-april on the nights before, and answered as eye-of-may when this night was last started" in again.err
    taken = night(3, "alert")
    assert taken.code == 0
    assert "answered as eye-of-april on the night before, and as eye-of-may now" in taken.out
    fourth = night(4, "stop")
    assert (fourth.code, "answered as" in fourth.out) == (0, False)
    assert night(2).out.startswith("the night of 2026-03-02 is already published")


@pytest.mark.parametrize(
    ("own_name", "names"),
    [("eye", '["[b]ear[/b]", "eye"]'), ("salon-demo-judge", '["[b]ear[/b]"]')],
    ids=["its judge answers under another name", "its judge answers under its own"],
)
def test_where_replies_of_another_model_are_stored_nothing_more_is_paid_for(
    own_name: str, names: str, salon: Callable[..., Said], tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the provider is back to the judge that was asked for, a new start knows what the check at its end will say."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(1)
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
    os.utime(tmp_path / "made" / MODEL / "step-1", (noon, noon))
    file = write_benchmark(tmp_path, provider.url)
    _answers_as(provider, own_name)
    own = provider.then
    provider.script.extend([own] * (N_SAMPLES // 2 + 1))
    _answers_as(provider, "[b]ear[/b]")
    assert salon("run", file).code == 3
    n_others = provider.n - N_SAMPLES // 2 - 1
    provider.then = own
    n = provider.n
    for command in ("run", "nightly"):
        refused = salon(command, file, "--run-date", "2026-03-01")
        said = " ".join(refused.err.split())
        assert (refused.code, provider.n) == (2, n), said
        assert f"{n_others} of its stored replies are by [b]ear[/b], but others of the same checkpoints are not (" in said
        assert f"list their names: accept_models = {names}; otherwise" in said
    listed = file.read_text().replace("[[judges]]", f"[[judges]]\naccept_models = {names}")
    file.write_text(listed)
    last = salon("run", file)
    assert last.code == 0, last.err
