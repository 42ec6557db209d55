"""Whether nights come: the Prefect server, its scheduler, its clock. It is only asked; whether runs are begun is workers.py's."""

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import prefect
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from flows.doctor.findings import Finding, guarded, ok, shortened, skipped, wrong
from flows.doctor.workers import DEPLOYMENT, WORKER, check_files, check_workers
from flows.prefect_server import deployments, full_name, remedy, server_url
from schemas.benchmark.file import Benchmark
from tasks.ledger.connection import without_password

SERVER, SCHEDULER, CLOCK = "Prefect server", "scheduler", "clock"
_HANGING = (SCHEDULER, WORKER, DEPLOYMENT, CLOCK)
NO_SERVER = "no server: nights need cron or a server"
PATIENCE_S = 12.0
"""A deployment that was set up this moment has its runs after the scheduler's next look, five seconds later by default."""
MAX_OFF_S = 5.0
REQUEST_LIMIT_S = 10.0


def check_server(benchmark: Benchmark | None, file: Path | None) -> Iterator[Finding]:
    """The server that PREFECT_API_URL names, and whether the nights of this benchmark, or of all that are deployed, will come."""
    url = server_url()
    if url is None:
        yield skipped(
            SERVER, f"PREFECT_API_URL is not set; {NO_SERVER}", "export PREFECT_API_URL=http://HOST:4200/api if you have one"
        )
        yield from (skipped(what, "no server") for what in _HANGING)
        return
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: REQUEST_LIMIT_S}):
        try:
            with get_client(sync_client=True) as client:
                yield from _of(client, without_password(url), benchmark, file)
        except Exception as error:  # noqa: BLE001 - what answers there may be anything, and the libraries raise anything then
            said = shortened(f"{without_password(url)} does not answer as a Prefect server: {type(error).__name__}: {error}")
            yield wrong(SERVER, said, remedy(error))
            yield from (skipped(what, "the server does not answer") for what in _HANGING)


def _of(client: SyncPrefectClient, url: str, benchmark: Benchmark | None, file: Path | None) -> Iterator[Finding]:
    before_s = time.time()
    answer = client.request("GET", "/admin/version")
    here_s = (before_s + time.time()) / 2
    deployed = deployments(client, None if benchmark is None else benchmark.name)
    yield _version(url, str(answer.json()))
    advice = "read the server's log"
    yield from guarded(SCHEDULER, lambda: _scheduler(client, deployed, benchmark), advice)
    yield from guarded(WORKER, lambda: check_workers(client, deployed, PATIENCE_S), advice)
    yield from guarded(DEPLOYMENT, lambda: check_files(client, deployments(client), benchmark, file), advice)
    yield from guarded(CLOCK, lambda: [_clock(answer.headers.get("date"), here_s)], advice)


def _version(url: str, of_server: str) -> Finding:
    """A server serves the clients of its own release and of earlier ones of the same first number."""
    said = f"{url}, version {of_server}; here {prefect.__version__}"
    theirs, ours = _numbers(of_server), _numbers(prefect.__version__)
    if theirs[:1] == ours[:1] and theirs >= ours:
        return ok(SERVER, said)
    return wrong(SERVER, said, f"install prefect=={prefect.__version__} on the server, or the server's release here")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+", 1)[0].split(".")[:3] if part.isdecimal())


def _scheduler(
    client: SyncPrefectClient, deployed: Iterable[Mapping[str, Any]], benchmark: Benchmark | None
) -> Iterator[Finding]:
    """For every active schedule a run in the future: that is what a scheduler that ticks leaves behind, and no other sign is."""
    nights = [one for one in deployed if one["schedules"]]
    active = [one for one in nights if not one.get("paused") and any(found["active"] for found in one["schedules"])]
    if not nights:
        named = "nothing of Salon's" if benchmark is None else benchmark.name
        said = f"{named} has no schedule on this server: it starts no night; only cron or systemd can"
        yield skipped(SCHEDULER, said, "salon deploy FILE sets up the nights")
    for one in nights:
        if one not in active:
            resume = f"prefect deployment schedule resume '{full_name(one)}' {one['schedules'][0]['id']}"
            yield skipped(SCHEDULER, f"{one['name']} is switched off", f"{resume} switches it on")
    give_up_s = time.monotonic() + PATIENCE_S
    for one in active:
        theirs, ours = _schedule_of(one), None if benchmark is None else _schedule(benchmark)
        if theirs and ours and theirs != ours:
            said = f"{one['name']} runs at {theirs}, but [nightly] of the file says {ours}"
            is_there = Path(str(one["parameters"].get("file", ""))).is_file()
            take_over = "" if is_there else " --take-over"  # as check_files says: it is refused without
            yield wrong(SCHEDULER, said, f"salon deploy FILE{take_over} applies the file's schedule")
        due = _next_run(client, one["id"])
        while due is None and time.monotonic() < give_up_s:
            time.sleep(0.5)
            due = _next_run(client, one["id"])
        if due is None:
            yield wrong(
                SCHEDULER,
                f"{one['name']} has an active schedule but no scheduled run: so far no night will start",
                "the server makes the runs of a resumed schedule within a minute: run salon doctor again. If there is still "
                "none, restart it and check its log for scheduler errors; PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED must be true "
                "there, and SQLAlchemy older than 2.1",
            )
        else:
            yield ok(SCHEDULER, f"{one['name']}: next run {due:%Y-%m-%d %H:%M} UTC")


def _schedule(benchmark: Benchmark) -> str:
    return f"{benchmark.nightly.schedule!r} {benchmark.nightly.timezone}"


def _schedule_of(deployed: Mapping[str, Any]) -> str | None:
    """Of a deployment's first active schedule; None where it is no cron line."""
    first = next(found["schedule"] for found in deployed["schedules"] if found["active"])
    return f"{first['cron']!r} {first.get('timezone') or 'UTC'}" if "cron" in first else None


def _next_run(client: SyncPrefectClient, deployment_id: str) -> datetime | None:
    """When the next run comes that the schedule made; None where there is none."""
    wanted = {
        "flow_runs": {
            "deployment_id": {"any_": [deployment_id]},
            "state": {"type": {"any_": ["SCHEDULED"]}},
            "expected_start_time": {"after_": datetime.now(UTC).isoformat()},
        },
        "sort": "EXPECTED_START_TIME_ASC",
    }
    runs = client.request("POST", "/flow_runs/filter", json=wanted).json()
    due = [datetime.fromisoformat(run["expected_start_time"]) for run in runs if run["auto_scheduled"]]
    return due[0].astimezone(UTC) if due else None


def failed_night(benchmark: str) -> tuple[str, datetime] | None:
    """How a scheduled run of the benchmark's nights failed last, and when it was due; None where none did, or no server says."""
    if server_url() is None:
        return None
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: REQUEST_LIMIT_S}):
        try:
            with get_client(sync_client=True) as client:
                nights = [one["id"] for one in deployments(client, benchmark) if one["schedules"]]
                states = {"type": {"any_": ["CRASHED", "FAILED"]}}
                wanted = {"flow_runs": {"deployment_id": {"any_": nights}, "state": states}, "sort": "EXPECTED_START_TIME_DESC"}
                runs = client.request("POST", "/flow_runs/filter", json=wanted).json() if nights else []
                return (runs[0]["state_name"], datetime.fromisoformat(runs[0]["expected_start_time"])) if runs else None
        except Exception:  # noqa: BLE001 - what is wrong with the server is said of it by check_server
            return None


def _clock(said: str | None, here_s: float) -> Finding:
    """The server's clock says when a night is due, ours which night it is."""
    if said is None:
        return skipped(CLOCK, "the server does not report its time")
    off_s = here_s - parsedate_to_datetime(said).timestamp() - 0.5  # it tells whole seconds
    found = f"{abs(off_s):.0f} s {'ahead of' if off_s > 0 else 'behind'} the server"
    return ok(CLOCK, found) if abs(off_s) <= MAX_OFF_S else wrong(CLOCK, found, "synchronize both clocks with NTP")
