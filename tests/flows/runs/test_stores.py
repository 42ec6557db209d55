"""The stores of one run: the ledger is opened once, and a part of the lake that is corrupt is not tried again."""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from demo.running import running_judge
from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark


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


@pytest.fixture
def said_of_tasks() -> Iterator[list[str]]:
    """What Prefect's engine says of the tries of tasks: in its log at once, at the server some time later or never.

    A filter hears it: a command quietens all handlers.
    """
    found: list[str] = []
    logger = logging.getLogger("prefect.task_runs")

    def note(record: logging.LogRecord) -> bool:
        found.append(record.getMessage())
        return True

    logger.addFilter(note)
    yield found
    logger.removeFilter(note)


@pytest.mark.usefixtures("prefect_api")
def test_a_run_opens_the_ledger_once_and_a_corrupt_part_ends_it_at_once(
    tmp_path: Path, salon: Callable[..., Said], opened_engines: list[Engine], said_of_tasks: list[str]
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
    assert [line for line in said_of_tasks if "Finished in state Failed" in line], "a task failed, and its end was heard"
    assert not [line for line in said_of_tasks if "Retry" in line]
