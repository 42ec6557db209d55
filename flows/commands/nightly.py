"""`salon nightly`: the night that is due, and whether it is published. What a night is, is flows/nightly.py."""

import sys
from typing import Annotated

import typer

from flows.commands.running import BenchmarkFile, MaxUsd, RunDate, RunnerOption
from flows.commands.tables import print_leaderboard, print_summary
from flows.executors.choose import check_runner
from flows.observability.progress import attach
from flows.observability.terminal import Console

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
    opened = open_night(file, night, max_usd=max_usd, is_asking=not check)  # what is wrong is said before Prefect starts
    if check:
        is_there = is_fresh(opened)
        said = "is published" if is_there else "was due and is not published"
        print(f"{opened.benchmark.name}: the night of {opened.run_date} {said}", file=sys.stdout if is_there else sys.stderr)
        return 0 if is_there else 1
    check_runner(opened, runner)
    from flows.observability.terminal import keep_prefect_quiet

    reporter = attach(Console(stderr=True))
    keep_prefect_quiet()
    with reporter.shown():
        summary = nightly(file.absolute(), opened.run_date, None, max_usd, runner)
    out = Console(soft_wrap=True, highlight=False)
    if summary.run is None:
        out.print(f"the night of {summary.run_date} is published ({summary.publication_id[:12]}); nothing was asked")
        return 0
    print_leaderboard(out, summary.run.published.folder, is_short=True)
    named = ", ".join(f"{model}/{checkpoint}" for model, checkpoint in summary.checkpoints.items())
    anchors = f"anchors {summary.anchor_set[:12]}" if summary.anchor_set else "no anchors (salon anchors freeze FILE)"
    out.print(f"the night of {summary.run_date}: {named}; {anchors}", markup=False)
    print_summary(out, summary.run)
    return 1 if summary.run.n_blocked else 0
