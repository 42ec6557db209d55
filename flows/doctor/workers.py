"""Whether the runs of our deployments are begun: a worker that takes them, and the benchmark file that they are to run."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

from httpx import HTTPStatusError
from prefect.client.orchestration import SyncPrefectClient

from flows.doctor.findings import Finding, ok, shortened, skipped, wrong
from flows.prefect_server import benchmark_of, full_name
from schemas.benchmark.file import Benchmark, load_benchmark
from schemas.errors import SalonError

WORKER, DEPLOYMENT = "worker", "deployment"
MAX_UNHEARD_S = 60.0
"""A worker asks each of its queues every ten seconds or so, and takes what is due at once."""


def check_workers(client: SyncPrefectClient, deployed: Sequence[Mapping[str, Any]], patience_s: float) -> Iterator[Finding]:
    """A worker that the server has heard of lately, and that takes our deployments' runs, on each work pool that they use."""
    pools = sorted({str(one["work_pool_name"]) for one in deployed if one["work_pool_name"]})
    if not pools:
        yield skipped(WORKER, "no deployment needs one")
    for pool in pools:
        try:
            said = client.request("GET", "/work_pools/{name}", path_params={"name": pool}).json()
            workers = client.request(
                "POST", "/work_pools/{work_pool_name}/workers/filter", path_params={"work_pool_name": pool}, json={}
            ).json()
        except HTTPStatusError as error:
            yield wrong(WORKER, f"work pool {pool}: {error.response.status_code}", "salon deploy FILE creates the pool")
            continue
        alive = [str(one["last_heartbeat_time"]) for one in workers if one["status"] == "ONLINE"]
        closed = [*_closed(client, pool, said, deployed)]
        yield from closed
        if closed:
            continue
        unheard = [*_unpolled(client, pool, deployed, patience_s)] if alive else []
        yield from unheard
        yield from _late(client, pool, deployed)
        if unheard:
            continue
        if alive:
            last = datetime.fromisoformat(max(alive)).astimezone(UTC)
            yield ok(WORKER, f"{len(alive)} alive on work pool {pool}, last heard of {last:%H:%M:%S} UTC")
        else:
            known = f"; the last of {len(workers)} is gone" if workers else ""
            yield wrong(WORKER, f"no worker is alive on work pool {pool}{known}", f"salon worker --pool {pool}")


def _closed(
    client: SyncPrefectClient, pool: str, said: Mapping[str, Any], deployed: Iterable[Mapping[str, Any]]
) -> Iterator[Finding]:
    """What lets no run through to a worker: the pool, or a queue of it that our deployments use, paused or of no runs at once."""
    if said["is_paused"]:
        yield wrong(WORKER, f"work pool {pool} is paused", f"prefect work-pool resume {pool}")
    if said["concurrency_limit"] == 0:
        yield wrong(WORKER, f"work pool {pool} has the limit 0", f"prefect work-pool clear-concurrency-limit {pool}")
    for queue in _queues(client, pool, deployed):
        name = queue["name"]
        option = f"{name} --pool {pool}"
        if queue["is_paused"]:
            yield wrong(WORKER, f"queue {name} of work pool {pool} is paused", f"prefect work-queue resume {option}")
        if queue["concurrency_limit"] == 0:
            advice = f"prefect work-queue clear-concurrency-limit {option}"
            yield wrong(WORKER, f"queue {name} of work pool {pool} has the limit 0", advice)


def _queues(client: SyncPrefectClient, pool: str, deployed: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The queues of a pool that our deployments use, as the server tells them now."""
    for name in sorted({str(one["work_queue_name"]) for one in deployed if one["work_pool_name"] == pool}):
        where = {"work_pool_name": pool, "name": name}
        yield client.request("GET", "/work_pools/{work_pool_name}/queues/{name}", path_params=where).json()


def _unpolled(
    client: SyncPrefectClient, pool: str, deployed: Iterable[Mapping[str, Any]], patience_s: float
) -> Iterator[Finding]:
    """Queues that no worker asks, though one is alive on their pool; one that has begun this moment is waited for."""
    give_up_s = time.monotonic() + patience_s
    while unheard := [queue for queue in _queues(client, pool, deployed) if not _is_polled(queue)]:
        if time.monotonic() >= give_up_s:
            break
        time.sleep(0.5)
    for queue in unheard:
        last = f"the last one did so at {_moment(queue['last_polled'])}" if queue["last_polled"] else "none ever did"
        advice = f"salon worker --pool {pool} takes the runs of all queues; one started with --work-queue only its own"
        yield wrong(WORKER, f"no worker takes the runs of queue {queue['name']} of work pool {pool}: {last}", advice)


def _is_polled(queue: Mapping[str, Any]) -> bool:
    last = queue["last_polled"]
    return last is not None and datetime.now(UTC) - datetime.fromisoformat(last) < timedelta(seconds=MAX_UNHEARD_S)


def _late(client: SyncPrefectClient, pool: str, deployed: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Runs that were due and that nobody has begun."""
    for one in deployed:
        if one["work_pool_name"] != pool:
            continue
        wanted = {
            "deployment_id": {"any_": [one["id"]]},
            "state": {"name": {"any_": ["Late"]}},
            "expected_start_time": {"before_": (datetime.now(UTC) - timedelta(seconds=MAX_UNHEARD_S)).isoformat()},
        }
        asked = {"flow_runs": wanted, "sort": "EXPECTED_START_TIME_ASC"}
        late = client.request("POST", "/flow_runs/filter", json=asked).json()
        if late:
            first = _moment(late[0]["expected_start_time"])
            advice = f"start one (salon worker --pool {pool}), or see which runs occupy the pool: "
            advice += "prefect flow-run ls --state Running"
            yield wrong(WORKER, f"{one['name']}: no worker has started {len(late)} Late runs, the first due {first}", advice)


def _moment(text: str) -> str:
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def check_files(
    client: SyncPrefectClient, deployed: Iterable[Mapping[str, Any]], benchmark: Benchmark | None, file: Path | None
) -> Iterator[Finding]:
    """Whether each deployment's file is here, and still the benchmark that the deployment is named after.

    Of a benchmark its own deployments, and others of the same file. Only of process pools: a container has paths of its own.
    """
    n_well, is_on_a_machine = 0, cache(partial(_is_on_a_machine, client))
    for one in deployed:
        path = Path(str(one["parameters"].get("file", "")))
        is_ours = benchmark is None or file is None or benchmark_of(one) == benchmark.name or path == file.resolve()
        if not is_ours or not is_on_a_machine(one["work_pool_name"]):
            continue
        found = _of_file(one, path, benchmark, file) or _of_another(one, path, benchmark, file)
        n_well += found is None
        if found is not None:
            yield found
    if n_well:
        yield ok(DEPLOYMENT, f"{n_well} have their benchmark file here")
    else:
        yield skipped(DEPLOYMENT, "no deployment of a process pool has its file here")


def _of_file(one: Mapping[str, Any], path: Path, benchmark: Benchmark | None, file: Path | None) -> Finding | None:
    name = full_name(one)
    delete = f"prefect deployment delete '{name}'"
    if not path.is_file():
        advice = f"{delete}, if its benchmark is no longer used; if its runs execute on another machine, check there"
        if benchmark is not None and file is not None and benchmark_of(one) == benchmark.name:
            advice = f"if the file was moved, salon deploy {file} --take-over; if runs execute on another machine, check there"
        return wrong(DEPLOYMENT, f"{name} runs {path}, which does not exist here", advice)
    try:
        named = load_benchmark(path).name
    except SalonError as error:
        return wrong(DEPLOYMENT, shortened(f"{name} will fail: {error}"), "")
    if named != benchmark_of(one):
        return wrong(
            DEPLOYMENT, f"{name} runs {path}, whose benchmark is now named {named!r}", f"{delete}, or salon deploy {path}"
        )
    return None


def _of_another(one: Mapping[str, Any], path: Path, benchmark: Benchmark | None, file: Path | None) -> Finding | None:
    """Where a deployment of the benchmark's name runs another file than the one that is asked about."""
    if benchmark is None or file is None or benchmark_of(one) != benchmark.name or path.samefile(file):
        return None
    said = f"{full_name(one)} runs {path}: it does not run {file.resolve()}"
    return wrong(DEPLOYMENT, said, f"rename one of the two; or end the other's nights with salon deploy {file} --take-over")


def _is_on_a_machine(client: SyncPrefectClient, pool: str | None) -> bool:
    if pool is None:
        return False
    try:
        said = client.request("GET", "/work_pools/{name}", path_params={"name": pool}).json()
    except HTTPStatusError:  # told of as its worker's
        return False
    return bool(said["type"] == "process")
