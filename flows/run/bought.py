"""What the ledger has of plans' requests: what was bought since a moment, each counted once. What is complete: complete.py."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from math import inf

import numpy as np
import numpy.typing as npt
import polars as pl

from flows.run.context import RunContext
from schemas.records import PlannedPart
from schemas.statuses.rows import ReplyStatus
from schemas.tables.stored import REQUESTS
from tasks.context import StageContext
from tasks.judge.budget.prices import price_of
from tasks.judge.outcome import Outcome
from tasks.ledger.open_ledgers import opened
from tasks.ledger.spent import bought_since, sent_since


def asked_parts(context: StageContext, parts: Sequence[PlannedPart]) -> list[PlannedPart]:
    """Those with requests to a judge that is asked."""
    return [part for part in parts if part.n_requests and not context.judge(part.judge_model).recorded]


@dataclass(slots=True)
class RequestsMet:
    """The request keys of the plans so far, hashed: 8 bytes each."""

    _seen: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def __len__(self) -> int:
        return len(self._seen)

    def meet(self, keys: pl.Series) -> npt.NDArray[np.bool_]:
        """Which of these distinct keys are met for the first time; all of them are met now."""
        hashes = keys.hash().to_numpy()
        are_new = ~np.isin(hashes, self._seen)
        self._seen = np.union1d(self._seen, hashes)
        return are_new

    def has(self, keys: pl.Series) -> npt.NDArray[np.bool_]:
        """Which of these keys were met."""
        return np.isin(keys.hash().to_numpy(), self._seen)

    def shared_by(self, run: RunContext, parts: Sequence[PlannedPart]) -> dict[tuple[str, str], int]:
        """By (rubric, judge), how many of these requests are left to ask and were met before; all of them are met now."""
        found = Counter[tuple[str, str]]()
        with opened(run.ledger_url) as ledger:
            for part in asked_parts(run, parts):
                keys = run.request_keys(part).unique()
                if len(again := keys.filter(~self.meet(keys))):
                    found[part.rubric_id, part.judge_model] += ledger.n_left(again)
        return dict(found)

    def n_left_first(self, run: RunContext, parts: Sequence[PlannedPart]) -> int:
        """How many of these requests are left to ask and were not met before; all of them are met now."""
        n_left = 0
        with opened(run.ledger_url) as ledger:
            for part in asked_parts(run, parts):
                keys = run.request_keys(part).unique()
                n_left += ledger.n_left(keys.filter(self.meet(keys)))
        return n_left


@dataclass(frozen=True, slots=True)
class Bought:
    """What came of some plans' requests. `last_heard_at`: when the last reply came, or the moment that is counted from."""

    outcome: Outcome
    last_heard_at: datetime


def bought_of(
    run: RunContext, since: datetime, plan_ids: Sequence[str], judges: Sequence[str] | None = None, within: str | None = None
) -> Bought:
    """What the ledger holds of these plans' requests, and how much of it came since a moment.

    `judges`: those that were asked, by the names that tables have; default: those of the file. `within`: only of requests that
    this plan has too.

    What other runs bought of the same requests meanwhile is in it. A plan that the lake does not hold any more adds nothing.
    """
    judges = [judge.id for judge in run.benchmark.asked_judges] if judges is None else judges
    requests = _requests(run, plan_ids, judges)
    if within is not None:
        shared = RequestsMet()
        for _, keys in _requests(run, [within], judges):
            shared.meet(keys)
        requests = ((judge_model, keys.filter(shared.has(keys))) for judge_model, keys in requests)
    return _bought(run, since, requests)


def with_what_was_lost(run: RunContext, told: Outcome, since: datetime, parts: Sequence[PlannedPart]) -> Outcome:
    """What became of these parts, of which `told` is what came back: with what workers bought whose process died, or failed.

    `since`: when their asking began. What another run bought of the same requests since is in it. Rows have the time of who
    asked: those of a worker whose clock is behind may not be found, so it is never less than what came back.
    """
    keys = ((part.judge_model, run.request_keys(part).unique()) for part in parts)
    bought = _bought(run, since, keys).outcome
    n_lost = max(0, bought.n_replies - told.n_final)  # requests that whoever asked next found stored
    costs = [usd for usd in (told.cost_usd, bought.cost_usd) if usd is not None]
    return replace(
        told,
        n_cached=max(0, told.n_cached - n_lost),
        n_asked=max(told.n_asked, bought.n_asked),
        n_replies=told.n_replies + n_lost,
        n_input_tokens=max(told.n_input_tokens, bought.n_input_tokens),
        n_output_tokens=max(told.n_output_tokens, bought.n_output_tokens),
        cost_usd=max(costs, default=None),
        n_without_cost=max(told.n_without_cost, bought.n_without_cost),
        n_in_doubt=max(told.n_in_doubt, bought.n_in_doubt),
        in_doubt_usd=told.in_doubt_usd if bought.n_in_doubt <= told.n_in_doubt else bought.in_doubt_usd,
        n_by_status=told.n_by_status + Counter({ReplyStatus.ANSWERED.value: n_lost}),
    )


def _bought(run: RunContext, since: datetime, requests: Iterable[tuple[str, pl.Series]]) -> Bought:
    """`requests`: judge and distinct request keys."""
    last_us = since_us = round(since.timestamp() * 1e6)
    found, met = Outcome(), RequestsMet()
    free = {judge.id for judge in run.benchmark.judges if not ((price := price_of(judge)) and price.usd(1, 0, 1))}
    with opened(run.ledger_url) as ledger:
        for judge_model, of_judge in requests:
            keys = of_judge.filter(met.meet(of_judge)).to_list()
            n_sent, n_in_doubt = ledger.read(partial(sent_since, keys=keys, since_us=since_us))
            found.n_asked += n_sent
            found.n_in_doubt += 0 if judge_model in free else n_in_doubt
            n_new = 0
            for row in ledger.read(partial(bought_since, keys=keys, since_us=since_us)):
                n, n_input, n_output, cost_usd, n_without, heard_us = row
                n_new += n
                found.n_replies += n
                found.n_without_cost += n_without
                found.n_input_tokens += int(n_input or 0)
                found.n_output_tokens += int(n_output or 0)
                found.cost_usd = found.cost_usd if cost_usd is None else (found.cost_usd or 0.0) + cost_usd
                last_us = max(last_us, heard_us or 0)
            found.n_cached += max(0, len(ledger.known(keys)) - n_new)
    found.n_requests = len(met)
    found.in_doubt_usd = inf if found.n_in_doubt else 0.0  # what was in flight had its worst case in the process that is gone
    found.n_by_status = Counter({ReplyStatus.ANSWERED.value: found.n_replies})
    return Bought(found, datetime.fromtimestamp(last_us / 1e6, UTC))


def _requests(run: RunContext, plan_ids: Sequence[str], judges: Sequence[str]) -> Iterator[tuple[str, pl.Series]]:
    """Judge and distinct request keys, some parts of a plan at a time."""
    for plan_id in plan_ids:
        if not run.lake.is_complete(REQUESTS, plan_id):
            continue
        for scan in run.lake.scans(REQUESTS, plan_id):
            mine = scan.filter(pl.col("judge_model").is_in(judges)).select("judge_model", "request_key").collect()
            for (judge_model,), rows in mine.group_by("judge_model", maintain_order=True):
                yield str(judge_model), rows["request_key"].unique(maintain_order=True)
