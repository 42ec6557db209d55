"""infra/: the image, compose, the cluster's manifests and Prefect's file, parsed and held to what matters."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.commands.serving import WORKER_GRACE_S
from flows.prefect_flows import BLOCKED, NOT_CURRENT
from flows.serving.deploying import DRAIN_MARGIN_S, grace_s
from flows.serving.deployment_files import INFRA, automations, filled
from schemas.benchmark.file import Benchmark, Limits

ROOT = INFRA.parent
DRAIN_S = Limits().deadline_s + DRAIN_MARGIN_S
DOCKERFILE = (INFRA / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((INFRA / "compose.yaml").read_text())
JOB = json.loads((INFRA / "kubernetes" / "job-template.json").read_text())
POD = JOB["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
BENCHMARK = Benchmark.model_validate(
    {"name": "b", "sources": [{"reader": "geneval", "path": "x"}], "rubrics": [{"id": "alignment"}], "judges": [{"model": "m"}]}
)


def manifests() -> Iterator[dict[str, Any]]:
    for file in sorted((INFRA / "kubernetes").glob("*.yaml")):
        yield from yaml.safe_load_all(file.read_text())


def images() -> Iterator[str]:
    yield from re.findall(r"^FROM (\S+)", DOCKERFILE, flags=re.MULTILINE)
    yield from (service["image"] for service in COMPOSE["services"].values())
    yield JOB["variables"]["properties"]["image"]["default"]
    yield filled(BENCHMARK, "f", "p")["definitions"]["pools"]["salon-docker"]["variables"]["image"]
    yield from (c["image"] for m in manifests() if m["kind"] == "Deployment" for c in m["spec"]["template"]["spec"]["containers"])


def seconds(duration: str) -> float:
    return sum(float(n) * {"h": 3600, "m": 60, "s": 1}[unit] for n, unit in re.findall(r"([\d.]+)([hms])", duration))


def test_every_image_is_pinned_and_ours_is_of_this_version() -> None:
    found = list(images())
    assert len(found) >= 8
    for image in found:
        tag = image.rpartition(":")[2]
        assert ":" in image
        assert re.search(r"\d", tag), image
        assert "latest" not in tag
    assert {image for image in found if image.startswith("salon:")} == {f"salon:{VERSION}"}
    assert f'version="{VERSION}"' in DOCKERFILE


def test_the_image_is_not_root_and_installs_by_hash() -> None:
    last_stage = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    (user,) = re.findall(r"^USER (\d+):\d+$", last_stage, flags=re.MULTILINE)
    assert int(user) > 0
    assert "HEALTHCHECK" in last_stage
    assert "ENTRYPOINT [" not in DOCKERFILE, "Prefect's workers put a command in place of ours"
    installs = re.findall(r"pip install[^&\n]*", DOCKERFILE.replace("\\\n", " "))
    assert len(installs) == 3
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


def test_the_image_gets_all_that_salon_is_made_of() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    copied = set(re.findall(r"^COPY (\w+) \1$", DOCKERFILE, flags=re.MULTILINE))
    assert copied == set(packages)
    sent = {line.removeprefix("!") for line in (INFRA / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert copied <= sent
    assert (INFRA / "Dockerfile.dockerignore").read_text().splitlines()[1] == "*"


def test_compose_gives_the_worker_its_time_and_no_service_a_secret_in_its_environment() -> None:
    services = COMPOSE["services"]
    worker = services["worker"]["command"]
    told = float(worker[worker.index("--grace-s") + 1])
    assert told >= DRAIN_S
    assert seconds(services["worker"]["stop_grace_period"]) > told
    assert worker[:2] == ["salon", "worker"], "a plain Prefect worker kills its runs at SIGTERM"
    for name, service in services.items():
        for key, value in service.get("environment", {}).items():
            assert not re.search(r"KEY|TOKEN|SECRET|PASSWORD$", key), f"{name}: {key}={value}"
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports), "the UI has no login of its own"


def test_what_the_worker_of_compose_fetches_outlives_it_and_its_secrets_are_behind_a_closed_folder() -> None:
    worker = COMPOSE["services"]["worker"]
    cache = Path(worker["environment"]["SALON_CACHE"])
    volumes = {target: source for source, target, *_ in (one.rsplit(":") for one in worker["volumes"] if one[0] != "$")}
    assert volumes[str(cache.parent)] in COMPOSE["volumes"]
    assert "install -d -m 700 infra/secrets" in (INFRA / "compose.yaml").read_text()


@pytest.mark.parametrize("name", ["prefect", "worker"])
def test_our_containers_may_write_nowhere_but_where_they_must(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]


def test_a_job_drains_before_it_is_killed() -> None:
    assert POD["terminationGracePeriodSeconds"] == "{{ grace_s }}"
    assert JOB["variables"]["properties"]["grace_s"]["default"] >= DRAIN_S
    assert grace_s(BENCHMARK) >= DRAIN_S
    assert WORKER_GRACE_S >= DRAIN_S
    # The engine itself is process 1; `prefect flow-run execute` would end it 30 seconds after SIGTERM.
    assert JOB["variables"]["properties"]["command"]["default"] == "python -m prefect.engine"


def test_every_variable_of_the_job_template_is_declared() -> None:
    used = set(re.findall(r"\{\{ (\w+) \}\}", json.dumps(JOB["job_configuration"])))
    assert used == set(JOB["variables"]["properties"])


def test_every_container_of_the_cluster_is_bound_and_holds_keys_by_reference() -> None:
    pods = [m["spec"]["template"]["spec"] for m in manifests() if m["kind"] == "Deployment"] + [POD]
    assert len(pods) == 2
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["terminationGracePeriodSeconds"]
        for container in pod["containers"]:
            assert set(container["resources"]) == {"requests", "limits"}
            assert set(container["resources"]["limits"]) == {"cpu", "memory"}
            assert not container["securityContext"]["allowPrivilegeEscalation"]
            assert container["securityContext"]["readOnlyRootFilesystem"]
            environment = container["env"] if isinstance(container["env"], list) else []
            secret = [v for v in environment if re.search(r"KEY|TOKEN|AUTH|PASSWORD|SECRET", v["name"])]
            secret = [
                v for v in secret if not v["name"].startswith("PREFECT_INTEGRATIONS_KUBERNETES_WORKER_")
            ]  # names of Secrets
            assert all("valueFrom" in v for v in secret)
    assert POD["containers"][0]["envFrom"] == [{"secretRef": {"name": "{{ keys_secret }}"}}]
    assert not [m for m in manifests() if m["kind"] == "Secret"], "no secret is kept beside the code"


def test_the_kustomization_names_every_manifest() -> None:
    files = {file.name for file in (INFRA / "kubernetes").glob("*.yaml")} - {"kustomization.yaml"}
    (named,) = [m["resources"] for m in manifests() if m["kind"] == "Kustomization"]
    assert set(named) == files


def test_prefects_file_is_filled_and_holds_no_secret() -> None:
    plan = filled(BENCHMARK, "/x/b.toml", "salon-process")
    assert "$SALON" not in json.dumps(plan)
    environment = plan["definitions"]["environment"]
    assert not [name for name in environment if re.search(r"KEY|TOKEN|SECRET|PASSWORD", name)]
    for entry in plan["deployments"]:
        assert entry["work_pool"]["work_queue_name"] in plan["definitions"]["queues"]
        assert "salon" in entry["tags"], "the automations watch what has this tag"


def test_a_run_is_given_up_only_after_many_heartbeats() -> None:
    plan = filled(BENCHMARK, "f", "p")
    watches = [found for found in automations(plan, lambda _: []) if found.trigger.posture == "Proactive"]
    every_s = int(plan["definitions"]["environment"]["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"])
    assert len(watches) == 2
    for watch in watches:
        assert watch.trigger.within.total_seconds() >= max(5 * every_s, 180), "a server that is away for two minutes is no reason"


def test_the_watch_knows_every_name_a_run_ends_with() -> None:
    """Prefect's event carries the state's name: one that is not expected is taken for a run that is gone."""
    watches = [found for found in automations(filled(BENCHMARK, "f", "p"), lambda _: []) if found.trigger.posture == "Proactive"]
    ended = {f"prefect.flow-run.{name}" for name in (BLOCKED, NOT_CURRENT, "Completed", "Failed", "Crashed", "Cancelled")}
    assert [ended - watch.trigger.expect for watch in watches] == [set(), set()]


def test_secrets_are_in_no_wheel_and_not_in_git(tmp_path: Path) -> None:
    """Where infra/compose.yaml has people write them."""
    root = INFRA.parent
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, tmp_path)
    for name in ("salon", "infra"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("secrets", "__pycache__"))
    (tmp_path / "infra/secrets").mkdir()
    (tmp_path / "infra/secrets/keys.env").write_text("KEY=canary")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "out"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    packed = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("infra/compose.yaml") for name in packed)
    assert not [name for name in packed if "secrets/" in name]
    assert "/infra/secrets/" in (root / ".gitignore").read_text().splitlines()


def test_a_file_name_is_data(tmp_path: Path) -> None:
    plan = filled(BENCHMARK, r"/x/\1 {{ $SALON_NAME }}.toml", "p")
    assert plan["deployments"][0]["parameters"]["file"] == r"/x/\1 {{ $SALON_NAME }}.toml"


def test_a_cluster_gives_rights_in_its_namespace_alone_and_every_volume_is_there() -> None:
    found = list(manifests())
    kinds = [one["kind"] for one in found]
    assert "ClusterRole" not in kinds
    assert "ClusterRoleBinding" not in kinds
    (worker,) = [one for one in found if one["kind"] == "Deployment"]
    environment = {one["name"]: one for one in worker["spec"]["template"]["spec"]["containers"][0]["env"]}
    watched = environment["PREFECT_INTEGRATIONS_KUBERNETES_OBSERVER_NAMESPACES"]
    assert watched["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.namespace", "else it watches the whole cluster"
    login = environment["PREFECT_API_AUTH_STRING"]["valueFrom"]["secretKeyRef"]
    handed_on = "PREFECT_INTEGRATIONS_KUBERNETES_WORKER_API_AUTH_STRING_SECRET_"
    told = [environment[f"{handed_on}{part}"]["value"] for part in ("NAME", "KEY")]
    assert told == [login["name"], login["key"]], "else each job's manifest holds the login"
    (role,) = [one for one in found if one["kind"] == "Role"]
    rights = {resource: set(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]}
    assert all({"get", "list", "watch"} <= rights[resource] for resource in ("pods", "jobs", "events"))
    defaults = {name: said.get("default") for name, said in JOB["variables"]["properties"].items()}
    claims = {one["metadata"]["name"] for one in found if one["kind"] == "PersistentVolumeClaim"}
    used = [one["persistentVolumeClaim"]["claimName"].strip("{} ") for one in POD["volumes"] if "persistentVolumeClaim" in one]
    assert {defaults[variable] for variable in used} == claims == {"salon-lake", "salon-pictures"}
    mounts = {one["name"]: one for one in POD["containers"][0]["volumeMounts"]}
    assert mounts["pictures"]["readOnly"] is True
    assert set(mounts) == {one["name"] for one in POD["volumes"]}
    (policy,) = [one for one in found if one["kind"] == "NetworkPolicy"]
    assert (policy["spec"]["podSelector"], policy["spec"]["ingress"]) == ({}, [])
    blocks = [to["ipBlock"] for rule in policy["spec"]["egress"] for to in rule.get("to", [])]
    assert any("169.254.0.0/16" in block["except"] for block in blocks)


def test_a_server_set_up_as_written_sends_no_telemetry() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    (block,) = re.findall(r"```\n((?:(?!```).)*prefect server start --host.*?)```", page, re.DOTALL)
    for said in (block, DOCKERFILE):
        assert {"DO_NOT_TRACK=1", "PREFECT_SERVER_ANALYTICS_ENABLED=false"} <= set(said.split())


def test_a_server_set_up_as_written_asks_who_is_there_and_answers_its_own_pages_alone() -> None:
    """Loopback is no wall: a browser takes any page's request there."""
    page = (ROOT / "docs" / "operations.md").read_text()
    (block,) = re.findall(r"```\n((?:(?!```).)*prefect server start --host.*?)```", page, re.DOTALL)
    assert {"PREFECT_SERVER_API_AUTH_STRING", "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"} <= set(re.findall(r"\w+(?==)", block))
    head = (INFRA / "compose.yaml").read_text().partition("services:")[0]
    assert {"PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"} <= set(re.findall(r"PREFECT\w+(?= = )", head))
    for name in ("prefect", "worker"):
        service = COMPOSE["services"][name]
        assert "prefect_login" in service["secrets"]
        assert service["environment"]["PREFECT_PROFILES_PATH"] == "/run/secrets/prefect_login"
        assert f"[profiles.{service['environment']['PREFECT_PROFILE']}]" in head
    assert "*" not in COMPOSE["services"]["prefect"]["environment"]["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_takes_the_folder_as_it_stands() -> None:
    done = subprocess.run(["kubectl", "kustomize", INFRA / "kubernetes"], capture_output=True, text=True, check=True)
    made = list(yaml.safe_load_all(done.stdout))
    assert sorted(one["kind"] for one in made) == sorted(one["kind"] for one in manifests() if one["kind"] != "Kustomization")
    assert {one["metadata"].get("namespace", "salon") for one in made} == {"salon"}
