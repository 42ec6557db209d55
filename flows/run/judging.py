"""The judge stage: which parts of a plan still ask something, and by which way each judge is asked. How is tasks/judge."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial

from flows.executors.base import ShardCall
from flows.observability.waiting import Waiting
from flows.run.batches import ByBatch, Failures, alone, as_they_end, under_way
from flows.run.bought import asked_parts, with_what_was_lost
from flows.run.context import RunContext
from flows.run.judge_servers import Servers, servers_of, with_run
from flows.run.tasks import JudgeShards, ask_judge, ask_judge_together
from schemas.benchmark.file import Limits
from schemas.records import JudgeReply, PlannedPart
from tasks.judge.batch.run import is_by_batch, is_under_way
from tasks.judge.budget.budget import attempts_per_run
from tasks.judge.outcome import Outcome
from tasks.judge.provider.exchange import Answer
from tasks.judge.retries import RETRIES
from tasks.judge.shard import JudgeShard
from tasks.judge.shard_requests import OnAttempt, OnReply
from tasks.judge.tries import Heard
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened
from tasks.ledger.snapshot import forget_rejected, parts_to_ask, restore, still_holds
from tasks.ledger.unstored import Unstored
from tasks.stopping import check_not_stopped

N_ROUNDS = 10
"""So many times its requests in flight are given to a worker process at once: waiting for the last replies is a tenth of that."""


def judge(
    run: RunContext,
    parts: Sequence[PlannedPart],
    *,
    retried: set[str] | None = None,
    n_of_run: int | None = None,
    servers: Servers | None = None,
) -> Outcome:
    """Ask every judge what the ledger lacks, and with `retried` what was rejected: of each request once in a command.

    `retried`: the parts of plans that the command looked at so; this adds to them, and a later try passes over them.
    `n_of_run`: the requests of the whole run, where these parts are not all of it: it has so many attempts together.
    `servers`: those that are up until the run has asked everything; default: until this has.
    Raises ProviderError, StoreError; what was paid for is stored by then.
    """
    every = asked_parts(run, parts)
    if retried is not None:
        _retry_rejected(run, every, retried)
    asked = _parts_to_ask(run, every)
    n_requests = sum(part.n_requests for part in asked)
    n_cached = sum(part.n_requests for part in every) - n_requests
    run.reporter.start("judge", n_requests)
    run.reporter.hear(Outcome(n_cached=n_cached))
    total = Outcome(n_requests=n_cached, n_cached=n_cached)
    with nullcontext(servers) if servers else servers_of(run) as up:
        up.start(with_run(run.benchmark, _by_judge(asked)))
        total += _asked(run, asked, n_of_run)
    run.reporter.finish("judge")
    return total


def _asked(run: RunContext, asked: Sequence[PlannedPart], n_of_run: int | None) -> Outcome:
    """The judges with batches each in a thread, while the others are asked online; what fails ends the run when all have ended.

    Who is asked online now and by batch earlier waits for what is under way. Whoever `max_usd` refused something while others'
    batches held some of it is asked again once they have ended.
    """
    by_judge, online, by_batch = _by_judge(asked), list[PlannedPart](), list[ByBatch]()
    for model, mine in by_judge.items():
        judge = run.judge(model)
        is_batch = is_by_batch(judge, n_left(run, mine) if judge.mode == "auto" else 0)
        if is_batch or is_under_way(model, run.ledger_url):
            by_batch.append(ByBatch(mine, is_asking=is_batch, is_alone=len(by_judge) == 1))
        else:
            online += mine
    n_online = sum(part.n_requests for part in online) + sum(one.n_requests for one in by_batch if not one.is_asking)
    ask_online = partial(_all_online, run, n_of_run=n_of_run or n_online)
    if not by_batch:
        return ask_online(online)
    ended, failures = list[tuple[Callable[[], Outcome], Outcome]](), Failures(run)
    with under_way(run, by_batch) as batches:
        with failures.of(bool(batches)):
            ended.append((partial(ask_online, online, is_again=True), ask_online(online)))
        for one, n_others in as_they_end(batches):
            with failures.of(n_others > 0):
                outcome = one.outcome()
                if one.asked.is_asking:
                    ended.append((partial(alone, run, one.asked), outcome))
                else:
                    mine = one.asked.parts
                    ended.append((partial(ask_online, mine, is_again=True), outcome.followed_by(ask_online(mine))))
    check_not_stopped()
    failures.raise_first()
    total, has_others = Outcome(), len(by_batch) + bool(online) > 1  # whoever is alone had all the room there was
    for ask_again, outcome in ended:
        total += outcome.followed_by(ask_again()) if outcome.is_spent and has_others else outcome
    return total


def _all_online(run: RunContext, parts: list[PlannedPart], n_of_run: int, *, is_again: bool = False) -> Outcome:
    """What became of the parts together. `is_again`: what is stored of them was counted before."""
    total, n_lost, since = Outcome(), run.executor.n_lost, datetime.now(UTC)
    for outcome in _online(run, parts, n_of_run):
        # replies of another process are counted when its shard comes back
        if run.executor.is_remote:
            run.reporter.advance("judge", 0 if is_again else outcome.n_requests)
            run.reporter.count_attempts(outcome.attempts_by_status)
            run.reporter.hear(outcome)
        elif not is_again:  # its attempts and replies were heard as they came
            run.reporter.find("judge", outcome.n_cached)
            run.reporter.hear(Outcome(n_cached=outcome.n_cached))
        total += outcome
        run.reporter.tell("judge")
    return total if run.executor.n_lost == n_lost else with_what_was_lost(run, total, since, parts)


def n_left(run: RunContext, parts: Sequence[PlannedPart]) -> int:
    """Requests of these parts that are left to ask."""
    with opened(run.ledger_url) as ledger:
        return sum(ledger.n_left(run.request_keys(part)) for part in parts)


def recorded(run: RunContext, parts: Sequence[PlannedPart]) -> Outcome:
    """The requests to recorded judges that have their reply: stored before, like those of a judge that is asked."""
    mine = [part for part in parts if run.judge(part.judge_model).recorded]
    if not mine:
        return Outcome()
    n_requests = sum(part.n_requests for part in mine)
    with opened(run.ledger_url) as ledger:
        before = still_holds(run, ledger.state())
        if before is not None and before.is_answered:
            return Outcome(n_requests=n_requests, n_cached=n_requests)
        n_stored = _n_stored(run, mine, ledger)
        if n_stored < n_requests and _take_back(run, ledger):
            n_stored = _n_stored(run, mine, ledger)
    return Outcome(n_requests=n_stored, n_cached=n_stored)


def _n_stored(run: RunContext, parts: Sequence[PlannedPart], ledger: Ledger) -> int:
    return sum(len(ledger.known(run.request_keys(part))) for part in parts)


def _take_back(run: RunContext, ledger: Ledger) -> bool:
    """The lake's replies into a ledger that lacks them; whether it did."""
    unstored = Unstored(run.lake.root)
    with unstored.told():
        n_taken_in = unstored.take_in(ledger, is_from_all=True)
    if n_taken_in:
        run.reporter.say(f"{n_taken_in:,} replies paid for earlier, which the ledger could not store then, are stored now")
    n_restored = restore(run.lake, ledger)
    if n_restored:
        run.reporter.say(f"the ledger lacked {n_restored:,} replies that the lake has; they were restored to it")
    return n_restored + n_taken_in > 0


def _retry_rejected(run: RunContext, parts: Sequence[PlannedPart], retried: set[str]) -> None:
    by_name = {f"{run.ids.plan_id} {part.index}": part for part in parts}
    fresh = [part for name, part in by_name.items() if name not in retried]
    with opened(run.ledger_url) as ledger:
        restore(run.lake, ledger)  # before, so that no snapshot gives back what is forgotten here
        run.reporter.say(f"{forget_rejected(run, fresh, ledger):,} rejected requests are asked again")
    retried |= by_name.keys()


def _parts_to_ask(run: RunContext, every: list[PlannedPart]) -> list[PlannedPart]:
    """The parts with something left to ask, after the lake's replies were taken back into a ledger that lacks them."""
    with opened(run.ledger_url) as ledger:
        before = still_holds(run, ledger.state())
        if before is not None and before.is_answered:
            return []
        asked = parts_to_ask(run, every, ledger)
        if asked and _take_back(run, ledger):
            asked = parts_to_ask(run, every, ledger)
    return asked


def _by_judge(parts: Sequence[PlannedPart]) -> Mapping[str, list[PlannedPart]]:
    found: dict[str, list[PlannedPart]] = defaultdict(list)
    for part in parts:
        found[part.judge_model].append(part)
    return found


def _online(run: RunContext, parts: list[PlannedPart], n_of_run: int) -> Iterator[Outcome]:
    """What became of the parts that are asked one request at a time, shard by shard; in other processes some together."""
    whole = run.benchmark.limits
    most = attempts_per_run(whole, n_of_run)
    concurrency = -(-whole.concurrency // run.executor.n_processes)
    limits = whole.model_copy(update={"concurrency": concurrency, "attempts_per_run": most})
    if run.executor.is_remote:
        some = together(parts, limits, run.executor.n_processes)
        yield from run.executor.run(ShardCall(ask_judge_together, run.stage, shards, spends_money=True) for shards in some)
        return
    waiting = Waiting(lambda said: run.reporter.describe("judge", said))
    heard = deque[Heard]()  # of the parts under way, in their order

    def alone() -> Iterator[JudgeShard]:
        for part in parts:
            heard.append(Heard())
            yield JudgeShard(part, limits, _on_reply(run, waiting, heard[-1]), _on_attempt(run, waiting, heard[-1]))

    try:
        for outcome in run.executor.run(ShardCall(ask_judge, run.stage, shard, spends_money=True) for shard in alone()):
            yield heard.popleft().in_all_tries(outcome)
    finally:
        waiting.end()


def together(parts: Sequence[PlannedPart], limits: Limits, n_processes: int) -> Iterator[JudgeShards]:
    """Parts by judge, in their order, so many together that a process waits for their last replies a tenth of the time.

    Never so many that one of the processes is left without.
    """
    n_wanted = min(N_ROUNDS * limits.concurrency, -(-sum(part.n_requests for part in parts) // n_processes))
    some: list[PlannedPart] = []
    for part in parts:
        if some and (part.judge_model != some[0].judge_model or sum(one.n_requests for one in some) >= n_wanted):
            yield JudgeShards(tuple(some), limits)
            some = []
        some.append(part)
    if some:
        yield JudgeShards(tuple(some), limits)


def _on_reply(run: RunContext, waiting: Waiting, heard: Heard) -> OnReply:
    def on_reply(reply: JudgeReply) -> None:  # a re-ask's is to a request that was counted with its first
        heard.hear(reply)
        run.reporter.hear_reply(reply)
        run.reporter.advance("judge", int(reply.ask_index == 0))
        waiting.replied()

    return on_reply


def _on_attempt(run: RunContext, waiting: Waiting, heard: Heard) -> OnAttempt:
    def on_attempt(answer: Answer) -> None:
        heard.hear_attempt(answer)
        run.reporter.count_attempts({answer.status.value: 1})
        run.reporter.hear_attempt(answer)
        if answer.status in RETRIES:
            waiting.failed(answer.status, answer.detail)

    return on_attempt
