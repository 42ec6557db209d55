"""What a run may use up: money, so that nothing is sent that could take it past `max_usd`, and attempts. Prices are cost.py.

Both are shared among workers by ledger/shared_counter.py, money in whole billionths of a dollar.
"""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import accumulate
from math import ceil, floor

from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.errors import ProviderError
from schemas.statuses.rows import ReplyStatus
from tasks.judge.budget.cost import output_bound
from tasks.judge.budget.prices import price_of, why_no_price
from tasks.judge.provider.exchange import Answer
from tasks.ledger.ledger import Ledger
from tasks.ledger.shared_counter import ProcessShare, SharedCounter, lease, leased

_NUSD = 1_000_000_000


class Budget:
    """One run's budget, as one worker uses it. `share`: what it shares; default: with all of this process and `budget_id`."""

    def __init__(self, ledger: Ledger, budget_id: str, max_usd: float, share: ProcessShare | None = None) -> None:
        self._counter = SharedCounter(ledger, budget_id, floor(max_usd * _NUSD), share)
        self.spent_usd = 0.0

    async def reserve(self, usd: float, stopping: asyncio.Event | None = None) -> bool:
        """Take the worst case of one attempt. False: the budget has no room for it, nothing more may be asked, or `stopping`.

        Where attempts under way still hold money, waits for what they give back. Raises StoreError.
        """
        return await self._counter.take(in_nusd(usd), stopping)

    def charge(self, reserved_usd: float, actual_usd: float) -> None:
        """Give back what was reserved for an attempt, less what it cost. Call it once for each reservation, whatever happened."""
        self.spent_usd += actual_usd
        self._counter.put_back(in_nusd(reserved_usd), in_nusd(actual_usd))

    async def close(self) -> None:
        """Give back what this process still holds, once nobody else of it uses the budget. What was never charged is spent."""
        await self._counter.close()


def reserve_first(ledger: Ledger, budget_id: str, max_usd: float, prices_usd: Sequence[float]) -> list[int]:
    """Those of these worst cases, from the first on, that the budget has room for, in billionths of a dollar.

    They count as spent until they are given back. For batches, whose replies may come after the run has ended.
    """
    each = [in_nusd(usd) for usd in prices_usd]
    needs = list(accumulate(each))
    most = floor(max_usd * _NUSD)
    for n in range(bisect_right(needs, max(0, most - _leased_nusd(ledger, budget_id))), 0, -1):
        ask = partial(lease, counter_id=budget_id, most=most, least=needs[n - 1], block=needs[n - 1])
        if needs[n - 1] == 0 or ledger.alone_now(ask):  # of nothing there is no lease
            return each[:n]
    return []


def in_nusd(usd: float) -> int:
    """In billionths of a dollar, rounded up."""
    return ceil(usd * _NUSD)


def why_not_kept(judges: Iterable[Judge], max_usd: float | None) -> str | None:
    """Why a spending limit cannot be kept, in a sentence: a judge's price, or its longest reply, is not known. None: it can."""
    if max_usd is None:
        return None
    for judge in judges:
        if judge.recorded:
            continue
        if price_of(judge) is None:
            return f"limits.max_usd = {max_usd:.12g} cannot be kept: {why_no_price(judge)}"
        if output_bound(judge) is None:
            return (
                f"limits.max_usd = {max_usd:.12g} cannot be kept: the length of a reply of {judge.id} is not limited; "
                "limit it, for instance with parameters = { max_tokens = 600 }"
            )
    return None


def leased_usd(ledger: Ledger, budget_id: str) -> float:
    """What is handed out of a budget: spent, or held by workers (those that were killed included)."""
    return _leased_nusd(ledger, budget_id) / _NUSD


def _leased_nusd(ledger: Ledger, budget_id: str) -> int:
    return ledger.read(partial(leased, counter_id=budget_id))


PER_REQUEST = 2
BESIDE = 100
BLOCKS = 10
"""Attempts are leased by so large parts of a small run: a commit for each few of them would slow it down."""
ATTEMPTS_PER_BLOCK = 64
"""Of a large run: what a killed worker had leased counts as made, and a few kills must not use up a run's attempts."""


def attempts_per_run(limits: Limits, n_requests: int) -> int:
    """The attempts a run of so many requests may make: as stated, else 2 for each request, and 100."""
    return limits.attempts_per_run or PER_REQUEST * n_requests + BESIDE


@dataclass(slots=True)
class Failures:
    """How attempts failed, and what was said last of each kind."""

    n_by_status: Counter[ReplyStatus] = field(default_factory=Counter)
    said: dict[ReplyStatus, str | None] = field(default_factory=dict)

    def count(self, answer: Answer) -> None:
        """Count one attempt without a final reply."""
        self.n_by_status[answer.status] += 1
        self.said[answer.status] = answer.detail


class Attempts:
    """The attempts of one run, shared by its shards and processes through the ledger; those of a killed worker count as made."""

    def __init__(self, ledger: Ledger, run_id: str, most: int) -> None:
        counter_id = sha256(f"attempts of {run_id}".encode()).hexdigest()
        self._counter = SharedCounter(ledger, counter_id, most, n_blocks=max(BLOCKS, most // ATTEMPTS_PER_BLOCK))
        self.most = most
        self.is_used_up = False

    async def take(self, stopping: asyncio.Event) -> bool:
        """Count an attempt that is about to be made. False where there is none left, or `stopping` was set. Raises StoreError."""
        if not await self._counter.take(1, stopping):
            self.is_used_up |= not stopping.is_set()
            return False
        self._counter.put_back(1, 1)
        return True

    def give_back(self) -> None:
        """Count one less: an attempt that never reached the provider. Else a server that starts anew uses up a whole run's."""
        self._counter.put_back(0, -1)

    async def close(self) -> None:
        """Give back what this process leased and did not use."""
        await self._counter.close()


def used_up(judge: Judge, endpoint: str, most: int, failures: Failures) -> ProviderError:
    """The error that stops a run whose attempts are used up: what failed most, and what to do."""
    first = "Find out why the provider fails, then run" if failures.n_by_status else "None of them failed in this shard: run"
    error = ProviderError(
        f"judge {judge.id} at {endpoint}: the {most:,} attempts of this run are used up{_most(failures)}. "
        f"Replies already stored are kept. {first} the same command again: it asks only what is missing, with a fresh count of "
        "attempts; or raise limits.attempts_per_run"
    )
    error.may_pass = False  # the run has no attempt left, however long it waits
    return error


def _most(failures: Failures) -> str:
    if not failures.n_by_status:
        return ""
    status, n = failures.n_by_status.most_common(1)[0]
    said = f" (its last message: {failures.said[status]})" if failures.said[status] else ""
    return f"; of {failures.n_by_status.total():,} that failed in this shard, {n:,} ended in {status.value}{said}"
