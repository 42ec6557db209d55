"""The client against a real server: deadlines, broken connections, redirects, sizes, keys."""

import asyncio
import base64
import gzip
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from schemas.benchmark.judges import Judge
from schemas.errors import InputError, MissingKeyError
from schemas.input_budget import REPLY_BYTES
from schemas.statuses.rows import ReplyStatus as S
from tasks.judge.budget.cost import Costs
from tasks.judge.provider.base import provider_of
from tasks.judge.provider.exchange import Answer, Payload, RequestPicture
from tasks.judge.provider.openai.client import OpenAIProvider, make_payload
from tasks.judge.provider.payload import PIECE_BYTES
from tasks.judge.provider.transport import Secrets, endpoint, is_loopback
from tests.judge.misbehaving import Play, misbehaving, whole

ROOT = Path(__file__).parents[3]
KEY = "sk-very-secret-1234567890"
TEXT = ({"role": "user", "content": "hello"},)


@pytest.fixture(autouse=True, params=["aiohttp", "sdk"])
def _transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a server does, either way of sending makes the same of it."""
    monkeypatch.setenv("SALON_TRANSPORT", request.param)


def ask(judge: Judge, body: Payload | None = None, deadline_s: float = 5.0) -> Answer:
    async def run() -> Answer:
        client = OpenAIProvider(judge, 4, deadline_s)
        try:
            return await client.ask(body or make_payload(judge.model, judge.parameters, TEXT, []))
        finally:
            await client.close()

    return asyncio.run(run())


def test_a_body_is_a_plain_chat_completion_with_the_picture_spliced_in(provider: Any, judge: Judge) -> None:
    messages = (
        {"role": "system", "content": "Judge."},
        {"role": "user", "content": [{"type": "text", "text": "a cat"}, {"type": "image"}]},
    )
    picture = RequestPicture(lambda: bytes(range(256)) * 8, "JPEG")
    assert ask(judge, make_payload("judge", {"temperature": 0}, messages, [picture])).status == S.ANSWERED
    url = "data:image/jpeg;base64," + base64.b64encode(picture.read()).decode()
    assert provider.bodies == [{
        "model": "judge", "temperature": 0,
        "messages": [
            {"role": "system", "content": "Judge."},
            {"role": "user", "content": [{"type": "text", "text": "a cat"}, {"type": "image_url", "image_url": {"url": url}}]},
        ],
    }]  # fmt: skip


def test_a_picture_of_several_megabytes_is_sent_whole(provider: Any, judge: Judge) -> None:
    messages = ({"role": "user", "content": [{"type": "image"}]},)
    content = b"\x89" * 3_000_000
    assert ask(judge, make_payload("judge", {}, messages, [RequestPicture(lambda: content, "PNG")])).status == S.ANSWERED
    sent = provider.bodies[0]["messages"][0]["content"][0]["image_url"]["url"]
    assert base64.b64decode(sent.partition(",")[2]) == content


@pytest.mark.parametrize("text", ['"}]}', "\\", "data:image/png;base64,AAAA", "{image}", "ünï\u2028", "0123456789abcdef" * 4])
def test_no_text_moves_the_picture(text: str) -> None:
    messages = ({"role": "user", "content": [{"type": "text", "text": text}, {"type": "image"}, {"type": "text", "text": text}]},)
    content = orjson.loads(b"".join(make_payload("m", {}, messages, [RequestPicture(lambda: b"abc", "PNG")])))["messages"][0][
        "content"
    ]
    assert [part.get("text") for part in content] == [text, None, text]
    assert content[1]["image_url"]["url"] == "data:image/png;base64,YWJj"


def test_a_dripping_reply_ends_at_the_deadline(provider: Any, judge: Judge) -> None:
    provider.then = provider.play(body=provider.complete("x" * 2000), drip_s=0.05)
    started = time.monotonic()
    assert ask(judge, deadline_s=0.4).status == S.TIMED_OUT
    assert time.monotonic() - started < 2000 * 0.05


def test_a_slow_start_ends_at_the_deadline(provider: Any, judge: Judge) -> None:
    provider.then = provider.play(delay_s=3)
    assert ask(judge, deadline_s=0.2).status == S.TIMED_OUT


def test_a_reset_and_a_cut_reply_are_unreachable_and_may_have_been_billed(provider: Any, judge: Judge) -> None:
    for broken in (provider.play(reset=True), provider.play(body=provider.complete("x"), cut=True)):
        provider.then = broken
        answer = ask(judge)
        assert (answer.status, "billed" in (answer.detail or "")) == (S.UNREACHABLE, True)


def test_a_closed_port_is_unreachable_and_nothing_was_billed() -> None:
    answer = ask(Judge(model="m", base_url="http://127.0.0.1:9/v1"))
    assert (answer.status, "billed" in (answer.detail or "")) == (S.UNREACHABLE, False)


def test_a_redirect_is_not_followed(provider: Any, judge: Judge) -> None:
    elsewhere = f"{provider.url}/chat/completions?secret=1"
    provider.script.append(provider.play(status=307, headers={"location": elsewhere}))
    answer = ask(judge)
    assert (answer.status, provider.n) == (S.BAD_RESPONSE, 1)
    assert "base_url" in (answer.detail or "")
    assert "secret" not in (answer.detail or "")


@pytest.mark.parametrize("status", [200, 500])
def test_an_endless_reply_is_not_read(status: int, provider: Any, judge: Judge) -> None:
    provider.then = provider.play(status=status, body=b"x" * (REPLY_BYTES + 1))
    assert ask(judge).status == S.BAD_RESPONSE


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "identity, gzip", "gzip, gzip", " gzip ,", "deflate", "zstd", "br"])
@pytest.mark.parametrize("status", [200, 500])
def test_a_packed_reply_is_refused_before_it_is_unpacked(encoding: str, status: int, provider: Any, judge: Judge) -> None:
    packed = gzip.compress(gzip.compress(provider.complete("fine")) if encoding == "gzip, gzip" else provider.complete("fine"))
    provider.then = provider.play(status=status, body=packed, headers={"content-encoding": encoding})
    answer = ask(judge)
    assert (answer.status, answer.text) == (S.BAD_RESPONSE, None)
    assert encoding.strip(" ,") in (answer.detail or "")


@pytest.mark.parametrize("encoding", ["identity", "Identity", "identity, identity", ""])
def test_a_reply_that_says_it_is_not_packed_is_read(encoding: str, provider: Any, judge: Judge) -> None:
    provider.then = provider.play(body=provider.complete("fine"), headers={"content-encoding": encoding})
    assert ask(judge).text == "fine"


_MANY = """
import asyncio, resource, sys
from schemas.benchmark.judges import Judge
from tasks.judge.provider.openai.client import OpenAIProvider
from tasks.judge.provider.openai.client import make_payload

async def main():
    judge = Judge(model="judge", base_url=sys.argv[1])
    client = OpenAIProvider(judge, 48, 120.0)
    ask = lambda: client.ask(make_payload("judge", {}, ({"role": "user", "content": "hello"},), []))
    await ask()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answers = await asyncio.gather(*(ask() for _ in range(int(sys.argv[2]))))
    assert all(len(answer.text) == 2**20 + 1 for answer in answers), answers[0].detail
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    await client.close()

asyncio.run(main())
"""


def test_large_replies_are_not_all_held_at_once(provider: Any, judge: Judge) -> None:
    """48 of 6.8 MB, as a process of its own sees its memory: 105 MB on one machine, 456 where all are read at once."""
    provider.script.append(provider.play(body=provider.complete("x" * (2**20 + 1))))
    provider.then = provider.play(body=provider.complete("x" * 6_800_000))
    command = [sys.executable, "-c", _MANY, judge.base_url or "", "48"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < 250  # MB


def test_a_server_without_tls_at_a_tls_address_was_sent_nothing(provider: Any, judge: Judge, monkeypatch: Any) -> None:
    monkeypatch.setenv("SALON_TEST_KEY", KEY)
    answer = ask(judge.model_copy(update={"base_url": provider.url.replace("http:", "https:")}))
    assert (answer.status, answer.is_sent, provider.n) == (S.UNREACHABLE, False, 0)


@pytest.mark.parametrize(("bypassed", "expected"), [("", S.ANSWERED), ("judge.invalid", S.UNREACHABLE)])
def test_the_environments_proxy_is_used_unless_it_is_not_for_this_host(
    bypassed: str, expected: S, provider: Any, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SALON_TEST_KEY", KEY)
    monkeypatch.setenv("http_proxy", provider.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", bypassed)
    answer = ask(judge.model_copy(update={"base_url": "http://judge.invalid/v1"}))
    assert (answer.status, provider.n) == (expected, int(expected == S.ANSWERED))


def test_no_proxy_stands_before_this_machine(provider: Any, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("SALON_TEST_KEY", KEY)
    assert ask(judge.model_copy(update={"base_url": provider.url})).status == S.ANSWERED
    answer = ask(judge.model_copy(update={"base_url": "http://judge.invalid/v1"}))
    assert (answer.status, answer.is_sent) == (S.UNREACHABLE, False)
    assert "the proxy set in the environment does not answer" in (answer.detail or "")


@pytest.mark.parametrize("proxy", ["http://user:hid#den@proxy.invalid:8080", "http://user:hid/den@proxy.invalid", "hidden:3128"])
def test_a_proxy_that_is_no_address_is_told_without_its_password(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALON_TEST_KEY", KEY)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(InputError, match="the environment variable https_proxy is not an address; write http://user:") as told:
        ask(Judge(model="gpt-4.1", base_url="https://judge.invalid/v1", api_key_env="SALON_TEST_KEY"))
    assert "hid" not in str(told.value)


@pytest.mark.parametrize(
    ("address", "play"),
    [("https://refused.invalid/v1", Play((b"",))), ("http://refused.invalid/v1", whole(b"", status=407))],
    ids=["hangs up at CONNECT", "wants a login before plain http"],
)
def test_what_a_proxy_did_not_pass_on_was_not_sent(address: str, play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALON_TEST_KEY", KEY)
    monkeypatch.delenv("no_proxy", raising=False)
    with misbehaving({"refused": play, "": play}) as proxy:
        for name in ("https_proxy", "http_proxy"):
            monkeypatch.setenv(name, proxy.url("").removesuffix("//v1"))
        answer = ask(Judge(model="gpt-4.1", base_url=address, api_key_env="SALON_TEST_KEY"))
    assert (answer.status, answer.is_sent) == (S.UNREACHABLE, False), answer.detail
    assert "billed" not in (answer.detail or "")
    assert ("login" in (answer.detail or "")) == address.startswith("http:")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of how the SDK's transport hands a proxy's login on
@pytest.mark.parametrize(
    ("status", "words"),
    [(407, "add its user and password to the environment variable https_proxy"),
     (403, "check that it is allowed and able to reach that host"),
         (502, "check that it is allowed and able to reach that host")],
)  # fmt: skip
def test_a_proxy_that_opens_no_way_to_the_provider_was_sent_nothing(
    status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SALON_TEST_KEY", KEY)
    monkeypatch.delenv("no_proxy", raising=False)
    judge = Judge(model="gpt-4.1", base_url="https://refused.invalid/v1", api_key_env="SALON_TEST_KEY")
    with misbehaving({"refused": whole(b"", status=status)}) as proxy:
        at = proxy.url("").removesuffix("//v1")
        monkeypatch.setenv("https_proxy", at.replace("//", "//user:hidden@"))
        answer = ask(judge)
    assert (answer.status, answer.is_sent) == (S.UNREACHABLE, False), answer.detail
    assert f"the proxy {at} does not connect to the judge's host (HTTP {status} Said); {words}" in (answer.detail or "")
    assert "billed" not in (answer.detail or "")
    assert "hidden" not in (answer.detail or "")
    costs = Costs(judge, 100)
    assert costs.charged_usd(costs.estimate('[{"content":"hello","role":"user"}]'), answer) == 0


def test_a_transport_nobody_knows_is_refused(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALON_TRANSPORT", "carrier pigeon")
    with pytest.raises(InputError, match='SALON_TRANSPORT = "carrier pigeon" is not a transport; available: aiohttp'):
        OpenAIProvider(judge, 1, 1)


def test_html_with_a_json_type_is_a_bad_response(provider: Any, judge: Judge) -> None:
    provider.then = provider.play(body=b"<html>")
    assert ask(judge).status == S.BAD_RESPONSE


def test_retry_after_arrives_with_a_429(provider: Any, judge: Judge) -> None:
    provider.then = provider.play(status=429, headers={"retry-after-ms": "1500"}, body=b"{}")
    assert (ask(judge).status, ask(judge).retry_after_s) == (S.RATE_LIMITED, 1.5)


def test_the_key_is_sent_and_a_provider_that_repeats_it_is_not_believed(
    provider: Any, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SALON_TEST_KEY", KEY)
    provider.script.append(provider.play(status=400, body=orjson.dumps({"error": {"message": f"you sent {KEY}"}})))
    provider.script.append(provider.play(body=provider.complete(f"score 3 for {KEY}", model=KEY)))
    answers = [ask(judge), ask(judge)]
    assert provider.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(answers)


TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJ4In0.c2ln"
DEPLOYED = "/openai/deployments/eye?api-version=2024-10-21"
KEY_HEADERS: dict[str, tuple[str, str, set[str]]] = {
    "OpenAI's and others'": ("http://judge.invalid/v1", KEY, {"Authorization"}),
    "Azure's deployments": (f"http://us.openai.azure.com{DEPLOYED}", KEY, {"api-key"}),
    "Azure's v1": ("http://us.openai.azure.com/openai/v1", KEY, {"api-key"}),
    "Azure's, of Foundry": ("http://us.services.ai.azure.com/openai/v1", KEY, {"api-key"}),
    "a gateway with Azure's path": (f"http://gateway.invalid{DEPLOYED}", KEY, {"api-key", "Authorization"}),
    "Azure's, with a token of Entra": (f"http://us.openai.azure.com{DEPLOYED}", TOKEN, {"Authorization"}),
    "Azure's, of a model's own weights": ("http://mine.inference.ml.azure.com/v1", KEY, {"Authorization"}),
}


@pytest.mark.parametrize("transport", ["aiohttp", "sdk"])
@pytest.mark.parametrize(("address", "key", "sent"), KEY_HEADERS.values(), ids=KEY_HEADERS)
def test_the_key_is_sent_in_the_header_that_the_address_reads(
    address: str, key: str, sent: set[str], transport: str, provider: Any, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SALON_TRANSPORT", transport)
    monkeypatch.setenv("SALON_TEST_KEY", key)
    monkeypatch.setenv("http_proxy", provider.url.removesuffix("/v1"))  # it sees what is sent to hosts that are not there
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask(judge.model_copy(update={"base_url": address})).status == S.ANSWERED
    said = {name: value for name, value in provider.headers[0].items() if key in value}
    assert said == {name: {"api-key": key, "Authorization": f"Bearer {key}"}[name] for name in sent}


SAID = "Score: 1. None of the latest test shapes is a local box; the EMPTY text is a placeholder, key x, abc-1, as anything."
KEYS = {
    "EMPTY": False, "none": False, "None": False, "test": False, "local": False, "x": False, "1": False, "a": False, "key": False,
    '"': False, "text": False, "abc-1": False, "anything": False, "placeholder": False, "sk-1234567890": True,
    "0123456789abcdef0123456789abcdef": True, "a-key-of-letters-alone-and-long": True,
}  # fmt: skip


@pytest.mark.parametrize(("key", "is_secret"), KEYS.items(), ids=KEYS)
def test_a_key_that_stands_for_none_changes_no_letter_of_a_reply(
    key: str, is_secret: bool, provider: Any, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SALON_TEST_KEY", key)
    said = f"{SAID} {key}"
    provider.script.append(provider.play(body=provider.complete(said)))
    provider.script.append(provider.play(status=400, body=orjson.dumps({"error": {"message": f"you sent {key}"}})))
    answer, refused = ask(judge), ask(judge)
    assert (answer.status, answer.text) == (S.ANSWERED, f"{SAID} [key removed]" if is_secret else said)
    assert (f"you sent {key}" in (refused.detail or "")) == (len(key) < 8)


@pytest.mark.parametrize("name", [one.name for one in fields(Answer) if "str" in str(one.type)])
def test_no_text_of_an_answer_keeps_the_key(name: str, judge: Judge) -> None:
    """A field that is added and fails here is one that a provider can repeat the key in."""
    answer = replace(Answer(S.ANSWERED), **{name: f"it was {KEY}."})
    assert KEY not in repr(Secrets(KEY, str(judge.base_url)).out_of(answer))


def test_a_remote_judge_without_a_key_stops_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(MissingKeyError, match="NO_SUCH_KEY is not set; export NO_SUCH_KEY="):
        OpenAIProvider(Judge(model="m", api_key_env="NO_SUCH_KEY"), 1, 1)
    monkeypatch.setenv("NO_SUCH_KEY", "abc\ndef")
    with pytest.raises(MissingKeyError) as raised:
        OpenAIProvider(Judge(model="m", api_key_env="NO_SUCH_KEY"), 1, 1)
    assert "abc" not in str(raised.value)


@pytest.mark.parametrize("name", ["stream", "n", "messages", "model"])
def test_parameters_that_are_none_of_the_judges_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=name):
        OpenAIProvider(Judge(model="m", base_url="http://localhost:1/v1", parameters={name: 1}), 1, 1)


def test_an_address_is_shown_without_its_secrets() -> None:
    assert endpoint("https://user:hidden@host.example:8443/v1?token=hidden") == "https://host.example:8443/v1"


@pytest.mark.parametrize("address", ["host/v1", "ftp://host", "http://", "http://host:99999", "https://user:hidden@host/v1"])
def test_an_address_from_elsewhere_than_the_file_is_held_to_the_same(address: str) -> None:
    judge = Judge(model="m").model_copy(update={"base_url": address})
    with pytest.raises(InputError, match=r"^judges\.base_url of m: [^:]* write https://host/v1") as refused:
        OpenAIProvider(judge, 1, 1)
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "expected"),
    [("http://localhost:1/v1", True), ("http://127.8.0.1/v1", True), ("http://[::1]:1", True), ("http://10.0.0.1", False),
     ("http://localhost.evil.example", False), (None, False)],
)  # fmt: skip
def test_what_counts_as_this_machine(address: str | None, expected: bool) -> None:
    assert is_loopback(address) is expected


@pytest.mark.parametrize("n_bytes", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 2])
@pytest.mark.parametrize("n_pictures", [1, 2])
def test_a_body_made_in_pieces_is_as_long_as_it_says_and_lets_go_of_its_picture(n_bytes: int, n_pictures: int) -> None:
    content = bytearray((bytes(range(251)) * (n_bytes // 251 + 1))[:n_bytes])
    messages = ({"role": "user", "content": [{"type": "image"}] * n_pictures},)
    body = make_payload("m", {}, messages, [RequestPicture(lambda: memoryview(content), "PNG")] * n_pictures)
    pieces = list(body)
    whole = b"".join(pieces)
    assert len(whole) == body.n_bytes
    assert max(map(len, pieces)) < 3 * PIECE_BYTES
    sent = [part["image_url"]["url"].partition(",")[2] for part in orjson.loads(whole)["messages"][0]["content"]]
    assert [base64.b64decode(each) for each in sent] == [content] * n_pictures
    content.append(1)  # a BufferError while anything still looks at the picture


def test_a_provider_nobody_knows_is_refused_with_those_there_are() -> None:
    assert provider_of(Judge(model="m")) is OpenAIProvider
    with pytest.raises(
        InputError, match=r'judges.provider = "nobody" of m is not a provider; available: anthropic, gemini, openai$'
    ):
        provider_of(Judge(model="m", provider="nobody"))
