"""Setting up a benchmark's deployments on a Prefect server. What is set up stands in infra/; printing is in commands/."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import JSONDecodeError
from pathlib import Path
from typing import Any
from uuid import UUID

from httpx import HTTPStatusError, TransportError
from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.objects import WorkPool
from prefect.exceptions import ObjectNotFound
from prefect.flows import load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from pydantic import ValidationError

from flows.prefect_server import deployments, full_name, remedy, server_url
from flows.serving.deployment_files import blocks_told, cron, filled, new_pool, notification_block, set_up
from schemas.benchmark.file import Benchmark, load_benchmark
from schemas.benchmark.nightly import Nightly
from schemas.errors import InputError, StoreError
from tasks.ledger.connection import without_password

DRAIN_MARGIN_S = 30  # beside the longest request: storing its reply, ending Prefect's own threads


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """What is to be deployed, beside the benchmark file: where, and who is told."""

    pool: str
    file_at_worker: str | None = None  # the file's path where the runs are, if it is another than here
    image: str | None = None
    notify: str | None = None  # <block type>/<block name> of a notification block
    is_taking_over: bool = False  # deployments of this name that run another file are this one's from now on


@dataclass(frozen=True, slots=True)
class Deployed:
    """What stands on the server now."""

    api_url: str
    pool: WorkPool
    nightly: Nightly
    deployments: list[str] = field(default_factory=list)
    automations: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """Earlier ones of the same file in this pool: it has another name now, and both would run it each night."""
    kept_off: list[str] = field(default_factory=list)
    """Those whose schedule somebody switched off, also under an earlier name."""
    elsewhere: list[str] = field(default_factory=list)
    """The same in other pools, where a file of this path may be another: they are left alone."""
    taken_over: list[tuple[str, str]] = field(default_factory=list)
    """Deployments that ran another file until now, and that file."""
    told: list[str] = field(default_factory=list)
    """The notification blocks, as <type>/<name>, that an enabled automation of Salon tells; none: nobody hears."""
    without_block: list[str] = field(default_factory=list)
    """New automations that were not set up: the others notify several blocks, and none was asked for."""
    no_longer_told: list[str] = field(default_factory=list)
    """Those that alerts of all benchmarks went to until now: another one was asked for."""


def grace_s(benchmark: Benchmark) -> int:
    """Seconds between SIGTERM and SIGKILL in which a run surely drains: its longest request, and a margin."""
    return math.ceil(benchmark.limits.deadline_s) + DRAIN_MARGIN_S


def named_server() -> str:
    """The address of the Prefect server's API. Raises InputError where none is named: Prefect would start one of its own."""
    url = server_url()
    if url is None:
        raise InputError(
            "PREFECT_API_URL is not set, so the Prefect server is unknown. Start one with `salon serve`, or name yours: "
            "export PREFECT_API_URL=http://HOST:4200/api"
        )
    return url


def deploy(file: Path, asked: DeployOptions) -> Deployed:
    """Set up the pool, the deployments and the automations for one benchmark file; what is there already is brought up to date.

    Raises BenchmarkFileError; InputError where no server is named, the pool, image or block cannot be, or the name's deployment
    runs another file; StoreError where the server does not answer.
    """
    benchmark = load_benchmark(file)
    if not asked.pool.strip():
        raise InputError("--pool is empty; name the work pool for the runs, such as --pool salon-process")
    api_url = without_password(named_server())
    plan = filled(benchmark, asked.file_at_worker or str(file.resolve()), asked.pool)
    for entry in plan["deployments"]:  # before anything is set up
        for found in entry["schedules"]:
            cron(entry["name"], found)
    try:
        with get_client(sync_client=True) as client:
            of_others = _of_other_files(client, plan["deployments"])
            if of_others and not asked.is_taking_over:
                raise _is_of_another(benchmark, *of_others[0])
            deployed = Deployed(api_url, _pool(client, plan["definitions"], asked.pool), benchmark.nightly, taken_over=of_others)
            job_variables = _job_variables(benchmark, deployed.pool, asked)
            block_id = notification_block(client, asked.notify) if asked.notify else None
            said = plan["definitions"]["parameters"]
            earlier = _earlier(client, plan["deployments"])
            for entry in plan["deployments"]:
                name, is_off = _deployment(client, entry, said, job_variables, earlier)
                deployed.deployments.append(name)
                deployed.kept_off.extend([name] if is_off else [])
            _remove_renamed(client, earlier, deployed)
            names, without_block, no_longer_told = set_up(client, plan, block_id)
            deployed.automations.extend(names)
            deployed.without_block.extend(without_block)
            deployed.told.extend(blocks_told(client))
            deployed.no_longer_told.extend(block for block in no_longer_told if block not in deployed.told)
    except TransportError as error:
        said = f"no Prefect server answers at {api_url} ({type(error).__name__})"
        raise StoreError(f"{said}; {remedy(error)}, then deploy again") from error
    except HTTPStatusError as error:
        said = f"{error.response.status_code} {error.response.text[:500]}"
        raise StoreError(f"the Prefect server at {api_url} refused {error.request.url.path}: {said}; {remedy(error)}") from error
    except (JSONDecodeError, UnicodeDecodeError, ValidationError) as error:  # a sign-in page of what stands before it, say
        said = f"what answers at {api_url} does not answer as a Prefect server does ({type(error).__name__})"
        raise StoreError(f"{said}; {remedy(error)}, then deploy again") from error
    return deployed


def _pool(client: SyncPrefectClient, definitions: Mapping[str, Any], name: str) -> WorkPool:
    """The pool and its queues. One that is there stays as its operator made it."""
    try:
        pool = client.read_work_pool(name)
    except ObjectNotFound:
        kinds = {kind["type"]: kind for collection in client.read_worker_metadata().values() for kind in collection.values()}
        templates = {kind: found["default_base_job_configuration"] for kind, found in kinds.items()}
        pool = client.create_work_pool(new_pool(name, definitions["pools"], templates))
    for queue, priority in definitions["queues"].items():
        try:
            found = client.read_work_queue_by_name(queue, work_pool_name=name)
        except ObjectNotFound:
            client.create_work_queue(queue, priority=priority, work_pool_name=name)
        else:
            client.update_work_queue(found.id, priority=priority)
    return pool


def _job_variables(benchmark: Benchmark, pool: WorkPool, asked: DeployOptions) -> dict[str, Any]:
    """What this benchmark's runs need of the pool's job template, where it has the variable."""
    known = pool.base_job_template.get("variables", {}).get("properties", {})
    if asked.image and "image" not in known:
        raise InputError(f"the work pool {pool.name!r} ({pool.type}) does not use images; omit --image")
    wanted = {"image": asked.image, "grace_s": grace_s(benchmark)}
    return {variable: value for variable, value in wanted.items() if value is not None and variable in known}


def _deployment(
    client: SyncPrefectClient,
    entry: Mapping[str, Any],
    said: Mapping[str, str],
    job_variables: Mapping[str, Any],
    earlier: Sequence[Mapping[str, Any]],
) -> tuple[str, bool]:
    """Create or update one deployment; a schedule that somebody switched off stays off, also under an earlier name.

    Its full name, and whether it is off.
    """
    flow: Flow[..., Any] = load_flow_from_entrypoint(entry["entrypoint"])
    name = f"{flow.name}/{entry['name']}"
    try:
        switched = {schedule.slug: schedule.active for schedule in client.read_deployment_by_name(name).schedules}
    except ObjectNotFound:
        mine = [one for one in earlier if one["work_pool_name"] == entry["work_pool"]["name"]]
        was_off = any(_is_off(one) for one in mine if full_name(one).startswith(f"{flow.name}/"))
        switched = {found["slug"]: not was_off for found in entry["schedules"]}
    pool = entry["work_pool"]
    made = client.create_deployment(
        flow_id=client.create_flow_from_name(flow.name),
        name=entry["name"],
        version=flow.version,
        entrypoint=entry["entrypoint"],
        description=entry["description"],
        tags=entry["tags"],
        parameters=entry["parameters"],
        parameter_openapi_schema=form(flow, said),
        enforce_parameter_schema=True,
        schedules=[
            DeploymentScheduleCreate(schedule=cron(name, found), active=switched.get(found["slug"], True), slug=found["slug"])
            for found in entry["schedules"]
        ],
        concurrency_limit=None,  # one that an earlier Salon set is taken away
        work_pool_name=pool["name"],
        work_queue_name=pool["work_queue_name"],
        job_variables=pool["job_variables"] | job_variables,
        pull_steps=[],
    )
    return name, _is_off(client.read_deployment(made).model_dump())


def _earlier(client: SyncPrefectClient, entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The deployments, in any pool, that this file left behind under an earlier name."""
    own, file = {entry["name"] for entry in entries}, entries[0]["parameters"]["file"]
    return [one for one in deployments(client) if one["parameters"].get("file") == file and one["name"] not in own]


def _is_off(deployed: Mapping[str, Any]) -> bool:
    schedules = deployed["schedules"]
    return bool(schedules) and (bool(deployed.get("paused")) or not any(found["active"] for found in schedules))


def _of_other_files(client: SyncPrefectClient, entries: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The deployments of these names that run another file than theirs, and that file."""
    own = {entry["name"]: entry["parameters"]["file"] for entry in entries}
    there = {one["name"]: one for one in deployments(client)}
    found = [(there[name], file) for name, file in own.items() if name in there]
    return [(full_name(one), str(one["parameters"]["file"])) for one, file in found if one["parameters"].get("file") != file]


def _is_of_another(benchmark: Benchmark, name: str, file: str) -> InputError:
    return InputError(
        f"the deployment {name} runs another file, {file}, and a name has only one deployment: that file's nights would end. "
        f"Give this benchmark another name than {benchmark.name!r}; or, if this file replaces that one, add --take-over"
    )


def _remove_renamed(client: SyncPrefectClient, earlier: Sequence[Mapping[str, Any]], deployed: Deployed) -> None:
    """Take away, or name, the deployments that this file left behind under an earlier name."""
    for one in earlier:
        if one["work_pool_name"] == deployed.pool.name:
            client.delete_deployment(UUID(one["id"]))
            deployed.removed.append(full_name(one))
        else:
            deployed.elsewhere.append(full_name(one))


def form(flow: Flow[..., Any], said: Mapping[str, str]) -> dict[str, Any]:
    """The JSON schema of a flow's parameters, each with a description where the flow or infra/prefect.yaml has one."""
    schema = parameter_schema(flow.fn).model_dump_for_openapi()
    for name, found in schema["properties"].items():
        if name in said:
            found.setdefault("description", said[name])
    return schema
