"""What a run shows on its page in the Prefect UI: progress, leaderboard, summary, report, trend. Publishing is in tasks."""

import json
import os
import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, cast
from urllib.parse import quote
from uuid import UUID

import polars as pl

from flows.observability.alerting import Alert
from flows.observability.events import deliver, emit_after_run, events_of
from flows.observability.faults import fault
from flows.observability.progress import current
from flows.observability.terminal import is_prefect_away
from flows.observability.trend_images import trend_markdown
from flows.prefect_server import is_in_flow_run
from schemas.errors import SalonError
from schemas.statuses.rows import SampleStatus
from schemas.tables.nights import DRIFT
from tasks.context import StageContext
from tasks.publish.exports import escape_markdown
from tasks.publish.folders import REPORT
from tasks.publish.leaderboard import LeaderboardRow, leaderboard_rows
from tasks.publish.living_tables import living_table

if TYPE_CHECKING:
    from flows.observability.progress import RunSummary

P = ParamSpec("P")

_OPENS = re.compile(r"\]\(|\]:|[<`]|://|\S@\S|\bwww\.", re.IGNORECASE)
"""What begins a link, a picture or a tag in Markdown; the names that models have go without."""


class ProgressArtifact:
    """Keeps the artifact `salon-progress-NAME` at the share of the judge's questions that are answered."""

    def __init__(self, benchmark: str, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._key = f"salon-progress-{_dashed(benchmark)}"
        self._id: UUID | None = None
        self._n_failed, self._next_s = 0, 0.0
        self._ended: set[str] = set()  # stages whose end was tried in vain

    def __call__(self, stage: str, share: float) -> None:
        """Create the artifact, or move it on. A server that cannot be reached costs a wait, and is left alone a while.

        All of a stage is told in that while too, once: an artifact that stands at 97 % would say that the run goes on.
        """
        is_end = share >= 1 and stage not in self._ended
        if not is_end and self._clock_s() < self._next_s:
            return
        if _told(self._move, stage, share):
            self._n_failed, self._next_s = 0, 0.0
            self._ended.clear()
            return
        self._n_failed += 1
        self._next_s = self._clock_s() + _pause_s(self._n_failed)
        if is_end:
            self._ended.add(stage)

    def _move(self, stage: str, share: float) -> None:
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        if self._id is None:
            created = create_progress_artifact(progress=100 * share, key=self._key, description=f"{stage}: share done")
            self._id = cast("UUID", created)
        else:
            update_progress_artifact(artifact_id=self._id, progress=100 * share)


def _pause_s(n_failed: int) -> float:
    """A minute after a first failure, twice as long after each further one, a quarter of an hour at most."""
    return min(60.0 * 2.0 ** min(n_failed - 1, 4), 900.0)  # 2.0 to the 1024th is too large for a float


def progress_in_prefect(benchmark: str) -> ProgressArtifact | None:
    """What shows a run's progress on its page; None where no Prefect server shows the run."""
    return ProgressArtifact(benchmark) if is_in_flow_run() else None


def show_in_prefect(run: StageContext, summary: "RunSummary", cells: pl.DataFrame, *, is_backfill: bool = False) -> None:
    """Create the run's artifacts and send its events; best effort, in a flow run alone."""
    show_artifacts(run, summary, cells)
    if is_in_flow_run():
        _told(lambda: emit_after_run(run, summary, cells, is_backfill=is_backfill))


def show_artifacts(run: StageContext, summary: "RunSummary", cells: pl.DataFrame) -> None:
    """Create the run's artifacts, each under a key of the benchmark's own; best effort, in a flow run alone.

    `salon-leaderboard-NAME`, `salon-summary-NAME`, `salon-report-NAME` (a link to the page), `salon-trend-NAME` (images; of a new
    publication only, since a drawing takes 0.1 s).
    """
    if is_in_flow_run():
        _told(_create_artifacts, run, summary, cells)


def events_of_night(run: StageContext, summary: "RunSummary", told: Collection[str]) -> list[Alert] | None:
    """What a night is to send, less what was `told` of it before; None outside a flow run.

    A lake that cannot be read is an error: without it they are not known. A fault of Salon's own ends no night.
    """
    if not is_in_flow_run():
        return None
    try:
        return events_of(run, summary, summary.cells, told=told)
    except (SalonError, OSError):
        raise
    except Exception as error:  # noqa: BLE001 - as in _told()
        current().say(f"the run continues, but sends no events: {fault(error)}")
        return []


def tell_alerts(benchmark: str, run_date: date, alerts: Sequence[Alert], advice: str = "") -> list[str]:
    """Send these and wait until the server has them; the names of what it has. Best effort, in a flow run alone."""
    sent: list[str] = []
    if alerts and is_in_flow_run():
        _told(lambda: sent.extend(deliver(benchmark, run_date, alerts, advice)))
    return sent


def _told(tell: Callable[P, object], *inputs: P.args, **named: P.kwargs) -> bool:
    """Tell Prefect something; whether that went well. What does not is said, and never ends a run that has paid.

    What its client and the network raise is the server's; all else is a fault of Salon's own, with its details in a file.
    """
    try:
        tell(*inputs, **named)
    except Exception as error:  # noqa: BLE001 - nothing that is only shown ends a run
        if is_prefect_away(error) or _is_of_prefect(error):
            current().say(f"the Prefect server does not answer correctly ({error}): the run continues, but is not shown there")
        else:
            current().say(f"the run continues, but Prefect shows only part of it: {fault(error)}")
        return False
    return True


def _is_of_prefect(error: Exception) -> bool:
    """Whether it is a class of Prefect's, or that of a connection or of an answer that is no JSON."""
    of = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return "prefect" in of or isinstance(error, (ConnectionError, TimeoutError, json.JSONDecodeError))


def _create_artifacts(run: StageContext, summary: "RunSummary", cells: pl.DataFrame) -> None:
    from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

    name = _dashed(run.benchmark.name)
    title = f"{run.benchmark.name}, {run.run_date}"
    rows = [_shown(row) for row in leaderboard_rows(cells)]
    create_table_artifact(rows, key=f"salon-leaderboard-{name}", description=f"Leaderboard of {title}")
    text = _summary(run, summary)
    create_markdown_artifact(text, key=f"salon-summary-{name}", description="What the run read, asked and published")
    page = page_address(summary.published.folder)
    if page is not None:
        create_link_artifact(page, link_text=f"Report of {title}", key=f"salon-report-{name}", description="The report page")
    if summary.published.is_new:
        images = trend_markdown(cells, _drift(summary.published.folder.parent))
        if images:
            create_markdown_artifact(images, key=f"salon-trend-{name}", description=f"Trend of {title}")


def page_address(folder: Path) -> str | None:
    """Where a browser finds a publication's report: below SALON_PUBLISH_URL, if set, else as a file; None where it has none."""
    page = folder / REPORT
    if not page.is_file():
        return None
    served = os.environ.get("SALON_PUBLISH_URL")
    return f"{served.rstrip('/')}/{quote(folder.parent.name)}/{folder.name}/{REPORT}" if served else page.as_uri()


def _shown(row: LeaderboardRow) -> dict[str, object]:
    """A leaderboard row as the UI's table shows it: what one reads first stands first."""
    first = (
        "rubric_id", "dimension", "rank", "model", "checkpoint", "score", "predecessor", "n_prompts", "n_images", "coverage",
        "why", "judge_model",
    )  # fmt: skip
    values = {name: _inert(value) if isinstance(value, str) else value for name, value in asdict(row).items()}
    return {
        name: values[name]
        for name in (*first, "estimate", "ci_low", "ci_high", "state", "status", "reason", "n_failed", "blind_to", "cell_id")
    }


def _inert(text: str) -> str:
    """A name with a link, picture or tag in it, escaped: Prefect's first UI reads cells as Markdown, its second shows them."""
    return escape_markdown(text) if _OPENS.search(text) else text


def _drift(home: Path) -> pl.DataFrame | None:
    path = living_table(home.parents[2], DRIFT, home.name)
    return pl.read_parquet(path) if path else None


def _dashed(name: str) -> str:
    """As Prefect's keys are: small letters, digits, dashes. A name that has others gets digits of its own behind it."""
    dashed = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return dashed if dashed == name else f"{dashed}-{sha256(name.encode()).hexdigest()[:6]}"


def _summary(run: StageContext, summary: "RunSummary") -> str:
    published = summary.published
    current = "current" if published.is_current else "not current"
    n_again = summary.dataset.n_by_status.get(SampleStatus.DUPLICATE, 0)
    lines = [
        f"# {escape_markdown(run.benchmark.name)}, {run.run_date}",
        "",
        f"- samples: {summary.dataset.n_samples}, of them usable {summary.dataset.n_ok}"
        + (f", duplicates {n_again} (the first one's judgement counts for both)" if n_again else ""),
        f"- requests: {summary.n_requests}, cached {summary.asked.n_cached}, sent {summary.asked.n_asked}",
        f"- cells: {summary.n_cells}, of them blocked {summary.n_blocked}",
        f"- publication: `{published.publication_id}` ({summary.outcome}; {current})",
        f"- folder: `{published.folder}`",
    ]
    return "\n".join(lines) + "\n"
