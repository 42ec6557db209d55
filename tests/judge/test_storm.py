"""Every way of providers in turn: what an attempt ends as, in what time and memory; what a run in which all do so ends with.

`make torture` runs all of them (SALON_TORTURE=1), else one run of each kind of end is made. How often what is tried again, and
what storms of several leave behind: test_engine.py.
"""

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import pytest
from PIL import Image

from schemas.benchmark.judges import Judge
from schemas.statuses.rows import ReplyStatus as S
from tasks.judge.provider.exchange import Answer
from tasks.judge.provider.openai.client import OpenAIProvider, make_payload
from tests.flows.conftest import salon as salon  # noqa: PLC0414  a command as a user calls it
from tests.flows.flow_support import Said
from tests.judge.misbehaving import MisbehavingServer, Play, completion, misbehaving, response
from tests.judge.storm import NOBODY, STORM, slug

MARGIN_S, MARGIN_MB = 1.0, 300.0
DEADLINE_S = 0.4
IN_SHORT = (
    "never answers", "a bomb", "another model each time", "400", "401", "402",
    "429 for thirty years", "503",
)  # fmt: skip
BENCHMARK = """
name = "storm"
[[sources]]
reader = "manifest"
path = "pictures/manifest.jsonl"
[[rubrics]]
id = "alignment"
[[judges]]
model = "judge-1"
base_url = "{url}"
[limits]
concurrency = 10
deadline_s = 1
attempts_per_request = 1
"""
N_SAMPLES = 10
TEXT = ({"role": "user", "content": "hello"},)
TWO = Play((response(completion("one")), response(completion("two"))), "stay", every_s=0.03)


@pytest.fixture(scope="module")
def server() -> Iterator[MisbehavingServer]:
    with misbehaving({slug(name): behaviour.play for name, behaviour in STORM.items()} | {slug("two responses"): TWO}) as server:
        asyncio.run(_ask(server.url(slug("as it should be"))))  # what is imported late is no behaviour's doing
        yield server


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody-123456")


async def _ask(url: str) -> Answer:
    client = OpenAIProvider(Judge(model="judge-1", base_url=url), 4, DEADLINE_S)
    try:
        return await client.ask(make_payload("judge-1", {}, TEXT, []))
    finally:
        await client.close()


@contextmanager
def _within_memory() -> Iterator[None]:
    """The process's peak inside the block is at most MARGIN_MB above what it held before, where the system can tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is that of now
    except OSError:
        yield
        return
    before_mb = _mb("VmHWM")
    yield
    assert _mb("VmHWM") - before_mb < MARGIN_MB


def _mb(what: str) -> float:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[what].split()[0]) / 1024


@pytest.mark.parametrize("name", STORM)
def test_an_attempt_ends_as_it_should_in_time_and_in_little_memory(server: MisbehavingServer, name: str) -> None:
    expected, began_s = STORM[name], time.monotonic()
    with _within_memory():
        answer = asyncio.run(_ask(server.url(slug(name))))
    assert answer.status == expected.status, answer.detail
    assert time.monotonic() - began_s < DEADLINE_S + MARGIN_S
    said = answer.detail or ""
    if not expected.is_said_by_run:
        assert (expected.words or "") in said
    assert "\n" not in said
    assert "hidden" not in said


@pytest.mark.parametrize("transport", ["aiohttp", "sdk"])
def test_a_second_response_to_one_request_is_not_the_next_ones(
    server: MisbehavingServer, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be another picture's score."""
    monkeypatch.setenv("SALON_TRANSPORT", transport)

    async def texts() -> list[str | None]:
        client = OpenAIProvider(Judge(model="judge-1", base_url=server.url(slug("two responses"))), 1, 5)
        found = []
        for _ in range(3):
            found.append((await client.ask(make_payload("judge-1", {}, TEXT, []))).text)
            await asyncio.sleep(0.1)
        await client.close()
        return found

    assert asyncio.run(texts()) == ["one", "one", "one"]


@pytest.mark.parametrize("name", NOBODY)
def test_where_nobody_answers_nothing_was_sent(server: MisbehavingServer, name: str) -> None:
    at, words = NOBODY[name]
    answer = asyncio.run(_ask(at if isinstance(at, str) else server.url(slug(at[0]), at[1])))
    assert (answer.status, answer.is_sent) == (S.UNREACHABLE, False)
    assert words in (answer.detail or "")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    with (folder / "manifest.jsonl").open("w") as manifest:
        for number in range(N_SAMPLES):
            Image.new("RGB", (16, 16), (number, 9, 7)).save(folder / f"{number}.png")
            row = {"image": f"{number}.png", "prompt": f"a number, {number}", "model": "m", "checkpoint": "c"}
            manifest.write(json.dumps(row) + "\n")
    return folder


@pytest.mark.parametrize("name", STORM if os.environ.get("SALON_TORTURE") else IN_SHORT)
def test_a_run_in_which_every_request_is_answered_so(
    server: MisbehavingServer, pictures: Path, tmp_path: Path, salon: Callable[..., Said], name: str
) -> None:
    (tmp_path / "pictures").symlink_to(pictures)
    file, expected = tmp_path / "b.toml", STORM[name]
    file.write_text(BENCHMARK.format(url=server.url(slug(name))))
    with _within_memory() if expected.code == 3 else nullcontext():  # what goes on to the data checks imports much
        said = salon("run", file)
    assert said.code == expected.code, said.err
    if expected.code == 3:
        assert (expected.words or "") in said.err
        assert "the same command" in said.err or "its questions are then asked again" in said.err
    assert "Traceback" not in said.err + said.out
    with closing(sqlite3.connect(tmp_path / "lake" / "ledger.db")) as ledger, ledger:
        ends = ledger.execute("SELECT status, (ended_at_us - started_at_us) / 1e6 FROM attempts").fetchall()
    assert {status for status, _ in ends} - {S.NOT_ASKED.value} == {expected.status.value}
    if expected.status != S.RATE_LIMITED:  # an attempt that is written down waits for its key's pause before it is sent
        assert max(seconds for _, seconds in ends) < 1 + MARGIN_S
