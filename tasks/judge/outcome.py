"""What became of a shard, and of shards taken together. How it comes about is engine.py, and in several tries tries.py."""

from collections import Counter
from dataclasses import dataclass, field, fields, replace

from rubrics.replies.remedies import N_SAID, commonest, remedy
from schemas.benchmark.judges import Judge
from schemas.errors import (
    AccountError,
    MissingInputError,
    NotThereError,
    ProviderDownError,
    ProviderError,
    RejectedError,
    UnreadableError,
)
from schemas.records import JudgeReply
from schemas.statuses.rows import FINAL_REPLY_STATUSES, PROVIDER_FAILURES, ReplyStatus
from tasks.judge.budget.cost import is_not_believed
from tasks.judge.provider.base import provider_of
from tasks.judge.provider.exchange import Answer
from tasks.judge.readings import FirstReplies


@dataclass(slots=True)
class Outcome:
    """Counts of a shard, or a sum of them. `n_by_status` counts, by ReplyStatus, the requests that were asked in this run."""

    n_requests: int = 0
    n_cached: int = 0  # answered before, or by another process meanwhile
    n_asked: int = 0  # attempts sent, retries and re-asks included
    n_reasked: int = 0
    n_replies: int = 0  # stored; of a request that was asked twice both
    n_fetched: int = 0  # of them those from batches that an earlier run handed over
    n_input_tokens: int = 0  # of the replies that say
    n_output_tokens: int = 0
    cost_usd: float | None = None  # of the replies whose price is known; None where there is none
    n_without_cost: int = 0  # replies that report no tokens, or of a judge without a price
    n_not_believed: int = 0  # of them those that report more tokens than can be
    n_in_doubt: int = 0  # attempts sent that no reply came of and that may have been billed
    in_doubt_usd: float = 0.0  # those at most; infinite where nothing bounds a reply
    n_by_status: Counter[str] = field(default_factory=Counter)
    attempts_by_status: Counter[str] = field(default_factory=Counter)  # of those that were answered, or given up
    n_in_flight: int = 0  # left with the provider's Batch API: the same command collects them
    is_stopped: bool = False  # it ended early because the caller said so
    is_spent: bool = False  # it ended early because max_usd is reached
    refused_usd: float = 0.0  # the most that one request might have cost for which max_usd had no room

    @property
    def n_answered(self) -> int:
        """Requests of this run with a reply."""
        return self.n_by_status[ReplyStatus.ANSWERED.value]

    @property
    def n_left(self) -> int:
        """Requests without a final reply; one that was filtered or rejected has its own."""
        return self.n_requests - self.n_cached - self.n_final

    @property
    def is_out_of_reach(self) -> bool:
        """Whether max_usd stopped it before anything was sent: it is less than what one request may cost."""
        return self.is_spent and not self.n_asked and not self.n_in_flight

    @property
    def is_at_least(self) -> bool:
        """Whether more may have been billed than `cost_usd` says, also where it says nothing: in a sum that is none."""
        return self.n_in_doubt > 0 or self.n_without_cost > 0

    @property
    def may_cost(self) -> bool:
        """Whether anything was sent, or came of what an earlier run had sent."""
        return self.n_asked + self.n_replies + self.n_in_doubt > 0

    @property
    def n_final(self) -> int:
        """Requests that were asked in this run and have a final reply."""
        return sum(self.n_by_status[status.value] for status in FINAL_REPLY_STATUSES)

    def count_attempt(self, answer: Answer) -> None:
        """Add an attempt that ended; one that never left this machine is none that was sent."""
        self.n_asked += answer.is_sent
        self.attempts_by_status[answer.status.value] += 1
        self.n_in_doubt += answer.unseen_usd > 0
        self.in_doubt_usd += answer.unseen_usd

    def count(self, reply: JudgeReply) -> None:
        """Add a stored reply, and what it was billed."""
        self.n_replies += 1
        self.n_input_tokens += reply.n_input_tokens or 0
        self.n_output_tokens += reply.n_output_tokens or 0
        if reply.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + reply.cost_usd
        else:
            is_absurd = is_not_believed(reply.error_detail)
            self.n_without_cost += reply.status == ReplyStatus.ANSWERED or is_absurd
            self.n_not_believed += is_absurd

    def __add__(self, other: "Outcome") -> "Outcome":
        """Both together."""
        both = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name not in _APART}
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Outcome(
            **both,
            cost_usd=sum(costs) if costs else None,
            is_stopped=self.is_stopped or other.is_stopped,
            is_spent=self.is_spent or other.is_spent,
            refused_usd=max(self.refused_usd, other.refused_usd),
        )

    def followed_by(self, later: "Outcome") -> "Outcome":
        """Both, where `later` asked the same requests again: it found those stored that this one got, and asked the others."""
        final = Counter({status.value: self.n_by_status[status.value] for status in FINAL_REPLY_STATUSES})
        both = replace(self + later, n_requests=later.n_requests, n_cached=later.n_cached - self.n_final)
        return replace(both, n_by_status=final + later.n_by_status, is_spent=later.is_spent, refused_usd=later.refused_usd)


_APART = ("cost_usd", "is_stopped", "is_spent", "refused_usd")


def outage(
    judge: Judge,
    endpoint: str,
    status: ReplyStatus,
    detail: str | None,
    silent_s: float | None = None,
    pause_s: float | None = None,
    n_others: int = 0,
) -> ProviderError:
    """The error that stops a run: who fails, what it said last, what to do. The key is named, never shown.

    `silent_s`: how long it has answered nothing; None where it was not asked request by request. `pause_s`: what it asks for,
    where that is too long. `n_others`: requests beside the failing ones that have replies.
    """
    who, said = f"judge {judge.id} at {endpoint}", f" (it said: {detail})" if detail else ""
    known = provider_of(judge).remedy(detail or "")
    advice = f"{known[0].upper()}{known[1:]}. " if known else ""
    if status == ReplyStatus.REJECTED:
        error: ProviderError = RejectedError(
            f"{who} rejects what it is sent, each time with the same message{said}; no more requests are sent. Fix what the "
            f"message names: the judge's parameters, its model or base_url, or a limit of a proxy in front of it. {advice}{_KEPT}"
        )
    elif status == ReplyStatus.UNAUTHORIZED:
        error = AccountError(
            f"{who} does not accept the request{said}; check the key in the environment variable {judge.api_key_env}, the "
            f"model's name and base_url. {advice}{_KEPT}"
        )
    elif status == ReplyStatus.NO_CREDIT:
        error = AccountError(
            f"the account behind the environment variable {judge.api_key_env} at {endpoint} has no credit left{said}; "
            f"top it up or name another key. {_KEPT}"
        )
    elif status in PROVIDER_FAILURES and silent_s is not None:
        alone = "" if status == ReplyStatus.RATE_LIMITED or not n_others else f" {_ALONE.format(n_others)}"
        down = f"{who} {_is_down(judge, status, said, silent_s, pause_s)}.{alone} {advice}{_KEPT}"
        error = ProviderDownError(down)
        error.pause_s = pause_s
    elif status in PROVIDER_FAILURES:
        error = ProviderError(f"{who}: its Batch API fails, last with {status.value}{said}. Check the provider. {advice}{_KEPT}")
    else:
        error = ProviderError(f"{who} cannot be reached{said}; start it, or check base_url and the network. {_KEPT}")
    error.judge_id = judge.id
    return error


def absent(judge: Judge, endpoint: str, detail: str | None) -> ProviderError:
    """The error that stops a run at whose judge's address nobody was met."""
    said = f" (it said: {detail})" if detail else ""
    return NotThereError(
        f"judge {judge.id} at {endpoint} cannot be reached{said}: nothing has answered there in this run; start it, or check "
        f"base_url and the network. {_KEPT}"
    )


def unseen(judge: Judge, endpoint: str, n_unseen: int, n_read: int) -> ProviderError:
    """The error that stops a run whose judge is shown nothing."""
    return MissingInputError(
        f"judge {judge.id} at {endpoint} says in {n_unseen:,} of {n_read:,} replies that it was given nothing to judge, "
        "which is more than [gate] max_missing_input allows; no more requests are sent. Check that the model accepts pictures "
        "and that the endpoint, and any proxy in front of it, passes them on. Then give the judge a new name in the benchmark "
        f"file: its questions are then asked again. {_KEPT}"
    )


def unreadable(judge: Judge, endpoint: str, rubric_id: str, first: FirstReplies) -> ProviderError:
    """The error that stops a run whose judge answers nothing that can be read."""
    counts = first.unreadable
    said = commonest(counts)
    listed = ", ".join(f"{reason.value} {n:,}" for reason, n in said[:N_SAID])
    return UnreadableError(
        f"judge {judge.id} at {endpoint}: none of the first {counts.total():,} requests under rubric {rubric_id} has a reply "
        f"that can be read ({listed}{', and others' if len(said) > N_SAID else ''}); no more requests are sent. "
        f"{remedy(*said[0], judge.parameters, shown='`salon check FILE` asks for one and shows it', n_cut=first.n_cut)}. "
        f"[gate] stop_when_unreadable = false continues all the same. {_KEPT}"
    )


def _is_down(judge: Judge, status: ReplyStatus, said: str, silent_s: float, pause_s: float | None) -> str:
    if status != ReplyStatus.RATE_LIMITED:
        is_slow = status == ReplyStatus.TIMED_OUT  # whose words are ours
        return (
            f"is {'too slow, or ' * is_slow}down: it has answered nothing for {silent_s:.0f} s, and each attempt ended as "
            f"{status.value}{said.replace('it said: ', '') if is_slow else said}; no more requests are sent. Check the provider"
            f"{'; if it only takes longer, raise limits.deadline_s' * is_slow}"
        )
    how = f"answers nothing: for {silent_s:.0f} s its rate limits refused every attempt"
    if pause_s is not None:
        how = f"asks for a pause of {pause_s:,.0f} s"
    limits = f"the limits of the account behind the environment variable {judge.api_key_env}"
    return f"{how}{said}; no more requests are sent. Check {limits}, and who else uses it"


_KEPT = "Replies already stored are kept; running the same command again asks only what is missing."
_ALONE = (
    "{:,} other requests of the same shard have replies: if it fails only on these, fix what its message names (a picture too "
    "large: set the judge's max_side_px); what fails in three runs, the first a day ago, is published as failed."
)
