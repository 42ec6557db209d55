"""What the demo's tests share: the shipped rubrics, a painting, and a judge asked in the form of the wire."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
import pytest

from demo.judge import judge
from demo.mock_provider.admin_api import serving
from demo.mock_provider.scenario import Scenario
from demo.painter import PaintedScene, painted_scenes
from demo.world import JUDGE
from rubrics.loading import SHIPPED, load_rubric
from rubrics.model import Rubric
from rubrics.rendering import render

Ask = Callable[[str, Mapping[str, str | None], bytes | None], str]


@pytest.fixture(scope="session")
def shipped() -> dict[str, Rubric]:
    names = ("composition", "image_aspects", "alignment", "interleaved", "caption")
    return {name: load_rubric(SHIPPED / name) for name in names}


@pytest.fixture(scope="session")
def painting() -> list[PaintedScene]:
    return list(painted_scenes(seed=7))


@pytest.fixture(scope="session")
def messages_for(shipped):
    """Rendered by the rubric, then put into the form of the API."""

    def make(rubric_id: str, values: Mapping[str, str | None], png: bytes | None) -> list[dict]:
        sent = json.loads(json.dumps(render(shipped[rubric_id], values, png is not None).messages))
        for message in sent:
            if isinstance(message["content"], list):
                message["content"] = [_picture(png) if part["type"] == "image" else part for part in message["content"]]
        return sent

    return make


@pytest.fixture(scope="session")
def ask(messages_for) -> Ask:
    return lambda rubric_id, values, png: judge(messages_for(rubric_id, values, png))


def _picture(png: bytes) -> dict:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(png).decode()}"}}


@dataclass(frozen=True, slots=True)
class Guest:
    """A client of the difficult provider: the real openai package, and bare bytes."""

    port: int
    openai: openai.AsyncOpenAI

    async def ask(self, text: str = "hello", **more: Any) -> httpx2.Response:
        """One chat request as it comes back, whatever its status."""
        body = {"model": JUDGE, "messages": [{"role": "user", "content": text}]} | more
        try:
            return await self.openai.post("/chat/completions", body=body, cast_to=httpx2.Response)
        except openai.APIStatusError as error:
            return error.response

    async def get(self, path: str) -> Any:
        return (await self.openai.get(f"http://127.0.0.1:{self.port}{path}", cast_to=httpx2.Response)).json()

    async def stats(self) -> dict[str, Any]:
        return await self.get("/stats")

    async def stats_when(self, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The stats as soon as they are so."""
        async with asyncio.timeout(20):
            stats = await self.stats()
            while not is_so(stats):
                await asyncio.sleep(0.01)
                stats = await self.stats()
        return stats

    async def reset(self) -> None:
        await self.openai.post(f"http://127.0.0.1:{self.port}/stats/reset", cast_to=httpx2.Response)

    async def send(self, *pieces: bytes, n_answers: int = 1) -> bytes:
        """What comes back for bytes sent piece by piece; until that many whole answers are there, or the connection ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.005)
            return b"".join([await self._answer(reader) for _ in range(n_answers)])
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        return head + await reader.readexactly(length)


@pytest.fixture(scope="session")
def play():
    """Serve a scenario, run a coroutine function with a guest, and give back what it returns."""

    def run(content: dict[str, Any], script: Callable[[Guest], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with (
                serving(Scenario.model_validate(content)) as port,
                openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0, timeout=60) as client,
            ):
                return await script(Guest(port, client))

        return asyncio.run(main())

    return run
