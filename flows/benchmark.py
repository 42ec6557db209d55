"""The main job: ingest, plan, judge, read, check, aggregate, publish. The stages are in stages.py, the command in commands/."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
from prefect import flow
from prefect.task_runners import ThreadPoolTaskRunner

from flows import finishing, stages
from flows.artifacts import ProgressArtifact, show_in_prefect
from flows.fan_out import as_prefect_tasks
from flows.nights import write_drift
from flows.opening import OpenedRun, check_keys, open_run
from flows.progress import current
from schemas.errors import GateBlockedError
from schemas.statuses import CellStatus
from tasks.ingest.samples import IngestResult
from tasks.judge.outcome import Outcome
from tasks.judge.recorded import ImportResult
from tasks.publish.code_version import code_version
from tasks.publish.publication import Published
from tasks.publish.runs import record_run
from tasks.stopping import heeding_sigterm

N_WAITING = 4  # shards submitted ahead of the one whose result is awaited


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run did: what it read, what it asked, what it published."""

    dataset: IngestResult
    n_requests: int
    asked: Outcome
    published: Published
    n_cells: int
    n_blocked: int
    imported: ImportResult | None = None

    @property
    def outcome(self) -> str:
        """The run's word in the table of runs."""
        return "published" if self.published.is_new else "unchanged"


_RUNNER: Any = ThreadPoolTaskRunner(max_workers=stages.SHARDS_AT_ONCE)


@flow(name="benchmark", flow_run_name="{file.parent.name}/{file.stem}", task_runner=_RUNNER)
def benchmark(
    file: Path,
    run_date: date | None = None,
    checkpoints: Sequence[str] | None = None,
    judge_url: str | None = None,
    replies: Path | None = None,
) -> RunSummary:
    """Run one benchmark file to a published table.

    file: the benchmark file. run_date: its logical date (default: today, UTC). checkpoints: only these.
    judge_url: ask here in place of the judges' own addresses. replies: import these recorded replies and ask nobody.
    """
    with heeding_sigterm():
        return _run(file, run_date, checkpoints, judge_url, replies)


def _run(
    file: Path, run_date: date | None, checkpoints: Sequence[str] | None, judge_url: str | None, replies: Path | None
) -> RunSummary:
    started_at = datetime.now(UTC)
    run = open_run(file, run_date, judge_url)
    if replies is None:
        check_keys(run)
    reporter, fan_out = current(), as_prefect_tasks(N_WAITING)
    reporter.on_share = ProgressArtifact(run.benchmark.name)
    dataset = stages.ingest(run, fan_out, reporter, checkpoints)
    planned = stages.plan(run, dataset.dataset_id, fan_out, reporter)
    imported, asked = None, Outcome(n_requests=planned.n_requests)
    if replies is None:
        asked = stages.judge(run, dataset.dataset_id, planned, fan_out, reporter)
    else:
        imported = stages.import_recorded(run, dataset.dataset_id, planned, replies)
    code = code_version()
    snapshot = stages.take_snapshot(run, planned, fan_out, reporter)
    reading = stages.read(run, planned, snapshot, code, fan_out, reporter)
    made = finishing.Made(dataset.dataset_id, planned.plan_id, snapshot, reading, code)
    try:
        published, cells = finishing.finish(run, made, reporter)
    except GateBlockedError:
        record_run(run.lake, _row(run, started_at, dataset, asked, "blocked", None, code))
        raise
    summary = RunSummary(dataset, planned.n_requests, asked, published, cells.height, _n_blocked(cells), imported)
    record_run(run.lake, _row(run, started_at, dataset, asked, summary.outcome, published.publication_id, code))
    write_drift(run.lake.root, run.benchmark.name, run.rubrics)
    show_in_prefect(run, summary, cells)
    return summary


def _n_blocked(cells: pl.DataFrame) -> int:
    return cells.filter(pl.col("status") == CellStatus.BLOCKED).height


def _row(
    run: OpenedRun,
    started_at: datetime,
    dataset: IngestResult,
    asked: Outcome,
    outcome: str,
    publication_id: str | None,
    code: str,
) -> dict[str, object]:
    return {
        "started_at": started_at,
        "finished_at": datetime.now(UTC),
        "benchmark": run.benchmark.name,
        "run_date": run.run_date,
        "publication_id": publication_id,
        "outcome": outcome,
        "dataset_id": dataset.dataset_id,
        "n_samples": dataset.n_samples,
        "n_samples_ok": dataset.n_ok,
        "n_requests": asked.n_requests,
        "n_cached": asked.n_cached,
        "n_asked": asked.n_asked,
        "cost_usd": None,
        "code_version": code,
    }
