"""What a provider's Batch API is, call by call, and its files where there is no network. Their order is tasks/judge/batch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.exchange import Answer, Ended, Payload, RequestPicture


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
    """A batch at the provider may be the one that is looked for; it cannot be told before it has ended.

    `is_lost`: it has ended, and what would tell is not there any more.
    """

    def __init__(self, *, is_lost: bool = False) -> None:
        super().__init__("a batch at the provider may be the one searched for")
        self.is_lost = is_lost


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

        Raises UndecidedError where one may be it and nobody can tell, or not yet.
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
    secrets out of a line before it is read, and what is told each line's number and whether it can be told apart.
    """

    payload: Callable[[str, Mapping[str, object], Sequence[Mapping[str, Any]], Sequence[RequestPicture]], Payload]
    line: Callable[[str, Payload], bytes]
    results: Callable[[Path, Callable[[bytes], bytes], Callable[[int, bool], object]], Iterator[tuple[str, Ended]]]
