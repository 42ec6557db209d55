"""`salon nightly`, and what is printed of it. The work is flows/nightly.py; `salon backfill` is backfilling.py."""

import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands.options import BenchmarkFile, DryRun, MaxUsd, RetryOption, RunnerOption, check_forgets_nothing
from flows.commands.printed.alarms import alarms_of, lost_anchors_of, print_alarms, print_lost_anchors
from flows.commands.printed.plan import print_plan
from flows.commands.running import shown_by_prefect
from flows.commands.tables import print_leaderboard, print_summary
from flows.executors.choose import check_runner
from flows.observability.progress import shown_progress
from flows.observability.redaction import redacted
from flows.observability.terminal import Console, format_usd, name_of, one_line, prefect_away, result_console
from schemas.benchmark.file import load_benchmark
from schemas.errors import SalonError, StoreError
from tasks.context import StageContext
from tasks.publish.reading import find_publication

if TYPE_CHECKING:
    from flows.nightly import NightSummary
    from flows.nights.record import Night, NightNote
    from flows.observability.progress import RunSummary

Check = Annotated[bool, typer.Option("--check", help="Send nothing; say whether the night is published (exit code 1: no).")]
NightDate = Annotated[
    datetime | None,
    typer.Option(formats=["%Y-%m-%d"], help="The night; default: the latest due by the [nightly] schedule, in its time zone."),
]


def nightly(
    file: BenchmarkFile,
    run_date: NightDate = None,
    max_usd: MaxUsd = None,
    check: Check = False,
    dry_run: DryRun = False,
    runner: RunnerOption = None,
    retry: RetryOption = None,
) -> int:
    """Judge the newest checkpoint of each model and the anchors, as the latest night due; safe to run as often as you like."""
    from flows.night_opening import not_after, open_night
    from flows.nightly import nightly
    from flows.nights.failed import noted_where_it_fails
    from flows.nights.finishing import until_finished
    from flows.run.context import open_run

    night = run_date.date() if run_date else None
    if check:
        return _check(open_night(file, night, is_asking=False))
    if dry_run:
        check_forgets_nothing(retry)
        opened = open_night(file, night, max_usd=max_usd, is_asking=False)
        check_runner(opened, runner)
        return _preview(file, opened)
    benchmark = load_benchmark(file)
    calendar = benchmark.nightly
    due = calendar.newest_due(datetime.now(UTC)).date()
    about = not_after(night or due, due)
    try:
        with noted_where_it_fails(benchmark, about, redacted):
            check_runner(open_night(file, about, max_usd=max_usd), runner)  # what is wrong with the file is said at once
    except Exception as error:  # what is down is waited for until finish_by
        if not prefect_away(error) and not (isinstance(error, SalonError) and error.exit_code == StoreError.exit_code):
            raise
    gives_up_at = calendar.gives_up_at(about)
    with shown_progress() as reporter:
        # The night tries again by itself once it runs; around it, for a Prefect server that is away when it is to begin.
        attempt = partial(shown_by_prefect(nightly), file.absolute(), night, None, max_usd, runner, retry)
        summary = until_finished(attempt, lambda _: None, gives_up_at, lambda said: reporter.say(redacted(said)), prefect_away)
    out, opened = result_console(), open_run(file, summary.run_date)  # due or not by now: a clock may have been set back
    if summary.run is None:
        out.print(f"the night of {summary.run_date} is already published ({summary.publication_id[:12]}); nothing was sent")
        _print_missing(out, summary, opened)
        _print_drift(out, summary, opened)
        return _print_not_current(out, opened)
    return max(_print_night(out, summary, summary.run, opened), _print_not_current(out, opened))


def _check(opened: StageContext) -> int:
    """Say whether the night is published, and what of it a watch is to know; the exit code."""
    from flows.nights.failed import why_failed
    from flows.nights.record import notes
    from flows.nights.shortfall import shortfall
    from flows.nights.shut_out import why_shut_out
    from tasks.publish.folders import is_published, publication_folder

    name, day = opened.benchmark.name, opened.run_date.isoformat()
    note = notes(opened.lake.root, name).get(day)
    shut_out = why_shut_out(opened, datetime.now(UTC))
    short = shortfall(opened.lake.root, name, day, note, opened.benchmark.gate.exit_1) if note is not None else None
    if shut_out is not None and note is not None and note.behind:
        short = None  # for that very reason
    is_there = note is not None and is_published(publication_folder(opened.lake.root, name, note.publication_id))
    said = "was due and is not published" if note is None else "is published" if is_there else "was published"
    print(f"{name}: the night of {day} {said}", file=sys.stdout if is_there else sys.stderr)
    gone, late = ((), ()) if note is None else (note.gone, note.late)
    why = why_failed(opened.lake.root, name, day) if note is None else None
    for told in (why, shut_out, None if short is None else short.told, *gone, *late):
        if told is not None:
            print(one_line(told), file=sys.stderr)
    is_stale = gone and opened.benchmark.nightly.on_no_fresh_checkpoint == "fail"
    return 0 if note is not None and shut_out is None and short is None and not is_stale else 1


def _print_not_current(out: Console, opened: StageContext) -> int:
    """Where no night becomes current, or this one did not, that and what to do; the exit code."""
    from flows.nights.shortfall import night_not_current
    from flows.nights.shut_out import why_shut_out

    why_not = why_shut_out(opened, datetime.now(UTC)) or night_not_current(opened)
    if why_not is None:
        return 0
    out.print(name_of(why_not))
    return 1


def _preview(file: Path, opened: StageContext) -> int:
    """What the night would ask and cost."""
    from flows.night_opening import preview_night

    with shown_progress() as reporter:
        found = preview_night(file, opened, reporter)
    console = Console()
    console.print(_about(found.run_date, found.about.checkpoints, found.about.anchor_set), markup=False)
    _print_missing(console, found.about, opened)
    if found.plan is None:
        console.print("it is published completely: nothing would be sent")
        if found.differs is not None:
            console.print(name_of(found.differs))
        return 0
    left_usd, taken_usd = found.plan.left_usd, found.plan.taken_usd
    if left_usd is not None and taken_usd:
        console.print(f"its earlier starts spent {format_usd(taken_usd)} of max_usd: {format_usd(left_usd)} is left")
    print_plan(console, found.plan)
    return 0


def _about(night: date, checkpoints: Mapping[str, str], anchor_set: str | None) -> str:
    named = ", ".join(f"{model}/{checkpoint}" for model, checkpoint in checkpoints.items())
    anchors = f"anchors {anchor_set[:12]}" if anchor_set else "no anchors (salon anchors freeze FILE)"
    return one_line(f"the night of {night}: {named}; {anchors}")


def _print_missing(out: Console, about: "NightSummary | Night | NightNote", opened: StageContext) -> None:
    """The checkpoints that the night lacks, and the anchors."""
    from flows.nights.anchors import gone_anchors

    for said in (*about.gone, *about.late, gone_anchors(opened.lake.root, opened.benchmark.name)):
        if said is not None:
            out.print(name_of(said))


def _print_night(out: Console, summary: "NightSummary", ran: "RunSummary", opened: StageContext) -> int:
    """The night's table, and what there is to know about it; the exit code."""
    from flows.observability.alerting import judge_changed, missed
    from flows.observability.events import missed_nights

    print_leaderboard(out, ran.published.folder)
    out.print(_about(summary.run_date, summary.checkpoints, summary.anchor_set), markup=False)
    for alert in missed(missed_nights(opened.lake.root, opened.benchmark, summary.run_date)):
        out.print(name_of(f"{alert.payload['says']}; they are not run later"))
    for alert in judge_changed(summary.changes):
        out.print(name_of(str(alert.payload["says"])))
    if summary.same_as is not None:
        out.print(f"no fresh checkpoint since the night of {summary.same_as}", markup=False)
    _print_missing(out, summary, opened)
    if summary.changed_samples is not None:
        out.print(name_of(summary.changed_samples))
    print_summary(out, ran)
    _print_drift(out, summary, opened)
    is_stale = (summary.same_as is not None or summary.gone) and opened.benchmark.nightly.on_no_fresh_checkpoint == "fail"
    return 1 if ran.is_blocked or is_stale else 0


def _print_drift(out: Console, summary: "NightSummary", opened: StageContext) -> None:
    """What the night lost of its anchors, and its alarms."""
    published = find_publication(opened.lake.root, summary.publication_id)
    print_lost_anchors(out, lost_anchors_of(published, opened.rubrics))
    print_alarms(out, alarms_of(published))
