"""A night as a run: which one is due, its keys looked for, and what it is about. What it does is nightly.py."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from flows.nights.anchors import newest_anchor_set
from flows.nights.checkpoints import Checkpoint, find_checkpoints, made_until, newest
from flows.nights.missing import missing
from flows.nights.record import Night, notes
from flows.run.context import check_keys, open_run
from schemas.benchmark.file import load_benchmark
from schemas.errors import InputError
from tasks.context import StageContext


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
