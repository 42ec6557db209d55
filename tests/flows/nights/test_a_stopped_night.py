"""A night stopped with its worker, on a real server: begun again by the automation, unless it was a person who cancelled it."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark
from tests.support.servers.prefect_server import RunningPrefect, asked, end, running_prefect, shown_by, told
from tests.support.servers.provider import Play, Provider, completion

ROOT = Path(__file__).parents[3]
LIMIT_S = 900.0


def _until(is_so: Callable[[], Any], what: str) -> Any:
    give_up_s = time.monotonic() + LIMIT_S
    while not (found := is_so()):
        assert time.monotonic() < give_up_s, what
        time.sleep(0.3)
    return found


class _Night:
    """The deployed nightly on a server, its runs, and a worker for them."""

    def __init__(self, server: RunningPrefect, log: Path, provider: Provider) -> None:
        self.server, self.log, self.provider = server, log, provider
        self.deployment = asked(server.api, "deployments/name/nightly/nights-nightly")["id"]

    def work(self) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as said:
            command = [sys.executable, "-m", "flows", "worker"]
            own = self.server.environment
            return subprocess.Popen(command, cwd=ROOT, env=own, stdout=said, stderr=said, start_new_session=True)

    def under_way(self) -> str:
        """The id of a run that a person starts, once it asks the judge."""
        n_before = self.provider.n
        run = told(self.server.api, f"deployments/{self.deployment}/create_flow_run", {"state": {"type": "SCHEDULED"}})
        _until(lambda: self.provider.n > n_before, "the judge was never asked")
        return str(run["id"])

    def ended(self, run_id: str) -> dict[str, Any]:
        def final() -> dict[str, Any] | None:
            state: dict[str, Any] = asked(self.server.api, f"flow_runs/{run_id}")["state"]
            return state if state["type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"} else None

        return dict(_until(final, f"run {run_id} never ended"))

    def states(self, run_id: str) -> list[str]:
        return [state["type"] for state in asked(self.server.api, f"flow_run_states/?flow_run_id={run_id}")]

    def begun_again(self) -> list[str]:
        those = {"flow_runs": {"deployment_id": {"any_": [self.deployment]}}}
        runs = asked(self.server.api, "flow_runs/filter", those)
        return [str(run["id"]) for run in runs if run["parameters"].get("after_crash")]


@pytest.mark.slow
def test_a_night_stopped_with_its_worker_is_begun_again_and_a_cancelled_one_is_not(
    tmp_path: Path, prefect_tables: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(1)
    in_time = f"{datetime.now(UTC) + timedelta(hours=3):%H:%M}"
    due = datetime.now(UTC) - timedelta(minutes=2)
    file = write_benchmark(tmp_path, provider.url, nightly=f'finish_by = "{in_time}"', limits="deadline_s = 20")
    file.write_text(
        file.read_text().replace('"0 2 * * *"', f'"{due.minute} {due.hour} * * *"').replace("concurrency = 4", "concurrency = 1")
    )
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"), delay_s=1.5)
    with running_prefect(tmp_path, prefect_tables) as server:
        with shown_by(server.api):
            assert salon("deploy", file).code == 0
        night = _Night(server, tmp_path / "worker.log", provider)
        worker = night.work()
        try:
            cancelled = night.under_way()
            told(server.api, f"flow_runs/{cancelled}/set_state", {"state": {"type": "CANCELLING"}})
            assert night.ended(cancelled)["type"] == "CANCELLED"
            stopped = night.under_way()
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(60) == 143
            state = night.ended(stopped)
            assert (state["type"], state["name"]) == ("CRASHED", "Crashed"), state
            assert state["message"].startswith("told to stop; replies in flight are stored")
            n_paid = provider.n
            provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
            _until(night.begun_again, "nothing was begun again")
            worker = night.work()
            # A server whose tables are locked evaluates one event more than once: a further run waits and finds the night whole.
            assert {night.ended(again)["type"] for again in night.begun_again()} == {"COMPLETED"}
            assert n_paid < provider.n == 24, "no reply is bought twice"
            assert night.states(cancelled)[-1] == "CANCELLED"
            assert "CRASHED" not in night.states(cancelled), "this alone begins a night again"
        finally:
            worker.send_signal(signal.SIGINT)
            end(worker, 60)
