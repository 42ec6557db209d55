"""The `openai` package's own transport: the way of the Batch API, and of single requests where SALON_TRANSPORT = sdk.

Imported where it is used: the package is half a second of CPU. Bounds on replies are transport.py's here too.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

import aiohttp
import httpx2
from openai import AsyncOpenAI, DefaultAioHttpClient

from schemas.input_budget import REPLY_WAITING_BYTES
from tasks.judge.provider.exchange import Payload
from tasks.judge.provider.transport import CONNECT_TIMEOUT_S, capped, is_loopback, refuse_packed
from tasks.judge.provider.wire import Response


class SdkWire:
    """The SDK's transport and its headers, past its building of a request, which costs as much as sending it: see wire.Wire."""

    def __init__(self, base_url: str, headers: Mapping[str, str], n_connections: int, deadline_s: float) -> None:
        # The timeouts are for each read; the deadline around the whole attempt is the client's.
        timeout = httpx2.Timeout(deadline_s, connect=min(CONNECT_TIMEOUT_S, deadline_s))
        self._transport = DefaultAioHttpClient(
            # Each connection is used once: what a server says unasked would be the next request's reply (see wire.py).
            limits=httpx2.Limits(max_connections=n_connections, keepalive_expiry=0),
            timeout=timeout,
            follow_redirects=False,
            trust_env=not is_loopback(base_url),
            event_hooks={"response": [ReplyCap()]},
        )
        sdk = AsyncOpenAI(api_key="none", base_url=base_url, http_client=self._transport, max_retries=0)
        named = {name: value for name, value in sdk.default_headers.items() if isinstance(value, str)}
        self._headers = named | dict(headers)
        self._extensions = {"timeout": timeout.as_dict()}  # what the transport adds where it builds the request itself

    async def post(self, url: str, payload: Payload) -> Response:
        """Send a body; the whole response."""
        headers = self._headers | {"content-length": str(payload.n_bytes)}
        return await self._sent(
            httpx2.Request("POST", url, headers=headers, stream=_Stream(payload), extensions=self._extensions)
        )

    async def get(self, url: str) -> Response:
        """Ask for what stands at an address; the whole response."""
        return await self._sent(httpx2.Request("GET", url, headers=self._headers, extensions=self._extensions))

    async def _sent(self, request: httpx2.Request) -> Response:
        try:
            response = await self._transport.send(request)
        except httpx2.RequestError as error:
            raise aiohttp.ClientError from error  # what went wrong stands among the causes: see transport.no_response
        return response.status_code, response.headers, response.content

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


class _Stream(httpx2.AsyncByteStream):
    """A payload as httpx2 takes it."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._payload:
            yield piece


class _Capped(httpx2.AsyncByteStream):
    """A response stream of which no more is read than `capped` gives. Its turn ends when the response is closed."""

    def __init__(self, stream: httpx2.AsyncByteStream, turn: asyncio.Lock) -> None:
        self._stream, self._turn = stream, turn
        self._chunks: AsyncGenerator[bytes] | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._chunks = capped(self._stream, self._turn)
        async for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        if self._chunks is not None:
            await self._chunks.aclose()
        await self._stream.aclose()


class ReplyCap:
    """A response hook: a packed reply is refused before it is unpacked, one of more than REPLY_BYTES while it is read.

    The library unpacks whatever spelling of an encoding it knows, twice where it is named twice, and without a limit: 5 MB are
    5 GB. None was asked for. Large replies of one client are read one at a time.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def __call__(self, response: httpx2.Response) -> None:
        """Raise RefusedReplyError, or bound what is read."""
        refuse_packed(response.headers.get("content-encoding", ""))
        said = response.headers.get("content-length", "")
        if said.isdecimal() and len(said) < 12 and int(said) <= REPLY_WAITING_BYTES:
            return  # the transport holds it to what it says
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Capped(response.stream, self._turn)
