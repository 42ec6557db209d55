"""Chance without a die: every draw is a function of the seed, the request's content and the number of its attempt.

So concurrency and the order of arrival change nothing about who fails, how and for how long.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import cos, exp, log, sqrt, tau
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """The draws of one attempt of one item."""

    def __init__(self, seed: int, digest: bytes, attempt: int) -> None:
        self._base = b"%d\n%d\n" % (seed, attempt) + digest

    def share(self, purpose: str) -> float:
        """A number in [0, 1), another one for each purpose."""
        drawn = blake2b(self._base, digest_size=8, person=purpose.encode()).digest()
        return (int.from_bytes(drawn, "big") >> 11) / 2**53

    def between(self, purpose: str, least: float, most: float) -> float:
        """A number from `least` to `most`."""
        return least + (most - least) * self.share(purpose)

    def one_of(self, purpose: str, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[int(self.share(purpose) * len(choices))]

    def by_share(self, purpose: str, shares: Mapping[T, float]) -> T | None:
        """One of the keys with the probability of its share, else None."""
        drawn = self.share(purpose)
        for key, share in shares.items():
            drawn -= share
            if drawn < 0:
                return key
        return None

    def log_normal(self, purpose: str, median: float, sigma: float) -> float:
        """A log-normal number (Box and Muller's transform of two shares)."""
        if not sigma:
            return median
        radius = sqrt(-2 * log(1 - self.share(purpose + "/r")))
        return median * exp(sigma * radius * cos(tau * self.share(purpose + "/a")))
