"""A provider that plays what a test scripts, and small rubrics, samples and lakes."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from aiohttp import web

from rubrics.model import Condition, Dimension, Message, Part, ReplyFormat, Rubric, Rule, Variant
from schemas.benchmark import Judge
from schemas.records import SAMPLE_TEXTS
from schemas.tables import SAMPLES
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.ledger.ledger import Ledger
from tests.judge.postgres_support import PostgresServer, running_postgres, why_not

PNG = bytes.fromhex("89504e470d0a1a0a") + b"picture "


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


class Provider:
    """A real HTTP server on a free port. It plays the scripted responses in order, then `then`, and keeps what it saw."""

    play = Play
    complete = staticmethod(completion)

    def __init__(self) -> None:
        self.then = Play(body=completion('{"score": 3}'))
        self.script: deque[Play] = deque()
        self.seen: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.on_request: Callable[[], None] | None = None
        self.n_in_flight = self.peak = 0
        self.loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

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
        app.router.add_post("/v1/chat/completions", self._answer)
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
        try:
            body = await request.read()
            if self.on_request:
                self.on_request()
            self.seen.append(body)
            self.headers.append(dict(request.headers))
            return await self._play(request, self.script.popleft() if self.script else self.then)
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


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with running_postgres() as server:
        yield server


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def each_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger that is not there yet, in each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def each_ledger(each_address: str) -> Iterator[Ledger]:
    with Ledger(each_address) as ledger:
        yield ledger


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


@pytest.fixture
def judge(provider: Provider) -> Judge:
    return Judge(model="judge", base_url=provider.url, api_key_env="SALON_TEST_KEY", parameters={"temperature": 0})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        yield ledger


def _rubric(**changes: Any) -> Rubric:
    dimension = Dimension("score", ("score",), 0, 4, 1)
    fields: dict[str, Any] = {
        "id": "plain", "version": "1", "title": "t", "source": "s", "folder": Path("nowhere"), "digest": "d" * 64,
        "reply_format": ReplyFormat.JSON, "needs": ("prompt", "image"), "may_be_null": frozenset(), "unit": ("prompt",),
        "report_by": "category", "dispatch": None, "value_maps": {},
        "messages": (
            Message("system", (Part("prompt"),)),
            Message("user", (Part("column", "prompt"), Part("image"))),
        ),
        "variants": {None: Variant(None, "Judge this.", "prompt.txt", (dimension,))},
        "rules": (), "n_output_tokens_expected": 20,
    }  # fmt: skip
    return Rubric(**(fields | changes))


@pytest.fixture
def make_rubric() -> Callable[..., Rubric]:
    return _rubric


@pytest.fixture
def rubric() -> Rubric:
    return _rubric()


@pytest.fixture
def no_text_rule() -> Rule:
    return Rule("no_text", (Condition("text", is_null=True),), ("score",), 0, 0)


def picture(index: int) -> bytes:
    return PNG + str(index).encode()


def _samples(n: int, **columns: list[Any]) -> pl.DataFrame:
    """SAMPLES rows: n samples with a prompt and a picture of their own; columns given replace those."""
    images = [picture(index) for index in range(n)]
    data: dict[str, list[Any]] = {name: [None] * n for name in SAMPLES.columns}
    data |= {
        "sample_id": [sha256(f"sample {index}".encode()).hexdigest() for index in range(n)],
        "source": ["s"] * n, "source_key": [f"{index}.png" for index in range(n)],
        "item_id": [f"item-{index}" for index in range(n)], "model": ["painter"] * n, "checkpoint": ["c1"] * n,
        "seed": [0] * n, "prompt": [f"prompt {index}" for index in range(n)], "category": ["colors"] * n,
        "image": [{"bytes": image, "path": f"{index}.png"} for index, image in enumerate(images)],
        "image_sha256": [sha256(image).hexdigest() for image in images], "image_format": ["PNG"] * n, "status": ["ok"] * n,
    }  # fmt: skip
    data |= columns
    texts = dict.fromkeys(("status", "detail", "image_sha256", "item_id", *SAMPLE_TEXTS), pl.String)
    schema = {name: texts.get(name) for name in data}
    schema |= {"seed": pl.Int64, "image": pl.Struct({"bytes": pl.Binary, "path": pl.String}), "width_px": pl.Int32}
    schema |= {"file_sha256": pl.String, "image_treatment": pl.String, "height_px": pl.Int32, "n_bytes": pl.Int64}
    return pl.DataFrame(data, schema=schema)


@pytest.fixture
def make_samples() -> Callable[..., pl.DataFrame]:
    return _samples


@pytest.fixture
def store_samples(tmp_path: Path) -> Callable[[pl.DataFrame], tuple[Lake, str]]:
    def store(samples: pl.DataFrame) -> tuple[Lake, str]:
        lake = Lake(tmp_path / "lake")
        staging = stage(lake, SAMPLES)
        staging.write_part(0, samples)
        return lake, staging.commit("1" * 64)

    return store
