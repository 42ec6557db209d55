"""docs/alerts.md and infra/automations/ against the events that are sent: their names, and the fields of their rows."""

import re
from pathlib import Path

import yaml
from prefect.events.schemas.automations import AutomationCore

from flows.observability import alerting

ROOT = Path(__file__).parents[3]


def test_the_page_lists_the_fields_of_rows_that_are_sent() -> None:
    page = (ROOT / "docs/alerts.md").read_text("utf-8")
    sent = {
        alerting.REGRESSION: alerting._COMPARED, alerting.JUDGE_DRIFT: alerting._DRIFTED, alerting.SCORE_DRIFT: alerting._DRIFTED,
        alerting.BLOCKED: alerting._BLOCKED,
    }  # fmt: skip
    listed = {
        event: re.findall(r"`(\w+)`", line.partition("`rows`:")[2].partition(". `says`")[0])
        for line in page.splitlines() if "`rows`:" in line
        for event in re.findall(r"`(salon\.[\w.]+)`", line)
    }  # fmt: skip
    assert {event: listed[event] for event in sent} == sent


def test_every_event_is_documented_and_no_automation_waits_for_another() -> None:
    page = (ROOT / "docs/alerts.md").read_text("utf-8")
    for name in alerting.EVENTS:
        assert f"`{name}`" in page, name
    waited = set()
    for path in sorted((ROOT / "infra/automations").glob("*.yaml")):
        text = path.read_text("utf-8").replace("BLOCK_ID", "00000000-0000-4000-8000-000000000000")
        for automation in yaml.safe_load(text)["automations"]:
            AutomationCore.model_validate(automation)
            assert automation["enabled"] is True
            waited |= set(automation["trigger"]["expect"])
    assert waited == set(alerting.EVENTS)
