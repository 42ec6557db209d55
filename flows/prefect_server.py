"""Whether a Prefect server has a part in this process. Asked without importing Prefect, a second of CPU, where none can have."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path


def server_url() -> str | None:
    """The server that Prefect's settings name (environment, profile, files), if any: none is started for a run."""
    if "prefect" not in sys.modules and not _may_be_configured():
        return None
    from prefect.settings import PREFECT_API_URL

    return PREFECT_API_URL.value() or None


def how_to_do_without() -> str:
    """What a user does to run without the server that is named: it depends on where it is named."""
    return "unset PREFECT_API_URL" if os.environ.get("PREFECT_API_URL") else "`prefect config unset PREFECT_API_URL`"


def remedy(error: BaseException) -> str:
    """What a user does where a server is named and does not answer as one: by what it answered, if it did."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return "export PREFECT_API_AUTH_STRING (or PREFECT_API_KEY) as it wants it"
    if status == 404:
        return "PREFECT_API_URL ends with /api, as http://HOST:4200/api"
    return "start it (prefect server start), or mend PREFECT_API_URL"


def is_in_flow_run() -> bool:
    """Whether this thread works for a flow run of a Prefect server, which shows tasks, artifacts and events."""
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def now_or_due() -> datetime:
    """This moment. In a run that was made for a later one, that: Prefect rounds, and begins a run up to half a second early."""
    now = datetime.now(UTC)
    if not is_in_flow_run():
        return now
    from prefect.runtime.flow_run import get_scheduled_start_time

    return max(now, get_scheduled_start_time())


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
