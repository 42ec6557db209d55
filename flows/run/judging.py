"""The judge stage: which parts of a plan still ask something, and by which way each judge is asked. How is tasks/judge."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from flows.executors.base import Elsewhere, FanOut, one
from flows.observability.progress import Reporter
from schemas.records import JudgeReply, PlannedPart
from tasks.context import StageContext
from tasks.judge.batch.run import AskByBatch, is_by_batch, is_under_way
from tasks.judge.budget.attempts import attempts_per_run
from tasks.judge.outcome import Outcome
from tasks.judge.prefect_tasks import ask_by_batch, ask_judge
from tasks.judge.shard import AskShard, OnReply
from tasks.ledger.ledger import opened
from tasks.ledger.restore import restore
from tasks.ledger.snapshot import parts_to_ask, still_holds
from tasks.stopping import check_not_stopped

SHARDS_AT_ONCE = 2
"""Shards of one run that work at the same time in one process: one prepares or stores while the other waits for the judge."""


def judge(
    run: StageContext,
    dataset_id: str,
    plan_id: str,
    parts: Sequence[PlannedPart],
    run_id: str,
    fan_out: FanOut,
    reporter: Reporter,
) -> Outcome:
    """Ask every judge what the ledger lacks. Raises ProviderError, StoreError; what was paid for is stored by then."""
    is_elsewhere = isinstance(fan_out, Elsewhere)  # then a shard's replies are counted when it comes back
    every = [part for part in parts if part.n_requests and not run.judge(part.judge_model).recorded]
    with opened(run.ledger_url) as ledger:
        before = still_holds(run.lake, plan_id, ledger.state())
        is_all_there = before is not None and before.is_answered
        asked = [] if is_all_there else parts_to_ask(run.lake, plan_id, every, ledger)
        if asked and (n_restored := restore(run.lake, ledger)):
            reporter.say(f"the ledger lacked {n_restored:,} replies that the lake holds; they were taken back into it")
            asked = parts_to_ask(run.lake, plan_id, every, ledger)
    n_requests = sum(part.n_requests for part in asked)
    n_cached = sum(part.n_requests for part in every) - n_requests
    reporter.start("judge", n_requests)
    context = run.having(dataset_id=dataset_id, plan_id=plan_id, run_id=run_id)

    def on_reply(_reply: JudgeReply) -> None:
        reporter.advance("judge")

    total = Outcome(n_requests=n_cached, n_cached=n_cached)
    online: list[PlannedPart] = []
    for model, mine in _by_judge(asked).items():
        is_batch = is_by_batch(run.judge(model), sum(part.n_requests for part in mine))
        if is_batch or is_under_way(model, run.ledger_url):
            asked_now = AskByBatch(mine, run.benchmark.limits, on_reply, lambda said: reporter.describe("judge", said), is_batch)
            outcome = _by_batch(context, asked_now, fan_out, reporter)
            if is_batch:
                total += outcome
        online += [] if is_batch else mine
    for outcome in _online(context, online, None if is_elsewhere else on_reply, fan_out):
        reporter.advance("judge", outcome.n_requests if is_elsewhere else outcome.n_cached)
        total += outcome
        reporter.tell("judge")
    reporter.finish("judge")
    return total


def _by_judge(parts: Sequence[PlannedPart]) -> Mapping[str, list[PlannedPart]]:
    found: dict[str, list[PlannedPart]] = defaultdict(list)
    for part in parts:
        found[part.judge_model].append(part)
    return found


def _by_batch(context: StageContext, shard: AskByBatch, fan_out: FanOut, reporter: Reporter) -> Outcome:
    """One judge's parts through its Batch API; without `is_asking` only what earlier runs left there is fetched."""
    outcome: Outcome = one(fan_out, ask_by_batch, context=context, shard=shard)
    if outcome.n_in_flight:
        reporter.say(
            f"{outcome.n_in_flight:,} requests are with the Batch API of {shard.judge_model}; the same command collects them"
        )
    check_not_stopped()
    return outcome


def _online(context: StageContext, parts: list[PlannedPart], on_reply: OnReply | None, fan_out: FanOut) -> Any:
    """The outcomes of all parts that are asked one request at a time, a shard each."""
    whole = context.benchmark.limits
    most = attempts_per_run(whole, sum(part.n_requests for part in parts))
    n_at_once = fan_out.n_at_once if isinstance(fan_out, Elsewhere) else SHARDS_AT_ONCE
    limits = whole.model_copy(update={"concurrency": -(-whole.concurrency // n_at_once), "attempts_per_run": most})
    return fan_out(ask_judge, ({"context": context, "shard": AskShard(part, limits, on_reply)} for part in parts))
