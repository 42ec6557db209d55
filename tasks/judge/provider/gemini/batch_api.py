"""The Batch API of Gemini: a file of requests, a batch made of it, a file of results. Their order is tasks/judge/batch.

By https://ai.google.dev/api/batch-api, /api/files and /gemini-api/docs/batch-api (2026-11): a file of at most 2 GB, whose
lines are {"key", "request"}; results are {"key", "response"} or {"key", "error"}; files are kept for 48 hours.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import orjson

from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.batch_api import CallFailedError, ProviderBatch
from tasks.judge.provider.batch_calls import BatchCalls, FilePayload, read_result_lines
from tasks.judge.provider.exchange import Answer, Ended, NotSent, Payload
from tasks.judge.provider.failures import bad, one_line
from tasks.judge.provider.gemini.responses import CANCELLED, read_content, read_failure
from tasks.judge.provider.json_bodies import UnusableError, epoch_s, listed, mapping, text
from tasks.judge.provider.transport import Secrets

MAX_PAGES = 100
_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"})
_HTTP_STATUSES = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}
"""Of google.rpc.Code, what the same error is over HTTP."""
_CANCELLED_CODES = (1, 499)
"""Of google.rpc.Code, and over HTTP."""


class GeminiBatches:
    """The Batch API of one endpoint and model: see base.BatchApi."""

    def __init__(self, calls: BatchCalls, base_url: str, model_path: str, secrets: Secrets) -> None:
        self._calls, self._base, self._model_path, self._secrets = calls, urlsplit(base_url), model_path, secrets

    async def is_offered(self) -> bool:
        """Whether the endpoint has a Batch API. A cheap look: where it cannot be told, no."""
        try:
            content = await self._calls.json("GET", self._url("/batches", "pageSize=1"))
        except CallFailedError:
            return False
        return isinstance(content.get("operations", []), list) and "error" not in content

    async def upload(self, path: Path, name: str, n_bytes: int) -> str:
        """Send a file for a batch, piece by piece from the disk, to the address that the provider gives for it."""
        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(n_bytes),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        asked = {"file": {"displayName": name, "mimeType": "application/jsonl"}}
        _, said, _ = await self._calls.send("POST", self._url("/files", before="upload"), headers=start, content=asked)
        url = said.get("x-goog-upload-url", "")
        if urlsplit(url)[:2] != self._base[:2]:
            raise self._calls.failed(
                "the provider gave no upload address on its own host for the file; nothing was sent to another host"
            )
        whole = {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize", "Content-Type": "application/jsonl"}
        stored = await self._calls.json("POST", url, FilePayload(path, n_bytes), whole)
        file_id = text(mapping(stored.get("file")).get("name"))
        if file_id is None:
            raise self._calls.failed("the file was uploaded, but the reply does not name it")
        return file_id

    async def find_file(self, name: str, n_bytes: int) -> str | None:
        """The id of the whole file of this name; None where the provider has none."""
        async for row in self._listed("/files", "files"):
            if row.get("displayName") == name and _int(row.get("sizeBytes")) == n_bytes:
                return text(row.get("name"))
        return None

    async def create(self, file_id: str, token: str) -> ProviderBatch:
        """Create a batch of an uploaded file. It is asked for once: see `CallFailedError.may_have_worked`."""
        asked = {"batch": {"displayName": token, "inputConfig": {"fileName": file_id}}}
        return self._read(await self._calls.json("POST", self._url(f"{self._model_path}:batchGenerateContent"), content=asked))

    async def find(self, token: str, since_s: int, n_lines: int) -> list[ProviderBatch]:  # noqa: ARG002 - the token is enough
        """The batches that bear this token as their name, oldest first."""
        rows = [row async for row in self._listed("/batches", "operations")]
        found = [self._read(row) for row in rows if mapping(row.get("metadata")).get("displayName") == token]
        return sorted(found, key=lambda batch: batch.created_s)

    async def look(self, provider_id: str) -> ProviderBatch:
        """The batch as it is now."""
        seen = self._read(await self._calls.json("GET", self._url(f"/{quote(provider_id)}")))
        if seen.provider_id != provider_id:
            raise self._calls.failed(f"asked for batch {provider_id}, got {seen.provider_id}")
        return seen

    async def cancel(self, provider_id: str) -> None:
        """Ask the provider to stop working on a batch."""
        await self._calls.send("POST", self._url(f"/{quote(provider_id)}:cancel"))

    async def download(self, file_id: str, path: Path) -> None:
        """Write a file of results to `path` as it comes."""
        await self._calls.download(self._url(f"/{quote(file_id)}:download", "alt=media", before="download"), path)

    def line(self, custom_id: str, payload: Payload) -> bytes:
        """One request as a line of a batch's file."""
        return b"".join((b'{"key":"', custom_id.encode(), b'","request":', *payload, b"}\n"))

    def results(self, path: Path) -> Iterator[tuple[str, Ended]]:
        """(custom_id, how it ended) of every line of a file of results that can be told apart, without secrets."""
        for name, ended in read_result_lines(path, "key", _ended, self._secrets.out_of_bytes):
            yield name, self._secrets.out_of(ended) if isinstance(ended, Answer) else ended

    def _url(self, path: str, query: str = "", before: str = "") -> str:
        """A path under the base_url; `before` stands in front of the version, as for files that are sent or fetched."""
        head, _, version = self._base.path.rstrip("/").rpartition("/")
        root = "/".join(filter(None, (head, before, version))) if before else self._base.path.rstrip("/")
        queries = "&".join(filter(None, (query, self._base.query)))
        return self._base._replace(path=f"/{root.lstrip('/')}{path}", query=queries).geturl()

    async def _listed(self, path: str, key: str) -> AsyncIterator[dict[str, Any]]:
        """The rows of a list, page by page."""
        after = ""
        for _ in range(MAX_PAGES):
            content = await self._calls.json("GET", self._url(path, f"pageSize=100{after}"))
            for row in listed(content.get(key)):
                yield row
            token = content.get("nextPageToken")
            if not isinstance(token, str) or not token:
                return
            after = f"&pageToken={quote(token, safe='')}"

    def _read(self, content: dict[str, Any]) -> ProviderBatch:
        """The batch of a long-running operation."""
        metadata = mapping(content.get("metadata"))
        provider_id = text(content.get("name"))
        state = (text(metadata.get("state")) or "").removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        if provider_id is None or not state:
            raise self._calls.failed("the reply is not a batch: it has no name or no state")
        stats, error = mapping(metadata.get("batchStats")), mapping(content.get("error"))
        places = (mapping(metadata.get("output")), mapping(content.get("response")))
        output = next((name for place in places if (name := text(place.get("responsesFile"))) is not None), None)
        n_good, n_bad = _int(stats.get("successfulRequestCount")), _int(stats.get("failedRequestCount"))
        is_whole, is_failed = state == "SUCCEEDED", state == "FAILED" and not (n_good or output)  # else some were worked on
        return ProviderBatch(
            provider_id=provider_id,
            status=state.lower(),
            created_s=epoch_s(metadata.get("createTime")),
            output_file_id=output,
            error_file_id=None,
            n_completed=n_good if is_whole or output else 0,  # one that expired or was cancelled has no results to wait for
            n_done=n_good + n_bad,
            problem=one_line(self._secrets.out_of_text(str(error.get("message") or "no reason given"))),
            is_ended=state in _ENDED,
            is_failed=is_failed,
            is_cancelled=state == "CANCELLED",
            is_over_capacity=state == "FAILED" and error.get("code") in (8, 429),
        )


def _ended(content: dict[str, Any]) -> Ended:
    """How the request of a line of results ended, by the same reading as online."""
    response, error = content.get("response"), mapping(content.get("error"))
    if isinstance(response, dict):
        try:
            return read_content(response)
        except UnusableError as unusable:
            return bad(str(unusable))
    if not error:
        return Answer(ReplyStatus.BAD_RESPONSE, "a line with neither a response nor an error")
    code = error.get("code")
    if code in _CANCELLED_CODES or error.get("status") == CANCELLED:
        return NotSent(one_line(f"cancelled: {error.get('message') or 'no message'}"))
    code = code if isinstance(code, int) else 0
    status_code = code if 400 <= code < 600 else _HTTP_STATUSES.get(code, 500)
    return read_failure(status_code, {}, orjson.dumps({"error": error}))


def _int(value: object) -> int:
    """A number of 64 bits, which JSON of Google's APIs holds as a text; 0 where it is none."""
    said = value if isinstance(value, str) else str(value)
    return int(said) if said.isdecimal() and len(said) < 16 else 0
