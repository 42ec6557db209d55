"""`salon backfill`, and what is printed of it. The work is flows/backfill.py; `salon nightly` is nights.py."""

import json
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import Annotated

import typer

from flows.commands.options import (
    BenchmarkFile,
    Checkpoints,
    DryRun,
    MaxUsd,
    RetryOption,
    RunDate,
    RunnerOption,
    check_forgets_nothing,
)
from flows.commands.printed.partitions import WIDE, partitions_object, print_cost, print_partitions
from flows.commands.running import shown_by_prefect, words_in
from flows.commands.tables import print_leaderboard, print_summary
from flows.executors.choose import check_runner
from flows.observability.progress import shown_progress
from flows.observability.terminal import Console, result_console
from schemas.errors import InputError
from tasks.context import StageContext

Since = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Only checkpoints made on this day or later.")]
All = Annotated[bool, typer.Option("--all", help="All checkpoints.")]
Listed = Annotated[bool, typer.Option("--list", help="Show the state of every partition; nothing is read and nothing sent.")]
Patience = Annotated[
    float,
    typer.Option(min=0, max=43200, help="Minutes to wait for an endpoint that is down, counted from its first failure."),
]
ListJson = Annotated[bool, typer.Option("--json", help="With --list: print one JSON object instead.")]
AtOnce = Annotated[int, typer.Option(min=1, max=64, help="Checkpoints judged at the same time.")]


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
    retry: RetryOption = None,
    patience_minutes: Patience = 60,
    as_json: ListJson = False,
) -> int:
    """Judge what past checkpoints still lack, and publish everything done in one table. Done partitions cost nothing."""
    from flows.nights.checkpoints import choose
    from flows.partitions.plan import open_backfill
    from flows.run.context import check_keys

    day, earliest = (moment.date() if moment else None for moment in (run_date, since))
    run = open_backfill(file, day, max_usd=max_usd)
    if listed:
        return _list(run, as_json=as_json)
    if as_json:
        raise InputError("--json prints what --list shows: add --list, or omit it")
    names = words_in(checkpoints)
    if sum((names is not None, since is not None, all_)) != 1:
        raise InputError("choose checkpoints with one of --checkpoints a,b,c, --since DATE and --all; --list shows them")
    if dry_run:
        check_forgets_nothing(retry)
        return _preview(run, names, earliest)
    choose(run, names, earliest)  # what is wrong is said at once
    check_keys(run)
    check_runner(run, runner)
    from flows.backfill import backfill

    with shown_progress():
        asking = partial(shown_by_prefect(backfill), patience_minutes=patience_minutes)
        summary = asking(file.absolute(), names, earliest, day, None, max_usd, at_once, runner, retry)
    out = result_console()
    if summary.run is None:
        out.print("nothing to do: everything done is already published")
    else:
        print_leaderboard(out, summary.run.published.folder)
        print_summary(out, summary.run)
    return 1 if summary.run is not None and summary.run.is_blocked else 0


def _list(run: StageContext, *, as_json: bool) -> int:
    """Where every partition stands, and what backfills cost."""
    from flows.partitions.left import left_now
    from flows.partitions.table import asks_pairs_alone, read_partitions
    from tasks.publish.folders import LAYOUT
    from tasks.publish.machine_tables import runs
    from tasks.publish.pointer import read_pointer
    from tasks.publish.reading import look_again

    name, rows, ran = run.benchmark.name, left_now(run, read_partitions(run)), runs(run.lake)
    if as_json:
        look_again(run.lake.root, name)
        current = read_pointer(run.lake.root / "publish" / LAYOUT / name) or {}
        print(json.dumps(partitions_object(rows, ran, name, current.get("publication_id"))))
        return 0
    out = result_console()
    page = out if out.is_terminal else Console(width=WIDE)
    print_partitions(page, rows, asks_pairs_alone=asks_pairs_alone(run))
    print_cost(page, ran, name)
    return 0


def _preview(run: StageContext, names: list[str] | None, earliest: date | None) -> int:
    """What it would ask and cost."""
    from flows.executors.lake_use import lake_in_use
    from flows.partitions.plan import plan_backfill
    from flows.partitions.preview import print_preview
    from tasks.lake.reading_through import read_through

    with shown_progress() as reporter, lake_in_use(run), read_through(run.lake) as lake:
        planned = plan_backfill(replace(run, lake=lake), names, earliest, reporter)
    out = result_console()
    print_preview(out, run.benchmark.name, planned)
    out.print("nothing was sent")
    return 0
