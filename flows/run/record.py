"""A run's row in `runs`: of one that published or was blocked, and of one that ended while it asked. No writing of files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import polars as pl

from flows.run.context import RunContext
from flows.run.judging import asked_parts
from schemas.errors import StoreError
from schemas.records import Plan
from tasks.ingest.samples import IngestResult
from tasks.judge.budget.prices import price_of
from tasks.judge.outcome import Outcome
from tasks.ledger.open_ledgers import opened
from tasks.ledger.spent import bought_since, sent_since
from tasks.publish.machine_tables import record_run


def record(
    run: RunContext,
    started_at: datetime,
    dataset: IngestResult,
    asked: Outcome,
    outcome: str,
    publication_id: str | None = None,
    *,
    is_backfill: bool = False,
    is_at_least: bool = False,
) -> None:
    """Append the run's row, and let its reporter know it. `is_at_least`: `asked` is what this process heard alone."""
    row = {
        "started_at": started_at,
        "finished_at": datetime.now(UTC),
        "benchmark": run.benchmark.name,
        "run_date": run.run_date,
        "publication_id": publication_id,
        "outcome": outcome,
        "dataset_id": dataset.dataset_id,
        "n_samples": dataset.n_samples,
        "n_samples_ok": dataset.n_ok,
        "n_requests": asked.n_requests,
        "n_cached": asked.n_cached,
        "n_asked": asked.n_asked,
        "n_input_tokens": asked.n_input_tokens or (None if asked.n_without_cost else 0),  # a question has some
        "n_output_tokens": asked.n_output_tokens or (None if asked.n_without_cost else 0),
        "cost_usd": asked.cost_usd,
        "code_version": run.ids.code_version,
        "asked_by": "backfill" if is_backfill else "nightly" if run.ids.budget_id else "run",
        "is_at_least": is_at_least or asked.is_at_least,
    }
    record_run(run.lake, row)
    run.reporter.ran = {**row, "n_by_status": dict(asked.n_by_status)}


@contextmanager
def recorded_where_it_ends(
    run: RunContext, started_at: datetime, dataset: IngestResult, planned: Plan, before: Outcome | None = None
) -> Iterator[None]:
    """While judges are asked: a run that ends here, by an error or told to stop, has its row, `stopped`, with what it bought.

    That is counted from the ledger, by when it came: outcomes of shards under way, and of other processes, never come back. What
    another run bought of the same requests meanwhile is in it. Where the ledger is what failed, it is what this process heard.
    `before`: what a backfill asked before this run of the same plan; the row is the backfill's.
    """
    run.reporter.heard = Outcome()
    try:
        yield
    except BaseException as ended:
        is_at_least = isinstance(ended, StoreError)  # the ledger may be away, and lacks what waits in the lake for it
        try:
            if is_at_least:
                asked = replace(run.reporter.heard or Outcome(), n_requests=planned.n_requests)
            else:
                asked = (
                    bought_since_then(run, started_at, planned) if run.executor.is_remote or run.reporter.attempts else Outcome()
                )
            if before is not None:
                n_cached = max(0, asked.n_cached - before.n_answered)
                asked = replace(before + asked, n_requests=planned.n_requests, n_cached=n_cached)
            if asked.n_asked:
                is_backfill = before is not None
                record(run, started_at, dataset, asked, "stopped", is_backfill=is_backfill, is_at_least=is_at_least)
        except Exception as error:  # noqa: BLE001 - what ended the run is told, and this beside it
            run.reporter.say(f"what this run bought has no row in `runs`: {error}")
        raise


def bought_since_then(
    run: RunContext, since: datetime, planned: Plan, counted: Callable[[pl.Series], pl.Series] = pl.Series.unique
) -> Outcome:
    """What the ledger holds of the plan's requests, and how much of it came since a moment. `counted` picks of a part's keys."""
    since_us, found = round(since.timestamp() * 1e6), Outcome(n_requests=planned.n_requests)
    with opened(run.ledger_url) as ledger:
        for part in asked_parts(run, planned.parts):
            keys = counted(run.request_keys(part)).to_list()
            n_sent, n_in_doubt = ledger.read(partial(sent_since, keys=keys, since_us=since_us))
            found.n_asked += n_sent
            price = price_of(run.judge(part.judge_model))
            if price is not None and price.usd(1, 0, 1):
                found.n_in_doubt += n_in_doubt
            n_new = 0
            for n, n_input, n_output, cost_usd, n_without in ledger.read(partial(bought_since, keys=keys, since_us=since_us)):
                n_new += n
                found.n_replies += n
                found.n_without_cost += n_without
                found.n_input_tokens += int(n_input or 0)
                found.n_output_tokens += int(n_output or 0)
                found.cost_usd = found.cost_usd if cost_usd is None else (found.cost_usd or 0.0) + cost_usd
            found.n_cached += max(0, len(ledger.known(keys)) - n_new)
    return found
