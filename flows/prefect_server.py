"""Whether a Prefect server has a part in this process, and what is ours there. Prefect is not imported: a second of CPU."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from schemas.benchmark.nightly import Nightly
from schemas.errors import InputError

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

TAG = "salon"
"""Stands on every deployment of ours (infra/prefect.yaml), and beside it that of its benchmark."""
_OF_BENCHMARK = "benchmark:"


def server_url() -> str | None:
    """The server that Prefect's settings name (environment, profile, files), if any: none is started for a run."""
    if "prefect" not in sys.modules and not _may_be_configured():
        return None
    with told_of_settings():
        from prefect.settings import PREFECT_API_URL

        return PREFECT_API_URL.value() or None


@contextmanager
def told_of_settings() -> Iterator[None]:
    """Around Prefect's import, which reads its settings: raises InputError where one of them is none."""
    try:
        yield
    except ValueError as error:  # of Pydantic, of its reader of settings, of an address
        told = error.errors(include_input=False, include_url=False) if isinstance(error, ValidationError) else []
        why = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in told) or str(error)
        named = ", ".join(sorted(name for name in os.environ if name.startswith("PREFECT_"))) or "none of PREFECT_*"
        raise InputError(
            f"Prefect's settings cannot be read: {why}. Correct it where it is set: in the environment ({named}), a .env, "
            "prefect.toml or pyproject.toml of this folder, or the profile (~/.prefect/profiles.toml)"
        ) from error


def how_to_do_without() -> str:
    """What a user does to run without the server that is named: it depends on where it is named."""
    return "unset PREFECT_API_URL" if os.environ.get("PREFECT_API_URL") else "`prefect config unset PREFECT_API_URL`"


def remedy(error: BaseException) -> str:
    """What a user does where a server is named and does not answer as one: by what it answered, if it did."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return "export PREFECT_API_AUTH_STRING (or PREFECT_API_KEY) as the server requires"
    if status == 404:
        return "PREFECT_API_URL ends with /api, as http://HOST:4200/api"
    return "start it (prefect server start), or correct PREFECT_API_URL"


def deployments(client: "SyncPrefectClient", benchmark: str | None = None) -> list[Mapping[str, Any]]:
    """Salon's deployments on the server, of one benchmark or of all, as the server tells them."""
    tags = [TAG] if benchmark is None else [TAG, f"{_OF_BENCHMARK}{benchmark}"]
    found: list[Mapping[str, Any]] = []
    while True:  # page by page
        wanted = {"deployments": {"tags": {"all_": tags}}, "offset": len(found)}
        page = client.request("POST", "/deployments/filter", json=wanted).json()
        found += page
        if not page:
            return found


def benchmark_of(deployed: Mapping[str, Any]) -> str:
    """The name of the benchmark that a deployment is of."""
    return next((tag.removeprefix(_OF_BENCHMARK) for tag in deployed["tags"] if tag.startswith(_OF_BENCHMARK)), "")


def full_name(deployed: Mapping[str, Any]) -> str:
    """A deployment's name as Prefect's commands take it; our flows are named as their functions are."""
    return f"{str(deployed['entrypoint']).rpartition('.')[2]}/{deployed['name']}"


def is_in_flow_run() -> bool:
    """Whether this thread works for a flow run of a Prefect server, which shows tasks, artifacts and events."""
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def now_or_due(nights: Nightly) -> tuple[datetime, timedelta]:
    """This moment; in a run that was made for a later one, that: Prefect rounds, and begins a run up to half a second early.

    Beside it how long to wait for it: in the night in which clocks go forward Prefect begins a run up to an hour before.
    """
    now = datetime.now(UTC)
    if not is_in_flow_run():
        return now, timedelta()
    from prefect.runtime.flow_run import get_scheduled_start_time

    start = get_scheduled_start_time()
    due = nights.due_for(start)
    return max(now, due), min(max(due - now, timedelta()), due - start)


def _may_be_configured() -> bool:
    """Whether there is anything from which Prefect would take an address; what it says is for Prefect to read."""
    if os.environ.get("PREFECT_API_URL") or os.environ.get("PREFECT_PROFILE"):
        return True
    home = os.environ.get("PREFECT_HOME") or "~/.prefect"
    profiles = os.environ.get("PREFECT_PROFILES_PATH") or f"{home}/profiles.toml"
    return any("prefect" in _text(path).lower() for path in (profiles, ".env", "prefect.toml")) or (
        "[tool.prefect" in _text("pyproject.toml")
    )


def _text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8", errors="replace")
    except (OSError, RuntimeError):  # the latter for a user without a home
        return ""
