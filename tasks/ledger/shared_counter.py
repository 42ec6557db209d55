"""A number that a run may use up, shared by all who take part: billionths of a dollar, or attempts. What it buys is elsewhere.

The ledger holds how much of it is handed out. Workers lease blocks of it and reserve from what they hold; threads of one process
hold it together. What a killed worker held counts as used. So the sum of all that is used is never above the number, as long as
nothing takes more than was reserved for it.
"""

import asyncio
import os
import threading
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Select, Update, select, update
from sqlalchemy.engine import Connection

from tasks.ledger.ledger import Ledger
from tasks.ledger.pipelining import later
from tasks.ledger.tables import BUDGETS, insert_where_absent

BLOCKS = 50
"""A lease is this part of the whole where it can be: a killed worker holds no more than one, and what it reserved."""
POLL_S = 0.05


@dataclass(slots=True)
class Pool:
    """What one process holds of one purse, for all its threads."""

    n_free: int = 0
    n_reserved: int = 0
    n_users: int = 0
    is_leasing: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


_POOLS: dict[tuple[int, str], Pool] = {}
_POOLS_LOCK = threading.Lock()


class Purse:
    """One run's purse of `most`, as one worker uses it. `pool`: what it shares; default: with all of this process and the id."""

    def __init__(self, ledger: Ledger, purse_id: str, most: int, pool: Pool | None = None, n_blocks: int = BLOCKS) -> None:
        self._ledger = ledger
        self._id = purse_id
        self._most, self._block = most, most // n_blocks
        self._held_by = (os.getpid(), purse_id)  # a forked process must not use what its parent holds
        with _POOLS_LOCK:
            self._pool = pool or _POOLS.setdefault(self._held_by, Pool())
            self._pool.n_users += 1
        self._n_reserved = 0

    async def take(self, n: int, stopping: asyncio.Event | None = None) -> bool:
        """Reserve so many. False: there is no room for them and nothing under way may make some, or `stopping` was set.

        Where attempts under way still hold some, waits for what they give back. Raises StoreError.
        """
        pool = self._pool
        while stopping is None or not stopping.is_set():
            with pool.lock:
                if pool.n_free >= n:
                    pool.n_free -= n
                    pool.n_reserved += n
                    self._n_reserved += n
                    return True
                is_mine = not pool.is_leasing
                pool.is_leasing = True
                is_idle = pool.n_reserved == 0  # as it is when the ledger is asked: what comes back meanwhile changes the sum
            if is_mine and not await self._lease(n):
                with pool.lock:
                    if is_idle and pool.n_reserved == 0 and pool.n_free < n:
                        return False
                await asyncio.sleep(POLL_S)
            elif not is_mine:
                await asyncio.sleep(POLL_S / 10)
        return False

    def put_back(self, n_reserved: int, n_used: int) -> None:
        """Give back what was reserved, less what was used. Call it once for each reservation, whatever happened."""
        with self._pool.lock:
            self._n_reserved -= n_reserved
            self._pool.n_reserved -= n_reserved
            self._pool.n_free += n_reserved - n_used

    async def close(self) -> None:
        """Give back what this process still holds, once nobody else of it uses the purse. What was not put back is used."""
        pool = self._pool
        with pool.lock:  # nobody waits for it any more
            pool.n_reserved -= self._n_reserved
            self._n_reserved = 0
        with _POOLS_LOCK:
            pool.n_users -= 1
            if pool.n_users:
                return
            if _POOLS.get(self._held_by) is pool:
                del _POOLS[self._held_by]
        with pool.lock:
            n_held, pool.n_free = pool.n_free, 0
        if n_held:
            await self._ledger.alone(partial(_give_back, purse_id=self._id, n=n_held))

    async def _lease(self, n: int) -> bool:
        """Ask the ledger for what the pool lacks, a block where there is one. Only one of a process asks at a time."""
        pool = self._pool
        try:
            with pool.lock:
                n_lacking = n - pool.n_free
            if n_lacking <= 0:  # another thread gave something back
                return True
            block = max(n_lacking, self._block)
            ask = partial(lease, purse_id=self._id, most=self._most, least=n_lacking, block=block)
            n_leased = await self._ledger.alone(ask)
            with pool.lock:
                pool.n_free += n_leased
            return n_leased > 0
        finally:
            with pool.lock:
                pool.is_leasing = False


def leased(purse_id: str) -> Select[tuple[int]]:
    """How much of a purse is handed out: used, or held by workers (those that were killed included)."""
    return select(BUDGETS.c.leased).where(BUDGETS.c.budget_id == purse_id)


def lease(connection: Connection, purse_id: str, most: int, least: int, block: int) -> int:
    """Hand out `block`, or what is left if that is at least `least`, or nothing. To be run as the ledger's only writer."""
    row = {"budget_id": purse_id, "most": most, "leased": 0}
    connection.execute(insert_where_absent(connection.engine, BUDGETS), [row])
    granted = min(block, most - int(connection.execute(leased(purse_id)).scalar_one()))
    if granted < max(1, least):
        return 0
    later(connection, _more(purse_id, granted))
    return granted


def _give_back(connection: Connection, purse_id: str, n: int) -> None:
    later(connection, _more(purse_id, -n))


def _more(purse_id: str, n: int) -> Update:
    return update(BUDGETS).where(BUDGETS.c.budget_id == purse_id).values(leased=BUDGETS.c.leased + n)
