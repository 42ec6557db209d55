"""`salon nightly --dry-run`: what a night would ask and cost. Nothing is sent; what a night is, is nightly.py."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from flows.executors.lake_use import lake_in_use
from flows.night_opening import night_of
from flows.nights.record import Night, NightNote, night_budget, notes
from flows.observability.progress import Reporter
from flows.partitions.shown import shown_checkpoints
from flows.run.context import RunContext
from flows.run.preview import Preview, previewed
from flows.run.since import differs_from_night
from tasks.context import StageContext
from tasks.judge.budget.budget import leased_usd
from tasks.ledger.open_ledgers import opened


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
    """What an opened night of the benchmark file would ask and cost. Nothing is sent."""
    run = RunContext.of(opened_night, reporter=reporter)
    due = run.benchmark.nightly.newest_due(datetime.now(UTC)).date()
    own = notes(run.lake.root, run.benchmark.name).get(run.run_date.isoformat())
    if own is not None and own.is_whole:
        return NightPreview(run.run_date, own, differs=differs_from_night(run, own.publication_id))
    with lake_in_use(run):
        night, known, _ = night_of(run, run.run_date if run.run_date < due else None)
        plan = previewed(file, run, shown_checkpoints(run, known)[0], night.anchor_set, known)
        with opened(run.ledger_url) as ledger:
            taken_usd = leased_usd(ledger, night_budget(run.name_in_ledger, run.run_date))
    return NightPreview(run.run_date, night, replace(plan, taken_usd=taken_usd))
