"""A night as a run: which one is due, and its keys looked for. What it does is nightly.py."""

from datetime import UTC, date, datetime
from pathlib import Path

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
