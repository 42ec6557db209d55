"""Requests and responses through aiohttp itself. Imported where the first is sent: reading a benchmark file does not need it.

One request with a body goes over aiohttp's connections, by its writer and its parser, past its session: what that does beside
(redirects, cookies, retries, an object for each request and response) costs more than those three.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, StreamWriter
from aiohttp.streams import StreamReader
from multidict import CIMultiDictProxy
from yarl import URL

from tasks.judge.provider.exchange import Payload
from tasks.judge.provider.transport import CONNECT_TIMEOUT_S, capped, proxy_of, refuse_packed
from tasks.judge.provider.wire import Response

_SMALL_BYTES = 64 * 1024
"""A body of no more that came with its head is taken as it lies there; others within the bounds of `capped`."""


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
        return await _posted(connector, request, payload, session.timeout, self._turn)

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


async def _posted(
    connector: aiohttp.BaseConnector,
    request: aiohttp.ClientRequest,
    payload: Payload,
    timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own, of connecting
    turn: asyncio.Lock,
) -> Response:
    """Send a body to where the request says, which serves all that go there; the whole response. Raises as Wire.post does."""
    try:
        connection = await connector.connect(request, [], timeout)
    except TimeoutError as error:
        raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {request.url}") from error
    writing: asyncio.Task[None] | None = None
    try:
        protocol = connection.protocol
        if protocol is None:
            raise aiohttp.ClientConnectionError("the connection is closed")
        protocol.set_response_params(auto_decompress=False, read_until_eof=True)
        writing = await _sent(protocol, request, payload)
        status, headers, content = await _head(protocol)
        refuse_packed(",".join(headers.getall("content-encoding", ())))
        if content.is_eof() and content.total_bytes <= _SMALL_BYTES:
            body = content.read_nowait()
        else:
            body = b"".join([chunk async for chunk in capped(content.iter_any(), turn)])
        if writing is None or writing.done():  # else the answer came before all of the body had gone: the rest is not sent
            connection.release()
        return status, headers, body
    finally:
        if writing is not None:
            writing.cancel()
            if connection.protocol is not None:  # not given back: else its socket stays until the peer has read what it was sent
                connection.protocol.abort()
        connection.close()


async def _sent(protocol: ResponseHandler, request: aiohttp.ClientRequest, payload: Payload) -> asyncio.Task[None] | None:
    """Head and body as far as the socket takes them at once; the rest, if any, beside the reading: an answer may come first."""
    writer, headers = StreamWriter(protocol, asyncio.get_running_loop()), request.headers.copy()
    headers["Content-Length"] = str(payload.n_bytes)
    is_by_proxy = request.proxy is not None and not request.is_ssl()
    target = str(request.url) if is_by_proxy else request.url.raw_path_qs
    await writer.write_headers(f"{request.method} {target} HTTP/1.1", headers)
    pieces = iter(payload)
    await _write(protocol, writer, pieces, is_waiting=False)
    return asyncio.create_task(_write(protocol, writer, pieces)) if protocol.writing_paused else None


async def _write(protocol: ResponseHandler, writer: StreamWriter, pieces: Iterator[bytes], *, is_waiting: bool = True) -> None:
    """The pieces; unless it `is_waiting`, those before the socket takes no more. Who reads the answer is told of an error."""
    try:
        if is_waiting:
            await writer.drain()
        for piece in pieces:
            await writer.write(piece, drain=is_waiting)
            if protocol.writing_paused and not is_waiting:
                return
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody answers half a request
        if protocol.exception() is None:  # else it says more: how the connection was lost
            is_said = isinstance(error, aiohttp.ClientError)
            protocol.set_exception(error if is_said else aiohttp.ClientConnectionError(f"{type(error).__name__}: {error}"))


async def _head(protocol: ResponseHandler) -> tuple[int, CIMultiDictProxy[str], StreamReader]:
    """Status, headers and body of the response; those that only say to wait are passed over."""
    while True:
        try:
            message, content = await protocol.read()
        except HttpProcessingError as error:
            raise aiohttp.ClientConnectionError(error.message) from error
        if not 100 <= message.code < 200 or message.code == 101:
            return message.code, message.headers, content
