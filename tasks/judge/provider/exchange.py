"""What crosses the border to a provider: pictures and bodies on the way there, answers on the way back. Its protocol: base.py."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus


@dataclass(frozen=True, slots=True)
class RequestPicture:
    """A picture as the judge is shown it: `read` gives its bytes, in `image_format` (PNG, JPEG, WEBP); its size where known.

    It is read when its request is sent, not when it waits: hundreds wait, and each is some 100 KB. `is_shrunk`: reading makes it
    smaller first, some 30 ms in which a thread of its own is busy and the loop is not to be. `url`: where the engine that reads
    a file of requests finds it; it is then named in place of its bytes.
    """

    read: Callable[[], bytes | memoryview]
    image_format: str
    width_px: int | None = None
    height_px: int | None = None
    is_shrunk: bool = False
    url: str | None = None


class Payload(Protocol):
    """The body of one request, made piece by piece while it is sent. To be iterated once: what was made is let go of.

    `on_start` is called when the first piece is asked for: the connection is there, and the picture will soon be gone.
    """

    n_bytes: int
    on_start: Callable[[], None]

    def __iter__(self) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class SaidLimit:
    """One limit as a response tells it: how many a minute, how many are left, the seconds until all are there again."""

    per_minute: int
    n_left: int | None = None
    reset_s: float | None = None


SaidLimits = tuple[SaidLimit | None, SaidLimit | None]
"""Of requests and of tokens; None: nothing was said of it that can be read."""
NOTHING_SAID: SaidLimits = (None, None)


@dataclass(frozen=True, slots=True)
class NotSent:
    """Nothing left this machine, or nobody worked on it: it is not billed, and the next run asks it."""

    status: ClassVar[ReplyStatus] = ReplyStatus.NOT_ASKED
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class InDoubt:
    """It was handed over and no word came back: it may have been billed."""

    status: ClassVar[ReplyStatus] = ReplyStatus.TIMED_OUT
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """How one attempt ended at the provider. `retry_after_s` is what it asked to wait; `limits` what it said of the key's limits.

    `is_sent`: the request left this machine whole or in part, so that it may have been billed. `unseen_usd`: the most that it may
    have been billed and does not say, infinite where nothing bounds it.
    """

    status: ReplyStatus
    detail: str | None = None
    text: str | None = None
    finish_reason: str | None = None
    refusal_text: str | None = None
    answered_model: str | None = None
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None
    retry_after_s: float | None = None
    latency_s: float | None = None
    n_cached_tokens: int | None = None
    n_cache_written_tokens: int | None = None  # of the input, those billed at the price for keeping them for later requests
    logprobs_json: str | None = None
    limits: SaidLimits = NOTHING_SAID
    is_sent: bool = True
    unseen_usd: float = 0.0
    dearer_as: str | None = None

    def as_reply(
        self, request_key: str, ask_index: int, judge_model: str, origin: ReplyOrigin, n_attempts: int, cost_usd: float | None
    ) -> JudgeReply:
        """The reply that the ledger keeps."""
        return JudgeReply(
            request_key=request_key,
            ask_index=ask_index,
            status=self.status,
            judge_model=judge_model,
            origin=origin,
            text=self.text,
            finish_reason=self.finish_reason,
            refusal_text=self.refusal_text,
            error_detail=self.detail,
            answered_model=self.answered_model,
            n_input_tokens=self.n_input_tokens,
            n_cached_tokens=self.n_cached_tokens,
            n_output_tokens=self.n_output_tokens,
            cost_usd=cost_usd,
            latency_s=self.latency_s,
            n_attempts=n_attempts,
            logprobs_json=self.logprobs_json,
        )


Ended = NotSent | InDoubt | Answer
