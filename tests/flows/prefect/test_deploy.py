"""`salon deploy` against a Prefect server: what stands there afterwards, twice over, and what it refuses."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Crashed, Running

from flows.commands.deploying import deploy as deploy_command
from flows.commands.serving import worker
from flows.serving import local_postgres
from flows.serving.deploying import DeployOptions, deploy
from schemas.errors import InputError, StoreError
from tasks.publish.reading import current
from tests.support.servers.prefect_server import asked, told

pytestmark = pytest.mark.usefixtures("prefect_api", "no_deployment_stays")

BENCHMARK = """\
name = "{name}"
[[sources]]
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "alignment"
[[judges]]
model = "eye"
[limits]
deadline_s = 45.5
[nightly]
schedule = "{schedule}"
timezone = "{timezone}"
"""


NIGHTS = "nights were missed, or had nothing new"


def written(folder: Path, name: str = "paris", schedule: str = "30 1 * * 1-5", timezone: str = "Europe/Paris") -> Path:
    file = folder / "b.toml"
    file.write_text(BENCHMARK.format(name=name, schedule=schedule, timezone=timezone))
    return file


@pytest.fixture
def client() -> Iterator[SyncPrefectClient]:
    with get_client(sync_client=True) as found:
        yield found


def of(client: SyncPrefectClient, name: str) -> dict[str, Any]:
    """The deployments of a benchmark, as nightly and backfill."""
    found = client.read_deployments()
    return {d.name.rpartition("-")[2]: d for d in found if f"benchmark:{name}" in d.tags}


def automations_of(client: SyncPrefectClient) -> dict[str, str]:
    """When each automation was last written."""
    return {found["name"]: found["updated"] for found in client.request("POST", "/automations/filter", json={}).json()}


def test_a_deployed_benchmark(tmp_path: Path, client: SyncPrefectClient) -> None:
    file = written(tmp_path)
    deployed = deploy(file, DeployOptions("salon-process"))
    there = of(client, "paris")
    assert set(there) == {"nightly", "backfill"}
    assert len(deployed.deployments) == 2
    nightly, backfill = there["nightly"], there["backfill"]
    (schedule,) = nightly.schedules
    assert (schedule.schedule.cron, schedule.schedule.timezone, schedule.active) == ("30 1 * * 1-5", "Europe/Paris", True)
    assert backfill.schedules == []
    assert (nightly.parameters, nightly.work_pool_name) == ({"file": str(file)}, "salon-process")
    queues = {queue.name: queue.priority for queue in client.read_work_queues(work_pool_name="salon-process")}
    assert queues["nightly"] < queues["backfill"]
    assert nightly.work_queue_name == "nightly"
    assert nightly.job_variables["env"]["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == "30"


def test_the_form_has_types_and_says_what_is_asked(tmp_path: Path, client: SyncPrefectClient) -> None:
    deploy(written(tmp_path), DeployOptions("salon-process"))
    for found in of(client, "paris").values():
        schema = found.parameter_openapi_schema
        assert schema["properties"]["file"]["format"] == "path"
        assert {"type": "string", "format": "date"} in schema["properties"]["run_date"]["anyOf"]
        assert [name for name, field in schema["properties"].items() if not field.get("description")] == []
        assert found.enforce_parameter_schema


def test_deploying_again_changes_nothing_but_what_the_file_says(tmp_path: Path, client: SyncPrefectClient) -> None:
    deploy(written(tmp_path), DeployOptions("salon-process"))
    before, watching = of(client, "paris"), automations_of(client)
    client.update_deployment_schedule(before["nightly"].id, before["nightly"].schedules[0].id, active=False)
    deploy(written(tmp_path, schedule="0 5 * * *"), DeployOptions("salon-process"))
    after = of(client, "paris")
    assert {d.id for d in after.values()} == {d.id for d in before.values()}
    (schedule,) = after["nightly"].schedules
    assert (schedule.schedule.cron, schedule.active) == ("0 5 * * *", False), "a schedule that was switched off stays off"
    # An automation that is updated forgets which runs it watches.
    assert automations_of(client) == watching


def test_a_limit_that_an_earlier_salon_set_is_taken_away(tmp_path: Path, client: SyncPrefectClient) -> None:
    """A place in it is lost for ever when the server restarts at the wrong moment, and with it every later night."""
    deploy(written(tmp_path, "early"), DeployOptions("salon-process"))
    before = of(client, "early")
    for found in before.values():
        client.request("PATCH", "/deployments/{id}", path_params={"id": found.id}, json={"concurrency_limit": 1})
    assert {found.global_concurrency_limit.limit for found in of(client, "early").values()} == {1}
    deploy(written(tmp_path, "early"), DeployOptions("salon-process"))
    assert {found.global_concurrency_limit for found in of(client, "early").values()} == {None}


def test_a_night_with_finish_by_that_crashed_is_started_again_and_no_other_run(tmp_path: Path, client: SyncPrefectClient) -> None:
    """By the server's own automation: nothing of ours lives to see the crash. It is to begin a minute later."""
    file = written(tmp_path, "crashing", timezone='UTC"\nfinish_by = "08:00')
    deploy(file, DeployOptions("salon-process"))
    there = of(client, "crashing")
    crashed = {kind: client.create_flow_run_from_deployment(found.id).id for kind, found in there.items()}
    for kind in ("backfill", "nightly"):
        for state in (Running(), Crashed()):
            client.set_flow_run_state(crashed[kind], state, force=True)
    give_up_s = time.monotonic() + 600
    while not (again := _after_crash(client, there)):
        assert time.monotonic() < give_up_s, "nothing was started again"
        time.sleep(0.5)
    assert [(run.deployment_id, run.parameters["file"]) for run in again] == [(there["nightly"].id, str(file))]


def _after_crash(client: SyncPrefectClient, there: dict[str, Any]) -> list[Any]:
    ids = DeploymentFilterId(any_=[found.id for found in there.values()])
    runs = client.read_flow_runs(deployment_filter=DeploymentFilter(id=ids))
    return [run for run in runs if run.parameters.get("after_crash")]


def test_two_benchmarks_do_not_touch_each_other(tmp_path: Path, client: SyncPrefectClient) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        deploy(written(tmp_path / name, name), DeployOptions("salon-process"))
    assert set(of(client, "one")) == set(of(client, "two")) == {"nightly", "backfill"}
    assert of(client, "one")["nightly"].parameters != of(client, "two")["nightly"].parameters


def test_a_cluster_gives_the_runs_their_time_to_drain(tmp_path: Path, client: SyncPrefectClient) -> None:
    asked = DeployOptions("salon-kubernetes", file_at_worker="/benchmarks/b.toml", image="registry.example/salon:9")
    deploy(written(tmp_path), asked)
    nightly = of(client, "paris")["nightly"]
    assert nightly.parameters == {"file": "/benchmarks/b.toml"}
    assert (nightly.job_variables["grace_s"], nightly.job_variables["image"]) == (46 + 30, "registry.example/salon:9")
    template = client.read_work_pool("salon-kubernetes").base_job_template
    pod = template["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == "{{ grace_s }}"


def test_a_pool_stays_as_its_operator_made_it(tmp_path: Path, client: SyncPrefectClient) -> None:
    deploy(written(tmp_path), DeployOptions("salon-docker"))
    pool = client.read_work_pool("salon-docker")
    assert pool.type == "docker"
    assert pool.base_job_template["variables"]["properties"]["command"]["default"] == "python -m prefect.engine"
    changed = pool.base_job_template | {"note": "mine"}
    client.request("PATCH", "/work_pools/{name}", path_params={"name": "salon-docker"}, json={"base_job_template": changed})
    deploy(written(tmp_path), DeployOptions("salon-docker"))
    assert client.read_work_pool("salon-docker").base_job_template["note"] == "mine"


def test_automations_that_notify_are_set_up_when_asked_for(tmp_path: Path, client: SyncPrefectClient) -> None:
    quiet = deploy(written(tmp_path), DeployOptions("salon-process")).automations
    webhook = CustomWebhookNotificationBlock(name="alerts", url="https://hooks.example.invalid/secret-path")
    block = webhook.save("salon-alerts", overwrite=True)
    loud = deploy(written(tmp_path), DeployOptions("salon-process", notify="custom-webhook/salon-alerts")).automations
    assert quiet == [
        "Salon: a run whose process is gone is crashed",
        "Salon: a run that never began is crashed",
        "Salon: a night that crashed is started again",
    ]
    assert {"Salon: a run failed", "Salon: nights were missed, or had nothing new"} <= set(loud)
    stored = json.dumps([a.model_dump(mode="json") for a in client.read_automations()])
    assert str(block) in stored
    assert "BLOCK_ID" not in stored
    assert "secret-path" not in stored


def test_automations_that_notify_are_brought_up_to_date_and_keep_whom_they_tell(
    tmp_path: Path, client: SyncPrefectClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an earlier Salon left them: one knows fewer events, one was not there yet, one is switched off, one does more."""
    _first, last = (
        CustomWebhookNotificationBlock(name=name, url="https://hooks.example.invalid").save(name, overwrite=True)
        for name in ("first-told", "then-told")
    )
    file, first = written(tmp_path), "custom-webhook/first-told"
    deploy(file, DeployOptions("salon-process", notify=first))
    there = {found["name"]: found for found in client.request("POST", "/automations/filter", json={}).json()}
    kept = ("name", "description", "enabled", "trigger", "actions")
    nights, off, new = (there[f"Salon: {name}"] for name in (NIGHTS, "a run crashed", "a night by command was given up"))
    nights["trigger"]["expect"], off["enabled"] = ["salon.night.missed"], False
    nights["actions"].append({"type": "call-webhook", "block_document_id": str(last), "payload": "mine"})
    for found in (nights, off):
        path = {"id": found["id"]}
        client.request("PUT", "/automations/{id}", path_params=path, json={name: found[name] for name in kept})
    client.delete_automation(new["id"])
    told = deploy(file, DeployOptions("salon-process"))
    after = {found.name: found for found in client.read_automations()}
    assert set(told.automations) == set(there) == set(after)
    assert "salon.night.shut_out" in after[nights["name"]].trigger.expect  # type: ignore[union-attr]
    assert [action.type for action in after[nights["name"]].actions] == ["send-notification", "call-webhook"]
    assert not after[off["name"]].enabled
    assert (told.no_longer_told, first in told.told) == ([], True)
    before = automations_of(client)
    assert deploy(file, DeployOptions("salon-process")).no_longer_told == []
    assert automations_of(client) == before
    nights["actions"][0]["block_document_id"] = str(last)  # somebody wants nights told elsewhere
    blocked = there["Salon: a table is blocked, or the budget is reached"]
    blocked["actions"] = nights["actions"][1:]  # and these in a way of their own
    for found in (nights, blocked):
        path = {"id": found["id"]}
        client.request("PUT", "/automations/{id}", path_params=path, json={name: found[name] for name in kept})
    client.delete_automation(after[new["name"]].id)
    assert deploy_command(file) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "not set up" in line)
    assert f"not set up  {new['name']}: the others notify several blocks" in line
    assert deploy_command(file, with_automations="custom-webhook/then-told") == 0
    said = capsys.readouterr().out
    assert "alerts reach:        custom-webhook/then-told" in said
    assert "and no longer custom-webhook/first-told: of all benchmarks on this server" in said
    client.delete_block_document(last)
    assert deploy(file, DeployOptions("salon-process")).told == [], "a block that was deleted tells nobody"


@pytest.mark.parametrize(
    ("written_as", "asked", "says"),
    [
        ({}, DeployOptions("salon-proces"), "choose one of salon-process, salon-docker, salon-kubernetes"),
        ({}, DeployOptions("salon-process", image="salon:2"), "does not use images"),
        ({}, DeployOptions("salon-process", notify="slack-webhook/nobody"), "docs/alerts.md"),
        ({}, DeployOptions("salon-process", notify="no-slash"), "<type>/<name>"),
        ({"schedule": "every night"}, DeployOptions("salon-process"), "Write a cron line"),
        ({"timezone": "Mars/Olympus"}, DeployOptions("salon-process"), "'Mars/Olympus'"),
    ],
    ids=["pool", "image", "block", "block's form", "cron", "time zone"],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, written_as: dict[str, str], asked: DeployOptions, says: str) -> None:
    with pytest.raises(InputError, match=r"^[^\n]+$") as refused:
        deploy(written(tmp_path, **written_as), asked)
    assert says in str(refused.value)


def test_no_server_is_named_or_none_answers(tmp_path: Path) -> None:
    with temporary_settings(restore_defaults={PREFECT_API_URL}), pytest.raises(InputError, match="PREFECT_API_URL is not set"):
        deploy(written(tmp_path), DeployOptions("salon-process"))
    with temporary_settings(restore_defaults={PREFECT_API_URL}), pytest.raises(InputError, match="Start one with `salon serve`"):
        worker()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/api"
        with temporary_settings({PREFECT_API_URL: url}), pytest.raises(StoreError, match="no Prefect server answers"):
            deploy(written(tmp_path), DeployOptions("salon-process"))


class _SignInPage(BaseHTTPRequestHandler):
    """What a proxy answers to whoever is not signed in."""

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        page = b"<html>sign in</html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    do_GET = do_POST = _answer  # noqa: N815 - the base class's names


def test_a_sign_in_page_is_no_prefect_server(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _SignInPage) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{proxy.server_port}/api"
        says = "does not answer as a Prefect server does .*correct PREFECT_API_URL, then deploy again"
        with temporary_settings({PREFECT_API_URL: url}), pytest.raises(StoreError, match=says):
            deploy(written(tmp_path), DeployOptions("salon-process"))
        proxy.shutdown()


def test_the_command_says_what_stands_and_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert deploy_command(written(tmp_path), with_automations=None, image=None, file_at_worker=None) == 0
    said = capsys.readouterr().out
    assert "paris-nightly" in said
    assert "prefect worker start" not in said, "a plain worker kills its runs when it is told to stop"
    assert "salon worker --pool salon-process" in said
    assert "alerts reach" in said


SERVE = "import sys, pathlib; from flows.commands.serving import serve; sys.exit(serve(pathlib.Path(sys.argv[1]), 0))"


def test_a_served_salon_runs_the_demo_through_its_deployment_and_leaves_nothing_behind() -> None:
    """`salon serve` on free ports, from nothing: server, database, worker, deployments; one run; Ctrl-C."""
    folder = Path(tempfile.mkdtemp(prefix="salon-serve-", dir="/tmp"))  # a test's own folder is closed to PostgreSQL's user
    folder.chmod(0o755)
    unnamed = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    with (folder / "said.txt").open("w") as said:
        serving = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(folder)], cwd=Path(__file__).parents[3], stdout=said, stderr=said, env=unnamed
        )
    try:
        address = _until_it_says(folder / "said.txt", serving, "The UI: ")
        words = (folder / "login").read_text().strip()  # in an address httpx takes them for a login
        api = address.replace("//", f"//{words}@") + "/api"
        assert (folder / "postgres" / "data").is_dir() == (local_postgres.missing(folder) is None)
        nightly = next(found for found in asked(api, "deployments/filter", {}) if found["name"] == "demo-nightly")
        assert {(folder / name).stat().st_mode & 0o777 for name in ("logs", "prefect")} == {0o700}, "whatever the umask"
        run = told(api, f"deployments/{nightly['id']}/create_flow_run", {"state": {"type": "SCHEDULED"}})
        state = _until_it_ends(api, run["id"])
        assert state["type"] == "COMPLETED", state["message"] + (folder / "logs" / "worker.log").read_text()[-2000:]
        assert current(folder / "lake", "demo").folder.is_dir()
        assert len(started := _all_under(serving.pid)) >= 3, "the server, the judge, the worker"
        serving.send_signal(signal.SIGINT)
        assert serving.wait(180) == 0
        assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    finally:
        serving.kill()
        serving.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _until_it_says(file: Path, process: subprocess.Popen[bytes], start: str) -> str:
    deadline = time.monotonic() + 600
    while process.poll() is None and time.monotonic() < deadline:
        for line in file.read_text().splitlines():
            if line.startswith(start):
                return line.removeprefix(start)
        time.sleep(0.3)
    raise AssertionError(file.read_text())


def _until_it_ends(api: str, run_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + 900
    while True:
        state: dict[str, Any] = asked(api, f"flow_runs/{run_id}")["state"]
        if state["type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"} or time.monotonic() > deadline:
            return state
        time.sleep(0.5)


def _all_under(root: int) -> set[int]:
    """The ids of all processes that a process started, or that those did."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in {root, *found}} - found:
        found |= more
    return found
