"""The server as a client meets it: the real openai package, errors in the API's form, and a process that goes when it should."""

import asyncio
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryFile

import openai
import pytest

from demo.drawing import draw_png
from demo.running import _port, running_judge
from demo.world import JUDGE, Scene, Thing
from schemas.errors import ProviderError

PNG = draw_png(Scene((Thing("star", "red", 45, 45, 60),), is_plain=True))
# Enough of the rubric's words to be known by.
PROMPT = "You are an expert text-to-image evaluator.\nPlease explain the reasoning.\n\nUser prompt: a photo of a red star"


@pytest.fixture(scope="module")
def base_url():
    with running_judge() as url:
        yield url


@pytest.fixture
def client(base_url):
    with openai.OpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        yield client


def messages(png: bytes = PNG) -> list[dict]:
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return [{"role": "user", "content": [{"type": "text", "text": PROMPT}, {"type": "image_url", "image_url": {"url": url}}]}]


def stats(base_url: str) -> dict:
    with urllib.request.urlopen(f"{base_url.removesuffix('/v1')}/stats", timeout=60) as response:
        return json.load(response)


def test_it_speaks_to_the_openai_client(client):
    completion = client.chat.completions.create(model=JUDGE, messages=messages(), temperature=0, max_tokens=600)
    choice = completion.choices[0]
    assert choice.message.content == "Reasoning: Shown: a red star. Asked elements found: 1 of 1; relations: 1 of 1.\nScore: 5"
    assert (choice.finish_reason, completion.model, choice.message.refusal) == ("stop", JUDGE, None)
    assert completion.usage.prompt_tokens == -(-len(PROMPT) // 4) + 255
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens


def test_it_lists_itself(client):
    assert [model.id for model in client.models.list()] == [JUDGE]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b"[]", 400, "invalid_messages"),
        (b"{}", 400, "invalid_messages"),
        (json.dumps({"model": JUDGE, "messages": []}).encode(), 400, "invalid_messages"),
        (json.dumps({"model": JUDGE, "messages": ["hello"]}).encode(), 400, "invalid_messages"),
        (json.dumps({"model": JUDGE, "messages": [{"role": "user", "content": 7}]}).encode(), 400, "invalid_messages"),
        (json.dumps({"model": JUDGE, "messages": [{"content": [{"type": "image_url"}]}]}).encode(), 400, "invalid_messages"),
        (json.dumps({"model": "gpt-4.1", "messages": [{"role": "user", "content": "x"}]}).encode(), 404, "model_not_found"),
        (json.dumps({"model": JUDGE, "stream": True, "messages": messages()}).encode(), 400, "unsupported_parameter"),
    ],
    ids=["cut", "nested", "list", "empty", "no message", "no object", "number", "no url", "another model", "stream"],
)
def test_a_request_it_cannot_answer_gets_an_error_in_the_api_form(client, body, status, code):
    with pytest.raises(openai.APIStatusError) as caught:
        client.post("/chat/completions", content=body, cast_to=dict, options={"headers": {"content-type": "application/json"}})
    assert (caught.value.status_code, caught.value.code) == (status, code)


def test_many_at_once_are_all_answered_and_counted(base_url):
    async def ask_all() -> list[str]:
        async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
            calls = [client.chat.completions.create(model=JUDGE, messages=messages()) for _ in range(100)]
            return [completion.choices[0].message.content for completion in await asyncio.gather(*calls)]

    before = stats(base_url)["n_requests"]
    assert len(set(asyncio.run(ask_all()))) == 1
    after = stats(base_url)
    assert (after["n_requests"] - before, after["n_in_flight"]) == (100, 0)


def test_nothing_is_left_when_the_block_ends():
    with running_judge() as url:
        port = int(url.rsplit(":", 1)[1].removesuffix("/v1"))
        assert is_open(port)
    assert not is_open(port)


def test_it_goes_when_the_process_that_started_it_is_killed():
    code = "import time, demo.running as r\nwith r.running_judge() as url:\n print(url, flush=True)\n time.sleep(60)"
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True) as parent:
        port = int(parent.stdout.readline().strip().rsplit(":", 1)[1].removesuffix("/v1"))
        assert is_open(port)
        os.kill(parent.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while is_open(port) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_open(port)


def test_a_server_that_does_not_start_is_named_with_its_own_last_words():
    with TemporaryFile() as errors:
        command = [sys.executable, "-c", "raise SystemExit('no port is free')"]
        with (
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors) as process,
            pytest.raises(ProviderError, match=r"did not start: no port is free\. Try it alone"),
        ):
            _port(process, errors)


def test_it_loads_nothing_heavy():
    """Start-up is waited for at every demo: no data frames and no flows in the judge's process."""
    code = "import sys, demo.server\nprint(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"prefect", "polars", "pandas", "pyarrow", "pydantic", "openai", "great_expectations"} & set(loaded)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
