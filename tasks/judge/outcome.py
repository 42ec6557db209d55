"""What became of a shard, and of shards taken together. How it comes about is engine.py."""

from collections import Counter
from dataclasses import dataclass, field, fields

from schemas.records import JudgeReply


@dataclass(slots=True)
class Outcome:
    """Counts of a shard, or a sum of them. `n_by_status` counts, by ReplyStatus, the requests that were asked in this run."""

    n_requests: int = 0
    n_cached: int = 0  # answered before, or by another process meanwhile
    n_asked: int = 0  # attempts sent, retries and re-asks included
    n_answered: int = 0
    n_reasked: int = 0
    n_input_tokens: int = 0  # of the replies that say
    n_output_tokens: int = 0
    cost_usd: float | None = None  # of the replies whose price is known; None where there is none
    n_by_status: Counter[str] = field(default_factory=Counter)
    n_in_flight: int = 0  # left with the provider's Batch API: the same command collects them
    is_stopped: bool = False  # it ended early because the caller said so
    is_spent: bool = False  # it ended early because max_usd is reached

    @property
    def n_left(self) -> int:
        """Requests without a reply."""
        return self.n_requests - self.n_cached - self.n_answered

    def count(self, reply: JudgeReply) -> None:
        """Add what a stored reply was billed."""
        self.n_input_tokens += reply.n_input_tokens or 0
        self.n_output_tokens += reply.n_output_tokens or 0
        if reply.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + reply.cost_usd

    def __add__(self, other: "Outcome") -> "Outcome":
        """Both together."""
        together = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name not in _APART}
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Outcome(
            **together,
            cost_usd=sum(costs) if costs else None,
            is_stopped=self.is_stopped or other.is_stopped,
            is_spent=self.is_spent or other.is_spent,
        )


_APART = ("cost_usd", "is_stopped", "is_spent")
