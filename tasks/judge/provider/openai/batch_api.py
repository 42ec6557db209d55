"""The Batch API: files and batches, one call at a time. In which order they are called is tasks/judge/batch."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAioHttpClient

from schemas.errors import StoreError
from schemas.input_budget import BATCH_RESULTS_BYTES
from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.batch_api import CallFailedError, ProviderBatch
from tasks.judge.provider.batch_calls import CALL_DEADLINE_S, read_object, transfer_s, write_results
from tasks.judge.provider.exchange import Answer, Ended
from tasks.judge.provider.failures import one_line
from tasks.judge.provider.json_bodies import listed, mapping, text
from tasks.judge.provider.openai.batch_files import ASKED_PATH, TOKEN_NAME, read_batch, read_results, request_line
from tasks.judge.provider.openai.responses import read_answer
from tasks.judge.provider.openai.sdk_wire import ReplyCap
from tasks.judge.provider.transport import CONNECT_TIMEOUT_S, Secrets, is_loopback, no_response

READ_TIMEOUT_S = 60.0
MAX_PAGES = 100

_HEADERS = {"accept-encoding": "identity"}


class OpenAIBatches:
    """The Batch API of one endpoint: see base.BatchApi."""

    def __init__(self, base_url: str, key: str | None, secrets: Secrets) -> None:
        self._secrets = secrets
        timeout = httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        transport = DefaultAioHttpClient(
            timeout=timeout,
            follow_redirects=False,
            trust_env=not is_loopback(base_url),
            event_hooks={"response": [_CallCap()]},
        )
        address = urlsplit(base_url)
        self._openai = AsyncOpenAI(
            api_key=key or "none",
            base_url=address._replace(query="").geturl(),
            default_query=dict(parse_qsl(address.query, keep_blank_values=True)),  # the SDK writes its paths behind a query
            http_client=transport,
            max_retries=0,
        )
        self._files = self._openai.files.with_raw_response
        self._batches = self._openai.batches.with_raw_response

    async def close(self) -> None:
        """Close the connections."""
        await self._openai.close()

    line = staticmethod(request_line)

    def results(self, path: Path) -> Iterator[tuple[str, Ended]]:
        """(custom_id, how it ended) of every line of a file of results, without secrets."""
        for name, ended in read_results(path, self._secrets.out_of_bytes):
            yield name, self._secrets.out_of(ended) if isinstance(ended, Answer) else ended

    async def is_offered(self) -> bool:
        """Whether the endpoint has a Batch API. A cheap look: where it cannot be told, no."""
        try:
            content = await self._json(partial(self._get, "/batches", {"limit": 1}))
        except CallFailedError:
            return False
        return isinstance(content.get("data"), list)

    async def upload(self, path: Path, name: str, n_bytes: int) -> str:
        """Send a file for a batch, piece by piece from the disk; returns its id."""
        with path.open("rb") as file:
            named = (name, file, "application/jsonl")
            send = partial(self._files.create, file=named, purpose="batch", extra_headers=_HEADERS)
            stored = await self._json(send, transfer_s(n_bytes))
        file_id = text(stored.get("id"))
        if file_id is None:
            raise self._failed(Answer(ReplyStatus.BAD_RESPONSE, "the file was uploaded, but the reply names no id"))
        return file_id

    async def find_file(self, name: str, n_bytes: int) -> str | None:
        """The id of the whole file of this name; None where the provider has none."""
        async for row in self._listed("/files", {"purpose": "batch", "limit": 1000}):
            if row.get("filename") == name and row.get("bytes") == n_bytes:
                return text(row.get("id"))
        return None

    async def create(self, file_id: str, token: str) -> ProviderBatch:
        """Create a batch of an uploaded file. It is asked for once: see `CallFailedError.may_have_worked`."""
        asked = {"endpoint": ASKED_PATH, "completion_window": "24h", "metadata": {TOKEN_NAME: token}}
        create: Callable[..., Awaitable[Any]] = self._batches.create
        return self._read(await self._json(partial(create, input_file_id=file_id, extra_headers=_HEADERS, **asked)))

    async def find(self, token: str, since_s: int, n_lines: int) -> list[ProviderBatch]:  # noqa: ARG002 - the token is enough
        """The batches created with this token, oldest first. The newest are listed first, so that `since_s` ends the search."""
        found = []
        async for row in self._listed("/batches", {"limit": 100}):
            if mapping(row.get("metadata")).get(TOKEN_NAME) == token:
                found.append(self._read(row))
            created_s = row.get("created_at")
            if isinstance(created_s, int) and created_s < since_s:
                break
        return sorted(found, key=lambda batch: batch.created_s)

    async def look(self, provider_id: str) -> ProviderBatch:
        """The batch as it is now."""
        seen = self._read(await self._json(partial(self._batches.retrieve, provider_id, extra_headers=_HEADERS)))
        if seen.provider_id != provider_id:
            raise self._failed(Answer(ReplyStatus.BAD_RESPONSE, f"asked for batch {provider_id}, got {seen.provider_id}"))
        return seen

    async def cancel(self, provider_id: str) -> None:
        """Ask the provider to stop working on a batch."""
        await self._json(partial(self._batches.cancel, provider_id, extra_headers=_HEADERS))

    async def download(self, file_id: str, path: Path) -> None:
        """Write a file of results to `path` as it comes; of a larger one, its first BATCH_RESULTS_BYTES."""
        contents = self._openai.files.with_streaming_response
        async with self._mapped(transfer_s(BATCH_RESULTS_BYTES)), contents.content(file_id, extra_headers=_HEADERS) as response:
            await write_results(response.iter_bytes(), path)

    async def _listed(self, path: str, query: Mapping[str, object]) -> AsyncIterator[dict[str, Any]]:
        """The rows of a list, page by page."""
        after: str | None = None
        for _ in range(MAX_PAGES):
            content = await self._json(partial(self._get, path, {**query, "after": after} if after else query))
            rows = listed(content.get("data"))
            for row in rows:
                yield row
            last = text(rows[-1].get("id")) if rows else None
            if not content.get("has_more") or last is None or last == after:
                return
            after = last

    async def _get(self, path: str, query: Mapping[str, object]) -> httpx2.Response:
        return await self._openai.get(path, cast_to=httpx2.Response, options={"headers": _HEADERS, "params": query})

    async def _json(self, call: Callable[[], Awaitable[Any]], deadline_s: float = CALL_DEADLINE_S) -> dict[str, Any]:
        """The JSON object that is the reply to a call."""
        async with self._mapped(deadline_s):
            body: bytes = (await call()).content
        return read_object(body, self._secrets)

    @asynccontextmanager
    async def _mapped(self, deadline_s: float) -> AsyncIterator[None]:
        """Whatever the libraries raise as CallFailedError; the deadline is for the whole block."""
        try:
            async with asyncio.timeout(deadline_s):
                yield
        except StoreError:
            raise
        except APIStatusError as error:
            response = error.response
            answer = read_answer(response.status_code, response.headers, self._secrets.out_of_bytes(response.content))
            is_unsupported = response.status_code in (404, 405, 501)
            raise self._failed(answer, is_absent=response.status_code == 404, is_unsupported=is_unsupported) from None
        except TimeoutError:
            raise self._failed(Answer(ReplyStatus.TIMED_OUT, f"no complete reply within {deadline_s:.0f} s")) from None
        except APIConnectionError as error:
            raise self._failed(no_response(error)) from None
        except Exception as error:  # noqa: BLE001 - whatever a broken peer makes the libraries raise is one failed call
            raise self._failed(Answer(ReplyStatus.BAD_RESPONSE, f"{type(error).__name__}: {error}")) from None

    def _failed(self, answer: Answer, **how: bool) -> CallFailedError:
        said = self._secrets.out_of(replace(answer, detail=answer.detail or "no reason given"))
        return CallFailedError(said, **how)

    def _read(self, content: Mapping[str, Any]) -> ProviderBatch:
        batch = read_batch(content)
        if batch is None:
            raise self._failed(Answer(ReplyStatus.BAD_RESPONSE, "the reply is not a batch: it has no id or no status"))
        return replace(batch, problem=one_line(self._secrets.out_of_text(batch.problem)))


class _CallCap(ReplyCap):
    """Caps every reply but the files of results, which go to the disk."""

    async def __call__(self, response: httpx2.Response) -> None:
        if not (response.is_success and response.request.url.path.endswith("/content")):
            await super().__call__(response)
