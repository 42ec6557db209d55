"""One request with a body over aiohttp's connections, by its writer and its parser, past its session. The rest: aiohttp_wire.py.

What the session does beside (redirects, cookies, retries, an object for each request and response) costs more than those three.
"""

import asyncio
from collections.abc import Iterator

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, StreamWriter
from aiohttp.streams import StreamReader
from multidict import CIMultiDictProxy

from tasks.judge.provider.exchange import Payload
from tasks.judge.provider.transport import capped, refuse_packed
from tasks.judge.provider.wire import Response

_SMALL_BYTES = 64 * 1024
"""A body of no more that came with its head is taken as it lies there; others within the bounds of `capped`."""


async def posted(
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
