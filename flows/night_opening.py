"""A night as a run: which one is due, its keys looked for, what it is about, and what it would ask and cost.

What it does is nightly.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from flows.executors.lake_use import lake_in_use
from flows.nights.anchors import newest_anchor_set
from flows.nights.checkpoints import Checkpoint, find_checkpoints, made_until, newest
from flows.nights.missing import missing
from flows.nights.record import Night, NightNote, night_budget, notes
from flows.nights.shortfall import check_is_there
from flows.observability.progress import Reporter
from flows.partitions.shown import shown_checkpoints
from flows.run.context import RunContext, check_keys, open_run
from flows.run.preview import Preview, previewed
from flows.run.since import differs_from_night
from schemas.benchmark.file import load_benchmark
from schemas.errors import InputError
from tasks.context import StageContext
from tasks.judge.budget.budget import leased_usd
from tasks.ledger.open_ledgers import opened


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
    due = load_benchmark(file).nightly.newest_due(now or datetime.now(UTC)).date()
    night = not_after(run_date or due, due)
    run = open_run(file, night, judge_url, max_usd)
    if is_asking:
        check_keys(run)
    return run


def not_after(night: date, due: date) -> date:
    """The night. Raises InputError for one that is not due yet: no later one would become current until its date."""
    if night > due:
        raise InputError(f"--run-date {night} is not due yet; the latest night that is due is {due}")
    return night


def night_of(run: StageContext, until: date | None) -> tuple[Night, list[Checkpoint], Sequence[str]]:
    """What the night is about, the checkpoints there are, and in sentences those that newer ones took the place of.

    `until`: checkpoints made on that day or before.
    """
    there = find_checkpoints(run)
    known = there if until is None else made_until(there, until)
    lacks = missing(run, notes(run.lake.root, run.benchmark.name), there, known, until)
    anchor_set, calendar = newest_anchor_set(run.lake.root, run.benchmark.name), run.benchmark.nightly
    about = {one.model: one.checkpoint for one in newest(known).values()}
    return Night(about, anchor_set, calendar.schedule, calendar.timezone, lacks.gone, lacks.late), known, lacks.replaced


@dataclass(frozen=True, slots=True)
class NightPreview:
    """A night before it is asked, and what it would ask and cost; `plan` is None where it stands whole.

    `differs`: in a sentence, what the file asks otherwise than the night that stands.
    """

    run_date: date
    about: Night | NightNote
    plan: Preview | None = None
    differs: str | None = None


def preview_night(file: Path, opened_night: StageContext, reporter: Reporter) -> NightPreview:
    """What an opened night of the benchmark file would ask and cost: `salon nightly --dry-run`. Nothing is sent."""
    run = RunContext.of(opened_night, reporter=reporter)
    due = run.benchmark.nightly.newest_due(datetime.now(UTC)).date()
    own = notes(run.lake.root, run.benchmark.name).get(run.run_date.isoformat())
    if own is not None and own.is_whole:
        check_is_there(run, own)
        return NightPreview(run.run_date, own, differs=differs_from_night(run, own.publication_id))
    with lake_in_use(run):
        night, known, replaced = night_of(run, run.run_date if run.run_date < due else None)
        shown, left_out = shown_checkpoints(run, known)
        for sentence in (*replaced, *left_out):
            run.reporter.say(sentence)
        plan = previewed(file, run, shown, night.anchor_set, known)
        with opened(run.ledger_url) as ledger:
            taken_usd = leased_usd(ledger, night_budget(run.name_in_ledger, run.run_date))
    return NightPreview(run.run_date, night, replace(plan, taken_usd=taken_usd))
