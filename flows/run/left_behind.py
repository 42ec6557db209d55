"""Batches that earlier runs left with providers: what a run says of those it does not fetch, and what command fetches them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby

from flows.run.context import RunContext
from flows.run.record import who_asked
from schemas.records import Plan
from tasks.judge.batch.out import BatchOut, batches_out
from tasks.ledger.open_ledgers import opened


def say_left_behind(run: RunContext, plans: Sequence[Plan]) -> None:
    """Say which requests are with a Batch API that are in none of these plans, whose batches the run fetches itself."""
    with opened(run.ledger_url) as ledger:
        left = [one for one in batches_out(ledger, [judge.id for judge in run.benchmark.asked_judges]) if not one.is_held]
    judges, own = {one.judge_model for one in left}, set[str]()
    for plan in plans if left else ():
        mine = run.having(plan_id=plan.plan_id)
        own.update(*(mine.request_keys(part) for part in plan.parts if part.judge_model in judges))
    for said, fetched_by in told(run, left, own):
        run.reporter.say(f"{said}, and are no part of this run; {fetched_by}")


def told(run: RunContext, left: Iterable[BatchOut], own: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """By judge and the run that handed them over, in clauses: how many requests beside `own` are out, and what fetches them."""
    named = [(one.judge_model, _fetched_by(run, one.since), one) for one in left]
    for (judge, fetched_by), some in groupby(sorted(named, key=lambda one: one[:2]), key=lambda one: one[:2]):
        batches = [one for _, _, one in some]
        keys = frozenset[str]().union(*(one.keys for one in batches)).difference(own)
        if keys:
            since = min(one.since for one in batches)
            yield f"{len(keys):,} requests are with the Batch API of {judge} since {since:%Y-%m-%d %H:%M} UTC", fetched_by


def _fetched_by(run: RunContext, handed_over: datetime) -> str:
    found = who_asked(run, handed_over)
    if found is None:  # a ledger may be several benchmarks'
        return "the command that handed them over, of whichever benchmark, fetches them"
    command, run_date = found
    if command == "nightly":
        return f"`salon nightly FILE --run-date {run_date}` fetches them"
    return f"`salon {command} FILE`{' of the same checkpoints' * (command == 'backfill')} fetches them"
