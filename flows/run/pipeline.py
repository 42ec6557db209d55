"""The main job from an opened run to a published table, whatever runs its shards. The Prefect flow around it is benchmark.py."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from flows.executors.base import FanOut
from flows.nights.drift import write_drift
from flows.nights.record import Night, note_night
from flows.observability.progress import Reporter
from flows.observability.summary import RunSummary
from flows.run import finishing, stages
from flows.run.judging import judge
from schemas.errors import GateBlockedError
from schemas.identities import RunIds
from tasks.context import StageContext
from tasks.ingest.samples import IngestResult
from tasks.judge.outcome import Outcome
from tasks.judge.provider.deprecation import sunset_warning
from tasks.lake.object_store.cache_folder import push
from tasks.publish.code_version import code_version
from tasks.publish.report.index import write_index
from tasks.publish.runs import record_run
from tasks.stopping import check_not_stopped


def run_pipeline(
    run: StageContext,
    fan_out: FanOut,
    reporter: Reporter,
    checkpoints: Sequence[str] | None = None,
    replies: Path | None = None,
    *,
    night: Night | None = None,
    asked_before: Outcome | None = None,
) -> RunSummary:
    """Run every stage. With `replies` these recorded replies are imported, and nobody is asked.

    `night`: the run is that night's: its anchors are asked too, and it is noted, as not whole yet. `asked_before`: all that is
    to be asked was asked, with this outcome (a backfill's); what has no reply stays without one.
    Raises GateBlockedError where a blocking data check failed; the run is recorded all the same.
    """
    started_at = datetime.now(UTC)
    run.lake.sweep()
    dataset = stages.ingest(run, fan_out, reporter, checkpoints, night.anchor_set if night else None)
    planned = stages.plan(run, dataset.dataset_id, fan_out, reporter)
    imported, asked = None, asked_before or Outcome(n_requests=planned.n_requests)
    if replies is None and asked_before is None:
        _warn_of_sunsets(run, reporter)
        asked = judge(run, dataset.dataset_id, planned.plan_id, planned.parts, secrets.token_hex(16), fan_out, reporter)
        _say_what_is_missing(run, asked, reporter)
    elif replies is not None:
        imported = stages.import_recorded(run, dataset.dataset_id, planned, replies)
    code = code_version()
    snapshot = stages.take_snapshot(run, planned, fan_out, reporter)
    reading = stages.read(run, planned, snapshot, code, fan_out, reporter)
    made = RunIds(dataset.dataset_id, planned.plan_id, snapshot, reading, code)
    try:
        published, cells = finishing.finish(run, made, fan_out, reporter)
    except GateBlockedError:
        record_run(run.lake, _row(run, started_at, dataset, asked, "blocked", None, code))
        raise
    summary = RunSummary(dataset, planned.n_requests, asked, published, cells, imported)
    record_run(run.lake, _row(run, started_at, dataset, asked, summary.outcome, published.publication_id, code))
    if night:
        note_night(run.lake.root, run.benchmark.name, night, run.run_date, published.publication_id, is_whole=False)
    check_not_stopped()
    write_drift(run.lake.root, run.benchmark.name, run.rubrics)
    push(run.lake.root, write_index(run.lake.root))
    return summary


def _say_what_is_missing(run: StageContext, asked: Outcome, reporter: Reporter) -> None:
    if asked.is_spent:
        reporter.say(
            f"max_usd = {run.benchmark.limits.max_usd:g} is reached: {asked.n_left:,} of {asked.n_requests:,} requests have no "
            "reply, and cells without enough of them are blocked; run again with more to go on from here"
        )


def _warn_of_sunsets(run: StageContext, reporter: Reporter) -> None:
    for asked in run.benchmark.judges:
        warning = None if asked.recorded else sunset_warning(asked, datetime.now(UTC).date())
        if warning:
            reporter.say(warning)


def _row(
    run: StageContext,
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
        "n_input_tokens": asked.n_input_tokens,
        "n_output_tokens": asked.n_output_tokens,
        "cost_usd": asked.cost_usd,
        "code_version": code,
    }
