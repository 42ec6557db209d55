"""A server that misbehaves byte by byte, in a way of its own for each path that a judge's base_url may have. No tests here."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

import orjson

HANG_S = 600.0


@dataclass(frozen=True)
class Play:
    """One way to answer: these pieces, one by one, and then: the connection stays, is closed, hangs, or the last comes again."""

    sent: tuple[bytes, ...] | Callable[[int], bytes]  # a function makes the one piece from the request's number
    then: Literal["stay", "close", "hang", "repeat"] = "close"
    every_s: float = 0.0


def completion(text: object = "Reasoning: as asked.\nScore: 3", message: dict[str, Any] | None = None, **choice: Any) -> bytes:
    """A chat completion with these further fields of its message and of its choice."""
    said = {"role": "assistant", "content": text} | (message or {})
    content = {"id": "c", "model": "judge-1", "choices": [{"index": 0, "message": said, "finish_reason": "stop"} | choice]}
    return orjson.dumps(content | {"usage": {"prompt_tokens": 900, "completion_tokens": 12}})


def head(*lines: str, status: int = 200) -> bytes:
    """A response's status line and headers."""
    return "\r\n".join([f"HTTP/1.1 {status} Said", "content-type: application/json", *lines, "", ""]).encode()


def response(body: bytes, *lines: str, status: int = 200) -> bytes:
    """A response as it should be, by its form."""
    return head(f"content-length: {len(body)}", *lines, status=status) + body


def whole(body: bytes, *lines: str, status: int = 200) -> Play:
    """The same to each request."""
    return Play((response(body, *lines, status=status),), "stay")


def failure(status: int, content: object, *lines: str) -> Play:
    """A response with a JSON body that says what is wrong."""
    return whole(orjson.dumps(content), *lines, status=status)


class MisbehavingServer:
    """Serves every play, in a thread of its own."""

    def __init__(self, plays: dict[str, Play]) -> None:
        self._plays, self._numbers = plays, count()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._ready.wait(60)

    def url(self, name: str, scheme: str = "http") -> str:
        """The address of a judge that behaves so."""
        return f"{scheme}://127.0.0.1:{self._port}/{name}/v1"

    def close(self) -> None:
        """Stop serving."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024))
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left))
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._answered(reader, writer):
                pass
        writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may be used again."""
        method, path, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().replace("\r\n", " ").split(" ")
        await reader.readexactly(int(lines[lines.index("content-length:") + 1]) if "content-length:" in lines else 0)
        name = path.split(".")[0] if method == "connect" else path.split("/")[1]  # as a proxy is asked: HOST:443
        play = self._plays[name] if method in ("post", "connect") else whole(b"", status=404)
        pieces = play.sent if isinstance(play.sent, tuple) else (play.sent(next(self._numbers)),)
        await self._say(writer, pieces, play.every_s)
        while play.then == "repeat":
            await self._say(writer, pieces[-1:], play.every_s)
        if play.then == "hang":
            await asyncio.sleep(HANG_S)
        return play.then == "stay"

    async def _say(self, writer: asyncio.StreamWriter, pieces: tuple[bytes, ...], every_s: float) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(every_s)


@contextmanager
def misbehaving(plays: dict[str, Play]) -> Iterator[MisbehavingServer]:
    """The server for as long as the block lasts."""
    server = MisbehavingServer(plays)
    try:
        yield server
    finally:
        server.close()
