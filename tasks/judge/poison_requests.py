"""Poison requests: those of a shard that fail on the provider's side since its last word, and which of them tell of the provider.

A request that it alone cannot bear fails in every run, and would keep each from its end. Whether an error is the request's or the
provider's is not in it: how many fail, for how long, and whether anything else is answered, is all there is to go by.
"""

from dataclasses import dataclass, field

from schemas.statuses.rows import ReplyStatus

A_FEW = 0.2
"""The share of a shard's requests that may be those a provider cannot bear; where more fail, a table without them says little."""
LONG_S = 86_400.0
"""No outage that is waited for lasts so long: whatever fails in three runs over a day may be published as failed."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The attempts for a request that earlier runs made, and how long ago the first was, where they are many."""

    n: int = 0
    for_s: float = 0.0


@dataclass(slots=True)
class Failing:
    """`n_requests`: of the whole shard. `n_least`: fewer words than so many say nothing."""

    n_requests: int = 0
    n_least: int = 8
    _n_words: int = 0
    _n_words_before: dict[str, int] = field(default_factory=dict)  # each request's first failure
    _statuses: dict[str, ReplyStatus] = field(default_factory=dict)
    _in_vain: set[str] = field(default_factory=set)

    def add(self, request_key: str, status: ReplyStatus, earlier: Tried, n_in_vain: int) -> bool:
        """One more failed attempt; whether it may tell of the provider. After `n_in_vain` attempts a request may be the cause."""
        is_in_vain = earlier.n >= n_in_vain
        if is_in_vain and earlier.for_s >= LONG_S:
            return False
        self._statuses[request_key] = status
        self._n_words_before.setdefault(request_key, self._n_words)
        if is_in_vain:
            self._in_vain.add(request_key)
        return True

    def clear(self) -> None:
        """The provider said a word about a request."""
        self._n_words += 1
        self._statuses.clear()
        self._in_vain.clear()

    @property
    def telling(self) -> list[ReplyStatus]:
        """How those failed last that tell of the provider: a few that were tried in vain before may be the cause themselves."""
        beside = {key for key in self._statuses if self._is_beside(key)}
        if self.is_few(len(self._in_vain)):
            beside |= self._in_vain
        return [status for key, status in self._statuses.items() if key not in beside]

    def _is_beside(self, request_key: str) -> bool:
        """Whether the provider answered others since it failed this one first, and more of them than fail now: it was there."""
        return self._n_words - self._n_words_before[request_key] >= max(self.n_least, len(self._statuses))

    def is_few(self, n: int) -> bool:
        """Whether so many of the shard's requests may be those that the provider cannot bear."""
        return n <= A_FEW * self.n_requests
