"""Two benchmarks of one name, a lake each, on one ledger: what is the one's is not the other's, also where its folder moves."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows.nights.record import mutex_name
from flows.run.context import open_run
from tasks.ledger.mutex import mutex
from tasks.ledger.open_ledgers import opened
from tests.flows.flow_support import Said, findings
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

MAX_USD = "0.03"  # of some 24 replies 0.046; the worst case of a request is some four replies
TONIGHT = f"{datetime.now(UTC) - timedelta(days=2):%Y-%m-%d}"
Salon = Callable[..., Said]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")


def _team(folder: Path, provider: Provider, number: int, on_change: str = "alert") -> Path:
    """A folder of its own with other pictures, the lake there, the ledger beside; the benchmark is called as the others' are."""
    if not folder.exists():
        folder.mkdir()
        World(folder).make(number)
        for made in (folder / "made").rglob("*"):
            os.utime(made, (time.time() - 7 * 86_400,) * 2)
    judge = f'parameters = {{ max_tokens = 600 }}\non_model_change = "{on_change}"'
    file = write_benchmark(folder, provider.url, judge=judge)
    file.write_text(f'ledger = "sqlite:///{folder.parent / "shared.db"}"\n' + file.read_text())
    return file


@contextmanager
def _under_way(file: Path, what: str) -> Iterator[None]:
    """As another process that runs the night, or a backfill, of the file's benchmark."""
    run = open_run(file)
    with opened(run.ledger_url) as ledger, mutex(ledger, what.format(run.name_in_ledger)):
        yield


def _answers(provider: Provider, model: str = "eye") -> None:
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3", model=model))


def test_each_has_the_night_s_money_and_one_lake_at_two_paths_has_it_once(
    tmp_path: Path, salon: Salon, provider: Provider
) -> None:
    _answers(provider)
    spent = []
    for number in (0, 1):
        file = _team(tmp_path / f"team-{number}", provider, number)
        n_before = provider.n
        said = salon("nightly", file, "--run-date", TONIGHT, "--max-usd", MAX_USD)
        assert (said.code, "is reached" in said.err, "earlier starts" in said.err) == (1, True, False)
        spent.append(provider.n - n_before)
        assert spent[-1] < N_SAMPLES
    assert spent[0] == spent[1] > 0
    (tmp_path / "team-1").rename(tmp_path / "moved")
    moved = _team(tmp_path / "moved", provider, 1)
    n_before = provider.n
    again = " ".join(salon("nightly", moved, "--run-date", TONIGHT, "--max-usd", MAX_USD).err.split())
    assert (provider.n, "earlier starts spent $0.0" in again) == (n_before, True)
    shown = salon("nightly", moved, "--run-date", TONIGHT, "--max-usd", MAX_USD, "--dry-run")
    assert "its earlier starts spent $0.0" in " ".join((shown.out + shown.err).split())


@pytest.mark.parametrize(
    ("what", "command"),
    [("nightly {}", ("nightly",)), ("backfill {}", ("backfill", "--all"))],
    ids=["a night", "a backfill"],
)
def test_neither_waits_for_the_other(
    tmp_path: Path, salon: Salon, provider: Provider, what: str, command: tuple[str, ...]
) -> None:
    _answers(provider)
    first, second = (_team(tmp_path / f"team-{number}", provider, number) for number in (0, 1))
    name, *options = command
    with _under_way(first, what):
        said = salon(name, second, *options)
    assert (said.code, "waiting until" in said.err) == (0, False), said.err


def test_a_night_under_way_is_known_by_its_lake(tmp_path: Path, salon: Salon, provider: Provider) -> None:
    _answers(provider)
    first, second = (_team(tmp_path / f"team-{number}", provider, number) for number in (0, 1))
    for file in (first, second):
        assert salon("nightly", file, "--run-date", TONIGHT).code == 0
    night = mutex_name("{}")
    with _under_way(first, night):
        assert findings(salon("doctor", first).out)["last night"].endswith("is under way")
        assert "is not published" in findings(salon("doctor", second).out)["last night"]


def test_each_is_held_to_the_model_that_answered_it(tmp_path: Path, salon: Salon, provider: Provider) -> None:
    _answers(provider, "eye-of-march")
    assert salon("nightly", _team(tmp_path / "team-0", provider, 0), "--run-date", TONIGHT).code == 0
    _answers(provider, "eye-of-april")
    said = salon("nightly", _team(tmp_path / "team-1", provider, 1, "stop"), "--run-date", TONIGHT)
    assert (said.code, "on the nights before" in said.err) == (0, False), said.err
