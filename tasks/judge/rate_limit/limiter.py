"""When a request may be sent: the limits of one key, shared by every process that uses the ledger.

What is granted is worked out in gcra.py and kept by store.py; here the callers of one event loop
wait for it. Nothing is ever released: what a holder was granted and does not send is lost, at most half a second's worth.
"""

import asyncio
from collections import deque
from functools import partial

from sqlalchemy.engine import Connection

from tasks.judge.provider.exchange import SaidLimits
from tasks.judge.rate_limit import store
from tasks.judge.rate_limit.gcra import BLOCK_US, SLOT_LIFE_US
from tasks.judge.rate_limit.reported_limits import KeptPause, LimitNews
from tasks.judge.rate_limit.store import LONGEST_PAUSE_US, Clock, Lease, Report
from tasks.judge.rate_limit.waiters import SPREAD_S, Waiters, gives_way
from tasks.ledger.ledger import Ledger
from tasks.ledger.statements import now_us

POLL_S = 0.2
"""How often a holder that is sending looks for what others heard: a pause, another limit."""
SWEEP_S = 0.1
TICK_S = 0.005
"""At hundreds of requests a second some go together: a timer for each would cost more than all the rest."""
MOST_LATER_S = 2.0
"""A hundred holders that all come back for the same few requests ask the ledger sixty times for each."""
MOST_LATER_YIELDING_S = 0.25
"""One that gives way is refused for as long as others wait, and is to be there when they no longer do."""
SLOT_LIFE_S = SLOT_LIFE_US / 1e6
MOST_LATE_S = 30.0
"""A holder that learns of its grants later than this is granted nothing it can use: its ledger is as good as away."""
MOST_ASKED_FOR = 1_000


class RateLimiter:
    """The rate limiter of one key for the callers of one event loop. A limit that is None is learned from what responses say.

    Where neither the user nor the provider names a limit nothing is paced, and the ledger is only read, every POLL_S.
    """

    def __init__(
        self,
        ledger: Ledger,
        limiter_id: str,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        clock: Clock = now_us,
    ) -> None:
        self._ledger, self.id, self._clock = ledger, limiter_id, clock
        self.uniform = ledger.machine.uniform
        self._given = (requests_per_minute, tokens_per_minute)
        self._gives_way = gives_way()
        self._waiters = Waiters(self.uniform)
        self._slots: deque[tuple[float, int]] = deque()  # (moment of the loop's clock, tokens)
        self._news, self._kept = LimitNews(), KeptPause()
        self._lease: Lease | None = None
        self._synced_s = self._ask_at_s = self._swept_s = self._paused_until_s = self._go_on_s = float("-inf")
        self._late_s: deque[float] = deque(maxlen=2)
        self._n_refused = 0
        self._syncing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, n_tokens: int, stopping: asyncio.Event) -> None:
        """Return when one request of `n_tokens` (its input and the most it may be answered with) may be sent, or on `stopping`.

        Raises StoreError where the ledger cannot be used.
        """
        if stopping.is_set():
            return
        now_s = asyncio.get_running_loop().time()
        if self._is_open and not self._waiters and now_s >= self._go_on_s and now_s - self._synced_s < POLL_S:
            return
        is_asking = self._syncing is not None or now_s < self._ask_at_s
        is_seen_to = len(self._waiters) > 0 and self._timer is not None and is_asking
        may_go = self._waiters.join(n_tokens, stopping)
        if not is_seen_to:  # else the timer of those before it is its own
            self._turn()
        await may_go

    @property
    def paused_s(self) -> float:
        """Seconds until the key's pause is over, 0 where there is none. Worth a look right before sending."""
        return max(0.0, self._paused_until_s - asyncio.get_running_loop().time())

    async def pause(self, seconds: float) -> None:
        """A 429: nobody on this key sends before this time is over; at most 300 s. Others know within POLL_S and a commit."""
        if not seconds > 0:
            return
        seconds = min(seconds, LONGEST_PAUSE_US / 1e6)
        self._hold(asyncio.get_running_loop().time() + seconds)
        await self._ledger.alone(lambda connection: store.pause(connection, self.id, seconds, self._clock))

    def hear(self, said: SaidLimits) -> None:
        """Take in what a response says of the limits. Nothing said means that there is none: so only for a completion."""
        self._news.hear(said, self._lease.limits if self._lease else None)
        if self._news.has_news:
            self._turn()

    def correct(self, n_tokens_reserved: int, n_tokens_used: int) -> None:
        """Charge, or give back, the difference between what was reserved and what the provider counted.

        Providers count input and max_tokens when a request is sent and give nothing back for an answer that was shorter:
        `n_tokens_used` is the reported input plus max_tokens, or 0 where the request never left.
        """
        self._news.owe(n_tokens_used - n_tokens_reserved)

    @property
    def _is_open(self) -> bool:
        return self._lease is not None and self._lease.is_open

    def _hold(self, until_s: float) -> None:
        if until_s > self._paused_until_s + 0.05:  # else the same pause, told by the ledger
            self._paused_until_s = until_s
            self._go_on_s = until_s + self.uniform(0, SPREAD_S)

    def _turn(self) -> None:
        """Let go whom may go, ask for more where it is time, and say when to look again. Called on every occasion."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._swept_s >= SWEEP_S:
            self._swept_s = now_s
            self._waiters.sweep()
        if self._waiters and now_s >= self._paused_until_s:
            if not self._is_open:
                self._let_go_by_slots(now_s)
            elif now_s - self._synced_s < POLL_S * 2:  # else there may be a pause that was not heard of
                self._waiters.let_all_go(now_s - self._paused_until_s)
        # Who may not send need not hear of a pause.
        may_send = (bool(self._slots) or self._is_open) and now_s >= self._paused_until_s
        is_due = may_send and now_s - self._synced_s >= POLL_S
        is_due |= len(self._waiters) > len(self._slots) and not self._is_open and now_s >= self._ask_at_s
        if self._syncing is None and (self._news.has_news or is_due):
            self._syncing = asyncio.create_task(self._sync())
        self._set_timer(now_s)

    def _let_go_by_slots(self, now_s: float) -> None:
        while self._slots and self._slots[0][0] + SLOT_LIFE_S < now_s:
            self._slots.popleft()
        most = (self._lease and self._lease.rates[1]) or 0
        while self._slots and now_s >= max(self._go_on_s, self._slots[0][0]):
            n_tokens = self._waiters.let_first_go()
            if n_tokens is None:
                return
            n_taken = self._slots.popleft()[1]
            self._news.owe(min(n_tokens, most) - n_taken if most else 0)

    def _set_timer(self, now_s: float) -> None:
        if not self._waiters:
            return
        moments = [now_s + SWEEP_S]
        if self._slots:
            moments.append(max(self._slots[0][0], self._go_on_s))
        if self._ask_at_s > now_s:
            moments.append(self._ask_at_s)
        if self._is_open:
            moments.append(max(self._paused_until_s, now_s + SPREAD_S / 16))
        at_s = max(min(moments), now_s + TICK_S)
        if self._timer is not None:
            if self._timer.when() <= at_s:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(at_s, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._turn()

    async def _sync(self) -> None:
        """Tell the ledger what was heard and is owed, and learn what may be sent. A failure is every caller's."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        n_gone, n_tokens_gone = self._waiters.take_count()
        n_ahead = min(MOST_ASKED_FOR, int(n_gone / max(now_s - self._synced_s, 0.05) * SLOT_LIFE_S))
        ahead = (n_tokens_gone // n_gone,) * n_ahead if n_ahead else ()
        report = self._news.take(self._waiters.sizes(len(self._slots), MOST_ASKED_FOR), ahead, self._late_us())
        try:
            is_only_looked_at = self._is_open and not report.has_heard
            found = await self._ledger.look(partial(self._look, loop=loop)) if is_only_looked_at else None
            if found is None:
                # A crash that undoes the last moments' grants costs as many requests as were granted in them.
                found = await self._ledger.alone(partial(self._exchange, report=report, loop=loop), is_lasting=False)
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait
            self._waiters.fail(error)
            self._syncing = None
            return
        self._syncing = None
        self._adopt(*found)
        self._turn()

    def _exchange(self, connection: Connection, report: Report, loop: asyncio.AbstractEventLoop) -> tuple[Lease, float]:
        """The lease, and what to add to the database's seconds to get the loop's."""
        offsets_s: list[float] = []
        clock = self._compared(loop, offsets_s)
        lease = store.exchange(connection, self.id, self._given, report, clock, gives_way=self._gives_way)
        return lease, offsets_s[0]

    def _look(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> tuple[Lease, float] | None:
        """The same of a key without limits; None where it is no longer one."""
        offsets_s: list[float] = []
        lease = store.look(connection, self.id, self._given, self._compared(loop, offsets_s))
        return None if lease is None else (lease, offsets_s[0])

    def _compared(self, loop: asyncio.AbstractEventLoop, offsets_s: list[float]) -> Clock:
        """The clock, and what the loop's is ahead of it: both are read at one moment."""

        def clock(connection: Connection) -> int:
            before_s = loop.time()
            moment_us = self._clock(connection)
            offsets_s.append((before_s + loop.time()) / 2 - moment_us / 1e6)
            return moment_us

        return clock

    def _adopt(self, lease: Lease, offset_s: float) -> None:
        """Go by a new lease. What was granted at a higher rate than now is let go of."""
        was = self._lease.rates if self._lease else lease.rates
        if any(new is not None and (old is None or new < old) for new, old in zip(lease.rates, was, strict=True)):
            self._slots.clear()
        self._slots.extend((slot.at_us / 1e6 + offset_s, slot.n_tokens) for slot in lease.slots)
        self._lease = lease
        self._synced_s = asyncio.get_running_loop().time()
        self._late_s.append(self._synced_s - lease.now_us / 1e6 - offset_s)
        is_refused = not lease.slots and not lease.is_open and lease.paused_until_us <= lease.now_us
        self._n_refused = self._n_refused + 1 if is_refused else 0
        self._ask_at_s = lease.next_us / 1e6 + offset_s + self._later_s()
        if lease.paused_until_us > lease.now_us:
            self._kept.tell(lease.now_us, lease.paused_until_us, self.paused_s)
            self._hold(lease.paused_until_us / 1e6 + offset_s)

    def _late_us(self) -> int:
        """How old an answer of the ledger will be when it is here; 0 where a granted request has not lost half its life by then.

        Without it a holder whose ledger is further away than SLOT_LIFE_S would ask for ever, and find all it is granted too old.
        The lesser of the last two: one slow commit reserves no time that nobody then uses.
        """
        late_s = min(self._late_s, default=0.0)
        return int(min(late_s, MOST_LATE_S) * 1e6) if late_s > SLOT_LIFE_S / 2 else 0

    def _later_s(self) -> float:
        """How much later than it might a holder asks that was given nothing several times in a row: others do meanwhile."""
        if self._n_refused < 2:
            return 0.0
        most_s = MOST_LATER_YIELDING_S if self._gives_way else MOST_LATER_S
        return self.uniform(0, min(most_s, BLOCK_US / 1e6 * 2.0 ** min(self._n_refused - 2, 30)))
