"""A provider that plays what a test scripts, over real HTTP, and the judge that asks it. No tests here."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from aiohttp import web

from schemas.benchmark.judges import Judge


@dataclass
class Play:
    """One response: what is sent, how slowly, or how the connection is broken."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    drip_s: float | None = None
    reset: bool = False
    cut: bool = False
    is_last: bool = False  # the server stops listening, and the connection ends


def completion(text: object, **more: Any) -> bytes:
    message = {"role": "assistant", "content": text} | more.pop("message", {})
    choice = {"index": 0, "message": message, "finish_reason": more.pop("finish_reason", "stop")}
    usage = {"prompt_tokens": 900, "completion_tokens": 12}
    return orjson.dumps({"id": "c", "model": "judge-2026-01-01", "choices": [choice], "usage": usage} | more)


def _texts(body: Any) -> str:
    parts = [
        part
        for message in body["messages"]
        for part in ([message["content"]] if isinstance(message["content"], str) else message["content"])
    ]
    return "\n".join(part if isinstance(part, str) else part.get("text", "") for part in parts)


class Provider:
    """A real HTTP server on a free port. It plays the scripted responses in order, then `then`, and keeps what it saw."""

    play = Play
    complete = staticmethod(completion)

    def __init__(self) -> None:
        self.then = Play(body=completion('{"score": 3}'))
        self.script: deque[Play] = deque()
        self.answers: Callable[[str], str] | None = None  # the reply to a request's texts, where it depends on them
        self.seen: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.on_request: Callable[[], None] | None = None
        self.n_in_flight = self.peak = 0
        self.connections: set[object] = set()
        self.loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._ready.wait(60)

    @property
    def n(self) -> int:
        return len(self.seen)

    @property
    def bodies(self) -> list[Any]:
        return [orjson.loads(body) for body in self.seen]

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        self.loop.run_until_complete(runner.setup())
        self._site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        self.loop.run_until_complete(self._site.start())
        self.port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._ready.set()
        self.loop.run_forever()
        self.loop.run_until_complete(runner.shutdown())
        self.loop.run_until_complete(runner.cleanup())
        self.loop.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.n_in_flight += 1
        self.peak = max(self.peak, self.n_in_flight)
        self.connections.add(request.transport)
        try:
            body = await request.read()
            if self.on_request:
                self.on_request()
            self.seen.append(body)
            self.headers.append(dict(request.headers))
            self.paths.append(request.raw_path)
            then = Play(body=completion(self.answers(_texts(orjson.loads(body))))) if self.answers else self.then
            return await self._play(request, self.script.popleft() if self.script else then)
        finally:
            self.n_in_flight -= 1

    async def _play(self, request: web.Request, play: Play) -> web.StreamResponse:
        if play.delay_s:
            await asyncio.sleep(play.delay_s)
        if play.reset:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        headers = {"content-type": "application/json"} | play.headers
        if play.drip_s is None and not play.cut:
            response = web.Response(status=play.status, body=play.body, headers=headers)
            if play.is_last:
                await self._site.stop()
                response.force_close()
            return response
        stream = web.StreamResponse(status=play.status, headers=headers | {"content-length": str(len(play.body))})
        await stream.prepare(request)
        for index in range(len(play.body)):
            await stream.write(play.body[index : index + 1])
            if play.cut and index > 3:
                assert request.transport is not None
                request.transport.abort()
                break
            await asyncio.sleep(play.drip_s or 0)
        return stream


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


@pytest.fixture
def judge(provider: Provider) -> Judge:
    return Judge(model="judge", base_url=provider.url, api_key_env="SALON_TEST_KEY", parameters={"temperature": 0})
