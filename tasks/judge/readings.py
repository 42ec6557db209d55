"""What a judge's replies say to the rubric as they come, and whether to stop for it. How a reply is read is rubrics/replies."""

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field

import orjson
import polars as pl

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ParsedScore, Unreadable
from schemas.statuses.rows import ParseReason, ReplyStatus
from tasks.judge.provider.exchange import Answer

N_UNSEEN = 8
"""So many replies that say they were given nothing to judge are no oddity of a few judges' any more; a shard has hundreds."""
N_UNREADABLE = 32
"""A judge that cannot be read in any of so many requests, asked twice each, keeps to another form: the rest would lack it too."""
N_SPREAD = 8
"""Of a shard's requests these are asked first, from all over it: a category that none can read may stand at its beginning."""
LOOK_S = 0.1
"""How often a request that waits for its turn looks whether its shard was stopped."""
NOT_REASKED = frozenset({ParseReason.REFUSAL, ParseReason.MISSING_INPUT, ParseReason.RULE_VIOLATION})
"""What asking again would not mend: the judge has understood and said its word, or we sent nothing to judge."""
_NOT_OF_FORM = NOT_REASKED | {ParseReason.NOT_APPLICABLE, ParseReason.NOT_ASKED_FOR}


def reading_of(rubric: Rubric, variant: str | None, facts_json: str, answer: Answer) -> ParsedScore | None:
    """What an answer to a request of this rubric, category and facts says; None where it is none."""
    if answer.status != ReplyStatus.ANSWERED:
        return None
    said = {"finish_reason": answer.finish_reason, "refusal": answer.refusal_text, "logprobs_json": answer.logprobs_json}
    return parse_reply(rubric, answer.text, orjson.loads(facts_json) | said | {"category": variant})


def spread(requests: pl.DataFrame) -> pl.DataFrame:
    """The requests, N_SPREAD of them from all over brought to the front."""
    if requests.height <= N_SPREAD:
        return requests
    front = [place * requests.height // N_SPREAD for place in range(N_SPREAD)]
    return requests[[*front, *sorted(set(range(requests.height)) - set(front))]]


def any_readable(rubric: Rubric, requests: pl.DataFrame, replies: pl.DataFrame) -> bool:
    """Whether one of the stored replies (rows of the lake's table) to requests of this rubric can be read."""
    asked = requests.select("request_key", "variant", "facts_json").unique("request_key")
    rows = replies.filter(pl.col("status") == ReplyStatus.ANSWERED.value).join(asked, on="request_key")
    for row in rows.iter_rows(named=True):
        said = {name: row[name] for name in ("finish_reason", "refusal_text", "logprobs_json")}
        read = reading_of(rubric, row["variant"], row["facts_json"], Answer(ReplyStatus.ANSWERED, text=row["reply_text"], **said))
        if read is not None and why_nothing(read) is None:
            return True
    return False


def is_reaskable(read: ParsedScore | None) -> bool:
    """Whether an answer that was read so is worth to be asked for once more: it cannot be read, or leaves out an item."""
    return read.reason not in NOT_REASKED if isinstance(read, Unreadable) else read is not None and not read.is_whole


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
    """Whether any of the first requests that a run sends to one judge under one rubric can be read; over all shards of a process.

    The first `n_to_stop` are watched to their end, re-asks included, and no other is begun before one of them could be read:
    at a second a reply, hundreds would be in flight by then. Opens where none can be read, for reasons of form; never once any
    reply could be, nor where `n_to_stop` is None. Refusals, failures and replies that saw nothing say nothing of the form: the
    next request is watched instead.
    """

    n_to_stop: int | None = N_UNREADABLE
    unreadable: Counter[str] = field(default_factory=Counter)  # watched requests that ended so, by reason
    opened: asyncio.Event = field(default_factory=asyncio.Event)  # shards that sent nothing of late hear of it too
    n_cut: Counter[str] = field(default_factory=Counter)  # truncated replies by how the provider says that they ended
    has_readable: bool = False
    _watched: set[str] = field(default_factory=set)
    _news: asyncio.Event = field(default_factory=asyncio.Event)  # for those that wait to begin

    @property
    def is_open(self) -> bool:
        """Whether no shard should ask more."""
        return self.opened.is_set()

    @property
    def is_watching(self) -> bool:
        """Whether it is not known yet."""
        return self.n_to_stop is not None and not self.has_readable and not self.is_open

    async def begin(self, request_key: str, stopping: asyncio.Event) -> bool:
        """Wait until a request may be asked, watched or not. False where `stopping` was set first."""
        while self.is_watching and not self._has_room and not stopping.is_set():
            self._news.clear()  # who waited for it already goes on all the same
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), LOOK_S)
        if stopping.is_set() or self.is_open:
            return False
        if self.is_watching:
            self._watched.add(request_key)
        return True

    def end(self, request_key: str, reason: ParseReason | None) -> None:
        """A request ended without a reply that can be read, for this reason; None where there was no reply, or it could be."""
        if request_key not in self._watched:
            return
        self._watched.discard(request_key)
        self._news.set()
        if reason is None or reason in _NOT_OF_FORM or not self.is_watching:
            return
        self.unreadable[reason.value] += 1
        if self.unreadable.total() >= (self.n_to_stop or 0):
            self.opened.set()

    def found_readable(self) -> None:
        """A reply could be read: nothing is watched any more, and nobody waits."""
        self.has_readable = True
        self._news.set()

    @property
    def _has_room(self) -> bool:
        return len(self._watched) + self.unreadable.total() < (self.n_to_stop or 0)


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

    def record(self, read: ParsedScore | None, finish_reason: str | None = None) -> ParseReason | None:
        """Count a final reply as it was read; why it gives no score. One that the provider filtered or rejected has no form."""
        reason = None if read is None else why_nothing(read)
        if reason is ParseReason.TRUNCATED:
            self.first.n_cut[finish_reason or ""] += 1
        self.sight.record(reason)
        if read is not None and reason is None:
            self.first.found_readable()
        return reason

    @property
    def is_open(self) -> bool:
        """Whether nothing more should be asked."""
        return self.sight.is_blind or self.first.is_open
