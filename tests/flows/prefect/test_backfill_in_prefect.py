"""A backfill that falls short, as its Prefect server shows it: no green task, no 100 %, and the reasons and prices in its log."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.sorting import FlowRunSort

from tests.flows.flow_support import Said
from tests.support.night_world import MODEL, N_SAMPLES, write_quick
from tests.support.servers.provider import Play, Provider, completion

pytestmark = [pytest.mark.usefixtures("prefect_api"), pytest.mark.slow]
GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))
REFUSED = Play(401, b'{"error": {"message": "no such key"}}')
N_CHECKPOINTS = 3


async def _shown(file: Path) -> tuple[dict[str, Any], list[str], list[float]]:
    """Of the newest flow run of a benchmark file: its tasks' states by name, its log, its progress."""
    async with get_client() as client:
        runs = await client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC)
        run = next(run for run in runs if run.parameters.get("file") == str(file))
        mine, give_up_s = FlowRunFilter(id=FlowRunFilterId(any_=[run.id])), time.monotonic() + 20
        while True:  # logs and the states of tasks come to the server a little later
            log = [one.message for one in await client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run.id])))]
            states = {one.name: one.state for one in await client.read_task_runs(flow_run_filter=mine)}
            if (any("Finished in state" in line for line in log) and len(states) >= 2) or time.monotonic() > give_up_s:
                break
            await asyncio.sleep(0.5)
        artifacts = await client.read_artifacts(flow_run_filter=mine)
        return states, log, [float(str(one.data)) for one in artifacts if str(one.key).startswith("salon-progress")]


@pytest.fixture
def file(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three checkpoints; the judge answers for one of them, and then does as `provider.then`."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.script = deque([GOOD] * N_SAMPLES)
    return write_quick(tmp_path, provider.url, N_CHECKPOINTS)


def test_a_checkpoint_that_is_not_done_is_no_green_task(file: Path, provider: Provider, salon: Callable[..., Said]) -> None:
    provider.then = REFUSED
    said = salon("backfill", file, "--all", "--at-once", "1")
    assert said.code == 3, said.err
    states, log, shares = asyncio.run(_shown(file))
    done, failed = states[f"backfill {MODEL}/step-2"], states[f"backfill {MODEL}/step-1"]
    assert done.type == StateType.COMPLETED
    assert failed.type == StateType.FAILED
    assert "does not accept the request" in failed.message
    assert f"backfill {MODEL}/step-0" not in states  # a refused key stops the others
    assert shares == [pytest.approx(100 / N_CHECKPOINTS)]
    told = "\n".join(log)
    assert f"{MODEL}/step-1 is not done: judge salon-demo-judge" in told
    assert f"to ask      {N_CHECKPOINTS * N_SAMPLES} requests: $" in told


def test_one_that_the_budget_stopped_is_named_so_and_fails_nothing(
    file: Path, provider: Provider, salon: Callable[..., Said]
) -> None:
    provider.then = GOOD
    file.write_text(file.read_text().replace("price =", "parameters = { max_tokens = 100 }\nprice ="))
    assert salon("backfill", file, "--all", "--at-once", "1", "--max-usd", "0.1").code != 70
    states, _, _ = asyncio.run(_shown(file))
    assert {(state.type, state.name) for name, state in states.items() if name.startswith("backfill")} == {
        (StateType.COMPLETED, "Completed"), (StateType.COMPLETED, "Not done"),
    }  # fmt: skip
