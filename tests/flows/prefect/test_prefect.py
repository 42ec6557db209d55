"""What a person sees in Prefect: stages by name, parameters without secrets, artifacts, and a failed shard retried alone."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, LogFilter
from prefect.client.schemas.objects import FlowRun, TaskRun
from prefect.client.schemas.sorting import FlowRunSort
from prefect.flow_engine import run_flow
from prefect.states import Pending, Scheduled

from flows.prefect_flows import nightly
from schemas.errors import InputError
from tasks.publish.reading import current
from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark
from tests.support.painting import paint, scenes

pytestmark = pytest.mark.usefixtures("prefect_api")

BENCHMARK = scenes("seen", 'api_key_env = "CANARY_KEY"\n[limits]\nshard_size = 60\n')
CANARY = "sk-canary-5f2e9d"


def _shown(world: Path) -> tuple[FlowRun, list[TaskRun], list[str]]:
    """The flow run of the world's benchmark file, its task runs and its log lines."""

    async def ask() -> tuple[FlowRun, list[TaskRun], list[str]]:
        async with get_client() as client:
            runs = await client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC)
            (run,) = [run for run in runs if run.parameters.get("file") == str(world / "b.toml")]
            mine = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
            tasks = await client.read_task_runs(flow_run_filter=mine, limit=200)
            logs = await client.read_logs(LogFilter(), limit=200)
            return run, tasks, [log.message for log in logs]

    return asyncio.run(ask())


def _artifacts(run: FlowRun) -> dict[str, object]:
    async def ask() -> dict[str, object]:
        async with get_client() as client:
            mine = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
            return {str(found.key): found.data for found in await client.read_artifacts(flow_run_filter=mine)}

    return asyncio.run(ask())


@pytest.fixture
def world(tmp_path: Path, judge_url: str) -> Path:
    paint(tmp_path)
    (tmp_path / "b.toml").write_text(BENCHMARK.format(url=judge_url))
    return tmp_path


def test_stages_are_tasks_with_names_and_parameters_hold_no_secret(world: Path, salon: Callable[..., Said]) -> None:
    os.environ["CANARY_KEY"] = CANARY
    try:
        assert salon("run", "b.toml", "--run-date", "2026-01-02").code == 0
    finally:
        del os.environ["CANARY_KEY"]
    run, tasks, logs = _shown(world)
    assert run.state is not None
    assert run.state.is_completed()
    names = Counter(task.name.partition(",")[0] for task in tasks)
    assert names == {
        "open samples": 6, "plan questions": 1, "ask salon-demo-judge": 6, "take replies": 1, "read replies": 1,
        "check data": 1, "compute tables": 1, "publish tables": 1,
    }  # fmt: skip
    assert {"ask salon-demo-judge, alignment, shard 3", "plan questions, alignment for salon-demo-judge"} <= {
        t.name for t in tasks
    }
    assert CANARY not in json.dumps(run.model_dump(mode="json")) + json.dumps([t.model_dump(mode="json") for t in tasks])
    assert CANARY not in "\n".join(logs)
    assert run.name == "seen 2026-01-02"
    artifacts = _artifacts(run)
    assert artifacts["salon-progress-seen"] == 100.0
    assert "publication" in str(artifacts["salon-summary-seen"])
    (row, *_) = json.loads(str(artifacts["salon-leaderboard-seen"]))
    assert (row["model"], row["dimension"]) == ("demo-painter", "score")
    stored = [path for path in (world / "lake").rglob("*") if path.is_file()]
    assert stored
    assert not [path for path in stored if CANARY.encode() in path.read_bytes()]


def test_a_failed_shard_is_retried_alone(world: Path, salon: Callable[..., Said]) -> None:
    """The judge's server dies in mid-run and comes back once Prefect says that a shard waits for its retry."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (world / "b.toml").write_text(BENCHMARK.format(url=f"http://127.0.0.1:{port}/v1"))
    server = Server(port)
    control = threading.Thread(target=copy_context().run, args=(_die_and_come_back, server, world))
    control.start()
    try:
        said = salon("run", "b.toml", "--run-date", "2026-01-02")
    finally:
        control.join()
        server.stop()
    assert said.code == 0, said.err
    run, tasks, _ = _shown(world)
    assert run.run_count == 1
    tries = sorted(task.run_count for task in tasks if task.name.startswith("ask "))
    assert tries[0] == 1
    assert tries[-1] > 1


class Server:
    """The demo judge on a port of its own, which can die and start again."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "demo.server", "--port", str(self.port), "--until-stdin-closes"]
        root = Path(__file__).parents[3]
        self.process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()

    def n_requests(self) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/stats") as answer:
            return int(json.load(answer)["n_requests"])


def _die_and_come_back(server: Server, world: Path) -> None:
    deadline = time.monotonic() + 60
    while server.n_requests() < 100 and time.monotonic() < deadline:
        time.sleep(0.01)
    server.stop()
    while time.monotonic() < deadline:
        tasks = _shown(world)[1]
        if any(task.state_name == "AwaitingRetry" for task in tasks):
            break
        time.sleep(0.2)
    server.start()


def test_a_run_that_a_worker_begins_early_is_the_night_it_was_made_for(tmp_path: Path, judge_url: str) -> None:
    """Prefect takes a run ten seconds before it is due and rounds the rest: it begins up to half a second before its night."""
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, judge_url)
    due = (datetime.now(UTC) + timedelta(minutes=2)).replace(second=0, microsecond=0)
    file.write_text(file.read_text().replace('"0 2 * * *"', f'"{due.minute} {due.hour} * * *"\ntimezone = "UTC"'))
    with get_client(sync_client=True) as client:
        run = client.create_flow_run(nightly, parameters={"file": str(file)}, state=Scheduled(scheduled_time=due))
        client.set_flow_run_state(run.id, Pending(), force=True)  # begun at once: no server makes it wait
        run = client.read_flow_run(run.id)
    run_flow(nightly, run, parameters={"file": file})
    assert current(tmp_path / "lake").run_date == due.date().isoformat()
    with get_client(sync_client=True) as client:
        assert client.read_flow_run(run.id).name == f"nights {due.date()}"


def test_a_run_whose_file_cannot_be_read_is_named_after_its_file(tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "a.toml").write_text("no benchmark")
    with get_client(sync_client=True) as client:
        run = client.create_flow_run(nightly, parameters={"file": str(tmp_path / "ops" / "a.toml")}, state=Pending())
    with pytest.raises(InputError):
        run_flow(nightly, run, parameters={"file": tmp_path / "ops" / "a.toml"})
    with get_client(sync_client=True) as client:
        assert client.read_flow_run(run.id).name == "ops/a"
