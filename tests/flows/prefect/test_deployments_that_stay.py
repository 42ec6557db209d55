"""Deployments whose file has another name or is gone, and runs that nobody begins: what `deploy` removes and `doctor` says."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.states import Crashed, Scheduled

from flows.run.context import open_run
from tests.flows.flow_support import Said
from tests.support.servers.prefect_server import asked, told

pytestmark = pytest.mark.usefixtures("prefect_api")

Salon = Callable[..., Said]
BENCHMARK = """\
name = "{name}"
[[sources]]
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "alignment"
[[judges]]
model = "eye"
base_url = "http://127.0.0.1:9/v1"
"""


def named(file: Path, name: str) -> Path:
    file.write_text(BENCHMARK.format(name=name))
    return file


@pytest.fixture
def client() -> Iterator[SyncPrefectClient]:
    with get_client(sync_client=True) as found:
        yield found


def names_of(client: SyncPrefectClient, file: Path) -> set[str]:
    return {found.name for found in client.read_deployments() if found.parameters.get("file") == str(file)}


def test_a_renamed_benchmark_leaves_no_deployment_behind(salon: Salon, tmp_path: Path, client: SyncPrefectClient) -> None:
    file = named(tmp_path / "b.toml", "louvre")
    assert salon("deploy", file).code == 0
    assert salon("deploy", file, "--pool", "salon-docker").code == 0
    named(file, "orsay")
    for kind in ("nightly", "backfill"):
        told_so = f"deployment      {kind}/louvre-{kind} runs {file}, whose benchmark is now named 'orsay'"
        assert told_so not in salon("doctor", file).out, "a container has paths of its own"
    assert salon("deploy", named(file, "louvre")).code == 0
    named(file, "orsay")
    said = salon("doctor", file)
    assert said.code == 3
    assert f"wrong   deployment      nightly/louvre-nightly runs {file}, whose benchmark is now named 'orsay'" in said.out
    assert f"prefect deployment delete 'nightly/louvre-nightly', or salon deploy {file}" in said.out
    said = salon("deploy", file)
    assert "removed     nightly/louvre-nightly: it ran the same file under an earlier name" in said.out
    assert "removed     backfill/louvre-backfill" in said.out
    assert names_of(client, file) == {"orsay-nightly", "orsay-backfill"}
    assert "ok      deployment      2 have their benchmark file here" in salon("doctor", file).out
    assert "removed" not in salon("deploy", file).out


def test_a_schedule_that_is_switched_off_stays_off_under_another_name(
    salon: Salon, tmp_path: Path, client: SyncPrefectClient, prefect_api: str
) -> None:
    file = named(tmp_path / "b.toml", "pompidou")
    assert "stays off" not in salon("deploy", file).out
    (schedule,) = client.read_deployment_by_name("nightly/pompidou-nightly").schedules
    client.update_deployment_schedule(client.read_deployment_by_name("nightly/pompidou-nightly").id, schedule.id, active=False)
    said = salon("deploy", named(file, "beaubourg"))
    assert "stays off   nightly/beaubourg-nightly" in said.out
    assert "0 2 * * * (UTC), switched off" in said.out
    assert "stays off   nightly/beaubourg-nightly" in salon("deploy", file).out
    found = client.read_deployment_by_name("nightly/beaubourg-nightly")
    assert [one.active for one in found.schedules] == [False]
    (listed,) = [line for line in salon("doctor", file).out.splitlines() if "prefect deployment schedule resume" in line]
    command = shlex.split(listed.partition("-> ")[2].partition(" switches")[0])
    assert command.pop(0) == "prefect"
    command = [sys.executable, "-m", "prefect", *command]
    subprocess.run(command, env=os.environ | {"PREFECT_API_URL": prefect_api}, check=True, capture_output=True, timeout=120)
    assert client.read_deployment_by_name("nightly/beaubourg-nightly").schedules[0].active
    assert "stays off" not in salon("deploy", file).out


def test_a_first_night_that_crashed_on_the_server_is_told(salon: Salon, tmp_path: Path, client: SyncPrefectClient) -> None:
    file = named(tmp_path / "b.toml", "guimard")
    assert salon("deploy", file).code == 0
    assert "last night      no night is published yet" in salon("doctor", file).out
    due, now = open_run(file).benchmark.nightly.newest_due(datetime.now(UTC)), datetime.now(UTC)
    deployment = client.read_deployment_by_name("nightly/guimard-nightly")
    run = client.create_flow_run_from_deployment(deployment.id, state=Scheduled(scheduled_time=now))
    client.set_flow_run_state(run.id, Crashed(), force=True)
    said = salon("doctor", file)
    assert said.code == 3
    crashed = f"none is yet: its run on the Prefect server is Crashed, the one for the night of {due.date()}"
    assert (
        f"wrong   last night      the night of {due.date()} was due at {due:%H:%M %Z} and is not published; {crashed}" in said.out
    )


def test_a_file_of_the_same_path_in_another_pool_is_left_alone(salon: Salon, tmp_path: Path, client: SyncPrefectClient) -> None:
    file = named(tmp_path / "b.toml", "guimet")
    assert salon("deploy", file, "--pool", "salon-docker").code == 0
    said = salon("deploy", named(file, "picasso"))
    assert "left alone  nightly/guimet-nightly, of another pool" in said.out
    assert "prefect deployment delete 'nightly/guimet-nightly'" in said.out
    assert len(names_of(client, file)) == 4


def test_another_file_of_the_same_name_takes_nothing_over_in_silence(
    salon: Salon, tmp_path: Path, client: SyncPrefectClient
) -> None:
    (tmp_path / "team2").mkdir()
    first, second = named(tmp_path / "b.toml", "cluny"), named(tmp_path / "team2" / "b.toml", "cluny")
    assert salon("deploy", first).code == 0
    refused = salon("deploy", second)
    assert refused.code == 2
    assert f"cluny-nightly runs another file, {first}, and a name has only one deployment" in " ".join(refused.err.split())
    assert "--take-over" in refused.err
    assert names_of(client, second) == set()
    assert salon("deploy", first).code == 0, "one's own is brought up to date"
    said = salon("doctor", second)
    assert said.code == 3
    assert f"wrong   deployment      nightly/cluny-nightly runs {first}: it does not run {second}" in said.out
    assert "ok      deployment      2 have their benchmark file here" in salon("doctor", first).out
    taken = salon("deploy", second, "--take-over")
    assert (taken.code, names_of(client, first)) == (0, set())
    assert f"taken over  nightly/cluny-nightly: it ran {first}, whose nights now end" in taken.out
    assert f"nightly/cluny-nightly runs {second}: it does not run {first}" in salon("doctor", first).out
    assert "taken over" not in salon("deploy", second, "--take-over").out


def test_a_file_that_is_gone_is_told(salon: Salon, tmp_path: Path) -> None:
    file = named(tmp_path / "b.toml", "rodin")
    assert salon("deploy", file).code == 0
    file.unlink()
    said = salon("doctor")
    assert said.code == 3
    assert f"wrong   deployment      nightly/rodin-nightly runs {file}, which does not exist here" in said.out
    assert "prefect deployment delete 'nightly/rodin-nightly', if its benchmark is no longer used" in said.out


def test_a_queue_that_no_worker_asks_and_what_is_late(
    salon: Salon, tmp_path: Path, client: SyncPrefectClient, prefect_api: str
) -> None:
    """A worker of another queue of the pool is alive: `--work-queue backfill`."""
    client.create_work_pool(WorkPoolCreate(name="unheard", type="process"))
    file = named(tmp_path / "b.toml", "marmottan")
    assert salon("deploy", file, "--pool", "unheard").code == 0
    alive = {"name": "one", "heartbeat_interval_seconds": 3000}
    client.request(
        "POST", "/work_pools/{work_pool_name}/workers/heartbeat", path_params={"work_pool_name": "unheard"}, json=alive
    )
    told(prefect_api, "work_pools/unheard/get_scheduled_flow_runs", {"work_queue_names": ["backfill"]})
    due = datetime.now(UTC) - timedelta(minutes=5)
    deployment = client.read_deployment_by_name("nightly/marmottan-nightly")
    run = client.create_flow_run_from_deployment(deployment.id, state=Scheduled(scheduled_time=due))
    client.set_flow_run_state(run.id, Scheduled(name="Late", scheduled_time=due), force=True)
    said = salon("doctor", file)
    assert said.code == 3
    assert "wrong   worker          no worker takes the runs of queue nightly of work pool unheard: none ever did" in said.out
    assert "queue backfill" not in said.out
    begun = f"marmottan-nightly: no worker has started 1 Late runs, the first due {due:%Y-%m-%d %H:%M} UTC"
    assert f"wrong   worker          {begun}" in said.out
    assert "salon worker --pool unheard" in said.out
    client.delete_flow_run(run.id)
    told(prefect_api, "work_pools/unheard/get_scheduled_flow_runs", {})
    give_up_s = time.monotonic() + 60
    while asked(prefect_api, "work_pools/unheard/queues/nightly")["last_polled"] is None:
        assert time.monotonic() < give_up_s
        time.sleep(0.2)
    assert "ok      worker          1 alive on work pool unheard" in salon("doctor", file).out


def test_the_doctor_says_how_a_renamed_file_takes_its_nights_over(salon: Salon, tmp_path: Path) -> None:
    first = named(tmp_path / "b.toml", "uffizi")
    assert salon("deploy", first).code == 0
    renamed = first.rename(tmp_path / "uffizi.toml")
    renamed.write_text(renamed.read_text() + '\n[nightly]\nschedule = "7 3 * * *"\n')
    said = " ".join(salon("doctor", renamed).out.split())
    assert "-> salon deploy FILE --take-over applies the file's schedule" in said
    assert f"-> if the file was moved, salon deploy {renamed} --take-over" in said
    assert "prefect deployment delete 'nightly/uffizi-nightly'" not in said
    assert salon("deploy", renamed, "--take-over").code == 0
    assert "take-over" not in salon("doctor", renamed).out
