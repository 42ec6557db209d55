"""The arithmetic of an allowance: which requests may be sent when. No clock, no database, no waiting: they are handed in.

Each limit is kept as a theoretical arrival time (the virtual scheduling form of the generic cell rate algorithm, ITU-T
I.371): the moment at which everything granted so far has flowed in. A holder is granted requests with the moment of each.
A moment not used soon is lost, so that a killed holder costs at most what it was granted, and idle time gathers nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

SECOND_US = 1_000_000
TENTATIVE_PER_MINUTE = 600
"""Requests a minute until the first response says whether there is a limit."""
TENTATIVE_HORIZON_US = 150_000
SLOT_LIFE_US = 200_000
"""How late a granted request may still be sent. Together with JITTER_US less than a server must bear: a second's worth."""
JITTER_US = 50_000
"""How far two requests may change their distance on the way."""
WINDOW_US = 60_600_000
"""A minute of a limit that may be counted in windows: 60 s, lateness, jitter, and a little for two clocks."""
MOST_CREDIT_US = 5 * SECOND_US
"""Of a burst no more than 5 s of the rate is used at once, whatever a bucket is said to hold."""
BLOCK_US = SECOND_US // 2
LEAD_US = BLOCK_US // 2
"""How long before its last slot a holder asks for more: long enough for a slow commit, and for some more to wait by then."""
HORIZON_US = SECOND_US
"""Nothing is granted further ahead: when a limit falls or the key is paused, little has been given away."""
YIELDING_HORIZON_US = 150_000
"""How far ahead one that gives way is granted anything. While others wait they hold all of the next LEAD_US: nothing is left."""
FURTHEST_US = 130 * SECOND_US
"""No grant and no debt reaches so far ahead: a minute's worth, the largest request, lies within."""
RAISE_AFTER_US = 10 * SECOND_US
"""A higher limit counts when the lower one was not heard for so long: late replies still tell of the limit before."""
HEARD_AGAIN_US = 2 * SECOND_US


@dataclass(frozen=True, slots=True)
class Heard:
    """One limit as a response told it. `burst`: what the bucket holds, where it is known to be one; `left`: in it now."""

    per_minute: int
    burst: int | None = None
    left: int | None = None
    is_no_bucket: bool = False  # what was told before, or counted now, contradicts a bucket of that size


@dataclass(frozen=True, slots=True)
class Limit:
    """What is known of one limit, and until when it is used up. Moments are microseconds of the database's clock."""

    per_minute: int | None = None  # as the provider says
    burst: int | None = None  # what its bucket holds, where it is known to be one
    heard_us: int | None = None  # when a response last said so, or said that there is none
    used_until_us: int = 0

    def after(self, heard: Heard | None, now_us: int) -> "Limit":
        """The limit after a response. A lower one counts at once, a higher one when the lower is no longer heard."""
        if heard is None:
            return self if self.heard_us is not None else replace(self, heard_us=now_us)
        if self.per_minute is None or heard.per_minute < self.per_minute:
            return replace(self, per_minute=heard.per_minute, burst=heard.burst, heard_us=now_us)
        if heard.per_minute > self.per_minute:
            if 0 <= now_us - (self.heard_us or 0) < RAISE_AFTER_US:
                return self
            return replace(self, per_minute=heard.per_minute, burst=heard.burst, heard_us=now_us)
        burst = None if heard.is_no_bucket else heard.burst or self.burst
        is_old = not 0 <= now_us - (self.heard_us or 0) < HEARD_AGAIN_US
        heard_us = now_us if is_old or burst != self.burst else self.heard_us
        return Limit(self.per_minute, burst, heard_us, max(self.used_until_us, _least_us(heard, now_us)))

    def pace(self, given: int | None, now_us: int) -> "Pace | None":
        """How it is paced, at the lower of what is given and what was heard; None where neither is there."""
        known = [rate for rate in (given, self.per_minute) if rate is not None]
        if not known:
            return None
        is_sane = self.used_until_us - now_us <= FURTHEST_US  # else the clock was set back
        return Pace(min(known), self.burst, self.per_minute or 0, self.used_until_us if is_sane else now_us)


def _least_us(heard: Heard, now_us: int) -> int:
    """Until when a bucket is used up by what it told: it may hold less than we think.

    Then others use the key, or requests have more tokens than was estimated.
    """
    if heard.burst is None or heard.left is None:
        return 0
    return now_us + max(0, heard.burst - heard.left - 1) * 60 * SECOND_US // heard.per_minute


@dataclass(slots=True)
class Pace:
    """One limit while requests are granted."""

    per_minute: int
    burst: int | None
    server_per_minute: int
    used_until_us: int

    def span_us(self, n: int) -> int:
        """The time in which `n` flow in, rounded up."""
        minute_us = WINDOW_US if self.burst is None else 60 * SECOND_US
        return -(-n * minute_us // self.per_minute)

    def next_us(self, n: int, now_us: int) -> int:
        """The moment from which `n` may be sent."""
        return max(now_us, self.used_until_us - self._credit_us(n))

    def take(self, n: int, at_us: int) -> None:
        """Use up `n` at a moment `next_us` gave."""
        self.used_until_us = max(self.used_until_us, at_us) + self.span_us(n)

    def settle(self, n_owed: int, now_us: int) -> None:
        """Charge what was used beyond what was taken, at most a minute's worth; negative: give it back."""
        n_owed = max(-self.per_minute, min(n_owed, self.per_minute))
        settled_us = max(self.used_until_us, now_us) + self.span_us(abs(n_owed)) * (1 if n_owed >= 0 else -1)
        self.used_until_us = min(settled_us, max(self.used_until_us, now_us + FURTHEST_US // 2))

    def _credit_us(self, n: int) -> int:
        """How long before its time a request may go because the bucket holds more than it; 0 where no burst is known."""
        if self.burst is None or self.server_per_minute <= 0:
            return 0
        spare_us = (self.burst - n) * 60 * SECOND_US // self.server_per_minute
        return max(0, min(spare_us - SLOT_LIFE_US - JITTER_US, MOST_CREDIT_US))


@dataclass(frozen=True, slots=True)
class Slot:
    """A request of `n_tokens` that may be sent from `at_us` on, and until SLOT_LIFE_US later."""

    at_us: int
    n_tokens: int


def grant(
    requests: Pace | None,
    tokens: Pace | None,
    now_us: int,
    sizes: Sequence[int],
    ahead: Sequence[int] = (),
    horizon_us: int = HORIZON_US,
) -> tuple[list[Slot], int]:
    """Slots for requests of these sizes in tokens, in their order: those within a block and the horizon; and when to ask again.

    `ahead` are sizes of requests that are expected soon; they get what is free at once, and never what others wait for.
    """
    slots: list[Slot] = []
    next_us = now_us  # to ask half a horizon before the next one brings half a horizon's worth at once
    for index, size in enumerate((*sizes, *ahead)):
        n_tokens = min(size, tokens.per_minute) if tokens else size  # larger than the limit: the provider's to refuse
        at_us = now_us
        at_us = max(at_us, requests.next_us(1, now_us)) if requests else at_us
        at_us = max(at_us, tokens.next_us(n_tokens, now_us)) if tokens else at_us
        reach_us = horizon_us if index < len(sizes) else min(horizon_us, SLOT_LIFE_US)
        if at_us > now_us + reach_us or (slots and at_us > slots[0].at_us + BLOCK_US):
            next_us = at_us - reach_us // 2
            break
        if requests:
            requests.take(1, at_us)
        if tokens:
            tokens.take(n_tokens, at_us)
        slots.append(Slot(at_us, n_tokens))
        next_us = at_us - LEAD_US
    return slots, max(now_us, next_us)
