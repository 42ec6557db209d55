"""The stores of one run: the ledger is opened once, and a part of the lake that is corrupt is not tried again."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.sorting import FlowRunSort
from sqlalchemy import event
from sqlalchemy.engine import Engine

from demo.running import running_judge
from tests.flows.flow_support import Said
from tests.flows.nights.night_world import World, write_benchmark


@pytest.fixture
def opened_engines() -> Iterator[list[Engine]]:
    """Every engine on a ledger.db that was connected to meanwhile, once each."""
    found: list[Engine] = []

    def note(connection: Any) -> None:
        if str(connection.engine.url.database).endswith("ledger.db") and connection.engine not in found:
            found.append(connection.engine)

    event.listen(Engine, "engine_connect", note)
    yield found
    event.remove(Engine, "engine_connect", note)


@pytest.mark.usefixtures("prefect_api")
def test_a_run_opens_the_ledger_once_and_a_corrupt_part_ends_it_at_once(
    tmp_path: Path, salon: Callable[..., Said], opened_engines: list[Engine]
) -> None:
    World(tmp_path).make(0)
    with running_judge() as url:
        command = ("run", write_benchmark(tmp_path, url), "--run-date", "2026-03-04")
        assert salon(*command).code == 0
        assert len(opened_engines) == 1
        lake = tmp_path / "lake"
        shutil.rmtree(lake / "publish")
        shutil.rmtree(lake / "complete" / "checks")
        (scores,) = (lake / "scores").glob("*/part-00000.parquet")
        os.truncate(scores, 100)
        said = salon(*command)
    assert said.code == 3, said.err
    assert "not" in said.err
    assert str(scores) in said.err
    assert asyncio.run(_times_tried()) == {1}


async def _times_tried() -> set[int]:
    """How often each task of the latest flow was tried; the server learns of tasks by events, a while after they ran."""
    async with get_client() as client, asyncio.timeout(60):
        (flow,) = await client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=1)
        mine = FlowRunFilter(id=FlowRunFilterId(any_=[flow.id]))
        while not (tasks := await client.read_task_runs(flow_run_filter=mine)):
            await asyncio.sleep(0.2)
        return {task.run_count for task in tasks}
