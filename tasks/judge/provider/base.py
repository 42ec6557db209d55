"""What a judge provider is: its protocol, what crosses the border in both directions, and how one is chosen by its name.

A provider is a folder here, named as `judges.provider` names it; all that knows its wire format stands in that folder.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from schemas.benchmark_judges import Judge
from schemas.errors import InputError
from schemas.records import JudgeReply
from schemas.statuses import ReplyOrigin, ReplyStatus


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

    `is_sent`: the request left this machine whole or in part, so that it may have been billed.
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


class CallFailedError(Exception):
    """A call of a Batch API that came to nothing, as an Answer."""

    def __init__(self, answer: Answer, *, is_absent: bool = False, is_unsupported: bool = False) -> None:
        super().__init__(answer.detail)
        self.answer = answer
        self.is_absent = is_absent  # what was asked for is not there
        self.is_unsupported = is_unsupported  # the endpoint has no such call

    @property
    def may_have_worked(self) -> bool:
        """Whether the provider may have done what was asked, and only its word was lost."""
        lost = (ReplyStatus.UNREACHABLE, ReplyStatus.TIMED_OUT, ReplyStatus.SERVER_ERROR, ReplyStatus.BAD_RESPONSE)
        return self.answer.is_sent and self.answer.status in lost


class UndecidedError(Exception):
    """A batch at the provider may be the one that is looked for; it cannot be told before it has ended."""


@dataclass(frozen=True, slots=True)
class ProviderBatch:
    """One look at a batch at the provider. `status` is its own word for people; `problem`: what is wrong with it as a whole."""

    provider_id: str
    status: str
    created_s: int
    output_file_id: str | None
    error_file_id: str | None
    n_completed: int
    n_done: int
    problem: str
    is_ended: bool  # nothing more will come
    is_failed: bool  # nobody worked on it
    is_cancelled: bool
    is_over_capacity: bool  # it failed for being too much at once


class BatchApi(Protocol):
    """The Batch API of a provider, one call at a time; their order is tasks/judge/batch. Calls raise CallFailedError."""

    async def is_offered(self) -> bool:
        """Whether the endpoint has a Batch API. A cheap look: where it cannot be told, no."""

    async def upload(self, path: Path, name: str, n_bytes: int) -> str:
        """Send a file for a batch, piece by piece from the disk; returns its id."""

    async def find_file(self, name: str, n_bytes: int) -> str | None:
        """The id of the whole file of this name; None where the provider has none."""

    async def create(self, file_id: str, token: str) -> ProviderBatch:
        """Create a batch of an uploaded file. It is asked for once: see `CallFailedError.may_have_worked`."""

    async def find(self, token: str, since_s: int, n_lines: int) -> list[ProviderBatch]:
        """The batches of so many lines created with this token since that second, oldest first.

        Raises UndecidedError where one may be it and nobody can tell yet.
        """

    async def look(self, provider_id: str) -> ProviderBatch:
        """The batch as it is now."""

    async def cancel(self, provider_id: str) -> None:
        """Ask the provider to stop working on a batch."""

    async def download(self, file_id: str, path: Path) -> None:
        """Write a file of results to `path` as it comes. Raises StoreError where there is no room."""

    def line(self, custom_id: str, payload: Payload) -> bytes:
        """One request as a line of a batch's file."""

    def results(self, path: Path) -> Iterator[tuple[str, Ended]]:
        """(custom_id, how it ended) of every line of a file of results that can be told apart."""


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """What writes and reads a provider's batch files where there is no network, and no key.

    `payload`: the body, by the model's name. `line`: it as a line, by a custom_id. `results`: as BatchApi's, given what takes
    secrets out of a line before it is read, and what is told the number of a line that cannot be told apart.
    """

    payload: Callable[[str, Mapping[str, object], Sequence[Mapping[str, Any]], Sequence[RequestPicture]], Payload]
    line: Callable[[str, Payload], bytes]
    results: Callable[[Path, Callable[[bytes], bytes], Callable[[int], object]], Iterator[tuple[str, Ended]]]


class Provider(Protocol):
    """One judge at one endpoint. Made, it raises MissingKeyError or InputError, before anything is sent."""

    has_detail: ClassVar[bool]  # whether `judges.detail` means something there
    batch_files: ClassVar[BatchFiles | None]  # None where its batches are made and fetched by calls alone
    judge: Judge
    endpoint: str  # as it may be shown

    def __init__(self, judge: Judge, concurrency: int, deadline_s: float) -> None: ...

    @staticmethod
    def check_parameters(parameters: Mapping[str, object]) -> None:
        """Raise InputError where a judge's `parameters` hold what the provider does not take from there. Needs no key."""

    @staticmethod
    def check(judge: Judge) -> None:
        """Raise MissingKeyError or InputError where the judge cannot be asked as the benchmark file has it."""

    @staticmethod
    def remedy(detail: str) -> str | None:
        """What to change about an error with these words of the provider's; None where nothing is known of it."""

    @staticmethod
    def output_bound(parameters: Mapping[str, object]) -> int | None:
        """The longest reply, in tokens, that a judge's `parameters` allow; None where they do not say."""

    @staticmethod
    def prompt_cache_tokens(judge: Judge) -> int | None:
        """Tokens that requests must begin with alike to be billed as repeated; None where that is not known of the endpoint."""

    @property
    def key_digest(self) -> str:
        """Stands for the key where requests of one key are counted together: it says nothing about the key."""

    @property
    def batch(self) -> BatchApi | None:
        """The Batch API; None where the provider has none."""

    def payload(
        self, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], pictures: Sequence[RequestPicture]
    ) -> Payload:
        """The body of a request, a picture for each image part in order. Raises what their `read` raises."""

    async def ask(self, payload: Payload) -> Answer:
        """Send one body and wait, at most the deadline, for the whole reply. Never raises."""

    async def shutdown_date(self) -> date | None:
        """When the provider will retire the judge; None where it does not say so in time."""

    async def close(self) -> None:
        """Close the connections."""


def check_provider(judge: Judge) -> None:
    """Raise InputError where there is no provider of the judge's `provider`."""
    if judge.provider not in _names():
        raise InputError(
            f'judges.provider = "{judge.provider}" of {judge.model} is not a provider; it is one of {", ".join(_names())}'
        )


def provider_of(judge: Judge) -> type[Provider]:
    """The class of the judge's provider. Raises InputError where there is none."""
    check_provider(judge)
    found: type[Provider] = import_module(f"{__package__}.{judge.provider}").PROVIDER
    return found


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in iter_modules([str(Path(__file__).parent)]) if module.ispkg))


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's."""
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
