"""Reading infra/: pools, deployments and automations, filled for one benchmark; automations are written where they changed.

Sending pools and deployments is deploying.py.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from httpx import HTTPStatusError, codes
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.schedules import CronSchedule
from prefect.events.actions import SendNotification
from prefect.events.schemas.automations import Automation, AutomationCore
from prefect.exceptions import ObjectNotFound
from pydantic import ValidationError

from schemas.benchmark.file import Benchmark
from schemas.errors import InputError

INFRA = Path(__file__).resolve().parents[2] / "infra"
_BLOCK_ID = "BLOCK_ID"  # what stands for the notification block in the automations' files


def filled(benchmark: Benchmark, file: str, pool: str) -> dict[str, Any]:
    """infra/prefect.yaml with the benchmark's own values in place of `{{ $SALON_… }}`, in strings alone."""
    values = {
        "SALON_NAME": benchmark.name, "SALON_FILE": file, "SALON_POOL": pool,
        "SALON_SCHEDULE": benchmark.nightly.schedule, "SALON_TIMEZONE": benchmark.nightly.timezone,
        "SALON_ON_CRASH": "salon-restart" if benchmark.nightly.finish_by else "salon-tell",
    }  # fmt: skip
    plan: dict[str, Any] = _with_values(_read("prefect.yaml"), values)
    return plan


def new_pool(name: str, pools: Mapping[str, Any], kinds: Mapping[str, Any]) -> WorkPoolCreate:
    """A pool of infra/prefect.yaml; `kinds` are the job templates of the server's kinds of workers. Raises InputError."""
    if name not in pools:
        raise InputError(
            f"work pool {name!r} exists neither on the server nor in infra/prefect.yaml; choose one of "
            f"{', '.join(pools)}, or create yours: prefect work-pool create {name} --type process"
        )
    settings = pools[name]
    template = _read(settings["job_template"]) if "job_template" in settings else kinds[settings["type"]]
    for variable, default in settings.get("variables", {}).items():
        template["variables"]["properties"][variable]["default"] = default
    return WorkPoolCreate(
        name=name,
        type=settings["type"],
        base_job_template=template,
        concurrency_limit=settings["concurrency_limit"],
        description=settings["description"],
    )


def cron(deployment: str, found: Mapping[str, Any]) -> CronSchedule:
    """A schedule of infra/prefect.yaml. Raises InputError."""
    try:
        return CronSchedule(cron=found["cron"], timezone=found["timezone"], day_or=found["day_or"])
    except ValidationError as error:
        said = error.errors()[0]["msg"]
        raise InputError(
            f"{deployment}: [nightly] schedule {found['cron']!r} in timezone {found['timezone']!r} cannot be used: {said}. "
            'Write a cron line such as "0 2 * * *" and a zone such as "Europe/Berlin"'
        ) from error


def automations(plan: Mapping[str, Any], blocks: Callable[[str], Iterable[str]]) -> Iterator[AutomationCore]:
    """Those that watch, and those that notify where `blocks` has some for their name: an action for each of these ids."""
    for automation in _automations(plan):
        told = [{"block_document_id": block} for block in blocks(automation["name"])]
        actions = [action | at for action in automation["actions"] for at in (told if _is_notifying(action) else [{}])]
        if actions:
            yield AutomationCore.model_validate(automation | {"actions": actions})


def _automations(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = list(plan["definitions"]["automations"])
    for file in sorted((INFRA / "automations").glob("*.yaml")):
        found += _read(f"automations/{file.name}")["automations"]
    return found


def _is_notifying(action: Mapping[str, Any]) -> bool:
    return action.get("block_document_id") == _BLOCK_ID


def _read(name: str) -> Any:
    return yaml.safe_load((INFRA / name).read_text(encoding="utf-8"))


def _with_values(found: Any, values: Mapping[str, str]) -> Any:
    if isinstance(found, dict):
        return {key: _with_values(value, values) for key, value in found.items()}
    if isinstance(found, list):
        return [_with_values(value, values) for value in found]
    return re.sub(r"\{\{ \$(\w+) \}\}", lambda name: values[name[1]], found) if isinstance(found, str) else found


def notification_block(client: SyncPrefectClient, notify: str) -> str:
    """The id of a notification block named as <type>/<name>. Raises InputError where there is none."""
    kind, _, name = notify.partition("/")
    try:
        return str(client.read_block_document_by_name(name, kind, include_secrets=False).id)
    except (ObjectNotFound, HTTPStatusError) as error:
        raise InputError(
            f"notification block {notify!r} does not exist on the server; `prefect block ls` lists them, docs/alerts.md shows "
            "how to create one. Name it as <type>/<name>, such as slack-webhook/salon-alerts"
        ) from error


def blocks_told(client: SyncPrefectClient) -> list[str]:
    """<type>/<name> of each block that an enabled automation of Salon notifies by, also one set up by hand or earlier."""
    mine = [one for one in _all_automations(client) if one.enabled and "salon" in one.model_dump_json().lower()]
    return _named(client, {block for one in mine for block in _blocks_of(one)})


def _all_automations(client: SyncPrefectClient) -> list[Automation]:
    """Page by page: a shared server has those of others."""
    found: list[Automation] = []
    while page := client.read_automations(offset=len(found)):
        found += page
    return found


def set_up(client: SyncPrefectClient, plan: Mapping[str, Any], block_id: str | None) -> tuple[list[str], list[str], list[str]]:
    """Create or update the automations, which are one set for all benchmarks; one that somebody switched off stays off.

    Without `block_id` those that notify keep their blocks, and one that is new tells the one block of the others. The names of
    all, those of new ones where the others tell several blocks, and the blocks, as <type>/<name>, that enabled ones told before
    and no longer do.
    """
    there = {one.name: one for one in _all_automations(client)}
    mine = [there[one["name"]] for one in _automations(plan) if one["name"] in there]
    before = {block for one in mine if one.enabled for block in _notified(one)}

    def blocks(name: str) -> Iterable[str]:
        own = _notified(there[name]) if name in there else before if len(before) == 1 else ()
        return dict.fromkeys(own) if block_id is None else [block_id]

    names = [_set_up(client, automation, there.get(automation.name)) for automation in automations(plan, blocks)]
    left = [one["name"] for one in _automations(plan) if len(before) > 1 and one["name"] not in {*names, *there}]
    return names, left, _named(client, before - {block_id}) if block_id else []


def _set_up(client: SyncPrefectClient, automation: AutomationCore, there: Automation | None) -> str:
    """One that is the same already is left alone: an update makes Prefect forget which runs it watches."""
    if there is None:
        client.create_automation(automation)
    else:
        is_notifying = bool(_notified(automation))
        others = [one for one in there.actions if is_notifying and not isinstance(one, SendNotification)]  # somebody's own
        wanted = automation.model_copy(update={"enabled": there.enabled, "actions": [*automation.actions, *others]})
        if _said(there) != _said(wanted):
            client.update_automation(there.id, wanted)
    return automation.name


def _notified(automation: AutomationCore) -> list[str]:
    return [str(action.block_document_id) for action in automation.actions if isinstance(action, SendNotification)]


def _blocks_of(automation: AutomationCore) -> list[str]:
    return [str(block) for action in automation.actions if (block := getattr(action, "block_document_id", None))]


def _named(client: SyncPrefectClient, ids: Iterable[str]) -> list[str]:
    """<type>/<name> of the blocks that are there: one that was deleted tells nobody."""
    found = list[str]()
    for one in ids:
        try:
            block = client.request("GET", "/block_documents/{id}", path_params={"id": one}).json()
        except HTTPStatusError as error:
            if error.response.status_code != codes.NOT_FOUND:
                raise
        else:
            found.append(f"{block['block_type']['slug']}/{block['name']}")
    return sorted(found)


def _said(automation: AutomationCore) -> Any:
    """What an automation says, less the ids that Prefect gives it and its triggers; lists of words, which were sets, in order."""
    return _without_ids(automation.model_dump(mode="json", include=set(AutomationCore.model_fields)))


def _without_ids(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without_ids(value) for key, value in found.items() if key != "id"}
    if isinstance(found, list):
        return sorted(found) if all(isinstance(value, str) for value in found) else [_without_ids(value) for value in found]
    return found
