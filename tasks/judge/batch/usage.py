"""What a run's batches may cost at most, and what their replies were billed: bounds that the ledger knows, kept up to date.

Who may spend is budget.py, what a request costs cost.py. What the lines of a batch give back when they end is told from the
ledger alone, in the transaction that lets go of them: whoever was killed meanwhile, nothing is given back twice.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

from sqlalchemy import BindParameter, bindparam, select
from sqlalchemy.engine import Connection

from schemas.benchmark.judges import Judge
from schemas.statuses.rows import ReplyStatus
from tasks.judge.budget.budget import in_nusd, reserve_first
from tasks.judge.budget.cost import MAY_BE_BILLED, Costs, Estimate
from tasks.judge.budget.observed_usage import AboutKey, Observed, load_observed, store_observed
from tasks.judge.part_pictures import PartPictures
from tasks.judge.pictures import digests_of
from tasks.judge.provider.exchange import Answer
from tasks.judge.work_queue import PlannedRequests, QueuedRequest
from tasks.ledger.ledger import Ledger
from tasks.ledger.shared_counter import give_back
from tasks.ledger.tables import ATTEMPTS, BATCH_LINES, BATCHES, REPLIES

BYTES_PER_PX = 4
"""A picture that nothing was packed of, as base64: its own bytes are not at hand where its reply comes."""


@dataclass(slots=True)
class BatchUsage:
    """The costs of one judge's batches, by rubric. Replies of all batches of a run raise the bounds of what it asks later."""

    ledger: Ledger
    requests: PlannedRequests
    judge: Judge
    budget_id: str
    max_usd: float
    refused_usd: float = 0.0  # the most that one request might have cost for which there was no room
    _costs: dict[AboutKey, Costs] = field(default_factory=dict)
    _replied: dict[str, Answer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = load_observed(self.ledger)
        for part in self.requests.parts:
            rubric = self.requests.context.rubrics[part.rubric_id]
            about = (rubric.id, rubric.version, self.judge.id)
            self._costs[about] = Costs(self.judge, rubric.n_output_tokens_expected, known.get(about), is_batch=True)

    def reserve(self, queued: Sequence[QueuedRequest], pictures: PartPictures) -> list[int]:
        """The worst cases of those, from the first on, that the budget has room for, in billionths of a dollar.

        Each is given back with its line, less what the reply cost, or by `unreserve`.
        """
        worst = [self._estimate(request, pictures).worst_usd or 0.0 for request in queued]
        reserved = reserve_first(self.ledger, self.budget_id, self.max_usd, worst)
        self.refused_usd = max([self.refused_usd, *worst[len(reserved) :]])
        return reserved

    async def unreserve(self, n_nusd: int) -> None:
        """Give back what was set aside for requests that were not handed over."""
        if n_nusd:
            await self.ledger.alone(partial(give_back, counter_id=self.budget_id, n=n_nusd))

    def believed(self, answer: Answer) -> Answer:
        """The answer, without tokens where it reports more than any request can have."""
        return next(iter(self._costs.values())).believed(answer)

    def cost_usd(self, answer: Answer) -> float | None:
        """What an answer cost: a judge has one price, whatever the rubric."""
        return next(iter(self._costs.values())).cost_usd(answer)

    async def unseen(self, lost: Mapping[str, int]) -> tuple[int, float]:
        """Of lines that no reply came of, so many by request key: those that may have been billed, and how much at most.

        Infinite where nothing bounds a reply. Raises StoreError, CorruptLakeError.
        """
        n, most_usd = 0, 0.0
        has_price = next(iter(self._costs.values())).price is not None
        with closing(self.requests.blocks(lost if has_price else ())) as blocks:
            for rows, pictures in blocks:
                for request in (QueuedRequest(*row) for row in rows.iter_rows()):
                    worst_usd = self._estimate(request, pictures).worst_usd
                    if worst_usd != 0:
                        n += lost[request.request_key]
                        most_usd += inf if worst_usd is None else lost[request.request_key] * worst_usd
                await asyncio.sleep(0)  # what else runs in the loop goes on meanwhile
        return n, most_usd

    def note(self, request_key: str, answer: Answer) -> None:
        """Keep what a stored reply says that it was billed, until `learn`."""
        self._replied[request_key] = replace(answer, text=None, refusal_text=None, logprobs_json=None)

    async def learn(self) -> None:
        """Correct bounds and estimates by the replies noted, here and in the ledger. Raises StoreError, CorruptLakeError."""
        replied, self._replied = self._replied, {}
        with closing(self.requests.blocks(replied)) as blocks:
            for rows, pictures in blocks:
                for request in (QueuedRequest(*row) for row in rows.iter_rows()):
                    costs, estimate = self._costs[self._about(request)], self._estimate(request, pictures)
                    n_bytes = BYTES_PER_PX * sum(width * height for width, height in self._sizes_px(request, pictures))
                    costs.observe(estimate, costs.believed(replied[request.request_key], estimate, n_bytes))
                await asyncio.sleep(0)  # claims are renewed meanwhile
        for about, costs in self._costs.items():
            seen, costs.seen = costs.seen, Observed()
            await store_observed(self.ledger, about, seen)

    def _estimate(self, request: QueuedRequest, pictures: PartPictures) -> Estimate:
        sizes_px = [(width or None, height or None) for width, height in self._sizes_px(request, pictures)]
        return self._costs[self._about(request)].estimate(request.messages_json, request.parameters_json, sizes_px)

    def _sizes_px(self, request: QueuedRequest, pictures: PartPictures) -> list[tuple[int, int]]:
        """Width and height of its pictures, 0 where that is not known."""
        shown = map(pictures, digests_of(request.messages_json))
        return [(picture.width_px or 0, picture.height_px or 0) for picture in shown]

    def _about(self, request: QueuedRequest) -> AboutKey:
        rubric = self.requests.context.rubrics[self.requests.parts[self.requests.part_of[request.request_key]].rubric_id]
        return rubric.id, rubric.version, self.judge.id


_KEYS: BindParameter[list[str]] = bindparam("keys", expanding=True)
_REPLY = (REPLIES.c.request_key == BATCH_LINES.c.request_key) & (REPLIES.c.ask_index == BATCH_LINES.c.ask_index)
_RESERVED = (
    select(
        BATCHES.c.budget_id, BATCH_LINES.c.reserved, ATTEMPTS.c.status, REPLIES.c.cost_usd,
        REPLIES.c.status.label("reply_status"), REPLIES.c.finish_reason,
    )
    .join_from(BATCH_LINES, BATCHES, BATCHES.c.token == BATCH_LINES.c.token)
    .outerjoin(ATTEMPTS, ATTEMPTS.c.attempt_id == BATCH_LINES.c.attempt_id)
    .outerjoin(REPLIES, _REPLY)
    .where(BATCH_LINES.c.token == bindparam("of"), BATCH_LINES.c.request_key.in_(_KEYS), BATCH_LINES.c.reserved.is_not(None))
)  # fmt: skip


def give_back_reserved(connection: Connection, token: str, keys: Sequence[str]) -> None:
    """Give back what these lines hold, less what each cost. Their attempts have ended, and replies are stored."""
    for budget_id, reserved, status, cost_usd, reply_status, finish_reason in connection.execute(
        _RESERVED, {"of": token, "keys": keys}
    ).all():
        if cost_usd is not None:
            spent = in_nusd(cost_usd)
        elif reply_status is not None:  # as cost.py charges a reply that does not say what it cost
            spent = reserved if reply_status == ReplyStatus.ANSWERED or finish_reason is not None else 0
        else:
            spent = reserved if status is None or status in MAY_BE_BILLED else 0
        if spent != reserved:
            give_back(connection, budget_id, reserved - spent)
