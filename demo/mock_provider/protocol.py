"""The difficult provider's sockets: chat requests on asyncio's own protocol. What is answered, provider.py decides.

A request's head is scanned for the few headers that matter (heads.py); its body is received into the connection's buffer and
not copied. Where only its beginning is looked at, the kernel drops the rest uncopied. benchmarks/serve_judge_cost.py holds it
against aiohttp. A connection that asks for anything else is handed to aiohttp.
"""

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Callable

from demo.mock_provider.forms import Addressed
from demo.mock_provider.heads import MAX_BODY_BYTES, Refusal, read_head
from demo.mock_provider.provider import Provider
from demo.mock_provider.request import SAMPLED_BYTES
from demo.mock_provider.responses import PlannedResponse, http_response

_MAX_HEAD_BYTES = 8 * 1024
_START_BYTES = _MAX_HEAD_BYTES + SAMPLED_BYTES
_TEXT = "text/plain"
_DROP_FLAG = socket.MSG_TRUNC if sys.platform == "linux" else 0  # on TCP: count the bytes, copy none (man 7 tcp)
_dropped = memoryview(bytearray(2**20))


class ChatProtocol(asyncio.BufferedProtocol):
    """One connection. Requests on it are answered one after the other, those sent ahead wait in the buffer."""

    def __init__(
        self, provider: Provider, connections: set["ChatProtocol"], hand_over: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        self._provider, self._connections, self._hand_over = provider, connections, hand_over
        self._buffer = bytearray(_START_BYTES)
        self._n_filled = self._n_unread = 0
        self._is_unread = False
        self._head = self._need = 0  # bytes of the present request's head, and of all of it; 0: not known yet
        self._key = ""
        self._form: Addressed | None = None  # of a request that is not in OpenAI's
        self._is_kept_whole = False
        self._first_byte_s = 0.0
        self._is_last = self._is_counted = False
        self._planned: PlannedResponse | None = None  # of the request being answered
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # A second object for the transport's own socket, whose methods it keeps to itself.
        self._socket = socket.socket(fileno=transport.get_extra_info("socket").fileno())
        self._connections.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        """The client is gone, or we are. An answer under way is made all the same, and paid for."""
        self._connections.discard(self)
        self._socket.detach()
        planned, self._planned = self._planned, None
        if planned is None:
            return
        if self._timer is None:  # it had begun to answer, or never would have
            self._provider.leave(0, is_abandoned=True)
        else:
            self._timer.cancel()
            asyncio.get_running_loop().call_at(self._timer.when(), _finish_alone, self._provider, planned)

    def close(self) -> None:
        """Drop the connection: the server stops."""
        self._transport.abort()

    def get_buffer(self, _hint: int) -> memoryview:
        """Where the next bytes go: behind those that are there, or among those nobody reads."""
        is_full = self._n_filled == len(self._buffer)
        self._is_unread = is_full and self._need > self._n_filled and not self._is_kept_whole
        if self._is_unread:
            return _dropped[:1] if _DROP_FLAG else _dropped[: self._need - self._n_filled - self._n_unread]
        if is_full:
            self._grow(2 * len(self._buffer))
        return memoryview(self._buffer)[self._n_filled :]

    def buffer_updated(self, n_bytes: int) -> None:
        """Bytes came."""
        if not self._n_filled:
            self._first_byte_s = time.monotonic()
        if self._is_unread:
            self._n_unread += n_bytes
        else:
            self._n_filled += n_bytes
        if self._planned is None:
            self._read_requests()
        elif self._n_filled > MAX_BODY_BYTES:
            self._transport.abort()

    def _read_requests(self) -> None:
        while self._planned is None and self._n_filled and not self._transport.is_closing():
            if not self._need and not self._read_head():
                return
            if not self._is_whole():
                return
            body = memoryview(self._buffer)[self._head : min(self._need, self._n_filled)]
            self._planned = self._provider.receive(body, self._need - self._head, self._key, self._first_byte_s, self._form)
            body.release()
            self._drop_request()
            if self._planned.delay_s > 0:
                self._timer = asyncio.get_running_loop().call_later(self._planned.delay_s, self._answer)
            else:
                self._answer()

    def _is_whole(self) -> bool:
        """Whether all of the present request came; where not, the rest gets room, or what came of it is dropped."""
        if self._n_filled + self._n_unread < self._need:
            if self._is_kept_whole:
                self._grow(self._need)
            elif self._n_filled == len(self._buffer):
                self._drop_rest()
        return self._n_filled + self._n_unread >= self._need

    def _read_head(self) -> bool:
        """Find out how long the request is; False where that is not known yet, or the connection has another reader now."""
        end = self._buffer.find(b"\r\n\r\n", 0, min(self._n_filled, _MAX_HEAD_BYTES))
        if end < 0:
            if self._n_filled >= _MAX_HEAD_BYTES:
                self._reject(431, "the request's head is longer than 8 KB")
            return False
        head = read_head(bytes(memoryview(self._buffer)[: end + 2]))
        if head is None:
            self._give_away()
            return False
        if isinstance(head, Refusal):
            self._reject(head.status, head.message)
            return False
        self._form, self._key, self._is_last = head.form, head.key, head.is_last
        self._head = end + 4
        self._need = self._head + head.n_body_bytes
        self._provider.counts.n_connections += not self._is_counted
        self._is_counted = True
        self._is_kept_whole = head.form is not None or self._provider.needs_whole_bodies
        if head.is_continue_awaited:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _answer(self) -> None:
        """The time of the answer has come."""
        planned, self._timer = self._planned, None
        assert planned is not None
        self._provider.charge(planned)
        match planned.manner:
            case "whole":
                self._transport.write(planned.content)
                self._end(planned.status)
            case "reset":
                self._reset()
            case "drip":
                head, _, body = planned.content.partition(b"\r\n\r\n")
                self._transport.write(head + b"\r\n\r\n")
                self._drip(body, 0, planned.status)
            case "hang":
                pass

    def _drip(self, body: bytes, start: int, status: int) -> None:
        if self._transport.is_closing():
            return
        if start == len(body):
            self._end(status)
            return
        self._transport.write(body[start : start + 1])
        every_s = self._provider.scenario.faults.drip_every_s
        asyncio.get_running_loop().call_later(every_s, self._drip, body, start + 1, status)

    def _end(self, status: int) -> None:
        """The response is out; go on with what was sent ahead."""
        self._planned = None
        self._provider.leave(status)
        if self._is_last:
            self._transport.close()
        elif self._n_filled:
            self._first_byte_s = time.monotonic()
            asyncio.get_running_loop().call_soon(self._read_requests)

    def _reset(self) -> None:
        """End the connection with a RST instead of a FIN."""
        self._planned = None
        self._provider.leave(0)
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _reject(self, status: int, message: str) -> None:
        self._transport.write(http_response(status, message.encode(), _TEXT, {"connection": "close"}))
        self._transport.close()

    def _give_away(self) -> None:
        """Let aiohttp go on with this connection, from the request that was begun."""
        begun = bytes(memoryview(self._buffer)[: self._n_filled])
        protocol = self._hand_over()
        assert isinstance(protocol, asyncio.Protocol)
        self._connections.discard(self)
        self._socket.detach()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(begun)

    def _drop_rest(self) -> None:
        """Let the kernel drop what is there of a body nobody reads on."""
        while _DROP_FLAG and (n_left := self._need - self._n_filled - self._n_unread) > 0:
            try:
                n_bytes = self._socket.recv_into(_dropped, min(n_left, len(_dropped)), _DROP_FLAG)
            except OSError:  # nothing there now, or the connection is gone: the transport will notice
                return
            if not n_bytes:
                return
            self._n_unread += n_bytes

    def _drop_request(self) -> None:
        n_ahead = max(0, self._n_filled - self._need)
        if n_ahead:
            self._buffer[:n_ahead] = self._buffer[self._need : self._n_filled]
        self._n_filled, self._n_unread, self._head, self._need = n_ahead, 0, 0, 0

    def _grow(self, n_bytes: int) -> None:
        if n_bytes > len(self._buffer):
            grown = bytearray(n_bytes)
            grown[: self._n_filled] = memoryview(self._buffer)[: self._n_filled]
            self._buffer = grown


def _finish_alone(provider: Provider, planned: PlannedResponse) -> None:
    """Finish an answer whose client has gone."""
    provider.charge(planned)
    provider.leave(0, is_abandoned=True)
