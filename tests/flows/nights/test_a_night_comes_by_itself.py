"""A night that nobody starts, after the server was killed: its scheduler makes the run, the worker starts it, it publishes.

`salon doctor` is asked on the way, while each part is not there yet: one server for both, since starting one is dear.
"""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tasks.publish.reading import current, load_cells
from tests.flows.flow_support import findings
from tests.flows.nights.night_world import N_SAMPLES, World, write_benchmark
from tests.support.prefect_server import RunningPrefect, end, running_prefect

ROOT = Path(__file__).parents[3]
SOON_S = 45
"""From writing the schedule to its minute, at least: deploying takes some seconds, on a busy machine twenty."""
PATIENT_S = 60.0
"""For one answer of the server."""
LIMIT_S = 300.0


def due_soon(file: Path) -> datetime:
    """Give a benchmark a night in the next minute or the one after; when."""
    due = (datetime.now(UTC) + timedelta(seconds=SOON_S + 59)).replace(second=0, microsecond=0)
    file.write_text(file.read_text().replace('"0 2 * * *"', f'"{due.minute} {due.hour} * * *"\ntimezone = "UTC"'))
    return due


@pytest.mark.slow
def test_a_run_that_the_schedule_made_is_started_by_the_worker_and_publishes(
    tmp_path: Path, judge_url: str, prefect_tables: Path
) -> None:
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, judge_url)
    no_scheduler = {"PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false"}
    with running_prefect(tmp_path, prefect_tables, **no_scheduler) as server, (tmp_path / "worker.log").open("wb") as log:
        _salon(server, "deploy", file)
        code, found = _doctor(server, file)
        assert (code, found["Prefect server"][:4], found["clock"][:4]) == (3, "ok: ", "ok: ")
        assert found["worker"] == "wrong: none is alive on work pool salon-process"
        assert found["scheduler"] == "wrong: nights-nightly has an active schedule and no run in the future: no night will come"
        _kill_the_server_while_a_run_is_pending(server)
        due = due_soon(file)
        _salon(server, "deploy", file)
        command = [sys.executable, "-m", "flows", "worker"]
        worker = subprocess.Popen(command, cwd=ROOT, env=server.environment, stdout=log, stderr=log, start_new_session=True)
        try:
            run = _made_by_the_schedule(server, due)
            _until_the_worker_is_alive(server)
            code, found = _doctor(server, file)
            assert code == 0, f"{found}\n{(tmp_path / 'worker.log').read_text()[-2000:]}"
            assert found["scheduler"].startswith("ok: nights-nightly: next run ")
            assert found["worker"].startswith("ok: 1 alive on work pool salon-process")
            ended = _until_it_ends(server, run["id"])
        finally:
            worker.send_signal(signal.SIGINT)
            end(worker, 60)
        server.stop()
        code, found = _doctor(server, file)
        assert (code, "does not answer" in found["Prefect server"]) == (3, True)
    assert ended["state"]["type"] == "COMPLETED", f"{ended['state']}\n{(tmp_path / 'worker.log').read_text()[-3000:]}"
    published = current(tmp_path / "lake")
    assert published.run_date == due.date().isoformat(), "Prefect begins a run up to half a second before it is due"
    assert load_cells(published)["n_scored"].max() == N_SAMPLES


def _doctor(server: RunningPrefect, file: Path) -> tuple[int, dict[str, str]]:
    command, env = [sys.executable, "-m", "flows", "doctor", str(file)], os.environ | server.environment
    said = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=180, check=False)
    return said.returncode, findings(said.stdout)


def _until_the_worker_is_alive(server: RunningPrefect) -> None:
    """As the server has it: a worker takes a while to begin."""
    give_up_s = time.monotonic() + 90
    while not any(one["status"] == "ONLINE" for one in _posted(server, "work_pools/salon-process/workers/filter", {})):
        assert time.monotonic() < give_up_s, "the worker never began"
        time.sleep(0.5)


def _kill_the_server_while_a_run_is_pending(server: RunningPrefect) -> None:
    """A worker takes a run, and before it begins server and worker are gone: a place held for it then is held for ever.

    The server that comes back has its scheduler.
    """
    found = httpx.get(f"{server.api}/deployments/name/nightly/nights-nightly", timeout=PATIENT_S).raise_for_status().json()
    run = _posted(server, f"deployments/{found['id']}/create_flow_run", {"state": {"type": "SCHEDULED"}})
    taken = _posted(server, f"flow_runs/{run['id']}/set_state", {"state": {"type": "PENDING"}})
    assert taken["status"] == "ACCEPT"
    server.kill()
    server.start(PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED="true")


def _posted(server: RunningPrefect, path: str, body: dict[str, Any]) -> Any:
    return httpx.post(f"{server.api}/{path}", json=body, timeout=PATIENT_S).raise_for_status().json()


def _salon(server: RunningPrefect, *arguments: str | Path) -> None:
    command = [sys.executable, "-m", "flows", *map(str, arguments)]
    subprocess.run(command, cwd=ROOT, env=os.environ | server.environment, check=True, capture_output=True, timeout=120)


def _made_by_the_schedule(server: RunningPrefect, due: datetime) -> dict[str, Any]:
    """The run of the night that is due, which nobody asked for; there are others, of the nights to come."""
    give_up_s = time.monotonic() + 90
    asked = {"flow_runs": {"expected_start_time": {"after_": due.isoformat(), "before_": due.isoformat()}}}
    while not (found := httpx.post(f"{server.api}/flow_runs/filter", json=asked, timeout=PATIENT_S).json()):
        assert time.monotonic() < give_up_s, f"no run was ever made\n{(server.home / 'server.log').read_text()[-3000:]}"
        time.sleep(0.5)
    assert [run["auto_scheduled"] for run in found] == [True]
    return dict(found[0])


def _until_it_ends(server: RunningPrefect, run_id: str) -> dict[str, Any]:
    give_up_s = time.monotonic() + LIMIT_S
    while True:
        run: dict[str, Any] = httpx.get(f"{server.api}/flow_runs/{run_id}", timeout=PATIENT_S).json()
        if run["state"]["type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"} or time.monotonic() > give_up_s:
            return run
        time.sleep(0.5)
