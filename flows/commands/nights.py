"""`salon nightly` and `salon backfill`, and what is printed of them. The work is flows/nightly.py and flows/backfill.py."""

import sys
from datetime import datetime
from typing import Annotated

import polars as pl
import typer
from rich.table import Table
from rich.text import Text

from flows.commands.running import BenchmarkFile, Checkpoints, MaxUsd, RunDate, RunnerOption, shown_by_prefect, words_in
from flows.commands.tables import print_leaderboard, print_summary
from flows.executors.choose import check_runner
from flows.observability.progress import shown_progress
from flows.observability.terminal import Console, result_console
from schemas.errors import InputError

Check = Annotated[bool, typer.Option("--check", help="Ask nothing; say whether the night is published (exit code 1: no).")]


def nightly(
    file: BenchmarkFile,
    run_date: RunDate = None,
    max_usd: MaxUsd = None,
    check: Check = False,
    runner: RunnerOption = None,
) -> int:
    """Judge the newest checkpoint of each model and the anchors, as the latest night that is due; run it as often as you like."""
    from flows.nightly import is_fresh, nightly, open_night

    night = run_date.date() if run_date else None
    opened = open_night(file, night, max_usd=max_usd, is_asking=not check)
    if check:
        is_there = is_fresh(opened)
        said = "is published" if is_there else "was due and is not published"
        print(f"{opened.benchmark.name}: the night of {opened.run_date} {said}", file=sys.stdout if is_there else sys.stderr)
        return 0 if is_there else 1
    check_runner(opened, runner)
    with shown_progress():
        summary = shown_by_prefect(nightly)(file.absolute(), opened.run_date, None, max_usd, runner)
    out = result_console()
    if summary.run is None:
        out.print(f"the night of {summary.run_date} is published ({summary.publication_id[:12]}); nothing was asked")
        return 0
    print_leaderboard(out, summary.run.published.folder, is_short=True)
    named = ", ".join(f"{model}/{checkpoint}" for model, checkpoint in summary.checkpoints.items())
    anchors = f"anchors {summary.anchor_set[:12]}" if summary.anchor_set else "no anchors (salon anchors freeze FILE)"
    out.print(f"the night of {summary.run_date}: {named}; {anchors}", markup=False)
    print_summary(out, summary.run)
    return 1 if summary.run.n_blocked else 0


Since = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Only checkpoints made on this day or later.")]
All = Annotated[bool, typer.Option("--all", help="Every checkpoint there is.")]
Listed = Annotated[bool, typer.Option("--list", help="Show where every partition stands; nothing is read and nothing asked.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be asked, cost and take; nothing is sent.")]
WIDE = 160  # columns of a table that goes to a file or a pipe
_COLOURS = {"done": "green", "running": "cyan", "failed": "red", "stale": "yellow"}
N_DETAIL = 48  # characters; the whole sentence stands in the row
AtOnce = Annotated[int, typer.Option(min=1, max=64, help="Checkpoints asked at the same time.")]


def backfill(
    file: BenchmarkFile,
    checkpoints: Checkpoints = None,
    since: Since = None,
    all_: All = False,
    listed: Listed = False,
    dry_run: DryRun = False,
    max_usd: MaxUsd = None,
    at_once: AtOnce = 4,
    run_date: RunDate = None,
    runner: RunnerOption = None,
) -> int:
    """Ask past checkpoints what they lack, and publish all that is done in one table. Done partitions cost nothing."""
    from flows.nights.checkpoints import chosen, find_checkpoints
    from flows.partitions.plan import open_backfill, plan_backfill, print_preview
    from flows.partitions.table import read_partitions
    from flows.run.context import check_keys

    day, earliest = (moment.date() if moment else None for moment in (run_date, since))
    run = open_backfill(file, day, max_usd=max_usd)
    out = result_console()
    if listed:
        _print_partitions(out if out.is_terminal else Console(width=WIDE), read_partitions(run))
        return 0
    names = words_in(checkpoints) or None
    if sum((names is not None, since is not None, all_)) != 1:
        raise InputError("say which checkpoints: one of --checkpoints a,b,c, --since DATE and --all; --list shows what there is")
    if dry_run:
        with shown_progress() as reporter:
            planned = plan_backfill(run, names, earliest, reporter)
        print_preview(out, run.benchmark.name, planned)
        out.print("nothing was sent")
        return 0
    chosen(find_checkpoints(run.benchmark), names, earliest)  # what is wrong is said at once
    check_keys(run)
    check_runner(run, runner)
    from flows.backfill import backfill

    with shown_progress():
        summary = shown_by_prefect(backfill)(file.absolute(), names, earliest, day, None, max_usd, at_once, runner)
    if summary.run is None:
        is_spent = any(one.outcome.is_spent for one in summary.backfilled)
        out.print("max_usd is reached; the same command goes on" if is_spent else "nothing to do: what is done is published")
    else:
        print_leaderboard(out, summary.run.published.folder, is_short=True)
        print_summary(out, summary.run)
    return 1 if summary.run is not None and summary.run.n_blocked else 0


def _print_partitions(console: Console, table: pl.DataFrame) -> None:
    """Every partition and where it stands."""
    shown = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("checkpoint", "rubric", "judge", "dataset", "state", "requests", "left", "by", "changed", ""):
        shown.add_column(name, justify="right" if name in ("requests", "left") else "left", overflow="fold")
    for row in table.iter_rows(named=True):
        state = Text(row["state"], style=_COLOURS.get(row["state"], ""))
        shown.add_row(
            Text(f"{row['model']}/{row['checkpoint']}"), Text(f"{row['rubric_id']} {row['rubric_version']}"),
            Text(row["judge_model"]), row["dataset_id"][:8], state, f"{row['n_requests']:,}", f"{row['n_left']:,}",
            row["asked_by"], f"{row['changed_at']:%Y-%m-%d %H:%M}", Text(_cut(row["detail"] or ""), style="dim"),
        )  # fmt: skip
    counted = table.group_by("state").len().sort("state").iter_rows()
    console.print(shown)
    console.print(", ".join(f"{n} {state}" for state, n in counted) or "no partition was written down yet")


def _cut(said: str) -> str:
    return said if len(said) <= N_DETAIL else said[: N_DETAIL - 1] + "…"
