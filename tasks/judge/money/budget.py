"""The money of a run: nothing is sent that could take it past `max_usd`. What a request may cost at most says cost.py.

The ledger holds how much of the budget is handed out. Workers lease blocks of it and reserve from what they hold; threads of one
process hold it together. What a killed worker held counts as spent. So the sum of all charges is never above the budget, as
long as no attempt costs more than was reserved for it.
"""

import asyncio
import os
import threading
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import ceil, floor

from sqlalchemy import Select, select, update
from sqlalchemy.engine import Connection

from schemas.benchmark import Judge
from schemas.errors import InputError
from tasks.judge.ledger import Ledger
from tasks.judge.ledger_tables import insert_where_absent
from tasks.judge.money.cost import output_bound
from tasks.judge.money.prices import price_of, why_no_price
from tasks.judge.money.tables import BUDGETS

BLOCKS = 50
"""A lease is at least this part of the budget where it can be: a killed worker holds no more than one, and what it reserved."""
POLL_S = 0.05
_NUSD = 1_000_000_000


@dataclass(slots=True)
class Pool:
    """What one process holds of one budget, in billionths of a dollar, for all its threads."""

    free_nusd: int = 0
    reserved_nusd: int = 0
    n_users: int = 0
    is_leasing: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


_POOLS: dict[tuple[int, str], Pool] = {}
_POOLS_LOCK = threading.Lock()


class Budget:
    """One run's budget, as one worker uses it. `pool`: what it shares; default: with all of this process and `budget_id`."""

    def __init__(self, ledger: Ledger, budget_id: str, max_usd: float, pool: Pool | None = None) -> None:
        self._ledger = ledger
        self._budget_id = budget_id
        self._max_nusd = floor(max_usd * _NUSD)
        self._held_by = (os.getpid(), budget_id)  # a forked process must not spend what its parent holds
        with _POOLS_LOCK:
            self._pool = pool or _POOLS.setdefault(self._held_by, Pool())
            self._pool.n_users += 1
        self._reserved_nusd = 0
        self.spent_usd = 0.0

    async def reserve(self, usd: float) -> bool:
        """Take the worst case of one attempt. False: the budget has no room for it, nothing more may be asked.

        Where attempts under way still hold money, waits for what they give back. Raises StoreError.
        """
        need, pool = ceil(usd * _NUSD), self._pool
        while True:
            with pool.lock:
                if pool.free_nusd >= need:
                    pool.free_nusd -= need
                    pool.reserved_nusd += need
                    self._reserved_nusd += need
                    return True
                is_mine = not pool.is_leasing
                pool.is_leasing = True
            if is_mine and not await self._lease(need):
                with pool.lock:
                    if pool.reserved_nusd == 0 and pool.free_nusd < need:
                        return False
                await asyncio.sleep(POLL_S)
            elif not is_mine:
                await asyncio.sleep(POLL_S / 10)

    def settle(self, reserved_usd: float, actual_usd: float) -> None:
        """Give back what was reserved for an attempt, less what it cost. Call it once for each reservation, whatever happened."""
        reserved, actual = ceil(reserved_usd * _NUSD), ceil(actual_usd * _NUSD)
        self.spent_usd += actual_usd
        with self._pool.lock:
            self._reserved_nusd -= reserved
            self._pool.reserved_nusd -= reserved
            self._pool.free_nusd += reserved - actual

    async def close(self) -> None:
        """Give back what this process still holds, once nobody else of it uses the budget. What was never settled is spent."""
        pool = self._pool
        with pool.lock:  # nobody waits for it any more
            pool.reserved_nusd -= self._reserved_nusd
            self._reserved_nusd = 0
        with _POOLS_LOCK:
            pool.n_users -= 1
            if pool.n_users:
                return
            if _POOLS.get(self._held_by) is pool:
                del _POOLS[self._held_by]
        with pool.lock:
            held, pool.free_nusd = pool.free_nusd, 0
        if held:
            await self._ledger.alone(partial(_give_back, budget_id=self._budget_id, nusd=held))

    async def _lease(self, need: int) -> bool:
        """Ask the ledger for what the pool lacks, a block where there is one. Only one of a process asks at a time."""
        pool = self._pool
        try:
            with pool.lock:
                lacking = need - pool.free_nusd
            if lacking <= 0:  # another thread gave something back
                return True
            block = max(lacking, self._max_nusd // BLOCKS)
            ask = partial(_lease, budget_id=self._budget_id, max_nusd=self._max_nusd, least=lacking, block=block)
            leased = await self._ledger.alone(ask)
            with pool.lock:
                pool.free_nusd += leased
            return leased > 0
        finally:
            with pool.lock:
                pool.is_leasing = False


def reserve_for_good(ledger: Ledger, budget_id: str, max_usd: float, prices_usd: Sequence[float]) -> int:
    """For how many of these worst cases, from the first on, the budget has room; they count as spent.

    For batches, whose replies may come after the run has ended.
    """
    needs = list(accumulate(ceil(usd * _NUSD) for usd in prices_usd))
    leased = ledger.read(lambda connection: connection.execute(_leased(budget_id)).scalar() or 0)
    for n in range(bisect_right(needs, floor(max_usd * _NUSD) - leased), 0, -1):
        least = needs[n - 1]
        ask = partial(_lease, budget_id=budget_id, max_nusd=floor(max_usd * _NUSD), least=least, block=least)
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
    return ledger.read(lambda connection: connection.execute(_leased(budget_id)).scalar() or 0) / _NUSD


def _leased(budget_id: str) -> Select[int]:
    return select(BUDGETS.c.leased_nusd).where(BUDGETS.c.budget_id == budget_id)


def _lease(connection: Connection, budget_id: str, max_nusd: int, least: int, block: int) -> int:
    """Hand out `block`, or what is left if that is at least `least`, or nothing."""
    row = {"budget_id": budget_id, "max_nusd": max_nusd, "leased_nusd": 0}
    connection.execute(insert_where_absent(connection.engine, BUDGETS), [row])
    mine = BUDGETS.c.budget_id == budget_id
    # the row is locked where the database has several writers
    leased = int(connection.execute(select(BUDGETS.c.leased_nusd).where(mine).with_for_update()).scalar_one())
    granted = min(block, max_nusd - leased)
    if granted < max(1, least):
        return 0
    connection.execute(update(BUDGETS).where(mine).values(leased_nusd=BUDGETS.c.leased_nusd + granted))
    return granted


def _give_back(connection: Connection, budget_id: str, nusd: int) -> None:
    mine = BUDGETS.c.budget_id == budget_id
    connection.execute(update(BUDGETS).where(mine).values(leased_nusd=BUDGETS.c.leased_nusd - nusd))
