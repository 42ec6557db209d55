"""What a judge's replies say to the rubric as they come, and whether to stop for it. How a reply is read is rubrics/replies."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import orjson

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ParsedScore, ReadScores, Unreadable
from schemas.statuses.rows import ParseReason, ReplyStatus
from tasks.judge.provider.exchange import Answer

N_UNSEEN = 8
"""So many replies that say they were given nothing to judge are no oddity of a few judges' any more; a shard has hundreds."""
N_UNREADABLE = 32
"""A judge of which so many first replies, second asks among them, lack the form, keeps to another: the rest would lack it too."""
NOT_REASKED = frozenset({ParseReason.REFUSAL, ParseReason.MISSING_INPUT, ParseReason.RULE_VIOLATION})
"""What asking again would not mend: the judge has understood and said its word, or we sent nothing to judge."""
_NOT_OF_FORM = NOT_REASKED | {ParseReason.NOT_APPLICABLE, ParseReason.NOT_ASKED_FOR}


def reading_of(rubric: Rubric, variant: str | None, facts_json: str, answer: Answer) -> ParsedScore | None:
    """What an answer to a request of this rubric, category and facts says; None where it is none."""
    if answer.status != ReplyStatus.ANSWERED:
        return None
    context = orjson.loads(facts_json)
    context |= {"category": variant, "finish_reason": answer.finish_reason, "refusal": answer.refusal_text}
    context |= {"logprobs_json": answer.logprobs_json}
    return parse_reply(rubric, answer.text, context)


def is_reaskable(read: ParsedScore | None) -> bool:
    """Whether an answer that was read so is worth to be asked for once more."""
    return isinstance(read, Unreadable) and read.reason not in NOT_REASKED


def is_reask_due(rubric: Rubric, variant: str | None, facts_json: str, answer: Answer) -> bool:
    """Whether an answer to a request of this rubric, category and facts is to be asked for once more."""
    return is_reaskable(reading_of(rubric, variant, facts_json, answer))


def why_nothing(read: ParsedScore) -> ParseReason | None:
    """Why no number can be taken from what was read; of several items, the first one's reason where none has an answer."""
    if isinstance(read, Unreadable):
        return read.reason
    return None if read.scores or read.not_applicable else next(iter(read.unreadable.values()), None)


@dataclass(slots=True)
class FirstReplies:
    """The first replies of one judge under one rubric, over all shards of a process: whether any of them can be read.

    Opens at `n_to_stop` that cannot, for reasons of form; never once one could be read, nor where `n_to_stop` is None.
    Refusals, and replies that saw nothing, say nothing of the form.
    """

    n_to_stop: int | None = N_UNREADABLE
    unreadable: Counter[str] = field(default_factory=Counter)  # by reason, those that came before it opened
    opened: asyncio.Event = field(default_factory=asyncio.Event)  # shards that sent nothing of late hear of it too
    _has_readable: bool = False

    def record(self, reason: ParseReason | None) -> None:
        """Count a reply: why it gives no score, None where it gives one. What is under way when it opens says nothing new."""
        if self.is_open or self._has_readable or reason in _NOT_OF_FORM:
            return
        if reason is None:
            self._has_readable = True
            return
        self.unreadable[reason.value] += 1
        if self.n_to_stop is not None and self.unreadable.total() >= self.n_to_stop:
            self.opened.set()

    @property
    def is_open(self) -> bool:
        """Whether no shard should ask more."""
        return self.opened.is_set()


@dataclass(slots=True)
class Sight:
    """How many of a shard's replies say that their judge was given nothing; more than a share of them open it, for good."""

    most: float = 1.0  # the share that may say so
    n_read: int = 0
    n_unseen: int = 0
    is_blind: bool = False  # asking on would buy more of them

    def record(self, reason: ParseReason | None) -> None:
        """Count whether a reply says that its judge was given what it is to judge."""
        self.n_read += 1
        self.n_unseen += reason is ParseReason.MISSING_INPUT
        self.is_blind |= self.n_unseen >= N_UNSEEN and self.n_unseen > self.most * self.n_read


@dataclass(slots=True)
class Readings:
    """A shard's replies as they are read, and what the judge's first ones say."""

    sight: Sight = field(default_factory=Sight)
    first: FirstReplies = field(default_factory=FirstReplies)

    def record(self, read: ParsedScore | None) -> None:
        """Count a final reply as it was read; one that the provider filtered or rejected was seen, and has no form."""
        reason = None if read is None else why_nothing(read)
        self.sight.record(reason)
        if isinstance(read, ReadScores | Unreadable):
            self.first.record(reason)

    @property
    def is_open(self) -> bool:
        """Whether nothing more should be asked."""
        return self.sight.is_blind or self.first.is_open
