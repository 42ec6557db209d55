"""What came of a batch's lines, into the ledger: replies, failures, re-asks that are owed. When it is done is state_machine.py.

Only lines of this run's plan are collected, since only it can tell whether they are to be asked once more; the others stay for
the run that knows them. Collecting twice does no harm: a reply that is stored stays, and its line is only let go.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from schemas.errors import JudgeChangedError
from schemas.records import JudgeReply
from schemas.statuses.rows import FINAL_REPLY_STATUSES, ReplyOrigin, ReplyStatus
from tasks.judge.batch.state import BatchLine, lines_of, release_lines
from tasks.judge.batch.usage import BatchUsage
from tasks.judge.budget.cost import MAY_BE_BILLED
from tasks.judge.model_pin import ModelPin
from tasks.judge.outcome import Outcome
from tasks.judge.provider.exchange import Answer, Ended, InDoubt, NotSent
from tasks.judge.retries import N_REJECTED, RETRIES
from tasks.judge.work_queue import PlannedRequests, ReaskCheck
from tasks.ledger.ledger import Ledger

LINES_AT_ONCE = 250
"""Replies that are stored in one go, before their lines are let go."""

NEVER_CAME = InDoubt("the batch ended without a reply to this request; it may have been billed")
RESULTS_LOST = InDoubt("the provider no longer has the results of a batch of this size; it may have been this one, and billed")


@dataclass(slots=True)
class _Tally:
    """Of one batch: our requests in it as it was first collected, and in which words how many were rejected since."""

    ours: set[str]
    rejections: Counter[str | None] = field(default_factory=Counter)

    @property
    def is_rejected_whole(self) -> bool:
        """Whether all of them were, in the same words: that is not about the requests."""
        return len(self.rejections) == 1 and N_REJECTED <= len(self.ours) == self.rejections.total()


@dataclass(slots=True)
class Collector:
    """Stores what came of lines, and remembers how each request of this run ended last."""

    ledger: Ledger
    requests: PlannedRequests
    judge_model: str
    pin: ModelPin
    attempts_per_request: int
    cost_of: Callable[[Answer], float | None]
    on_reply: Callable[[JudgeReply], None] | None = None
    on_sent: Callable[[int], None] | None = None  # told how many lines a batch has, once it was or may have been created
    usage: BatchUsage | None = None
    own: set[str] = field(default_factory=set)  # the tokens of batches that this run handed over, also in earlier tries
    outcome: Outcome = field(default_factory=Outcome)
    in_doubt: Counter[str] = field(default_factory=Counter)  # by request key, lines without a reply that may have been billed
    ended: dict[str, ReplyStatus] = field(default_factory=dict)
    n_tried: dict[tuple[str, int], Counter[ReplyStatus]] = field(default_factory=lambda: defaultdict(Counter))
    n_final: int = 0
    last_failure: Ended | None = None
    changed: JudgeChangedError | None = None
    rejected: set[str] = field(default_factory=set)  # of batches in which all were rejected in the same words
    rejected_with: str | None = None
    _tallies: dict[str, _Tally] = field(default_factory=dict)  # by the batch's token
    _storing: asyncio.Task[None] | None = None

    def hand_over(self, token: str, n_lines: int) -> None:
        """Count the lines of a batch that was created, or may have been: whichever run declared it, this one sent it."""
        if token not in self.own:
            self.own.add(token)
            self.outcome.n_asked += n_lines
            if self.on_sent is not None:
                self.on_sent(n_lines)

    async def finish(self) -> None:
        """Wait for what is being stored: a run that is stopped tells of no half."""
        if self._storing is not None:
            await self._storing

    def is_used_up(self, request_key: str, ask_index: int) -> bool:
        """Whether an ask has failed too often, or in a way that asking again does not mend."""
        n_tried = self.n_tried.get((request_key, ask_index))
        if n_tried is None:
            return False
        is_over = any(
            n >= RETRIES[how].n_attempts if how in RETRIES else how != ReplyStatus.NOT_ASKED for how, n in n_tried.items()
        )
        return is_over or n_tried.total() >= self.attempts_per_request

    async def collect(self, token: str, results: Iterable[tuple[str, Ended]]) -> list[BatchLine]:
        """Store what came of the batch's lines, by their custom_id; returns those of ours that nothing came of."""
        lines = await self.ledger.alone(partial(lines_of, token=token))
        ours = {line.custom_id: line for line in lines if line.request_key in self.requests.part_of}
        await self._release(token, [line.request_key for line in ours.values() if line.is_stored])
        waiting = {name: line for name, line in ours.items() if not line.is_stored}
        checks = self.requests.reask_checks([line.request_key for line in waiting.values()])
        arrived: list[tuple[BatchLine, Ended]] = []
        tally = self._tallies.setdefault(token, _Tally({line.request_key for line in ours.values()}))
        for name, ended in results:
            line = waiting.pop(name, None)  # a name that is not ours, or stands there again, is passed over
            if line is not None:
                arrived.append((line, ended))
                if ended.status == ReplyStatus.REJECTED:
                    tally.rejections[ended.detail] += 1
            if len(arrived) == LINES_AT_ONCE:
                await self._store(token, arrived, checks)
                arrived = []
        await self._store(token, arrived, checks)
        if self.usage is not None:
            await self.usage.learn()
        if tally.is_rejected_whole:
            self.rejected.update(tally.ours)
            (self.rejected_with,) = tally.rejections
        return list(waiting.values())

    async def forget_rejected(self) -> None:
        """Take back what batches rejected whole: what would have been said of each request is not known."""
        await self.ledger.forget_rejected(self.rejected)
        self.ended = {key: status for key, status in self.ended.items() if key not in self.rejected}
        self.rejected.clear()

    async def give_up(self, token: str, lines: Iterable[BatchLine], ended: NotSent | InDoubt) -> None:
        """End the attempts of lines that all failed in one way; of those whose reply is stored, only let go."""
        every = list(lines)
        listed = [line for line in every if not line.is_stored]
        await self._release(token, [line.request_key for line in every if line.is_stored])
        for start in range(0, len(listed), LINES_AT_ONCE):
            await self._store(token, [(line, ended) for line in listed[start : start + LINES_AT_ONCE]], {})

    async def give_up_whole(self, token: str, ended: NotSent | InDoubt) -> None:
        """The same of all lines of a batch."""
        await self.give_up(token, await self.ledger.alone(partial(lines_of, token=token)), ended)

    async def _store(self, token: str, arrived: Sequence[tuple[BatchLine, Ended]], checks: Mapping[str, ReaskCheck]) -> None:
        self._storing = asyncio.create_task(self._store_all(token, arrived, checks))
        await asyncio.shield(self._storing)

    async def _store_all(self, token: str, arrived: Sequence[tuple[BatchLine, Ended]], checks: Mapping[str, ReaskCheck]) -> None:
        n_before = self.outcome.n_replies
        ends = (self._end(line, ended, checks.get(line.request_key)) for line, ended in arrived)
        failed = [one for one in await asyncio.gather(*ends, return_exceptions=True) if isinstance(one, BaseException)]
        if failed:  # with none of them still on its way into the ledger: what is written next would fail with it
            raise failed[0]
        if token not in self.own:
            self.outcome.n_fetched += self.outcome.n_replies - n_before
        await self._release(token, [line.request_key for line, _ in arrived])

    async def _release(self, token: str, keys: Collection[str]) -> None:
        if keys:
            await self.ledger.alone(partial(release_lines, token=token, keys=keys))

    async def _end(self, line: BatchLine, ended: Ended, is_reask_due: ReaskCheck | None) -> None:
        """One line's end, durable when this returns."""
        self.outcome.attempts_by_status[ended.status.value] += 1
        if not isinstance(ended, Answer) or ended.status not in FINAL_REPLY_STATUSES or is_reask_due is None:
            await self.ledger.fail(line.attempt_id, ended.status, ended.detail)
            if line.request_key in self.requests.part_of:
                self.ended[line.request_key] = ended.status
                self.n_tried[line.request_key, line.ask_index][ended.status] += 1
                if ended.status in MAY_BE_BILLED:
                    self.in_doubt[line.request_key] += 1
                self.last_failure = ended
            return
        if self.usage is not None:
            ended = self.usage.believed(ended)
        reply = ended.as_reply(
            request_key=line.request_key,
            ask_index=line.ask_index,
            judge_model=self.judge_model,
            origin=ReplyOrigin.BATCH,
            n_attempts=line.n_attempts,
            cost_usd=self.cost_of(ended),
        )
        try:
            is_reasked = line.ask_index == 0 and is_reask_due(ended)
        except Exception:
            await self.ledger.finish(line.attempt_id, reply, is_reasked=False)  # paid for, whatever it says
            raise
        opened = await self.ledger.finish(line.attempt_id, reply, is_reasked=is_reasked)
        if opened is not None:
            await self.ledger.fail(opened, ReplyStatus.NOT_ASKED, "waits for the next batch")
            self.outcome.n_reasked += 1
        if self.usage is not None:
            self.usage.note(line.request_key, ended)
        self.outcome.count(reply)
        self.ended[line.request_key] = ended.status
        self.n_final += 1
        if self.on_reply is not None:
            self.on_reply(reply)
        self.changed = await self.pin.check(ended.answered_model) or self.changed
