"""A night that nobody starts, after the server was killed: its scheduler makes the run, the worker starts it, it publishes.

`salon doctor` is asked on the way, while each part is not there yet: one server for both, since starting one is dear.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prefect.client.orchestration import get_client

from tasks.publish.reading import current, load_cells
from tests.flows.flow_support import Said, findings
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.prefect_server import RunningPrefect, asked, end, running_prefect, shown_by, told

ROOT = Path(__file__).parents[3]
SOON_S = 45
"""From writing the schedule to its minute, at least: deploying takes some seconds, on a busy machine twenty."""
LIMIT_S = 600.0
"""For what takes seconds where the machine is idle."""


def due_soon(file: Path) -> datetime:
    """Give a benchmark a night in the next minute or the one after; when."""
    due = (datetime.now(UTC) + timedelta(seconds=SOON_S + 59)).replace(second=0, microsecond=0)
    file.write_text(file.read_text().replace('"0 2 * * *"', f'"{due.minute} {due.hour} * * *"\ntimezone = "UTC"'))
    return due


def test_a_run_that_the_schedule_made_is_started_by_the_worker_and_publishes(
    tmp_path: Path, judge_url: str, prefect_tables: Path, salon: Callable[..., Said]
) -> None:
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, judge_url)
    no_scheduler = {"PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false"}
    with running_prefect(tmp_path, prefect_tables, **no_scheduler) as server, (tmp_path / "worker.log").open("wb") as log:
        _deploy(server, salon, file)
        code, found = _doctor(server, salon, file)
        assert (code, found["Prefect server"][:4], found["clock"][:4]) == (3, "ok: ", "ok: ")
        assert found["worker"] == "wrong: no worker is alive on work pool salon-process"
        assert (
            found["scheduler"] == "wrong: nights-nightly has an active schedule but no scheduled run: so far no night will start"
        )
        _kill_the_server_while_a_run_is_pending(server)
        due = due_soon(file)
        _deploy(server, salon, file)
        command = [sys.executable, "-m", "flows", "worker"]
        worker = subprocess.Popen(command, cwd=ROOT, env=server.environment, stdout=log, stderr=log, start_new_session=True)
        try:
            run = _made_by_the_schedule(server, due)
            _until_the_worker_is_alive(server)
            code, found = _doctor(server, salon, file)
            assert code == 0, f"{found}\n{(tmp_path / 'worker.log').read_text()[-2000:]}"
            assert found["scheduler"].startswith("ok: nights-nightly: next run ")
            assert found["worker"].startswith("ok: 1 alive on work pool salon-process")
            ended = _until_it_ends(server, run["id"])
        finally:
            worker.send_signal(signal.SIGINT)
            end(worker, 60)
        _pause_the_queue(server)
        file.write_text(file.read_text().replace('timezone = "UTC"', 'timezone = "Europe/Berlin"'))
        with shown_by(server.api):
            said = salon("doctor", file)
        assert said.code == 3
        assert "queue nightly of work pool salon-process is paused" in said.out
        assert f"nights-nightly runs at '{due.minute} {due.hour} * * *' UTC, but [nightly] of the file says" in said.out
        server.stop()
        code, found = _doctor(server, salon, file)
        assert (code, "does not answer" in found["Prefect server"]) == (3, True)
    assert ended["state"]["type"] == "COMPLETED", f"{ended['state']}\n{(tmp_path / 'worker.log').read_text()[-3000:]}"
    published = current(tmp_path / "lake")
    assert published.run_date == due.date().isoformat(), "Prefect begins a run up to half a second before it is due"
    assert load_cells(published)["n_scored"].max() == N_SAMPLES


def _doctor(server: RunningPrefect, salon: Callable[..., Said], file: Path) -> tuple[int, dict[str, str]]:
    with shown_by(server.api):
        said = salon("doctor", file)
    return said.code, findings(said.out)


def _until_the_worker_is_alive(server: RunningPrefect) -> None:
    """As the server has it: a worker takes a while to begin."""
    give_up_s = time.monotonic() + LIMIT_S
    while not any(one["status"] == "ONLINE" for one in asked(server.api, "work_pools/salon-process/workers/filter", {})):
        assert time.monotonic() < give_up_s, "the worker never began"
        time.sleep(0.5)


def _kill_the_server_while_a_run_is_pending(server: RunningPrefect) -> None:
    """A worker takes a run, and before it begins server and worker are gone: a place held for it then is held for ever.

    The server that comes back has its scheduler.
    """
    found = asked(server.api, "deployments/name/nightly/nights-nightly")
    run = told(server.api, f"deployments/{found['id']}/create_flow_run", {"state": {"type": "SCHEDULED"}})
    taken = told(server.api, f"flow_runs/{run['id']}/set_state", {"state": {"type": "PENDING"}})
    assert taken["status"] == "ACCEPT"
    server.kill()
    server.start(PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED="true")


def _pause_the_queue(server: RunningPrefect) -> None:
    with shown_by(server.api), get_client(sync_client=True) as client:
        queue = client.read_work_queue_by_name("nightly", work_pool_name="salon-process")
        client.update_work_queue(queue.id, is_paused=True)


def _deploy(server: RunningPrefect, salon: Callable[..., Said], file: Path) -> None:
    with shown_by(server.api):
        said = salon("deploy", file)
    assert said.code == 0, said.err


def _made_by_the_schedule(server: RunningPrefect, due: datetime) -> dict[str, Any]:
    """The run of the night that is due, which nobody asked for; there are others, of the nights to come."""
    give_up_s = time.monotonic() + LIMIT_S
    those = {"flow_runs": {"expected_start_time": {"after_": due.isoformat(), "before_": due.isoformat()}}}
    while not (found := asked(server.api, "flow_runs/filter", those)):
        assert time.monotonic() < give_up_s, f"no run was ever made\n{(server.home / 'server.log').read_text()[-3000:]}"
        time.sleep(0.5)
    assert [run["auto_scheduled"] for run in found] == [True]
    return dict(found[0])


def _until_it_ends(server: RunningPrefect, run_id: str) -> dict[str, Any]:
    give_up_s = time.monotonic() + LIMIT_S
    while True:
        run: dict[str, Any] = asked(server.api, f"flow_runs/{run_id}")
        if run["state"]["type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"} or time.monotonic() > give_up_s:
            return run
        time.sleep(0.5)
