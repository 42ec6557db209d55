"""The money of a run: nothing is sent that could take it past `max_usd`. What a request may cost at most says cost.py.

How it is shared among workers is ledger/shared_counter.py, in whole billionths of a dollar.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate
from math import ceil, floor

from schemas.benchmark import Judge
from schemas.errors import InputError
from tasks.judge.budget.cost import output_bound
from tasks.judge.budget.prices import price_of, why_no_price
from tasks.ledger.ledger import Ledger
from tasks.ledger.shared_counter import ProcessShare, SharedCounter, lease, leased

_NUSD = 1_000_000_000


class Budget:
    """One run's budget, as one worker uses it. `pool`: what it shares; default: with all of this process and `budget_id`."""

    def __init__(self, ledger: Ledger, budget_id: str, max_usd: float, share: ProcessShare | None = None) -> None:
        self._counter = SharedCounter(ledger, budget_id, floor(max_usd * _NUSD), share)
        self.spent_usd = 0.0

    async def reserve(self, usd: float, stopping: asyncio.Event | None = None) -> bool:
        """Take the worst case of one attempt. False: the budget has no room for it, nothing more may be asked, or `stopping`.

        Where attempts under way still hold money, waits for what they give back. Raises StoreError.
        """
        return await self._counter.take(ceil(usd * _NUSD), stopping)

    def settle(self, reserved_usd: float, actual_usd: float) -> None:
        """Give back what was reserved for an attempt, less what it cost. Call it once for each reservation, whatever happened."""
        self.spent_usd += actual_usd
        self._counter.put_back(ceil(reserved_usd * _NUSD), ceil(actual_usd * _NUSD))

    async def close(self) -> None:
        """Give back what this process still holds, once nobody else of it uses the budget. What was never settled is spent."""
        await self._counter.close()


def reserve_for_good(ledger: Ledger, budget_id: str, max_usd: float, prices_usd: Sequence[float]) -> int:
    """For how many of these worst cases, from the first on, the budget has room; they count as spent.

    For batches, whose replies may come after the run has ended.
    """
    needs = list(accumulate(ceil(usd * _NUSD) for usd in prices_usd))
    most = floor(max_usd * _NUSD)
    for n in range(bisect_right(needs, most - _leased_nusd(ledger, budget_id)), 0, -1):
        ask = partial(lease, counter_id=budget_id, most=most, least=needs[n - 1], block=needs[n - 1])
        if ledger.alone_now(ask):
            return n
    return 0


def check_max_usd(judges: Iterable[Judge], max_usd: float | None) -> None:
    """Raise InputError where a spending limit cannot be kept: a judge's price, or its longest reply, is not known."""
    if max_usd is None:
        return
    for judge in judges:
        if judge.recorded:
            continue
        if price_of(judge) is None:
            raise InputError(f"limits.max_usd = {max_usd:g} cannot be kept: {why_no_price(judge)}")
        if output_bound(judge) is None:
            raise InputError(
                f"limits.max_usd = {max_usd:g} cannot be kept: how long a reply of {judge.model} can be is not known; "
                "bound it, for instance parameters = { max_tokens = 600 }"
            )


def leased_usd(ledger: Ledger, budget_id: str) -> float:
    """What is handed out of a budget: spent, or held by workers (those that were killed included)."""
    return _leased_nusd(ledger, budget_id) / _NUSD


def _leased_nusd(ledger: Ledger, budget_id: str) -> int:
    return ledger.read(lambda connection: connection.execute(leased(budget_id)).scalar() or 0)
