"""The events that nights send, where no Prefect server takes them."""

from collections.abc import Iterable
from datetime import date

import pytest

from flows.observability import artifacts, events
from flows.observability.alerting import Alert


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The events that are sent, as if a Prefect server showed the night."""
    names: list[str] = []

    def send(_benchmark: str, _run_date: date, alerts: Iterable[Alert], _advice: str = "") -> list[str]:
        new = [alert.name for alert in alerts]
        names.extend(new)
        return new

    for module, name in ((events, "deliver"), (artifacts, "deliver")):
        monkeypatch.setattr(module, name, send)
    monkeypatch.setattr(artifacts, "is_in_flow_run", lambda: True)
    for shown in ("ProgressArtifact", "_create_artifacts"):  # of whatever flow: Prefect's client would start a server for them
        monkeypatch.setattr(artifacts, shown, lambda *_: None)
    return names
