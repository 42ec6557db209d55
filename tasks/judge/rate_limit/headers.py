"""What x-ratelimit headers say of a key's limits: how many a minute, and how much its bucket holds. No pacing here.

A header is a stranger's claim. What is no plausible limit a minute is not heard at all: text, 0, more left than the limit,
a reset that lies hours away (some providers count requests a day under the same name).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_PER_MINUTE = {"requests": 1_000_000, "tokens": 10_000_000_000}
LONGEST_RESET_S = 66.0
"""A minute's limit is whole again after a minute; what takes longer is a limit of another kind."""
N_TO_BELIEVE = 5
"""Responses in a row that must tell of the same bucket before its burst is used."""

_NUMBER = re.compile(r" *[0-9]{1,15}(\.[0-9]{1,9})? *")
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(h|ms|m|s|us|µs|ns)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


@dataclass(frozen=True, slots=True)
class Heard:
    """One limit as a response told it. `burst`: what the bucket holds, where it is known to be one; `left`: in it now."""

    per_minute: int
    burst: int | None = None
    left: int | None = None
    is_no_bucket: bool = False  # what was told before, or counted now, contradicts a bucket of that size


@dataclass(slots=True)
class Listener:
    """Hears one kind of limit, "requests" or "tokens", and works out how much a bucket holds.

    A bucket that fills evenly tells the same sum every time: what is left, and what flows in until it is full. A count
    that starts anew every minute does not: with each request its sum falls, and with each second.
    """

    kind: str
    _per_minute: int = 0
    _lowest: float = 0.0
    _highest: float = 0.0
    _n: int = 0
    _names: tuple[str, str, str] = field(init=False)

    def __post_init__(self) -> None:
        start = "x-ratelimit"
        self._names = (f"{start}-limit-{self.kind}", f"{start}-remaining-{self.kind}", f"{start}-reset-{self.kind}")

    def hear(self, headers: Mapping[str, str]) -> Heard | None:
        """The limit these headers tell of; None where they tell of none that can be believed."""
        limit, left, reset = self._names
        per_minute = count(headers.get(limit))
        if per_minute is None or not 1 <= per_minute <= MOST_PER_MINUTE[self.kind]:
            return None
        n_left, reset_s = count(headers.get(left)), span_s(headers.get(reset))
        if (n_left is not None and n_left > per_minute) or (reset_s is not None and reset_s > LONGEST_RESET_S):
            return None
        if n_left is None or reset_s is None:
            return Heard(per_minute)
        return self._with_burst(per_minute, n_left, reset_s)

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


def count(text: str | None) -> int | None:
    """A number of requests or tokens; None for anything else, such as a sign, a list, a word, or more than 15 digits."""
    return int(float(text)) if text is not None and _NUMBER.fullmatch(text) else None


def span_s(text: str | None) -> float | None:
    """Seconds of a span such as 20ms, 1s, 6m0s or 1h2m3.5s, or of a bare number; None for anything else."""
    text = (text or "").strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    total_s, end = 0.0, 0
    while part := _SPAN.match(text, end):
        total_s += float(part[1]) * _SECONDS[part[2]]
        end = part.end()
    return total_s if text and end == len(text) else None
