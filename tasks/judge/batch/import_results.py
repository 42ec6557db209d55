"""Results of exported requests (export.py) into the ledger: matched by custom_id, read as a batch's lines are. Nothing is sent.

Files may be of any split, in any order, and come again: what is stored stays, and a line that failed has one attempt however
often it is read.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from schemas.benchmark.judges import Judge
from schemas.errors import ProviderError, SourceError
from schemas.records import JudgeReply, PlannedPart
from schemas.statuses.rows import FINAL_REPLY_STATUSES, ReplyOrigin, ReplyStatus
from tasks.api_keys import key_named
from tasks.context import StageContext
from tasks.judge.batch.folders import BatchResults, batch_files_of
from tasks.judge.batch.state import custom_id
from tasks.judge.budget.cost import Costs
from tasks.judge.model_pin import ModelPin
from tasks.judge.outcome import Outcome, outage
from tasks.judge.provider.exchange import Answer, Ended
from tasks.judge.provider.transport import Secrets
from tasks.judge.retries import N_REJECTED
from tasks.judge.work_queue import PlannedRequests, ReaskCheck
from tasks.ledger import queries
from tasks.ledger.import_replies.importing import ImportResult
from tasks.ledger.ledger import Ledger
from tasks.ledger.statements import insert_where_absent, now_us
from tasks.ledger.tables import ATTEMPTS, REPLIES
from tasks.stopping import check_not_stopped

LINES_AT_ONCE = 2_000
"""Stored in one go. Results come in any order, and a part of the plan is read anew for each go that has lines of it."""


@dataclass(frozen=True, slots=True)
class _Line:
    """What came of an ask, and where that stands."""

    request_key: str
    ask_index: int
    judge: Judge
    ended: Ended
    place: str


@dataclass(frozen=True, slots=True)
class _Row:
    """A line as it is kept: its reply, or none where it failed; and the attempt that failed, or that is owed."""

    line: _Line
    reply: JudgeReply | None
    attempt: dict[str, Any] | None


def import_results(
    context: StageContext, ledger: Ledger, parts: Sequence[PlannedPart], results: BatchResults
) -> tuple[ImportResult, Outcome]:
    """Store every reply that answers a planned request, and open the re-asks that are due; also what the new replies were billed.

    Raises SourceError where no line answers a planned request, RejectedError where a file's lines were all rejected in the same
    words (none of that file is kept), JudgeChangedError where another model answered: earlier lines are kept.
    """
    taken = _Taking(context, ledger, PlannedRequests(context, parts))
    asyncio.run(taken.take(results.files()))
    found = taken.found
    if found.n_rows == found.n_unmatched:
        said = "; ".join(found.unmatched_examples[:3]) or "they are empty"
        raise SourceError(
            f"{results.folder}: none of {found.n_rows:,} lines answers a request of this benchmark ({said}); import with the "
            "same benchmark file and lake that the requests were exported from"
        )
    return found, taken.outcome


@dataclass(slots=True)
class _Taking:
    """One import."""

    context: StageContext
    ledger: Ledger
    requests: PlannedRequests
    found: ImportResult = field(default_factory=ImportResult)
    outcome: Outcome = field(default_factory=Outcome)
    judges: dict[str, Judge] = field(init=False)
    costs: dict[str, Costs] = field(init=False)
    pins: dict[str, ModelPin] = field(init=False)

    def __post_init__(self) -> None:
        context, parts = self.context, self.requests.parts
        self.judges = {part.judge_model: context.judge(part.judge_model) for part in parts}
        n_output = max((context.rubrics[part.rubric_id].n_output_tokens_expected for part in parts), default=0)
        self.costs = {name: Costs(judge, n_output, is_batch=True) for name, judge in self.judges.items()}
        self.pins = {name: ModelPin(self.ledger, context.ids.plan_id, judge) for name, judge in self.judges.items()}
        self.outcome.n_requests = len(self.requests.part_of)

    async def take(self, files: Iterable[Path]) -> None:
        """All files, one after the other; one that is rejected whole is told once the others are stored."""
        problem: ProviderError | None = None
        for file in files:
            problem = await self._take_file(file) or problem
        if problem is not None:
            raise problem

    async def _take_file(self, file: Path) -> ProviderError | None:
        rejected: list[_Line] = []
        n_others = 0
        lines = self._lines(file)
        while some := list(islice(lines, LINES_AT_ONCE)):
            check_not_stopped()
            others = [line for line in some if line.ended.status != ReplyStatus.REJECTED]
            rejected += [line for line in some if line.ended.status == ReplyStatus.REJECTED]
            n_others += len(others)
            await self._store(others)
        if n_others == 0 and len(rejected) >= N_REJECTED and len({line.ended.detail for line in rejected}) == 1:
            self.found.n_failed += len(rejected)
            return outage(rejected[0].judge, str(file), ReplyStatus.REJECTED, rejected[0].ended.detail)
        for start in range(0, len(rejected), LINES_AT_ONCE):
            await self._store(rejected[start : start + LINES_AT_ONCE])
        return None

    def _lines(self, file: Path) -> Iterator[_Line]:
        """The lines that answer planned requests; the others are counted and told."""
        place = file.name

        def at_line(number: int, is_result: bool) -> None:
            nonlocal place
            place = f"{file.name}, line {number}"
            self.found.n_rows += 1
            if not is_result:
                self.found.leave_out(place, "not a line of results: a JSON object with a custom_id is expected")

        read = batch_files_of(next(iter(self.judges.values()))).results
        try:
            for name, ended in read(file, self._without_secrets(), at_line):
                key, index = _ask_of(name) or (name, 0)
                part = self.requests.part_of.get(key)
                if part is None:
                    self.found.leave_out(place, f"custom_id {name[:80]!r} matches no request of this benchmark")
                    continue
                yield _Line(key, index, self.judges[self.requests.parts[part].judge_model], ended, f"{place}, {name}")
        except OSError as error:
            raise SourceError(f"{file} cannot be read: {error}") from error

    def _without_secrets(self) -> Callable[[bytes], bytes]:
        """What takes out of a line whatever this machine knows as a judge's secret."""
        every = [Secrets(key_named(judge.api_key_env), judge.base_url or "") for judge in self.judges.values()]
        return lambda line: reduce(lambda said, secrets: secrets.out_of_bytes(said), every, line)

    async def _store(self, lines: Sequence[_Line]) -> None:
        for judge, model in {(line.judge.id, line.ended.answered_model) for line in lines if isinstance(line.ended, Answer)}:
            changed = await self.pins[judge].check(model)
            if changed is not None:
                raise changed
        checks = self.requests.reask_checks({line.request_key for line in lines if line.ask_index == 0})
        rows = [self._row(line, None if line.ask_index else checks[line.request_key]) for line in lines]
        if rows:
            self._count(rows, await self.ledger.alone(partial(_stored, rows=rows)))

    def _row(self, line: _Line, is_reask_due: ReaskCheck | None) -> _Row:
        ended = line.ended
        if not isinstance(ended, Answer) or ended.status not in FINAL_REPLY_STATUSES:
            return _Row(line, None, _attempt(line, line.ask_index, ended.status, ended.detail))
        costs = self.costs[line.judge.id]
        ended = costs.believed(ended)
        cost_usd = costs.cost_usd(ended)
        reply = ended.as_reply(line.request_key, line.ask_index, line.judge.id, ReplyOrigin.BATCH, 1, cost_usd)
        is_due = is_reask_due is not None and is_reask_due(ended)
        owed = _attempt(line, 1, ReplyStatus.NOT_ASKED, "waits for the next export") if is_due else None
        return _Row(line, reply, owed)

    def _count(self, rows: Sequence[_Row], held: Sequence[str | None]) -> None:
        """`held`: the digest of what the ledger had for each row's ask before it, None where it had nothing."""
        for row, digest in zip(rows, held, strict=True):
            if row.reply is None:
                self.found.n_failed += 1
                self.outcome.attempts_by_status[row.line.ended.status.value] += 1
            elif digest is None:
                self.found.n_stored += 1
                self.found.n_reasked += row.attempt is not None
                self.outcome.count(row.reply)
            elif digest in (row.reply.sha256, ""):
                self.found.n_already_there += 1
            else:
                self.found.contradict(
                    f"{row.line.place}: the ledger already has a different reply to this request, which is kept"
                )


def _attempt(line: _Line, ask_index: int, status: ReplyStatus, detail: str | None) -> dict[str, Any]:
    """An attempt that ended so, under an id that is the same whenever the line is read."""
    said = f"{custom_id(line.request_key, ask_index)} {status} {detail}"
    return {
        "attempt_id": sha256(said.encode("utf-8", "replace")).hexdigest()[:32],
        "request_key": line.request_key,
        "ask_index": ask_index,
        "judge_model": line.judge.id,
        "status": status.value,
        "detail": None if detail is None else queries.utf8(detail),
    }


def _stored(connection: Connection, rows: Sequence[_Row]) -> list[str | None]:
    """Store what is new of these rows. Of each the digest that the ledger had for its ask before: empty where it keeps none."""
    keys = [row.line.request_key for row in rows]
    held: dict[tuple[str, int], str | None] = queries.digests(connection, keys)
    n_attempts, moment_us = queries.n_attempts(connection, keys), now_us(connection)
    before: list[str | None] = []
    replies, attempts = [], []
    for row in rows:
        ask = (row.line.request_key, row.line.ask_index)
        before.append((held[ask] or "") if ask in held else None)
        if ask in held:
            continue
        if row.attempt is not None:
            attempts.append(row.attempt | {"started_at_us": moment_us, "ended_at_us": moment_us})
        if row.reply is not None:
            held[ask] = row.reply.sha256
            n_sent = max(1, n_attempts.get(ask, 0) + 1 - ask[1])  # what is recorded of a re-ask began as owed, not sent
            replies.append(queries.received_row(row.reply) | {"n_attempts": n_sent})
    if replies:
        connection.execute(insert_where_absent(connection.engine, REPLIES), replies)  # a run may store one meanwhile, on a server
    if attempts:
        connection.execute(insert_where_absent(connection.engine, ATTEMPTS), attempts)
    return before


def _ask_of(name: str) -> tuple[str, int] | None:
    """The request key and the ask index that a custom_id stands for; None where it is none."""
    key, _, ask_index = name.rpartition("-")
    return (key, int(ask_index)) if key and ask_index in ("0", "1") else None
