"""A planned dataset, the difficult provider behind a relay, and the call that judges by batches: for tests of batches.

No tests here.
"""

import asyncio
import io
import json
import multiprocessing
import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import islice
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import aiohttp
import polars as pl
from aiohttp import web
from PIL import Image
from sqlalchemy import create_engine, text

from demo.drawing import draw_png
from demo.mock_provider.admin_api import serving
from demo.mock_provider.scenario import Scenario
from demo.painter import painted_scenes
from demo.world import JUDGE
from rubrics.loading import SHIPPED, load_rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.identities import RunIds
from schemas.records import PlannedPart
from schemas.tables.stored import REQUESTS, SAMPLES
from tasks.context import StageContext
from tasks.judge.batch.run import JudgeByBatch, judge_by_batch
from tasks.judge.batch.state import BatchRules
from tasks.judge.outcome import Outcome
from tasks.judge.shard import JudgeShard, judge_shard
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.ledger.ledger import Ledger
from tasks.plan.dataset import PlanShard, new_stagings, plan_shard
from tests.support.asking import DATASET, context_of
from tests.support.ledgers import snapshot_part

RUBRICS = {name: load_rubric(SHIPPED / name) for name in ("alignment", "composition")}
N_SAMPLES, N_REQUESTS = 16, 32
RULES = {"poll_s": 0.02, "poll_at_most_s": 0.05, "settle_s": 0.3, "patience_s": 2.0, "first_patience_s": 0.5}
RULES_DEFAULT = BatchRules()
JUDGED: dict[str, Any] = {"model": JUDGE, "parameters": {"temperature": 0}, "api_key_env": "SALON_TEST_KEY"}
_HOP_BY_HOP = ("Connection", "Content-Length", "Transfer-Encoding", "Accept-Encoding")
QUICK = {"validating_s": 0.02, "in_progress_s": 0.1, "finalizing_s": 0.02}
PLAN = "2" * 64


@dataclass
class Wire:
    """The difficult provider behind a relay that sees each call, and may end a process, or change what comes back."""

    scenario: dict[str, Any]
    seen: list[str] = field(default_factory=list)
    on_call: Callable[[str, str], object] = lambda _moment, _call: None
    change: Callable[[str, bytes], bytes] = lambda _call, body: body
    answer: Callable[[str], tuple[int, bytes] | None] = lambda _call: None
    headers: dict[str, str] = field(default_factory=dict)  # of what `answer` plays
    queries: set[str] = field(default_factory=set)  # of the addresses asked
    is_early: Callable[[str, bytes], bool] = lambda _call, _body: False  # whether to ask the provider anew before passing on
    url: str = ""

    def __post_init__(self) -> None:
        self._loop, self._ready = asyncio.new_event_loop(), threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        assert self._ready.wait(60)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)
        self._loop.close()

    def stats(self, path: str = "/stats") -> Any:
        async def get() -> Any:
            async with aiohttp.ClientSession() as session, session.get(f"{self._origin}{path}") as response:
                return await response.json()

        return asyncio.run_coroutine_threadsafe(get(), self._loop).result(10)

    def batch_ids(self) -> list[str]:
        """The batches there are, by the ids that OpenAI's list has of them, the newest first."""
        return [row["id"] for row in self.stats("/v1/batches")["data"]]

    async def post(self, path: str) -> None:
        async with aiohttp.ClientSession() as session, session.post(f"{self._origin}/v1{path}"):
            pass

    def bills(self) -> Counter[int]:
        """How many items were billed how often."""
        return Counter(item["n_billed"] for item in self.stats("/stats/items").values())

    def n(self, call: str) -> int:
        return sum(seen.startswith(call) for seen in self.seen)

    async def _serve(self) -> None:
        self._over = asyncio.Event()
        async with (
            serving(Scenario.model_validate(self.scenario)) as port,
            aiohttp.ClientSession(auto_decompress=False) as session,
        ):
            self._origin, self._session = f"http://127.0.0.1:{port}", session
            app = web.Application(client_max_size=2**30)
            app.router.add_route("*", "/{path:.*}", self._relay)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            self._ready.set()
            await self._over.wait()
            await runner.cleanup()

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        call = f"{request.method} {request.path.removeprefix('/v1beta').removeprefix('/v1')}"
        self.seen.append(call)
        self.queries.add(request.query_string)
        if self.on_call("before", call) == "drop":
            assert request.transport is not None
            request.transport.abort()
        played = (500, b"") if request.transport is None or request.transport.is_closing() else self.answer(call)
        if played is not None:
            return web.Response(status=played[0], body=played[1], content_type="application/json", headers=self.headers)
        headers = {name: value for name, value in request.headers.items() if name not in _HOP_BY_HOP}
        try:
            while True:
                async with self._session.request(
                    request.method, f"{self._origin}{request.rel_url}", data=io.BytesIO(body), headers=headers
                ) as response:
                    said = await response.read()
                if not self.is_early(call, said):
                    break
                await asyncio.sleep(0.01)
            said = self.change(call, said)
            self.on_call("after", call)
            passed = {name: value for name, value in response.headers.items() if name == "X-Goog-Upload-URL"}
            return web.Response(status=response.status, body=said, content_type=response.content_type, headers=passed)
        except aiohttp.ClientError:  # the provider broke the connection: so do we
            assert request.transport is not None
            request.transport.abort()
            return web.Response()


def in_results(change: Callable[[dict[str, Any]], None], end: str = "/content") -> Callable[[str, bytes], bytes]:
    """For Wire.change: files of results, fetched by calls that end so, with each line's response changed."""

    def changed(call: str, body: bytes) -> bytes:
        if not call.endswith(end):
            return body
        lines = [json.loads(line) for line in body.splitlines()]
        for line in lines:
            change(line["response"])
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    return changed


@dataclass
class Bench:
    """A planned dataset, and the call that judges it: in this process or in one of its own."""

    lake: Lake
    parts: list[PlannedPart]
    ledger_url: str
    wire: Wire
    fields: dict[str, Any] = field(default_factory=lambda: JUDGED)  # of its judge

    def judge(self, **changes: Any) -> Judge:
        return Judge(**({"base_url": self.wire.url} | self.fields | changes))

    def run(
        self,
        *,
        judge: Judge | None = None,
        rules: dict[str, Any] | None = None,
        max_usd: float | None = None,
        stop: threading.Event | None = None,
        **more: Any,
    ) -> Outcome:
        asked = JudgeByBatch(more.pop("parts", self.parts), Limits(max_usd=max_usd), **more)
        return judge_by_batch(self.context(judge), asked, stop, BatchRules(**(RULES | (rules or {}))))

    def context(self, judge: Judge | None = None, ledger_url: str | None = None) -> StageContext:
        ids = RunIds(dataset_id=DATASET, plan_id=PLAN, run_id="a run")
        return context_of(self.lake, RUBRICS, judge or self.judge(), ledger_url or self.ledger_url, ids)

    def start(self, n_replies_to_live: int = 0) -> "Child":
        """The same call in a process of its own, which may kill itself after so many replies."""
        parts, judge = [asdict(part) for part in self.parts], self.judge().model_dump(exclude_none=True)
        told = json.dumps({"root": str(self.lake.root), "parts": parts, "rules": RULES, "judge": judge})
        path = self.lake.root.parent / f"told-{os.urandom(8).hex()}"
        process = FORKS.Process(target=exec, args=(CHILD, {"argv": (told, self.ledger_url, n_replies_to_live, path)}))
        process.start()
        return Child(process, path)

    def online(self, ledger_url: str) -> None:
        for part in self.parts:
            judge_shard(self.context(ledger_url=ledger_url), JudgeShard(part, Limits()))

    def replies(self, ledger_url: str | None = None) -> pl.DataFrame:
        with Ledger(ledger_url or self.ledger_url) as ledger:
            parts = [snapshot_part(ledger, self.lake.read_part(REQUESTS, PLAN, part.index)) for part in self.parts]
        return pl.concat(parts).sort("request_key", "ask_index")

    def rows(self, statement: str) -> list[Any]:
        engine = create_engine(self.ledger_url)
        try:
            with engine.connect() as connection:
                return list(connection.execute(text(statement)))
        finally:
            engine.dispose()

    def check_all_is_settled(self) -> None:
        assert self.rows("SELECT * FROM batch_lines") == self.rows("SELECT * FROM claims") == []
        assert self.rows("SELECT * FROM owners JOIN batches ON owner_id = token") == []
        assert self.rows("SELECT * FROM batches WHERE state != 'ended'") == []
        assert self.rows("SELECT * FROM attempts WHERE ended_at_us IS NULL") == []


FORKS = multiprocessing.get_context("forkserver")
"""Processes that have imported everything already: starting one costs nothing."""
FORKS.set_forkserver_preload(["tests.support.asking", "tasks.judge.batch.run", "rubrics.loading", "demo.world"])

CHILD = """
import json, os, signal, threading
from pathlib import Path
from rubrics.loading import SHIPPED, load_rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.identities import RunIds
from tasks.judge.batch.run import JudgeByBatch, judge_by_batch
from tasks.judge.batch.state import BatchRules
from schemas.records import PlannedPart
from tasks.lake.reading import Lake
from tests.support.asking import context_of

told, ledger_url, n_replies_to_live, path = argv
told, stop, seen = json.loads(told), threading.Event(), []
signal.signal(signal.SIGTERM, lambda *_: stop.set())

def on_reply(reply):
    seen.append(reply)
    if len(seen) == n_replies_to_live:
        os.kill(os.getpid(), signal.SIGKILL)

parts = [PlannedPart(**part) for part in told["parts"]]
rubrics = {name: load_rubric(SHIPPED / name) for name in ("alignment", "composition")}
judge = Judge(**told["judge"])
ids = RunIds(dataset_id="1" * 64, plan_id="2" * 64, run_id="a run")
context = context_of(Lake(Path(told["root"])), rubrics, judge, ledger_url, ids)
outcome = judge_by_batch(context, JudgeByBatch(parts, Limits(), on_reply), stop, BatchRules(**told["rules"]))
path.write_text(json.dumps([outcome.n_answered, outcome.n_in_flight, outcome.is_stopped]))
"""


@dataclass
class Child:
    process: Any
    path: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.join(30)

    def told(self, within_s: float = 30) -> list[Any]:
        """(n_answered, n_in_flight, is_stopped) of its outcome, once it has ended."""
        self.process.join(within_s)
        assert self.process.exitcode == 0
        return list(json.loads(self.path.read_text()))


def plan_scenes(folder: Path, judge: Judge, side_px: int | None = None) -> tuple[Lake, list[PlannedPart]]:
    """Two parts of drawn scenes, each asked about under two rubrics; `side_px`: on white squares so large."""
    forkserver.ensure_running()
    lake = Lake(folder / "lake")
    scenes = list(islice(painted_scenes(seed=3), 0, N_SAMPLES * 7, 7))
    staging = stage(lake, SAMPLES)
    for index in range(2):
        staging.write_part(index, samples(scenes[index::2], index, side_px))
    staging.commit(DATASET)
    stagings, parts = new_stagings(lake), []
    context = context_of(lake, RUBRICS, judge, "", RunIds(dataset_id=DATASET))
    for rubric in RUBRICS.values():
        parts += plan_shard(context, PlanShard(rubric.id, JUDGE, ("s",), *stagings, len(parts)))
    for each in stagings:
        each.commit(PLAN)
    assert sum(part.n_requests for part in parts) == N_REQUESTS
    return lake, parts


def samples(scenes: list[Any], first: int, side_px: int | None = None) -> pl.DataFrame:
    images = [draw_png(painted.scene) for painted in scenes]
    if side_px is not None:
        images = [on_white(image, side_px) for image in images]
    n = len(scenes)
    data: dict[str, Any] = {name: [None] * n for name in SAMPLES.columns}
    data |= {
        "sample_id": [sha256(f"{first} {index}".encode()).hexdigest() for index in range(n)], "source": ["s"] * n,
        "source_key": [f"{index}.png" for index in range(n)], "model": ["painter"] * n, "checkpoint": ["c"] * n,
        "prompt": [painted.prompt for painted in scenes], "category": [painted.category for painted in scenes],
        "image": [{"bytes": image, "path": f"{index}.png"} for index, image in enumerate(images)],
        "image_sha256": [sha256(image).hexdigest() for image in images], "image_format": ["PNG"] * n, "status": ["ok"] * n,
        "width_px": [int.from_bytes(image[16:20]) for image in images],
        "height_px": [int.from_bytes(image[20:24]) for image in images],
    }  # fmt: skip
    empty = SAMPLES.empty()
    return pl.DataFrame(data, schema=empty.schema)


def on_white(image: bytes, side_px: int) -> bytes:
    square, buffer = Image.new("RGB", (side_px, side_px), "white"), io.BytesIO()
    square.paste(Image.open(io.BytesIO(image)).convert("RGB"))
    square.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
