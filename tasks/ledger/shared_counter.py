"""A shared counter: the quota of a run (billionths of a dollar, attempts), leased in blocks by all who take part.

The ledger holds how much of it is leased. Workers reserve from the blocks they hold, threads of one process from the same ones.
What a killed worker held counts as used. So the sum of all that is used is never above the quota, as long as nothing takes more
than was reserved for it.
"""

import asyncio
import contextlib
import threading
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import bindparam, select, update
from sqlalchemy.engine import Connection

from tasks.ledger.ledger import Ledger
from tasks.ledger.pipelining import later
from tasks.ledger.process_identity import Process
from tasks.ledger.statements import insert_where_absent
from tasks.ledger.tables import BUDGETS

BLOCKS = 50
"""A lease is this part of the whole where it can be: a killed worker holds no more than one, and what it reserved."""
POLL_S = 0.05

_IS_IT = BUDGETS.c.budget_id == bindparam("id")
_LEASED = select(BUDGETS.c.leased).where(_IS_IT)
_MORE = update(BUDGETS).where(_IS_IT).values(leased=BUDGETS.c.leased + bindparam("n"))


@dataclass(slots=True)
class ProcessShare:
    """What one process holds of one counter, for all its threads."""

    n_free: int = 0
    n_reserved: int = 0
    n_wanted: int = 0  # by all who wait
    n_users: int = 0
    waiting: "list[asyncio.Future[None]] | None" = None  # for the one who asks the ledger; None: nobody does
    lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_for_lease(self) -> "asyncio.Future[None] | None":
        """What to wait for while another one asks the ledger; None: the caller is to ask. To be called with the lock held."""
        if self.waiting is None:
            self.waiting = []
            return None
        asked = asyncio.get_running_loop().create_future()
        self.waiting.append(asked)
        return asked

    def end_lease(self) -> None:
        """Nobody asks any more: wake all who waited, those of a loop by one call. Futures of threads would be a call each."""
        with self.lock:
            waiting, self.waiting = self.waiting or [], None
        by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for asked in waiting:
            by_loop.setdefault(asked.get_loop(), []).append(asked)
        for loop, of_loop in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_wake, of_loop)


_SHARES: dict[tuple[Process, str], ProcessShare] = {}
_SHARES_LOCK = threading.Lock()


class SharedCounter:
    """One run's counter up to `most`, as one worker uses it. `share`: by default all of this process that use the id have one."""

    def __init__(
        self, ledger: Ledger, counter_id: str, most: int, share: ProcessShare | None = None, n_blocks: int = BLOCKS
    ) -> None:
        self._ledger = ledger
        self._id = counter_id
        self._most, self._block = most, most // n_blocks
        self._held_by = (ledger.machine.this_process(), counter_id)  # a forked process must not use what its parent holds
        with _SHARES_LOCK:
            self._share = share or _SHARES.setdefault(self._held_by, ProcessShare())
            self._share.n_users += 1
        self._n_reserved = 0

    async def take(self, n: int, stopping: asyncio.Event | None = None) -> bool:
        """Reserve so many. False: there is no room for them and nothing under way may make some, or `stopping` was set.

        Where attempts under way still hold some, waits for what they give back. Raises StoreError.
        """
        share = self._share
        while stopping is None or not stopping.is_set():
            with share.lock:
                if share.n_free >= n:
                    share.n_free -= n
                    share.n_reserved += n
                    self._n_reserved += n
                    return True
                asked = share.wait_for_lease()
                is_idle = share.n_reserved == 0  # as it is when the ledger is asked: what comes back meanwhile changes the sum
                share.n_wanted += n
            try:
                if asked is not None:  # polled for, hundreds who wait would take the core from whoever leases
                    await asked
                elif not await self._lease(n):
                    with share.lock:
                        if is_idle and share.n_reserved == 0 and share.n_free < n:
                            return False
                    await asyncio.sleep(POLL_S)
            finally:
                with share.lock:
                    share.n_wanted -= n
                if asked is None:
                    share.end_lease()
        return False

    def put_back(self, n_reserved: int, n_used: int) -> None:
        """Give back what was reserved, less what was used. Call it once for each reservation, whatever happened."""
        with self._share.lock:
            self._n_reserved -= n_reserved
            self._share.n_reserved -= n_reserved
            self._share.n_free += n_reserved - n_used

    async def close(self) -> None:
        """Give back what this process still holds, once nobody else of it uses the counter. What was not put back is used."""
        share = self._share
        with share.lock:  # nobody waits for it any more
            share.n_reserved -= self._n_reserved
            self._n_reserved = 0
        with _SHARES_LOCK:
            share.n_users -= 1
            if share.n_users:
                return
            if _SHARES.get(self._held_by) is share:
                del _SHARES[self._held_by]
        with share.lock:
            n_held, share.n_free = share.n_free, 0
        if n_held:
            await self._ledger.alone(partial(give_back, counter_id=self._id, n=n_held))

    async def _lease(self, n: int) -> bool:
        """Ask the ledger for what the share lacks: a block, or what all who wait want. Only one of a process asks at a time."""
        share = self._share
        with share.lock:
            n_lacking = n - share.n_free
            n_wanted = share.n_wanted - share.n_free
        if n_lacking <= 0:  # another thread gave something back
            return True
        block = max(n_wanted, self._block)
        ask = partial(lease, counter_id=self._id, most=self._most, least=n_lacking, block=block)
        n_leased = await self._ledger.alone(ask)
        with share.lock:
            share.n_free += n_leased
        return n_leased > 0


def _wake(waiting: "list[asyncio.Future[None]]") -> None:
    for asked in waiting:
        if not asked.done():  # a cancelled caller
            asked.set_result(None)


def leased(connection: Connection, counter_id: str) -> int:
    """How much of a counter is handed out: used, or held by workers (those that were killed included). 0 where there is none."""
    return int(connection.execute(_LEASED, {"id": counter_id}).scalar_one_or_none() or 0)


def lease(connection: Connection, counter_id: str, most: int, least: int, block: int) -> int:
    """Hand out `block`, or what is left if that is at least `least`, or nothing. To be run as the ledger's only writer."""
    row = {"budget_id": counter_id, "most": most, "leased": 0}
    connection.execute(insert_where_absent(connection.engine, BUDGETS), [row])
    granted = min(block, most - leased(connection, counter_id))
    if granted < max(1, least):
        return 0
    later(connection, _MORE, {"id": counter_id, "n": granted})
    return granted


def give_back(connection: Connection, counter_id: str, n: int) -> None:
    """Count so much less as handed out; below 0, more."""
    later(connection, _MORE, {"id": counter_id, "n": -n})
