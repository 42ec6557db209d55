"""Every alert, sent as a run sends it, through the automations as deployed, to a webhook's receiver on loopback.

On PostgreSQL: over SQLite the server itself loses an event now and then, or acts on it twice (docs/alerts.md).
"""

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prefect import flow, get_client
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.flow_engine import run_flow

from flows.commands.deploying import deploy as deploy_command
from flows.observability import alerting
from flows.observability.alerting import Alert, judge_changed, missed, night_failed, no_fresh_checkpoint
from flows.observability.events import send
from schemas.records import ModelChange
from tests.support.servers.postgres import running_postgres, why_not
from tests.support.servers.prefect_server import RunningPrefect, running_prefect, shown_by, tell_what_is_left

NIGHT = date(2026, 11, 5)
LIMIT_S = 600.0  # of a server on a busy machine; seconds where it is idle
BENCHMARK = """\
name = "told"
[[sources]]
reader = "geneval"
path = "scenes/{model}/{checkpoint}"
[[rubrics]]
id = "alignment"
[[judges]]
model = "eye"
"""
_ROWS = {"says": "tried", "n_all": 1, "rows": [{"checkpoint": "step-9", "delta": -0.3}]}
ALERTS = [
    *(Alert(name, _ROWS) for name in (alerting.REGRESSION, alerting.SCORE_DRIFT, alerting.JUDGE_DRIFT, alerting.BLOCKED)),
    Alert(alerting.BUDGET_REACHED, {"says": "tried", "limit_usd": 5.0, "spent_usd": 4.9, "n_not_asked": 7}),
    *judge_changed([ModelChange("eye", "eye-1", "eye-2")]),
    *missed([date(2026, 11, 3)]),
    no_fresh_checkpoint({"lab": "step-9"}, date(2026, 11, 4)),
]


@pytest.fixture
def received() -> Iterator[tuple[str, list[str]]]:
    """The receiver's address, and the text of each call to it."""
    texts: list[str] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts.append(str(json.loads(self.rfile.read(int(self.headers["content-length"])))["text"]))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook", texts
    server.shutdown()
    server.server_close()


@pytest.fixture
def server(tmp_path: Path, prefect_tables: Path) -> Iterator[RunningPrefect]:
    """A server on PostgreSQL."""
    with running_postgres() as postgres:
        url = postgres.new_database().replace("+psycopg", "+asyncpg")
        with running_prefect(tmp_path, prefect_tables, PREFECT_SERVER_DATABASE_CONNECTION_URL=url) as running:
            yield running


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_every_alert_reaches_the_webhook_once_and_deploy_says_whom(
    tmp_path: Path,
    server: RunningPrefect,
    received: tuple[str, list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    address, texts = received
    file = tmp_path / "b.toml"
    file.write_text(BENCHMARK)
    with shown_by(server.api):
        assert deploy_command(file, file_at_worker=None, image=None, with_automations=None) == 0
        assert "alerts reach nobody" in capsys.readouterr().out
        block = CustomWebhookNotificationBlock(
            name="hook", url=address, json_data={"text": "{{subject}}\n{{body}}"}, allow_private_urls=True
        )
        block.save("salon-alerts", overwrite=True)
        options = {"file_at_worker": None, "image": None, "with_automations": "custom-webhook/salon-alerts"}
        assert deploy_command(file, **options) == 0  # type: ignore[arg-type]
        assert "alerts reach:        custom-webhook/salon-alerts" in capsys.readouterr().out

        @flow(name="told-night")
        def night(file: str) -> None:
            send("told", NIGHT, [*ALERTS, night_failed("the judge is down", datetime(2026, 11, 5, 8, tzinfo=UTC))])
            raise RuntimeError("the judge is down: given up")

        time.sleep(5)  # the server's triggers are loaded every few seconds
        with get_client(sync_client=True) as client:
            scheduled = client.create_flow_run_from_deployment(client.read_deployments()[0].id)
            begun = client.read_flow_run(scheduled.id)
        with pytest.raises(RuntimeError):
            run_flow(night, flow_run=begun)
        by_command = night_failed("no deployment began it", None)
        flow(name="told-by-command")(lambda: send("told", NIGHT, [by_command]))()
        tell_what_is_left()
        wanted = {*(alert.name for alert in ALERTS), "given up", "no deployment began it"}
        missing, give_up_s = wanted, time.monotonic() + LIMIT_S
        while missing and time.monotonic() < give_up_s:
            time.sleep(0.2)
            missing = {name for name in wanted if not any(name in text for text in texts)}
    assert not missing, texts
    assert len(texts) == len(wanted), "each once; a night that is given up is the one alert of the run that failed"
    assert all("Salon told, 2026-11-05: " in text for text in texts if "salon." in text.partition("\n")[0])
