"""How many attempts a run may make: a provider that fails again and again is not asked without end. Single asks: retries.py."""

from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256

from schemas.benchmark import Judge, Limits
from schemas.errors import ProviderError
from schemas.statuses import ReplyStatus
from tasks.judge.provider.responses import Answer
from tasks.ledger.ledger import Ledger
from tasks.ledger.shared_counter import ProcessShare, SharedCounter

PER_REQUEST = 2
BESIDE = 100
BLOCKS = 10
"""Attempts are leased by so large parts of a small run: a commit for each few of them would slow it down."""
ATTEMPTS_PER_BLOCK = 64
"""Of a large run: what a killed worker had leased counts as made, and a few kills must not use up a run's attempts."""


def attempts_per_run(limits: Limits, n_requests: int) -> int:
    """The attempts a run of so many requests may make: as stated, else 2 for each request, and 100."""
    return limits.attempts_per_run or PER_REQUEST * n_requests + BESIDE


@dataclass(slots=True)
class Failures:
    """How attempts failed, and what was said last of each kind."""

    n_by_status: Counter[ReplyStatus] = field(default_factory=Counter)
    said: dict[ReplyStatus, str | None] = field(default_factory=dict)

    def count(self, answer: Answer) -> None:
        """Count one attempt without a final reply."""
        self.n_by_status[answer.status] += 1
        self.said[answer.status] = answer.detail


class Attempts:
    """The attempts of one run, shared by its shards and processes through the ledger; those of a killed worker count as made."""

    def __init__(self, ledger: Ledger, run_id: str, most: int, share: ProcessShare | None = None) -> None:
        self._counter = SharedCounter(
            ledger, sha256(f"attempts of {run_id}".encode()).hexdigest(), most, share, max(BLOCKS, most // ATTEMPTS_PER_BLOCK)
        )
        self.most = most
        self.is_used_up = False

    async def take(self) -> bool:
        """Count an attempt that is about to be made. False where there is none left. Raises StoreError."""
        if not await self._counter.take(1):
            self.is_used_up = True
            return False
        self._counter.put_back(1, 1)
        return True

    async def close(self) -> None:
        """Give back what this process leased and did not use."""
        await self._counter.close()


def used_up(judge: Judge, endpoint: str, most: int, failures: Failures) -> ProviderError:
    """The error that stops a run whose attempts are used up: what failed most, and what to do."""
    error = ProviderError(
        f"judge {judge.model} at {endpoint}: the {most:,} attempts of this run are used up{_most(failures)}. "
        "Replies already stored are kept. See what ails the provider, then run the same command again: it asks only what is "
        "missing, with as many attempts anew; or raise limits.attempts_per_run"
    )
    error.may_pass = False  # the run has no attempt left, however long it waits
    return error


def _most(failures: Failures) -> str:
    if not failures.n_by_status:
        return " by its other shards"
    status, n = failures.n_by_status.most_common(1)[0]
    said = f" (it said last: {failures.said[status]})" if failures.said[status] else ""
    return f"; of {failures.n_by_status.total():,} that failed in this shard, {n:,} ended in {status.value}{said}"
