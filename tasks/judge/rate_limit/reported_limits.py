"""What responses say of a key's limits: which of it is believed, how much a bucket holds, and the news of it for the ledger.

What a response says is a stranger's claim. What is no plausible limit a minute is not heard at all: 0, more left than the
limit, a reset that lies hours away (some providers count requests a day under the same name).
"""

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tasks.judge.provider.exchange import NOTHING_SAID, SaidLimit, SaidLimits
from tasks.judge.rate_limit.gcra import Heard, Limit
from tasks.judge.rate_limit.store import Report

log = logging.getLogger("salon.judge")
MOST_REQUESTS_PER_MINUTE = 1_000_000
MOST_TOKENS_PER_MINUTE = 10_000_000_000
LONGEST_RESET_S = 66.0
"""A minute's limit is whole again after a minute; what takes longer is a limit of another kind."""
N_TO_BELIEVE = 5
"""Responses in a row that must tell of the same bucket before its burst is used."""


@dataclass(slots=True)
class Listener:
    """Hears one kind of limit, of requests or of tokens, and works out how much a bucket holds.

    A bucket that fills evenly tells the same sum every time: what is left, and what flows in until it is full. A count
    that starts anew every minute does not: with each request its sum falls, and with each second.
    """

    most_per_minute: int
    _per_minute: int = 0
    _lowest: float = 0.0
    _highest: float = 0.0
    _n: int = 0

    def hear(self, said: SaidLimit | None) -> Heard | None:
        """The limit a response tells of; None where it tells of none that can be believed."""
        if said is None or not 1 <= said.per_minute <= self.most_per_minute:
            return None
        n_left, reset_s = said.n_left, said.reset_s
        if (n_left is not None and n_left > said.per_minute) or (reset_s is not None and reset_s > LONGEST_RESET_S):
            return None
        if n_left is None or reset_s is None:
            return Heard(said.per_minute)
        return self._with_burst(said.per_minute, n_left, reset_s)

    def _with_burst(self, per_minute: int, n_left: int, reset_s: float) -> Heard:
        holds = n_left + reset_s * per_minute / 60
        # What is left is told in whole ones, the time in milliseconds.
        slack = 2 + 0.0015 * per_minute / 60
        if holds > per_minute * 1.05 + slack:
            self._n = 0
            return Heard(per_minute, is_no_bucket=True)
        lowest, highest = min(self._lowest, holds), max(self._highest, holds)
        if per_minute != self._per_minute or not self._n or highest - lowest > slack:
            is_contradicted = self._n > 0
            self._per_minute, self._lowest, self._highest, self._n = per_minute, holds, holds, 1
            return Heard(per_minute, is_no_bucket=is_contradicted)
        self._lowest, self._highest, self._n = lowest, highest, self._n + 1
        return Heard(per_minute, int(lowest), n_left) if self._n >= N_TO_BELIEVE else Heard(per_minute)


@dataclass(slots=True)
class LimitNews:
    """Collects responses and debts until `take` makes a report of them. `has_news`: others should know at once."""

    has_news: bool = False
    _has_heard: bool = False
    _heard: list[Heard | None] = field(default_factory=lambda: [None, None])
    _n_owed: int = 0
    _listeners: tuple[Listener, Listener] = field(
        default_factory=lambda: (Listener(MOST_REQUESTS_PER_MINUTE), Listener(MOST_TOKENS_PER_MINUTE))
    )

    def hear(self, said: SaidLimits, known: tuple[Limit, Limit] | None) -> None:
        """Take in what a response says; `known` are the limits the ledger knew of."""
        is_first = known is not None and known[0].heard_us is None
        if said == NOTHING_SAID and known is not None and not is_first:
            return
        self._has_heard = True
        for index, listener in enumerate(self._listeners):
            heard = listener.hear(said[index])
            self._heard[index] = _lower(self._heard[index], heard)
            if known is not None and (is_first or _is_news(heard, known[index])):
                self.has_news = True

    def owe(self, n_tokens: int) -> None:
        """Tokens used beyond what was taken; negative: taken and not used."""
        self._n_owed += n_tokens

    def take(self, sizes: tuple[int, ...], ahead: tuple[int, ...], late_us: int = 0) -> Report:
        """All of it, together with what is asked for."""
        report = Report(sizes, ahead, self._n_owed, self._has_heard, self._heard[0], self._heard[1], late_us)
        self.has_news, self._has_heard, self._heard, self._n_owed = False, False, [None, None], 0
        return report


def _lower(before: Heard | None, now: Heard | None) -> Heard | None:
    """The lower of two limits, of two that are the same the newer: late replies still tell of a limit that was."""
    return before if before is not None and (now is None or now.per_minute > before.per_minute) else now


def _is_news(heard: Heard | None, known: Limit) -> bool:
    """A lower limit than was known, or a burst where none was."""
    if heard is None:
        return False
    if known.per_minute is None or heard.per_minute < known.per_minute:
        return True
    return heard.per_minute == known.per_minute and heard.burst is not None and known.burst is None


LEAST_TOLD_US = 5_000_000
"""A shorter pause is over before anybody wonders."""


@dataclass(slots=True)
class KeptPause:
    """Says of a pause that the ledger keeps for the key, heard by another run, process or judge: else a run is silent."""

    told_until_us: int = 0

    def tell(self, now_us: int, until_us: int, known_s: float) -> None:
        """`known_s`: of a pause that this process heard itself, which is told with the provider's words. Once a pause."""
        left_us = until_us - now_us
        if left_us < LEAST_TOLD_US or left_us <= known_s * 1e6 + LEAST_TOLD_US or now_us < self.told_until_us:
            return
        self.told_until_us = until_us
        log.warning(
            "no requests are sent for %.0f s, until %s UTC: an earlier run, another process or another judge with this key was "
            "answered 429 (rate limit) and asked for a pause, which the ledger records",
            left_us / 1e6, datetime.fromtimestamp(until_us / 1e6, UTC).strftime("%H:%M:%S"),
        )  # fmt: skip
