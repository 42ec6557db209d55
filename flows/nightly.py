"""A night: which one is due, the newest checkpoints judged and the anchors asked anew, published and noted. Schedules: infra/."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

import polars as pl

from flows.executors.choose import opened_executor
from flows.night_opening import night_of, not_after, open_night
from flows.nights.checkpoint_table import days_of
from flows.nights.checkpoints import has_newer
from flows.nights.failed import noted_where_it_fails
from flows.nights.finishing import check_in_time, until_finished, wait_until_due
from flows.nights.lost_pointer import restored
from flows.nights.missing import night_before
from flows.nights.record import mutex_name, note_night, notes, notes_mutex
from flows.nights.shortfall import check_is_there
from flows.observability.alerting import night_failed, table_blocked
from flows.observability.artifacts import progress_in_prefect, show_artifacts, tell_alerts
from flows.observability.night_events import record_events, send_events
from flows.observability.progress import RunSummary, current
from flows.observability.redaction import redacted, redacted_errors
from flows.observability.terminal import format_cost, prefect_away
from flows.observability.waiting import say_stopping
from flows.partitions.grid import kept_anew, note_run, noted_where_it_ends
from flows.partitions.shown import shown_checkpoints
from flows.prefect_server import now_or_due
from flows.run.clock import check_date
from flows.run.context import RunContext
from flows.run.pipeline import run_pipeline
from flows.run.since import changed_samples, differs_from_night, has_each, samples_differ
from schemas.benchmark.file import Retry, Runner, load_benchmark
from schemas.errors import GateBlockedError, ProviderError, SalonError, StoppedError
from schemas.records import ModelChange
from tasks.context import StageContext
from tasks.judge.model_pin import adopt, model_changes
from tasks.ledger.mutex import mutex
from tasks.ledger.open_ledgers import opened
from tasks.publish.machine_tables import cost_of, runs
from tasks.publish.standings.pair_boards import n_rates
from tasks.stopping import heeding_sigterm


@dataclass(frozen=True, slots=True)
class NightSummary:
    """What became of a night. `run` is None where it stood whole already: nothing was read and nothing asked.

    `same_as`: the night before, where no model has had a newer checkpoint, or other samples of its newest, since. `changes`:
    judges under whose name another model answered than on the night before. `gone` and `late`: the checkpoints that it lacks.
    `changed_samples`: of whose checkpoints samples are others than on the night before.
    """

    run_date: date
    checkpoints: Mapping[str, str]
    anchor_set: str | None
    publication_id: str
    run: RunSummary | None
    same_as: date | None = None
    changes: tuple[ModelChange, ...] = ()
    gone: Sequence[str] = ()
    late: Sequence[str] = ()
    changed_samples: str | None = None


def nightly(
    file: Path,
    run_date: date | None = None,
    judge_url: str | None = None,
    max_usd: float | None = None,
    runner: Runner | None = None,
    retry: Retry | None = None,
    after_crash: bool = False,
) -> NightSummary:
    """The newest checkpoint of each model, and the anchors, as the night that is due; tried until [nightly] finish_by.

    file: the benchmark file. run_date: the night (default: the latest that is due by [nightly] schedule, so that of several
    missed nights one is caught up, once); of one before that, the checkpoints made until its date count. judge_url: ask here in
    place of the judges' own addresses. max_usd: spend at most this. runner: local, processes or dask, in place of the file's own.
    retry: "rejected" asks again what the provider rejected. after_crash: started because the night's process died or was
    stopped; not after finish_by.
    """
    with heeding_sigterm(say_stopping), redacted_errors():
        benchmark = load_benchmark(file)
        moment, early = now_or_due(benchmark.nightly)
        due = benchmark.nightly.newest_due(moment).date()
        night = not_after(run_date or due, due)
        gives_up_at = benchmark.nightly.gives_up_at(night)
        if after_crash:
            check_in_time(gives_up_at)
        until = night if night < due else None
        if until is None:
            wait_until_due(moment, early, lambda said: current().say(said))
        opening = partial(open_night, file, night, judge_url, max_usd, moment)
        tried, is_ended = list[StageContext](), True
        retried = [] if retry is None else [set[str]()]  # for all tries together
        noted = noted_where_it_fails(benchmark, night, redacted)  # each try is
        attempt = noted(partial(_attempt, file, opening, until, runner, tried, retried))
        try:
            return until_finished(attempt, _what_is_left, gives_up_at, lambda said: current().say(redacted(said)), prefect_away)
        except (StoppedError, KeyboardInterrupt):
            is_ended = False  # it is gone on with, and told of then
            raise
        except GateBlockedError:
            raise
        except Exception as error:
            bought = _bought(tried[-1]) if tried else ""
            tell_alerts(
                benchmark.name, night, [night_failed(" ".join(filter(None, (redacted(str(error)), bought))), gives_up_at)]
            )
            raise
        finally:
            if tried and (bought := _bought(tried[-1])):
                current().say(bought)
            if tried:
                send_events(tried[-1], is_ended=is_ended)


def _what_is_left(summary: NightSummary) -> str | None:
    """What another try may get: replies that a blocked figure lacks, unless the budget is what withholds them."""
    if summary.run is None or not _n_blocked(summary.run) or summary.run.asked.is_spent or not summary.run.asked.n_left:
        return None
    return f"{summary.run.asked.n_left:,} of {summary.run.n_requests:,} requests have no final reply"


def _attempt(
    file: Path,
    opened_night: Callable[[], StageContext],
    until: date | None,
    runner: Runner | None,
    tried: list[StageContext],
    retried: list[set[str]],
) -> NightSummary:
    """One try at a night: opened, run, and shown; put into `tried`. `retried` is empty once one came to its end."""
    run = opened_night()
    tried.append(run)
    reporter = current()
    reporter.on_share = progress_in_prefect(run.benchmark.name)
    try:
        with opened_executor(run, runner) as executor:
            summary = run_night(RunContext.of(run, executor, reporter), until, retried=next(iter(retried), None))
            retried.clear()
    except GateBlockedError as error:
        tell_alerts(run.benchmark.name, run.run_date, [table_blocked(error)])
        raise
    except ProviderError:
        kept_anew(RunContext.of(run, reporter=reporter), file)()
        raise
    if summary.run is not None:
        kept_anew(RunContext.of(run, reporter=reporter), file)()
        show_artifacts(run, summary.run, summary.run.cells)
    return summary


def _bought(run: StageContext) -> str:
    """What all starts at the night bought together that have a row; "" where there is one, which says it itself, or none."""
    try:
        rows = runs(run.lake)
    except (SalonError, OSError, pl.exceptions.PolarsError):  # the lake is away: what became of the night is told without it
        return ""
    mine = rows.filter(benchmark=run.benchmark.name, run_date=run.run_date, asked_by="nightly")
    if mine.height < 2:
        return ""
    cost_usd, is_at_least = cost_of(mine)
    usd = format_cost(cost_usd, is_at_least=is_at_least)
    n_sent = mine["n_asked"].sum()
    return f"{mine.height} runs of the night of {run.run_date} ended, together: {n_sent:,} requests sent, {usd}."


def _n_blocked(run: RunSummary) -> int:
    """Cells and win rates without a figure."""
    return run.n_blocked + n_rates(run.pairs)[1]


def run_night(run: RunContext, until: date | None = None, *, retried: set[str] | None = None) -> NightSummary:
    """Judge, publish and note the night of `run.run_date`, unless it stands whole. One process of all that share the ledger does.

    `until`: only checkpoints made on that day or before are there. `retried`: as of judge(), of a whole night too. The baseline,
    and `nightly.n_earlier` earlier checkpoints that are judged already, stand beside the newest one.
    """
    name, root = run.benchmark.name, run.lake.root
    with opened(run.ledger_url) as ledger, mutex(ledger, mutex_name(run.name_in_ledger), run.reporter.say_who_is_waited_for):
        by_schedule = run.benchmark.nightly.newest_due
        check_date(ledger, run, lambda now: by_schedule(now).date(), may_be_earlier=until is not None)
        noted = notes(root, name)
        own = noted.get(run.run_date.isoformat())
        if own is not None and own.is_whole and retried is None:
            check_is_there(run, own)
            for told in filter(None, (differs_from_night(run, own.publication_id), restored(run))):
                run.reporter.say(told)
            return NightSummary(
                run.run_date, own.checkpoints, own.anchor_set, own.publication_id, None, gone=own.gone, late=own.late
            )
        night, known, replaced = night_of(run, until)
        before = night_before(noted, run.run_date)
        shown, left_out = shown_checkpoints(run, known)
        for sentence in (*replaced, *left_out):
            run.reporter.say(sentence)
        summary = run_pipeline(
            run, shown, known=known, night=night, retried=retried, while_asking=partial(noted_where_it_ends, "nightly")
        )
        publication = summary.published.publication_id
        ids = note_run(run, publication, "nightly").ids
        same_as, said = None, None
        if before is not None:
            changed = changed_samples(run, noted[before].publication_id, ids.dataset_id)
            is_same = not has_newer(noted[before].checkpoints, night.checkpoints, known, days_of(run))
            is_same = is_same and not any(f"{model}/{checkpoint}" in changed for model, checkpoint in night.checkpoints.items())
            same_as = date.fromisoformat(before) if is_same else None
            said = samples_differ(changed, f"the night of {before}") if changed else None
        of_judges = run.name_in_ledger, ids.plan_id, run.benchmark.judges
        with mutex(ledger, notes_mutex(run.name_in_ledger)):
            changes = record_events(run, summary, night, same_as, model_changes(ledger, *of_judges))
        adopt(ledger, *of_judges)  # once they are noted: afterwards no try finds them
        if not _n_blocked(summary) and has_each(run, ids.dataset_id, summary.cells, night.checkpoints.items()):
            with mutex(ledger, notes_mutex(run.name_in_ledger)):
                note_night(root, name, night, run.run_date, publication, is_whole=True)
        return NightSummary(
            run.run_date, night.checkpoints, night.anchor_set, publication, summary,
            same_as, changes, night.gone, night.late, said,
        )  # fmt: skip
