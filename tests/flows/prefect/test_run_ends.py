"""The state and the sentence with which a run that published stands on a Prefect server: blocked is not plainly Completed."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State, StateType
from prefect.client.schemas.sorting import FlowRunSort

from flows.nightly import NightSummary
from flows.nights.record import notes
from flows.prefect_flows import end_of, flow_of, nightly
from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

pytestmark = [pytest.mark.usefixtures("prefect_api"), pytest.mark.slow]
GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))
REFUSAL = Play(body=completion("I'm sorry, but I can't assist with that request."))
NOW = datetime.now(UTC)
DUE = (NOW if NOW.hour >= 2 else NOW - timedelta(days=1)).date()  # the world's nights come at two


def _state(file: Path) -> State:
    """Of the newest flow run of the benchmark file."""

    async def ask() -> State:
        async with get_client() as client:
            runs = await client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC)
            found = next(run.state for run in runs if run.parameters.get("file") == str(file))
            assert found is not None
            return found

    return asyncio.run(ask())


@pytest.fixture
def file(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(1)
    return write_benchmark(tmp_path, provider.url, limits="requests_per_minute = 60000")


@pytest.mark.parametrize(
    ("plays", "code", "name", "says"),
    [
        (GOOD, 0, "Completed", "and current; 8 cells, none blocked"),
        (REFUSAL, 1, "Blocked", "and did not become current: none of its cells has an estimate; 8 cells, 8 blocked (refusal)"),
    ],
    ids=["a good night", "all refused"],
)
def test_a_nights_state_says_what_became_of_it(
    file: Path, provider: Provider, salon: Callable[..., Said], plays: Play, code: int, name: str, says: str
) -> None:
    provider.then = plays
    said = salon("nightly", file)
    assert said.code == code, said.err
    state, note = _state(file), notes(file.parent / "lake", "nights")[DUE.isoformat()]
    assert (state.type, state.name) == (StateType.COMPLETED, name)
    assert state.message == f"the night of {DUE} is published ({note.publication_id[:12]}) {says}"


def test_what_a_flow_gives_is_what_its_function_gave(file: Path, provider: Provider) -> None:
    """To the command, which prints it, and to whoever calls the flow by itself, as a worker does."""
    from flows.nightly import nightly as run_nightly

    provider.then = GOOD
    found = flow_of(run_nightly)(file)
    assert isinstance(found, NightSummary)
    assert found.run is not None
    again = nightly(file)
    assert isinstance(again, NightSummary)
    assert again.run is None
    assert _state(file).message == f"the night of {DUE} was already published ({found.publication_id[:12]}); nothing was sent"


def test_what_published_nothing_has_no_state_of_its_own() -> None:
    assert end_of(None) is None
