"""A night: which one is due, the newest checkpoints judged and the anchors asked anew, published and noted. Schedules: infra/."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from flows.executors.choose import opened_executor
from flows.nights.anchors import newest_anchor_set
from flows.nights.checkpoints import Checkpoint, find_checkpoints, newest
from flows.nights.record import Night, note_night, notes
from flows.observability.artifacts import progress_in_prefect, show_in_prefect
from flows.observability.events import emit_blocked, emit_budget_reached
from flows.observability.progress import RunSummary, current
from flows.observability.redaction import redacted_errors
from flows.partitions.table import find_partitions, whole_checkpoints, write_partitions
from flows.run.context import RunContext, check_keys, open_run
from flows.run.pipeline import run_pipeline
from schemas.benchmark import Benchmark, Runner, load_benchmark
from schemas.errors import GateBlockedError, InputError
from tasks.context import StageContext
from tasks.ledger.ledger import opened
from tasks.ledger.mutex import mutex
from tasks.publish.reading import find_publication
from tasks.stopping import heeding_sigterm


@dataclass(frozen=True, slots=True)
class NightSummary:
    """What became of a night. `run` is None where it stood whole already: nothing was read and nothing asked."""

    run_date: date
    checkpoints: Mapping[str, str]
    anchor_set: str | None
    publication_id: str
    run: RunSummary | None


def nightly(
    file: Path,
    run_date: date | None = None,
    judge_url: str | None = None,
    max_usd: float | None = None,
    runner: Runner | None = None,
) -> NightSummary:
    """The newest checkpoint of each model, and the anchors, as the night that is due.

    file: the benchmark file. run_date: the night (default: the latest that is due by [nightly] schedule, so that of several
    missed nights one is caught up, once). judge_url: ask here in place of the judges' own addresses. max_usd: spend at most this.
    runner: local, processes or dask, in place of the file's own.
    """
    with heeding_sigterm(), redacted_errors():
        run = open_night(file, run_date, judge_url, max_usd)
        reporter = current()
        reporter.on_share = progress_in_prefect(run.benchmark.name)
        try:
            with opened_executor(run, runner) as executor:
                summary = run_night(RunContext.of(run, executor, reporter))
        except GateBlockedError as error:
            emit_blocked(run, error)
            raise
        if summary.run is not None:
            asked = summary.run.asked
            if asked.is_spent:
                limit_usd = run.benchmark.limits.max_usd or 0.0
                emit_budget_reached(run, limit_usd=limit_usd, spent_usd=asked.cost_usd or 0.0, n_not_asked=asked.n_left)
            show_in_prefect(run, summary.run, summary.run.cells)
        return summary


def open_night(
    file: Path,
    run_date: date | None = None,
    judge_url: str | None = None,
    max_usd: float | None = None,
    now: datetime | None = None,
    *,
    is_asking: bool = True,
) -> StageContext:
    """The run of a night: `run_date`, else the latest that is due at `now`. Raises InputError, MissingKeyError."""
    night = run_date or newest_due(load_benchmark(file), now or datetime.now(UTC)).date()
    run = open_run(file, night, judge_url, max_usd)
    if is_asking:
        check_keys(run)
    return run


def run_night(run: RunContext) -> NightSummary:
    """Judge, publish and note the night of `run.run_date`, unless it stands whole. One process of all that share the ledger does.

    Beside the newest checkpoint of each model stand the baseline and `nightly.n_earlier` earlier ones that are judged already.
    """
    name, root = run.benchmark.name, run.lake.root
    with opened(run.ledger_url) as ledger, mutex(ledger, f"nightly {name}"):
        noted = notes(root, name).get(run.run_date.isoformat())
        if noted is not None and noted.is_whole:
            return NightSummary(run.run_date, noted.checkpoints, noted.anchor_set, noted.publication_id, None)
        known = find_checkpoints(run.benchmark)
        night = Night({one.model: one.checkpoint for one in newest(known).values()}, newest_anchor_set(root, name))
        summary = run_pipeline(run, shown_checkpoints(run, known), night=night)
        _write_partitions(run, summary.published.publication_id)
        if not summary.n_blocked:  # now that nothing is left to do
            note_night(root, name, night, run.run_date, summary.published.publication_id, is_whole=True)
        return NightSummary(run.run_date, night.checkpoints, night.anchor_set, summary.published.publication_id, summary)


def shown_checkpoints(run: StageContext, known: list[Checkpoint]) -> list[str]:
    """The checkpoints of a night's table as model/checkpoint. Raises InputError where there is none, or not the baseline."""
    latest = newest(known)
    if not latest:
        raise InputError("there is no checkpoint yet: the table under [nightly] checkpoints lists none that a source holds")
    shown = [one.name for one in latest.values()]
    judged = set(whole_checkpoints(run))
    for model, own in latest.items():
        earlier = [one.name for one in known if one.model == model and one != own and (one.model, one.checkpoint) in judged]
        shown += earlier[max(0, len(earlier) - run.benchmark.nightly.n_earlier) :]
    baseline = run.benchmark.nightly.baseline
    return shown if baseline is None or baseline in shown else [*shown, baseline]


def newest_due(benchmark: Benchmark, now: datetime) -> datetime:
    """The latest moment at or before `now` at which a nightly run is due, in the schedule's own time zone. Raises InputError."""
    said = benchmark.nightly
    try:
        local = now.astimezone(ZoneInfo(said.timezone)).replace(second=1, microsecond=0)  # what is looked for lies before it
        due = next(CronSim(said.schedule, local, reverse=True))
    except CronSimError as error:
        raise InputError(f"nightly.schedule = {said.schedule!r} is not a cron line ({error}); write it as '0 2 * * *'") from error
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InputError(f"nightly.timezone = {said.timezone!r} is not known; write it as 'Europe/Berlin' or 'UTC'") from error
    return due


def is_fresh(run: StageContext) -> bool:
    """Whether the night of the run's date is published, with or without blocked cells."""
    return run.run_date.isoformat() in notes(run.lake.root, run.benchmark.name)


def _write_partitions(run: StageContext, publication_id: str) -> None:
    ids = find_publication(run.lake.root, publication_id).provenance()["identities"]
    found = find_partitions(run.having(dataset_id=ids["dataset_id"], plan_id=ids["plan_id"]))
    write_partitions(run, found, "nightly")
