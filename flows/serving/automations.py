"""Setting up Prefect automations: which block they notify by, and writing only what changed. What they say stands in infra/."""

from typing import Any

from httpx import HTTPStatusError
from prefect.client.orchestration import SyncPrefectClient
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectNotFound

from schemas.errors import InputError


def notification_block(client: SyncPrefectClient, notify: str) -> str:
    """The id of a notification block named as <type>/<name>. Raises InputError where there is none."""
    kind, _, name = notify.partition("/")
    try:
        return str(client.read_block_document_by_name(name, kind, include_secrets=False).id)
    except (ObjectNotFound, HTTPStatusError) as error:
        raise InputError(
            f"there is no notification block {notify!r} on the server; `prefect block ls` lists them, docs/alerts.md makes one. "
            "Name it as <type>/<name>, such as slack-webhook/salon-alerts"
        ) from error


def set_up(client: SyncPrefectClient, automation: AutomationCore) -> str:
    """Create or update one automation; one that somebody switched off stays off. Its name.

    One that is the same already is left alone: an update makes Prefect forget which runs it watches.
    """
    there = next(iter(client.read_automations_by_name(automation.name)), None)
    if there is None:
        client.create_automation(automation)
    else:
        wanted = automation.model_copy(update={"enabled": there.enabled})
        if _said(there) != _said(wanted):
            client.update_automation(there.id, wanted)
    return automation.name


def _said(automation: AutomationCore) -> Any:
    """What an automation says, less the ids that Prefect gives it and its triggers; lists of words, which were sets, in order."""
    return _without_ids(automation.model_dump(mode="json", include=set(AutomationCore.model_fields)))


def _without_ids(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without_ids(value) for key, value in found.items() if key != "id"}
    if isinstance(found, list):
        return sorted(found) if all(isinstance(value, str) for value in found) else [_without_ids(value) for value in found]
    return found
