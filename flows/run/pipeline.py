"""The main job from an opened run to a published table, whatever runs its shards. Stage by stage: stages.py, judging.py."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from flows.nights.checkpoints import Checkpoint, lineage_of
from flows.nights.drift import read_otherwise, write_drift
from flows.nights.ended import ended_series
from flows.nights.index import rewrite_index
from flows.nights.own_rubrics import keep_rubrics
from flows.nights.record import Night, night_budget, note_night, notes_mutex
from flows.nights.shut_out import shut_out_by
from flows.observability.part import one_step
from flows.observability.progress import RunSummary
from flows.observability.terminal import format_usd
from flows.run import stages
from flows.run.batches import say_left_behind
from flows.run.begun import Begun
from flows.run.bought import asked_parts
from flows.run.complete import saying_what_is_complete
from flows.run.context import RunContext
from flows.run.found import not_as_meant
from flows.run.judging import n_left
from flows.run.other_models import refuse_other_models
from flows.run.preview import forecasts
from flows.run.record import check_records, record, recorded_where_it_ends
from flows.run.rounds import judge_all
from flows.run.since import before, say_what_changed
from flows.run.tasks import RunTables, check_data, compute_tables, pool_judges, publish_tables, weigh_judges
from schemas.errors import GateBlockedError
from schemas.metrics import means_for_prompts_like_these
from schemas.records import Plan
from schemas.tables.published import BENCHMARK_LONG, POOLED
from schemas.tables.stored import CHECKS, QUARANTINE
from schemas.tables.table import Table
from tasks.judge.batch.folders import BatchResults
from tasks.judge.budget.budget import leased_usd
from tasks.judge.budget.forecast import total_usd
from tasks.judge.model_pin import deprecation_warning, hold
from tasks.judge.outcome import Outcome
from tasks.ledger.import_replies.importing import ImportResult, check_importable
from tasks.ledger.mutex import mutex
from tasks.ledger.open_ledgers import opened
from tasks.publish.folders import Published, is_published, publication_folder
from tasks.publish.identity import publication_id
from tasks.publish.machine_tables import runs
from tasks.publish.reading import find_publication, load_cells
from tasks.publish.standings.pair_boards import boards_in
from tasks.publish.standings.placed_cells import placed
from tasks.stopping import check_not_stopped
from tasks.validate.check_cache import docs_folder
from tasks.validate.gate_and_quarantine import ValidationResult


def run_pipeline(
    run: RunContext,
    checkpoints: Sequence[str] | None = None,
    replies: Path | BatchResults | None = None,
    *,
    known: Sequence[Checkpoint] | None = None,
    night: Night | None = None,
    asked_before: Outcome | None = None,
    retried: set[str] | None = None,
    while_asking: Callable[[RunContext, Plan], AbstractContextManager[None]] = lambda *_: nullcontext(),
) -> RunSummary:
    """Run every stage. With `replies` these, or results of exported requests, are imported, and nobody is asked.

    `known`: all checkpoints there are, where `checkpoints` are some of them.
    `night`: the run is that night's: its anchors are asked too, and it is noted, as not whole yet. `asked_before`: all that is
    to be asked was asked, with this outcome (a backfill's); what has no reply stays without one. `retried`: as of
    judge(). `while_asking`: is entered with the plan, and left as the asking ends.
    Raises GateBlockedError where a blocking data check failed; the run is recorded, as is one that ends while it asks.
    """
    started_at = datetime.now(UTC)
    run.reporter.made = None
    if isinstance(replies, BatchResults):
        replies.check(run.benchmark)
    elif replies is not None:
        check_importable(run.benchmark, run.rubrics, replies)
    elif asked_before is None:  # what is bought is to be published
        check_records(run.stage)
    run.lake.sweep()
    keep_rubrics(run.lake.root, run.rubrics, run.reporter.say)  # as they are asked: their files may be edited while they are
    dataset = stages.ingest(run, checkpoints, night.anchor_set if night else None, is_examined=asked_before is None)
    run = run.having(dataset_id=dataset.dataset_id, run_id=secrets.token_hex(16))
    run = replace(run, lineage=lineage_of(run, known))
    for note in [*dataset.notes, *not_as_meant(run.stage, is_all=checkpoints is None)]:
        run.reporter.say(note)
    planned = stages.plan(run)
    budget_id = night_budget(run.name_in_ledger, run.run_date) if night else run.ids.budget_id
    run = run.having(plan_id=planned.plan_id, budget_id=budget_id)
    is_asking = replies is None
    if is_asking and asked_before is None:
        with opened(run.ledger_url) as ledger:
            if night:
                hold(ledger, run.name_in_ledger, planned.plan_id, run.benchmark.judges)
            refuse_other_models(run, ledger, planned.parts)
    begun = Begun.of(run, started_at, dataset, asked_by=None if asked_before is None else "backfill")
    recorded = recorded_where_it_ends(run, begun, planned, asked_before) if is_asking else nullcontext()
    with recorded, while_asking(run, planned) if is_asking else nullcontext():
        if is_asking and asked_before is None:
            say_left_behind(run, [planned])
        imported, asked = _asked_or_taken_in(run, planned, replies, asked_before, retried)
        run = run.having(snapshot_id=stages.take_snapshot(run, planned))
        run = run.having(reading_id=stages.read(run, planned))
        was = before(run)
        try:
            published, cells = finish(run)
        except GateBlockedError:
            record(run, begun, asked, "blocked")
            raise
        say_what_changed(run, was, cells, is_new=published.is_new, is_night=night is not None, is_all=checkpoints is None)
        n_requests = planned.n_requests if asked_before is None else asked.n_requests
        pairs, judges = boards_in(published.folder), run.benchmark.judges
        summary = RunSummary(dataset, n_requests, asked, published, cells, run.benchmark.gate, imported, pairs, judges)
        record(run, begun, asked, summary.outcome, published.publication_id)
        run.reporter.made = summary
    _note_what_came_of_it(run, night, published, run.benchmark.limits.max_usd if asked.is_spent else None)
    return summary


def _note_what_came_of_it(run: RunContext, night: Night | None, published: Published, max_usd: float | None) -> None:
    """The night's note, drift and the index of pages, once the publication stands. `max_usd`: what ended the asking."""
    made = published.publication_id
    if night:
        behind = shut_out_by(run, published)
        name, root = run.benchmark.name, run.lake.root
        with opened(run.ledger_url) as ledger, mutex(ledger, notes_mutex(run.name_in_ledger)):
            note_night(root, name, night, run.run_date, made, is_whole=False, behind=behind, max_usd=max_usd)
    check_not_stopped()
    write_drift(run.lake.root, run.benchmark.name, run.rubrics, run.reporter.say)
    said = list(filter(None, [read_otherwise(run.lake.root, run.benchmark.name, made) if published.is_new else None]))
    said += [f"{says}; {advice}" for says, advice in (ended_series(run, run.run_date) if night else ())]
    for sentence in said:
        run.reporter.say(sentence)
    rewrite_index(run.lake.root)


def _asked_or_taken_in(
    run: RunContext, planned: Plan, replies: Path | BatchResults | None, asked_before: Outcome | None, retried: set[str] | None
) -> tuple[ImportResult | None, Outcome]:
    """Replies that are given, else all that is asked; of what a backfill asked of each checkpoint alone, the pairs of two."""
    if isinstance(replies, BatchResults):
        return stages.import_batch_results(run, planned, replies)
    if replies is not None:
        return stages.import_recorded(run, replies), Outcome(n_requests=planned.n_requests)
    if asked_before is None:
        with saying_what_is_complete(run, planned):
            asked = judge_all(run, planned.parts, retried=retried)
        _warn_of_deprecation(run, asked)
        _say_what_is_missing(run, planned, asked)
        return None, asked
    of_pairs = [part for part in planned.parts if run.rubrics[part.rubric_id].is_of_pairs]
    alone = [part for part in planned.parts if not run.rubrics[part.rubric_id].is_of_pairs]
    # checkpoints that were done before stand in the table too; what looks spared them was never asked
    n_spared = n_left(run, asked_parts(run, [part for part in alone if part.round is not None]))
    n_others = max(0, sum(part.n_requests for part in alone) - n_spared - asked_before.n_requests)
    with saying_what_is_complete(run, planned):
        return None, asked_before + Outcome(n_requests=n_others, n_cached=n_others) + judge_all(run, of_pairs)


def _say_what_is_missing(run: RunContext, planned: Plan, asked: Outcome) -> None:
    if not asked.is_spent:
        return
    max_usd, then = run.benchmark.limits.max_usd, "cells without enough replies are blocked; run again with a higher max_usd"
    spent_usd = 0.0
    if asked.is_out_of_reach and run.ids.budget_id:
        with opened(run.ledger_url) as ledger:
            spent_usd = leased_usd(ledger, run.ids.budget_id)
    if spent_usd:
        run.reporter.say(
            f"max_usd = {max_usd:.12g} of this night is reached: earlier starts spent {format_usd(spent_usd)} of it, one request "
            f"may cost up to ${asked.refused_usd:.4g}, and {asked.n_left:,} have no reply. Nothing was sent, and {then}"
        )
    elif asked.is_out_of_reach:
        with opened(run.ledger_url) as ledger:
            left = [row.forecast for row in forecasts(RunContext.of(run.stage), planned, ledger) if row.forecast.n_to_ask]
        all_usd = format_usd(total_usd(one.worst_usd for one in left))
        run.reporter.say(
            f"max_usd = {max_usd:.12g} does not cover a single request: one may cost up to ${asked.refused_usd:.4g}, "
            f"all {asked.n_left:,} without a reply up to {all_usd}. Nothing was sent, and {then}"
        )
    else:
        run.reporter.say(
            f"max_usd = {max_usd:.12g} is reached: {asked.n_left:,} of {asked.n_requests:,} requests have no reply, and {then} "
            "to continue"
        )


def _warn_of_deprecation(run: RunContext, asked: Outcome) -> None:
    """Of judges that were asked something: a run that asks nothing needs no provider for a warning either."""
    for judge in run.benchmark.judges if asked.n_asked or asked.n_in_flight else ():
        warning = None if judge.recorded else deprecation_warning(judge, datetime.now(UTC).date())
        if warning:
            run.reporter.say(warning)


def finish(run: RunContext) -> tuple[Published, pl.DataFrame]:
    """Check, aggregate and publish; a publication that exists is found, not made again. Returns it with its cells.

    Raises GateBlockedError where a blocking check failed: nothing is published, and the failing rows stand in the lake's
    `checks` and `quarantine`.
    """
    key = publication_id(run.benchmark, run.ids, run.run_date, run.lineage)
    run = run.having(publication_id=key)
    if is_published(publication_folder(run.lake.root, run.benchmark.name, key)):
        cells = load_cells(find_publication(run.lake.root, key))
        tables = RunTables({BENCHMARK_LONG: cells}, is_there=True)
    else:
        result = _check(run)
        with one_step(run.reporter, "aggregate"):
            made = tables_of(run)
        cells = placed(made)
        tables = RunTables(made | {CHECKS: result.checks, QUARANTINE: result.quarantine})
    with nullcontext() if tables.is_there else one_step(run.reporter, "publish"):
        published = run.executor.once(publish_tables, run.stage, tables)
    if not published.is_new and key not in runs(run.lake)["publication_id"]:  # a start that made it ended before its row, untold
        published = replace(published, is_new=True)
    return published, means_for_prompts_like_these(cells)


def tables_of(run: RunContext) -> dict[Table, pl.DataFrame]:
    """Every table of figures the publication holds, from the partitions it is made of."""
    judges = run.benchmark.judges
    tables: dict[Table, pl.DataFrame] = run.executor.once(compute_tables, run.stage)
    if len(judges) > 1 or any(judge.repeats > 1 for judge in judges):
        reliability: dict[Table, pl.DataFrame] = run.executor.once(weigh_judges, run.stage)
        tables |= reliability
    if len(judges) > 1 and not run.benchmark.statistics.stopping.looks:  # each judge stops asking about others
        tables[POOLED] = run.executor.once(pool_judges, run.stage, tables[BENCHMARK_LONG])
    return tables


def _check(run: RunContext) -> ValidationResult:
    with one_step(run.reporter, "check"):
        result = run.executor.once(check_data, run.stage)
    if result.is_blocked:
        raise GateBlockedError(
            "nothing was published: a blocking data check failed.\n  "
            + "\n  ".join(result.sentences)
            + f"\n  The data docs are in {docs_folder(run) / 'index.html'}; failing rows in the lake's quarantine table."
        )
    return result
