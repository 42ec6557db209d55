"""What a run shows on its page in the Prefect UI: progress, the leaderboard as a table, a summary. Publishing is in tasks."""

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, cast
from uuid import UUID

import polars as pl
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from flows.opening import OpenedRun
from tasks.publish.leaderboard import leaderboard_rows

if TYPE_CHECKING:
    from flows.benchmark import RunSummary


class ProgressArtifact:
    """Keeps the artifact `salon-progress-NAME` at the share of the judge's questions that are answered."""

    def __init__(self, benchmark: str) -> None:
        self._key = f"salon-progress-{_dashed(benchmark)}"
        self._id: UUID | None = None

    def __call__(self, stage: str, share: float) -> None:
        """Create the artifact, or move it on."""
        if self._id is None:
            created = create_progress_artifact(progress=100 * share, key=self._key, description=f"{stage}: share done")
            self._id = cast("UUID", created)
        else:
            update_progress_artifact(artifact_id=self._id, progress=100 * share)


def show_in_prefect(run: OpenedRun, summary: "RunSummary", cells: pl.DataFrame) -> None:
    """Create the run's artifacts: `salon-leaderboard-NAME` and `salon-summary-NAME`."""
    name = _dashed(run.benchmark.name)
    rows = [asdict(row) for row in leaderboard_rows(cells)]
    title = f"Leaderboard of {run.benchmark.name}, {run.run_date}"
    create_table_artifact(rows, key=f"salon-leaderboard-{name}", description=title)
    text = _summary(run, summary)
    create_markdown_artifact(text, key=f"salon-summary-{name}", description="What the run read, asked and published")


def _dashed(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _summary(run: OpenedRun, summary: "RunSummary") -> str:
    published = summary.published
    current = "current" if published.is_current else "not current"
    lines = [
        f"# {run.benchmark.name}, {run.run_date}",
        "",
        f"- samples: {summary.dataset.n_samples}, of them usable {summary.dataset.n_ok}",
        f"- requests: {summary.n_requests}, cached {summary.asked.n_cached}, sent {summary.asked.n_asked}",
        f"- cells: {summary.n_cells}, of them blocked {summary.n_blocked}",
        f"- publication: `{published.publication_id}` ({summary.outcome}; {current})",
        f"- folder: `{published.folder}`",
    ]
    return "\n".join(lines) + "\n"
