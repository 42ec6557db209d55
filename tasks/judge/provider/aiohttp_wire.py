"""Requests and responses through aiohttp itself. Imported where the first is sent: reading a benchmark file does not need it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from yarl import URL

from tasks.judge.provider.aiohttp_post import posted
from tasks.judge.provider.exchange import Payload
from tasks.judge.provider.transport import CONNECT_TIMEOUT_S, capped, proxy_of, refuse_packed
from tasks.judge.provider.wire import Response


class AiohttpWire:
    """aiohttp as it is: past the SDK's transport, which costs twice as much as all that it wraps."""

    def __init__(self, base_url: str, headers: Mapping[str, str], n_connections: int) -> None:
        self._headers, self._n_connections = dict(headers), n_connections
        self._is_encrypted, self._proxy = urlsplit(base_url).scheme == "https", proxy_of(base_url)
        self._turn = asyncio.Lock()
        self._open: tuple[aiohttp.ClientSession, aiohttp.BaseConnector] | None = None
        self._requests: dict[str, aiohttp.ClientRequest] = {}

    async def post(self, url: str, payload: Payload) -> Response:
        """Send a body; the whole response."""
        session, connector = self._open or self._opened()
        request = self._requests.get(url) or self._request(session, url)
        return await posted(connector, request, payload, session.timeout, self._turn)

    async def get(self, url: str) -> Response:
        """Ask for what stands at an address; the whole response."""
        return await self.send("GET", url)

    async def send(
        self, method: str, url: str, payload: Payload | None = None, headers: Mapping[str, str] = MappingProxyType({})
    ) -> Response:
        """A call with headers of its own beside those of every call; the whole response."""
        async with (
            self.streamed(url, method, payload, headers) as response,
            aclosing(capped(response.content.iter_any(), self._turn)) as chunks,
        ):
            return response.status, response.headers, b"".join([chunk async for chunk in chunks])

    @asynccontextmanager
    async def streamed(
        self, url: str, method: str = "GET", payload: Payload | None = None, headers: Mapping[str, str] = MappingProxyType({})
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to a call, its body still to be read."""
        session, _ = self._open or self._opened()
        sent = session.request(
            method,
            URL(url, encoded=True),
            data=None if payload is None else _Body(payload),
            headers=self._headers | dict(headers),
            proxy=self._proxy,
            allow_redirects=False,
        )
        async with sent as response:
            refuse_packed(",".join(response.headers.getall("content-encoding", ())))
            yield response

    async def close(self) -> None:
        """Close the connections."""
        if self._open is not None:
            await self._open[0].close()

    def _opened(self) -> tuple[aiohttp.ClientSession, aiohttp.BaseConnector]:
        """In the loop that sends. The environment's proxies are ours to find: aiohttp would read ~/.netrc with them."""
        connector = _Connector(limit=self._n_connections, ssl=_trusted() if self._is_encrypted else True)
        session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        self._open = session, connector
        return self._open

    def _request(self, session: aiohttp.ClientSession, url: str) -> aiohttp.ClientRequest:
        """What all bodies that go to an address have in common."""
        proxy, loop = None if self._proxy is None else URL(self._proxy), asyncio.get_running_loop()
        where = URL(url, encoded=True)
        request = aiohttp.ClientRequest("POST", where, headers=self._headers, proxy=proxy, loop=loop, session=session)
        return self._requests.setdefault(url, request)


class _Connector(aiohttp.TCPConnector):
    """Uses a connection again only where nothing came on it since its last response.

    What a server says unasked, such as a second response, would be the reply to the next request: another picture's score.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - TCPConnector's signature
    ) -> Connection:
        """A connection, as TCPConnector gives it."""
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None or protocol not in self._used:
                break
            if not protocol.should_close:
                return connection
            connection.close()
        if protocol is not None:
            self._used.add(protocol)
        return connection


def _trusted() -> ssl.SSLContext:
    """The authorities that the SDK trusts; imported for an encrypted endpoint alone."""
    from httpx2 import create_ssl_context

    return create_ssl_context()


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
