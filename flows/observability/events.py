"""Sending a run's events to Prefect. What is worth one is alerting.py, who is told infra/automations/. See docs/alerts.md."""

import time
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from flows.nights.drift import nightly_publications
from flows.nights.record import notes
from flows.observability import alerting
from flows.observability.alerting import Alert
from flows.observability.progress import current
from flows.observability.terminal import is_prefect_away
from flows.prefect_server import is_in_flow_run
from schemas.benchmark.file import Benchmark
from schemas.lineage import newest_in
from schemas.tables.published import COMPARISONS, STANDINGS
from tasks.publish.living_tables import drift_rows
from tasks.stopping import STOP

if TYPE_CHECKING:
    from flows.observability.progress import RunSummary
    from tasks.context import StageContext
    from tasks.publish.folders import Published

PATIENCE_S = 300.0
_POLL_S = 1.0
_MAY_NOT_READ = (401, 403, 404)
"""What a server answers to a key that may only send, or where it has no such address."""
_AGAIN_S = 15.0
"""After so long without it, an event is sent again, and after 45 and 135: a server writes events down every five seconds."""


def emit_after_run(run: "StageContext", summary: "RunSummary", cells: pl.DataFrame, *, is_backfill: bool = False) -> list[str]:
    """Send what the run's publication gives occasion for; the names."""
    return send(run.benchmark.name, run.run_date, events_of(run, summary, cells, is_backfill=is_backfill))


def events_of(
    run: "StageContext",
    summary: "RunSummary",
    cells: pl.DataFrame,
    *,
    is_backfill: bool = False,
    told: Collection[str] | None = None,
) -> list[Alert]:
    """What a run is to send: what its publication gives occasion for, that it is there, and that the budget is spent."""
    alerts = [*alerts_after_run(run, summary.published, cells, is_backfill=is_backfill, told=told), _said(summary)]
    if summary.asked.is_spent and not is_backfill:  # which tells of all that it asked itself
        alerts.append(alerting.budget_reached(run.benchmark.limits.max_usd, summary.asked, summary.asked.n_left))
    return alerts


def alerts_after_run(
    run: "StageContext",
    published: "Published",
    cells: pl.DataFrame,
    *,
    is_backfill: bool = False,
    told: Collection[str] | None = None,
) -> list[Alert]:
    """What a publication gives occasion for, beside that it is there. `cells` are its means for prompts like these.

    One that was there before, or is a backfill's, gives none but for blocked cells; nor does one that is not current, but for
    missed nights: the next night would not tell of them any more. `told`: of a night that has ended, the events that were sent
    of it before. They are not sent again, and all others are, though an earlier try may have made the publication.
    """
    lake_root, name = run.lake.root, run.benchmark.name
    is_new = published.is_new or told is not None
    alerts: list[Alert] = []
    if is_new and published.is_current and not is_backfill:
        compared, placed = (published.folder / f"{table.name}.parquet" for table in (COMPARISONS, STANDINGS))
        drift = drift_rows(lake_root, name)
        alerts += (
            alerting.regressions(pl.read_parquet(compared), newest_in(pl.read_parquet(placed))) if compared.is_file() else []
        )
        alerts += [] if drift is None else alerting.drifts(drift, run.run_date)
    if is_new and not is_backfill:
        alerts += alerting.missed(missed_nights(lake_root, run.benchmark, run.run_date))
    if is_new:
        alerts += alerting.blocked_cells(cells)
    return [alert for alert in alerts if alert.name not in (told or ())]


def _said(summary: "RunSummary") -> Alert:
    published = summary.published
    payload = {
        "says": f"publication {published.publication_id[:16]}: {summary.outcome}", "publication": published.publication_id,
        "folder": str(published.folder), "outcome": summary.outcome, "is_current": published.is_current,
        "why_not_current": published.why_not_current, "n_cells": summary.n_cells, "n_blocked": summary.n_blocked,
    }  # fmt: skip
    return Alert(alerting.PUBLISHED, payload)


def missed_nights(lake_root: Path, benchmark: Benchmark, run_date: date) -> list[date]:
    """The nights due between the last one published and `run_date`; none where the benchmark file states no schedule.

    Where the schedule is another since that night, only those that were due by both: nobody knows on which day it changed.
    """
    if "schedule" not in benchmark.nightly.model_fields_set:
        return []
    nights = [date.fromisoformat(publication.run_date) for publication in nightly_publications(lake_root, benchmark.name)]
    calendar, noted = benchmark.nightly, notes(lake_root, benchmark.name)
    last = noted.get(max((day for day in nights if day < run_date), default=run_date).isoformat())
    calendars = {(calendar.schedule, calendar.timezone)}
    if last is not None and last.schedule is not None and last.timezone is not None:
        calendars.add((last.schedule, last.timezone))
    return alerting.missed_nights(calendars, nights, run_date, calendar.newest_due(datetime.now(UTC)).date())


def send(benchmark: str, run_date: date, alerts: Iterable[Alert]) -> list[str]:
    """Emit each alert about the resource `salon.benchmark.<name>`, if this is a flow run, which Prefect adds. The names sent."""
    return [*_emitted(benchmark, run_date, alerts).values()]


def _emitted(benchmark: str, run_date: date, alerts: Iterable[Alert]) -> dict[str, str]:
    """The name of each event by its id."""
    if not is_in_flow_run():
        return {}
    from prefect.context import FlowRunContext
    from prefect.events import emit_event

    shown = FlowRunContext.get()
    is_deployed = shown is not None and shown.flow_run is not None and shown.flow_run.deployment_id is not None
    resource = {
        "prefect.resource.id": f"salon.benchmark.{benchmark}", "prefect.resource.name": benchmark,
        "salon.run-date": run_date.isoformat(),
        "salon.started-by": "deployment" if is_deployed else "command",  # whose failed run Prefect tells of
    }  # fmt: skip
    named = {"benchmark": benchmark, "run_date": run_date.isoformat()}
    sent = [emit_event(alert.name, resource, payload=dict(alert.payload) | named) for alert in alerts]
    return {str(event.id): event.event for event in sent if event is not None}


def deliver(benchmark: str, run_date: date, alerts: Sequence[Alert], advice: str = "") -> list[str]:
    """Send each alert until the server has it, for PATIENCE_S; the names of those that it has. `advice`: where it has not all.

    Prefect's client gives events away without an answer, and a server whose database is away for a while drops them. It also
    drops an id that it had a minute ago: what is sent again has another, and may stand there twice.
    """
    name_of = _emitted(benchmark, run_date, alerts)
    sent = left = {*name_of.values()}
    begun_s, wait_s, said = time.monotonic(), _AGAIN_S, ""
    while left:
        try:
            left = sent - {name_of[id_] for id_ in _on_server(name_of)}
        except Exception as error:
            if not is_prefect_away(error):
                raise
            if getattr(getattr(error, "response", None), "status_code", None) in _MAY_NOT_READ:
                return sorted(sent)
            said = f" ({error})"
        if not left:
            break
        if time.monotonic() > begun_s + PATIENCE_S or STOP.is_set():
            names = ", ".join(sorted(left))
            current().say(". ".join(filter(None, [f"the Prefect server does not have these events{said}: {names}", advice])))
            break
        if time.monotonic() > begun_s + wait_s:
            wait_s = 3 * wait_s
            name_of |= _emitted(benchmark, run_date, [alert for alert in alerts if alert.name in left])
        STOP.wait(_POLL_S)
    return sorted(sent - left)


def _on_server(ids: Iterable[str]) -> list[str]:
    """Those of the ids of events that the server has; also where its clock is behind this one's: it tells of no later events."""
    from prefect import get_client

    wanted = {"id": {"id": [*ids]}, "occurred": {"until": (datetime.now(UTC) + timedelta(days=1)).isoformat()}}
    with get_client(sync_client=True) as client:
        answer: dict[str, Any] = client.request("POST", "/events/filter", json={"filter": wanted}).json()
    return [str(event["id"]) for event in answer["events"]]
