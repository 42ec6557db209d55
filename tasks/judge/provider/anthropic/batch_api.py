"""The Message Batches API: the requests stand in the call that creates a batch, and nothing in a batch says whose it is.

So a request's name holds the batch's token; a batch whose creation was never heard of is known by the first of its results.
By https://platform.claude.com/docs/en/build-with-claude/batch-processing (2026-11): 100,000 requests or 256 MB, names of at most
64 letters, digits, hyphens and underscores.
"""

import asyncio
import base64
import binascii
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import orjson

from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.anthropic.messages import read_failure, read_message
from tasks.judge.provider.batch_api import CallFailedError, ProviderBatch, UndecidedError
from tasks.judge.provider.batch_calls import BatchCalls, FilePayload, read_result_lines
from tasks.judge.provider.exchange import Answer, Ended, NotSent, Payload
from tasks.judge.provider.failures import bad
from tasks.judge.provider.json_bodies import UnusableError, count, epoch_s, listed, mapping, text, total
from tasks.judge.provider.transport import Secrets

MAX_PAGES = 100
_PATH = "/messages/batches"
_BEGINNING = b'{"custom_id":"'
_TOKEN_CHARACTERS = 16  # of the batch's token before each name; with the digest in base64 (43) and the ask's number it fits
_DIGEST_CHARACTERS = 43
_ERROR_STATUSES = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "overloaded_error": 529,
}  # fmt: skip


class AnthropicBatches:
    """The Batch API of one endpoint: see base.BatchApi. A "file" is the one on this machine's disk until it is created of."""

    def __init__(self, calls: BatchCalls, address: Callable[[str, str], str], secrets: Secrets) -> None:
        self._calls, self._address, self._secrets = calls, address, secrets

    async def is_offered(self) -> bool:
        """Whether the endpoint has a Batch API. A cheap look: where it cannot be told, no."""
        try:
            content = await self._calls.json("GET", self._url(query="limit=1"))
        except CallFailedError:
            return False
        return isinstance(content.get("data"), list)

    async def upload(self, path: Path, name: str, n_bytes: int) -> str:  # noqa: ARG002 - nothing is sent yet
        """The file's place: it is sent when the batch is created."""
        return str(path)

    async def find_file(self, name: str, n_bytes: int) -> str | None:  # noqa: ARG002 - the provider keeps none
        """None: the provider keeps no files of requests."""
        return None

    async def create(self, file_id: str, token: str) -> ProviderBatch:
        """Create a batch of the requests in a file on this disk. It is asked for once: see `CallFailedError.may_have_worked`."""
        try:
            body = await asyncio.to_thread(_requests, Path(file_id), token[:_TOKEN_CHARACTERS])
        except OSError:
            raise self._calls.failed("its request file no longer exists", ReplyStatus.NOT_ASKED, is_absent=True) from None
        return self._read(await self._calls.json("POST", self._url(), body))

    async def find(self, token: str, since_s: int, n_lines: int) -> list[ProviderBatch]:
        """The batches whose requests bear this token. Only one that has ended shows its requests' names.

        Raises UndecidedError while one of as many requests is worked on, or where its results are gone.
        """
        found, doubts = [], list[Exception]()
        for row in await self._rows(since_s):
            seen = self._read(row)
            if total(*map(count, mapping(row.get("request_counts")).values())) != n_lines:
                continue
            try:
                if await self._is_of(seen, token, is_archived=row.get("archived_at") is not None):
                    found.append(seen)
            except (CallFailedError, UndecidedError) as doubt:
                doubts.append(doubt)  # another one may be it
        if doubts and not found:
            raise min(doubts, key=lambda doubt: isinstance(doubt, UndecidedError) and doubt.is_lost)
        return sorted(found, key=lambda batch: batch.created_s)

    async def look(self, provider_id: str) -> ProviderBatch:
        """The batch as it is now."""
        seen = self._read(await self._calls.json("GET", self._url(f"/{provider_id}")))
        if seen.provider_id != provider_id:
            raise self._calls.failed(f"asked for batch {provider_id}, got {seen.provider_id}")
        return seen

    async def cancel(self, provider_id: str) -> None:
        """Ask the provider to stop working on a batch."""
        await self._calls.json("POST", self._url(f"/{provider_id}/cancel"))

    async def download(self, file_id: str, path: Path) -> None:
        """Write a batch's results, which stand at the address `file_id`, to `path` as they come."""
        await self._calls.download(file_id, path)

    def line(self, custom_id: str, payload: Payload) -> bytes:
        """One request of the list that a batch is created of."""
        digest, _, ask = custom_id.rpartition("-")
        short = base64.urlsafe_b64encode(bytes.fromhex(digest)).rstrip(b"=")
        return b"".join((_BEGINNING, short, b"-", ask.encode(), b'","params":', *payload, b"}\n"))

    def results(self, path: Path) -> Iterator[tuple[str, Ended]]:
        """(custom_id, how it ended) of every line of results whose name is one of ours, without secrets."""
        for name, ended in read_result_lines(path, "custom_id", _ended, self._secrets.out_of_bytes):
            custom_id = _long(name)
            if custom_id is not None:
                yield custom_id, self._secrets.out_of(ended) if isinstance(ended, Answer) else ended

    async def _rows(self, since_s: int) -> list[dict[str, Any]]:
        """The batches there are, the newest first, back to that second."""
        rows: list[dict[str, Any]] = []
        after = ""
        for _ in range(MAX_PAGES):
            content = await self._calls.json("GET", self._url(query=f"limit=100{after}"))
            page = listed(content.get("data"))
            rows += [row for row in page if epoch_s(row.get("created_at")) >= since_s]
            last = text(page[-1].get("id")) if page else None
            if not content.get("has_more") or last is None or epoch_s(page[-1].get("created_at")) < since_s:
                break
            after = f"&after_id={last}"
        return rows

    async def _is_of(self, seen: ProviderBatch, token: str, *, is_archived: bool) -> bool:
        """Whether the batch's first result bears the token. What cannot be told is no "no": the batch would be bought again.

        Raises UndecidedError, CallFailedError.
        """
        if not seen.is_ended or is_archived:
            raise UndecidedError(is_lost=is_archived)
        if seen.output_file_id is None:
            raise self._calls.failed(f"batch {seen.provider_id} has ended without results, so its owner cannot be determined")
        try:
            name = text(mapping(orjson.loads(await self._calls.first_line(seen.output_file_id))).get("custom_id"))
        except orjson.JSONDecodeError:
            name = None
        except CallFailedError as error:
            if error.is_absent:
                raise UndecidedError(is_lost=True) from error
            raise
        if name is None:
            raise self._calls.failed(
                f"the first result of batch {seen.provider_id} cannot be read, so its owner cannot be determined"
            )
        return name.startswith(f"{token[:_TOKEN_CHARACTERS]}_")

    def _url(self, path: str = "", query: str = "") -> str:
        return self._address(_PATH + path, query)

    def _results_url(self, provider_id: str, said: str | None) -> str | None:
        """Where the provider says that the results are; where that is another host's, their place here: the key goes with it."""
        here = self._url(f"/{provider_id}/results")
        try:
            return said if said is None or urlsplit(said)[:2] == urlsplit(here)[:2] else here
        except ValueError:  # no address at all, such as https://[
            return here

    def _read(self, content: dict[str, Any]) -> ProviderBatch:
        provider_id, status = text(content.get("id")), text(content.get("processing_status"))
        if provider_id is None or status is None:
            raise self._calls.failed("the reply is not a batch: it has no id or no processing_status")
        counts = {name: count(n) or 0 for name, n in mapping(content.get("request_counts")).items()}
        is_ended = status == "ended"
        return ProviderBatch(
            provider_id=provider_id,
            status=status,
            created_s=epoch_s(content.get("created_at")),
            output_file_id=self._results_url(provider_id, text(content.get("results_url"))),
            error_file_id=None,
            n_completed=counts.get("succeeded", 0),
            n_done=sum(n for name, n in counts.items() if name != "processing"),
            problem="no reason given",
            is_ended=is_ended,
            is_failed=False,
            is_cancelled=is_ended and content.get("cancel_initiated_at") is not None,
            is_over_capacity=False,
        )


def _requests(path: Path, token: str) -> FilePayload:
    """The body of a creation: the file's lines as a list, the token before each name. Raises OSError."""
    named = _BEGINNING + token.encode() + b"_"
    with path.open("rb") as file:
        n_lines = sum(1 for _ in file)
    before, after = b'{"requests":[', b"]}"

    def pieces(file: IO[bytes]) -> Iterator[bytes]:
        yield before
        for index, line in enumerate(file):
            yield (b"," if index else b"") + named + line[len(_BEGINNING) : -1]
        yield after

    n_added = n_lines * (len(named) - len(_BEGINNING)) - 1  # a comma in place of each line's end but the last
    return FilePayload(path, path.stat().st_size + n_added + len(before) + len(after), pieces)


def _long(name: str) -> str | None:
    """The custom_id of a name at the provider; None where it is none of ours."""
    digest = name[_TOKEN_CHARACTERS + 1 :][:_DIGEST_CHARACTERS]
    ask = name[_TOKEN_CHARACTERS + 1 + _DIGEST_CHARACTERS :]
    try:
        key = base64.b64decode(f"{digest}=", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return f"{key.hex()}{ask}" if len(key) == 32 and ask.startswith("-") else None


def _ended(content: dict[str, Any]) -> Ended:
    """How the request of a line of results ended, by the same reading as online."""
    result = mapping(content.get("result"))
    match result.get("type"):
        case "succeeded":
            try:
                return read_message(mapping(result.get("message")))
            except UnusableError as unusable:
                return bad(str(unusable))
        case "errored":
            told = mapping(result.get("error"))
            kind = mapping(told.get("error", told)).get("type")
            return read_failure(_ERROR_STATUSES.get(str(kind), 500), {}, orjson.dumps(told))
        case "canceled" | "expired" as why:
            return NotSent(f"the batch {'was cancelled' if why == 'canceled' else why} before this request was processed")
    return Answer(ReplyStatus.BAD_RESPONSE, "a line without a result of a known type")
