"""What becomes of a body while it is sent: an answer that comes first, a lost connection, a server that takes none of it."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import psutil
import pytest

from schemas.benchmark.judges import Judge
from schemas.statuses.rows import ReplyStatus as S
from tasks.judge.provider.exchange import Answer, Payload, RequestPicture
from tasks.judge.provider.openai.client import OpenAIProvider, make_payload
from tests.judge.misbehaving import completion, head, response

MESSAGES = ({"role": "user", "content": [{"type": "image"}]},)
LARGE_BYTES = 24_000_000  # more than sockets of this machine hold on their own
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True, params=["aiohttp", "sdk"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Either way of sending makes the same of it."""
    monkeypatch.setenv("SALON_TRANSPORT", request.param)
    return str(request.param)


class _Counted:
    """A payload that says how many of its pieces were asked for."""

    def __init__(self, payload: Payload) -> None:
        self._payload, self.n_bytes, self.n_taken = payload, payload.n_bytes, 0
        self.on_start: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[bytes]:
        self.on_start()
        for piece in self._payload:
            self.n_taken += len(piece)
            yield piece


def body(n_bytes: int) -> _Counted:
    """A request that shows a picture of so many bytes."""
    return _Counted(make_payload("judge", {}, MESSAGES, [RequestPicture(lambda: memoryview(bytes(n_bytes)), "PNG")]))


def asked(serve: Serve, *payloads: _Counted, deadline_s: float = 5.0) -> list[Answer]:
    """The answers of a server to these payloads, one after the other, by one client."""

    async def run() -> list[Answer]:
        async with _serving(serve) as port:
            client = OpenAIProvider(Judge(model="judge", base_url=f"http://127.0.0.1:{port}/v1"), 4, deadline_s)
            try:
                return [await client.ask(payload) for payload in payloads]
            finally:
                await client.close()

    answers = asyncio.run(run())
    gc.collect()  # a connection that was left open would say so here
    return answers


@asynccontextmanager
async def _serving(serve: Serve) -> AsyncIterator[int]:
    served: list[asyncio.Task[None] | None] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.current_task())
        try:
            await serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=64 * 1024)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in filter(None, served):
            task.cancel()
        await asyncio.gather(*filter(None, served), return_exceptions=True)


async def _taken(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    """A request's first line and headers; its body is left where it is."""
    line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
    return line, {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}


def test_an_answer_that_comes_before_the_body_has_gone_is_read_and_its_connection_not_used_again(transport: str) -> None:
    n_connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal n_connections
        n_connections += 1
        while True:
            _, headers = await _taken(reader)
            if int(headers["content-length"]) > LARGE_BYTES:
                writer.write(response(b'{"error": {"message": "too large"}}', status=413))
                await asyncio.sleep(60)  # and leaves the rest of the body where it is
            await reader.readexactly(int(headers["content-length"]))
            writer.write(response(completion()))

    refused, answered, again = asked(serve, body(LARGE_BYTES), body(100), body(100))
    assert (refused.status, "too large" in (refused.detail or "")) == (S.REJECTED, True)
    assert [(one.status, one.text is not None) for one in (answered, again)] == [(S.ANSWERED, True)] * 2
    assert n_connections == (2 if transport == "aiohttp" else 3)  # the SDK's are used once each


@pytest.mark.parametrize("n_read", [0, 100_000])
def test_a_connection_lost_on_the_way_of_a_body_may_have_been_billed(n_read: int) -> None:
    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await _taken(reader)
        await reader.readexactly(n_read)

    payload = body(LARGE_BYTES)
    (lost,) = asked(serve, payload)
    assert (lost.status, lost.is_sent, "billed" in (lost.detail or "")) == (S.UNREACHABLE, True, True)
    assert payload.n_taken < payload.n_bytes


def test_a_body_is_made_as_the_socket_takes_it_and_ends_at_the_deadline() -> None:
    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await _taken(reader)
        await asyncio.sleep(60)

    payload = body(LARGE_BYTES)
    (late,) = asked(serve, payload, deadline_s=0.5)
    assert (late.status, late.is_sent) == (S.TIMED_OUT, True)
    assert payload.n_taken < payload.n_bytes / 2


@pytest.mark.parametrize("transport", ["aiohttp"], indirect=True)  # the SDK's leaves its own to the loop
def test_of_a_body_that_nobody_takes_no_socket_is_left_once_its_time_is_up() -> None:
    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await _taken(reader)
        await asyncio.sleep(60)

    async def run() -> tuple[Answer, list[int]]:
        async with _serving(serve) as port:
            client = OpenAIProvider(Judge(model="judge", base_url=f"http://127.0.0.1:{port}/v1"), 4, deadline_s=0.5)
            late = await client.ask(body(LARGE_BYTES))
            await asyncio.sleep(0.1)  # the loop takes its leave of what was aborted
            left = [one.fd for one in psutil.Process().net_connections("tcp") if one.raddr and one.raddr.port == port]
            await client.close()
            return late, left

    late, left = asyncio.run(run())
    assert (late.status, left) == (S.TIMED_OUT, [])


@pytest.mark.parametrize("n_bytes", [100, 150_000, 3_000_000])
@pytest.mark.parametrize("early", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 2])
def test_what_says_to_wait_is_no_answer(early: bytes, n_bytes: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, headers = await _taken(reader)
            writer.write(early)
            await reader.readexactly(int(headers["content-length"]))
            writer.write(response(completion("Score: 3")))

    assert [one.text for one in asked(serve, body(n_bytes), body(n_bytes))] == ["Score: 3"] * 2


@pytest.mark.parametrize("every_s", [0, 0.01])
def test_a_reply_that_does_not_say_how_long_it_is_ends_with_its_connection(every_s: float) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, headers = await _taken(reader)
        await reader.readexactly(int(headers["content-length"]))
        said, n = completion("Score: 3"), 40
        for piece in (head(), *(said[at : at + n] for at in range(0, len(said), n))):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(every_s)
        writer.close()
        await writer.wait_closed()

    assert [one.text for one in asked(serve, body(100), body(100))] == ["Score: 3"] * 2


@pytest.mark.parametrize("n_bytes", [0, 150_000])
def test_a_body_that_cannot_be_made_to_its_end_ends_the_attempt_at_once(n_bytes: int) -> None:
    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await _taken(reader)
        await asyncio.sleep(60)

    class Spoiled(_Counted):
        def __iter__(self) -> Iterator[bytes]:
            self.on_start()
            yield bytes(n_bytes)
            raise ValueError("spoiled")

    (failed,) = asked(serve, Spoiled(body(LARGE_BYTES)))
    assert (failed.status, failed.is_sent, "spoiled" in (failed.detail or "")) == (S.UNREACHABLE, True, True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of how the SDK's transport hands a proxy's login on
def test_a_proxy_of_plain_http_is_told_the_whole_address_and_its_login_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str | None, str | None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            line, headers = await _taken(reader)
            seen.append((line, headers.get("proxy-authorization"), headers.get("host")))
            await reader.readexactly(int(headers["content-length"]))
            writer.write(response(completion("Score: 3")))

    async def run() -> list[Answer]:
        async with _serving(serve) as port:
            monkeypatch.setenv("http_proxy", f"http://user:hidden@127.0.0.1:{port}")
            monkeypatch.setenv("SALON_TEST_KEY", "sk-very-secret-1234567890")
            judge = Judge(model="judge", base_url="http://judge.invalid/v1?v=1", api_key_env="SALON_TEST_KEY")
            client = OpenAIProvider(judge, 4, 5.0)
            try:
                return [await client.ask(body(100)) for _ in range(2)]
            finally:
                await client.close()

    assert [one.text for one in asyncio.run(run())] == ["Score: 3"] * 2
    told = ("POST http://judge.invalid/v1/chat/completions?v=1 HTTP/1.1", "Basic dXNlcjpoaWRkZW4=", "judge.invalid")
    assert seen == [told] * 2
