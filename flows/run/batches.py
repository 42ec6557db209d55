"""Judges asked by their Batch APIs, each in a thread of its own: handed over at once, waited for together. Who is: judging.py.

And what a run says of batches that earlier runs left with providers and that it does not fetch itself.
"""

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from itertools import groupby

from flows.executors.base import Submitted, Threads
from flows.run.context import RunContext
from flows.run.record import unpublished
from flows.run.tasks import ask_by_batch
from schemas.errors import InputError, ProviderError, SalonError
from schemas.records import JudgeReply, Plan, PlannedPart
from tasks.judge.batch.out import BatchOut, batches_out
from tasks.judge.batch.run import JudgeByBatch, n_under_way
from tasks.judge.outcome import Outcome
from tasks.judge.tries import Heard
from tasks.ledger.open_ledgers import opened
from tasks.stopping import HEED_EVERY_S, check_not_stopped


@dataclass(frozen=True, slots=True)
class ByBatch:
    """One judge's parts; without `is_asking` only what earlier runs left there is fetched. `is_alone`: no other is asked."""

    parts: list[PlannedPart]
    is_asking: bool
    is_alone: bool

    @property
    def judge_model(self) -> str:
        """The judge that all parts are for."""
        return self.parts[0].judge_model

    @property
    def n_requests(self) -> int:
        """Of all parts."""
        return sum(part.n_requests for part in self.parts)


@dataclass(slots=True)
class UnderWay:
    """A judge that is being asked, and what was heard of it in all tries of its task."""

    run: RunContext
    asked: ByBatch
    leaving: threading.Event
    n_sent: int = 0
    heard: Heard = field(default_factory=Heard)
    submitted: Submitted[Outcome] = field(init=False)

    def begin(self, threads: Threads) -> None:
        """Have it asked in a thread."""
        shard = JudgeByBatch(
            tuple(self.asked.parts),
            self.run.benchmark.limits,
            on_reply=self._hear,
            on_progress=self._hear_progress,
            on_sent=self._hear_sent,
            on_look=partial(self.run.reporter.hear_from, self.asked.judge_model),
            say=self.run.reporter.say,
            is_asking=self.asked.is_asking,
            leaving=self.leaving,
        )
        self.submitted = threads.submit(ask_by_batch, self.run.stage, shard)

    def outcome(self) -> Outcome:
        """Wait for its end; what became of it, which its replies were counted of as they came. Raises what ended it."""
        ended = self.heard.in_all_tries(self.submitted.result())
        ended.n_asked = self.n_sent
        self.run.reporter.count_attempts(ended.attempts_by_status)
        found = Outcome(n_cached=ended.n_cached) if self.asked.is_asking else Outcome(n_cached=-ended.n_final)  # found once more
        self.run.reporter.hear(replace(found, n_in_doubt=ended.n_in_doubt, in_doubt_usd=ended.in_doubt_usd))
        check_not_stopped()
        return ended

    def say_what_is_left(self) -> None:
        """Say what is with the provider where it was left there."""
        try:
            n_in_flight = self.submitted.result().n_in_flight
        except ProviderError:  # what it failed of is told; its batches are worked on and billed all the same
            n_in_flight = n_under_way(self.asked.judge_model, self.run.ledger_url)
        except SalonError:
            return
        if n_in_flight:
            whose = f"the Batch API of {self.asked.judge_model}"
            self.run.reporter.say(f"{n_in_flight:,} requests are with {whose}; run the same command again to collect them")

    def _hear(self, reply: JudgeReply) -> None:
        one = Outcome()
        one.count(reply)
        self.heard.hear(reply)
        self.run.reporter.hear(one)
        if self.asked.is_asking:  # else who asks the rest online counts it among those that were stored
            self.run.reporter.advance("judge", int(reply.ask_index == 0))

    def _hear_progress(self, said: str, is_new_state: bool) -> None:
        """Show how far a batch is; into the log of the flow's run goes each batch's change of state, not each line's."""
        self.run.reporter.describe("judge", said if self.asked.is_alone else f"{self.asked.judge_model}, {said}")
        if self.run.reporter.on_word is not None and is_new_state:
            self.run.reporter.on_word(f"{self.asked.judge_model}, {said}")

    def _hear_sent(self, n: int) -> None:
        if self.run.reporter.on_word is not None:
            whose = f"the Batch API of {self.asked.judge_model}"
            self.run.reporter.on_word(f"{n:,} requests handed over to {whose}, which has a day for them")
        self.n_sent += n
        self.run.reporter.hear(Outcome(n_asked=n))


@contextmanager
def under_way(run: RunContext, asked: Sequence[ByBatch]) -> Iterator[list[UnderWay]]:
    """The judges' batches, begun; where the block ends before they do, they stay at the provider, as where a run is stopped."""
    leaving = threading.Event()
    with run.executor.beside(len(asked)) as threads:
        begun = [UnderWay(run, one, leaving) for one in asked]
        for one in begun:
            one.begin(threads)
        try:
            yield begun
        finally:
            leaving.set()
            for one in begun:
                one.say_what_is_left()


def as_they_end(batches: Sequence[UnderWay]) -> Iterator[tuple[UnderWay, int]]:
    """Each once it has ended, and how many have not."""
    waiting = list(batches)
    while waiting:
        for one in [one for one in waiting if one.submitted.done()]:
            waiting.remove(one)
            yield one, len(waiting)
        if waiting:
            time.sleep(HEED_EVERY_S)


def alone(run: RunContext, asked: ByBatch) -> Outcome:
    """One judge, to its end."""
    with under_way(run, [asked]) as (one,):
        return one.outcome()


class Failures:
    """What judges fail of while others are asked: said at once, and raised when those have ended."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._met: list[ProviderError | InputError] = []

    @contextmanager
    def of(self, has_others: bool) -> Iterator[None]:
        """Note what one judge, or those asked online, fail of; `has_others`: that some are still asked."""
        try:
            yield
        except (ProviderError, InputError) as error:
            self._met.append(error)
            if has_others or len(self._met) > 1:
                said = str(error).rstrip(".")
                self._run.reporter.say(f"{said}{'. The others are still asked; the run ends with this then' * has_others}")

    def raise_first(self) -> None:
        """Raise what was met first."""
        if self._met:
            raise self._met[0]


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
    out = list(left)
    begun = unpublished(run) if out else []
    named = [(one.judge_model, _fetched_by(begun, one.since), one) for one in out]
    for (judge, fetched_by), some in groupby(sorted(named, key=lambda one: one[:2]), key=lambda one: one[:2]):
        batches = [one for _, _, one in some]
        keys = frozenset[str]().union(*(one.keys for one in batches)).difference(own)
        if keys:
            since = min(one.since for one in batches)
            yield f"{len(keys):,} requests are with the Batch API of {judge} since {since:%Y-%m-%d %H:%M} UTC", fetched_by


def _fetched_by(begun: Sequence[tuple[datetime, str, date]], handed_over: datetime) -> str:
    found = max((one for one in begun if one[0] <= handed_over), default=None)
    if found is None:  # a ledger may be several benchmarks'
        return "the command that handed them over, of whichever benchmark, fetches them"
    _, command, run_date = found
    if command == "nightly":
        return f"`salon nightly FILE --run-date {run_date}` fetches them"
    return f"`salon {command} FILE`{' of the same checkpoints' * (command == 'backfill')} fetches them"
