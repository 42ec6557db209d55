"""How a request's bytes go out and a response's come in: through aiohttp itself, or through the SDK's transport around it.

Either gives the same for the same server: no redirect is followed, and a reply is read within the bounds of transport.py.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from schemas.errors import InputError
from tasks.judge.provider.base import Payload
from tasks.judge.provider.openai.transport import CONNECT_TIMEOUT_S, capped, refuse_packed

SETTING = "SALON_TRANSPORT"
Response = tuple[int, Mapping[str, str], bytes]
"""Status, headers whose names are found in any case, body."""


class Wire(Protocol):
    """Connections to one address."""

    async def post(self, payload: Payload) -> Response:
        """Send a body made as the socket takes it: hundreds of whole ones would stay in memory until their replies come.

        Raises RefusedReplyError, and what aiohttp or httpx2 raises.
        """

    async def close(self) -> None:
        """Close the connections."""


def is_by_sdk() -> bool:
    """Whether the environment asks for the SDK's transport. Raises InputError for a word it does not know."""
    chosen = os.environ.get(SETTING, "aiohttp")
    if chosen not in ("aiohttp", "sdk"):
        raise InputError(f'the environment variable {SETTING} = "{chosen}" is no transport; it is aiohttp (the default) or sdk')
    return chosen == "sdk"


class AiohttpWire:
    """aiohttp as it is: past the SDK's transport, which costs twice as much as all that it wraps."""

    def __init__(self, url: str, headers: Mapping[str, str], n_connections: int) -> None:
        self._url, self._headers, self._n_connections = URL(url, encoded=True), dict(headers), n_connections
        self._proxy = _proxy(url)
        self._turn = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    async def post(self, payload: Payload) -> Response:
        """Send a body; the whole response."""
        session = self._session or self._opened()
        sent = session.post(self._url, data=_Body(payload), headers=self._headers, proxy=self._proxy, allow_redirects=False)
        async with sent as response:
            refuse_packed(response.headers.get("content-encoding", ""))
            async with aclosing(capped(response.content.iter_any(), self._turn)) as chunks:
                return response.status, response.headers, b"".join([chunk async for chunk in chunks])

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """In the loop that sends. The environment's proxies are ours to find: aiohttp would read ~/.netrc with them."""
        context = httpx2.create_ssl_context() if self._url.scheme == "https" else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._n_connections, ssl=context),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        return self._session


class _Body(aiohttp.payload.Payload):
    """A payload as aiohttp takes it."""

    _autoclose = True

    def __init__(self, payload: Payload) -> None:
        super().__init__(payload, content_type="application/json")
        self._size = payload.n_bytes

    async def write(self, writer: AbstractStreamWriter) -> None:
        for piece in self._value:
            await writer.write(piece)

    def decode(self, *_: str) -> str:
        raise TypeError("a body that is made while it is sent cannot be shown")


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address."""
    parts = urlsplit(url)
    proxies = getproxies()
    if proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


class SdkWire:
    """The `openai` package's own transport, past its building of a request, which costs as much as sending it."""

    def __init__(self, url: httpx2.URL, headers: Mapping[str, str], transport: httpx2.AsyncClient, deadline_s: float) -> None:
        self._url, self._headers, self._transport = url, dict(headers), transport
        timeout = httpx2.Timeout(deadline_s, connect=min(CONNECT_TIMEOUT_S, deadline_s))
        self._extensions = {"timeout": timeout.as_dict()}  # what the transport adds where it builds the request itself

    async def post(self, payload: Payload) -> Response:
        """Send a body; the whole response."""
        headers = self._headers | {"content-length": str(payload.n_bytes)}
        request = httpx2.Request("POST", self._url, headers=headers, stream=_Stream(payload), extensions=self._extensions)
        response = await self._transport.send(request)
        return response.status_code, response.headers, response.content

    async def close(self) -> None:
        """The transport is the SDK's to close."""


class _Stream(httpx2.AsyncByteStream):
    """A payload as httpx2 takes it."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._payload:
            yield piece
