"""The sockets: bytes cut anywhere, requests sent ahead, large bodies, plain mode, and what is handed to aiohttp."""

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from demo.mock_provider.request import SAMPLED_BYTES, sample
from demo.mock_provider.scenario import load_scenario
from demo.world import JUDGE

PLAIN = {
    "answer": {"mode": "canned", "text": "Score: 3", "prompt_tokens": 9, "completion_tokens": 2},
    "stats": {"items": "sample"},
}
ECHO = {"answer": {"mode": "echo"}}


def request(text, *headers):
    body = json.dumps({"model": JUDGE, "messages": [{"role": "user", "content": text}]}).encode()
    lines = [b"POST /v1/chat/completions HTTP/1.1", b"Host: x", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def contents(answers):
    return [json.loads(b"{" + part.partition(b"\r\n\r\n{")[2])["choices"][0]["message"]["content"]
            for part in answers.split(b"HTTP/1.1 200 OK")[1:]]  # fmt: skip


@pytest.mark.parametrize("cut", [1, 20, 40, 60, 80, 100, 150, -1])
def test_a_request_may_come_in_two_pieces_cut_anywhere(play, cut):
    whole = request("hello")
    assert contents(play(ECHO, lambda guest: guest.send(whole[:cut], whole[cut:]))) == ["hello"]


def test_a_request_may_come_byte_by_byte(play):
    pieces = [bytes([byte]) for byte in request("hello")[-40:]]
    assert contents(play(ECHO, lambda guest: guest.send(request("hello")[:-40], *pieces))) == ["hello"]


@pytest.mark.parametrize("scenario", [ECHO, ECHO | {"latency": {"median_s": 0.02}}], ids=["at once", "later"])
def test_requests_sent_ahead_are_answered_in_order(play, scenario):
    ahead = b"".join(request(f"{n}" * 50) for n in range(5))
    assert contents(play(scenario, lambda guest: guest.send(ahead, n_answers=5))) == [f"{n}" * 50 for n in range(5)]


@pytest.mark.parametrize("n_characters", [0, 39_000, 41_000, 300_000, 3_000_000])
def test_bodies_of_all_sizes_arrive_whole(play, n_characters):
    text = "x" * n_characters + "."

    async def script(guest):
        return [(await guest.ask(text)).json()["choices"][0]["message"]["content"] for _ in range(2)]

    assert play(ECHO, script) == [text, text]


@pytest.mark.parametrize("n_characters", [10, 39_000, 41_000, 300_000, 3_000_000])
def test_plain_mode_keeps_step_with_bodies_it_does_not_read(play, n_characters):
    """Two on one connection, and one sent ahead: an unread byte too few or too many would break the next request."""
    body = request("x" * n_characters)

    async def script(guest):
        one = await guest.send(body, body[: len(body) // 2], body[len(body) // 2 :], n_answers=2)
        return one, await guest.send(body + body, n_answers=2), await guest.stats()

    *answers, seen = play(PLAIN, script)
    assert [contents(answer) for answer in answers] == [["Score: 3"] * 2] * 2
    assert (seen["n_requests"], seen["n_items_by_times_billed"], seen["by_status"]) == (4, {"4": 1}, {"200": 4})
    assert (seen["n_input_tokens"], seen["n_output_tokens"], seen["n_in_flight"]) == (36, 8, 0)


def test_plain_mode_and_its_kin_give_the_same_answer_and_counts(play):
    """With a latency the scenario is not answered from the ready bytes; nothing else may differ."""

    async def script(guest):
        answer = (await guest.ask("x" * 100_000)).json()
        return {key: answer[key] for key in ("model", "choices", "usage")}, (await guest.stats())["n_items_by_times_billed"]

    assert play(PLAIN, script) == play(PLAIN | {"latency": {"median_s": 0.01}}, script)


def test_a_sample_tells_pictures_apart_that_begin_alike():
    head = b"the same prompt " * 200
    bodies = [head + bytes([n]) * 100_000 for n in range(20)]
    assert len({sample(body[:SAMPLED_BYTES], len(body)) for body in bodies}) == 20
    assert sample(bodies[0][:SAMPLED_BYTES], 100) != sample(bodies[0][:SAMPLED_BYTES], 101)
    assert sample(bodies[0], len(bodies[0])) == sample(bodies[0][:SAMPLED_BYTES], len(bodies[0]))


def test_expect_continue_is_answered_before_the_body(play):
    async def script(guest):
        whole = request("hello", b"Expect: 100-continue")
        head, _, body = whole.partition(b"\r\n\r\n")
        reader, writer = await asyncio.open_connection("127.0.0.1", guest.port)
        writer.write(head + b"\r\n\r\n")
        told = await reader.readuntil(b"\r\n\r\n")
        writer.write(body)
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        return told, answer

    told, answer = play(ECHO, script)
    assert told == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert answer.startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"411"),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
        (b"POST /v1/chat/completions HTTP/1.1\r\nX: " + b"x" * 9000, b"431"),
        (request("x").replace(b"{", b"[", 1), b"400"),
        (b"POST /v1/other HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", b"404"),
        (b"GET /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n", b"404"),
    ],
    ids=["chunked", "no length", "too long", "long head", "no json", "elsewhere", "get"],
)
def test_what_is_no_chat_request_gets_a_status(play, sent, status):
    assert play(ECHO, lambda guest: guest.send(sent)).startswith(b"HTTP/1.1 " + status)


def test_connection_close_is_kept(play):
    async def script(guest):
        reader, writer = await asyncio.open_connection("127.0.0.1", guest.port)
        writer.write(request("hello", b"Connection: close"))
        answer = await asyncio.wait_for(reader.read(), 5)
        writer.close()
        await writer.wait_closed()
        return contents(answer)

    assert play(ECHO, script) == ["hello"]


def test_one_pool_of_connections_serves_chats_and_the_rest_in_any_order(play):
    async def script(guest):
        base = f"http://127.0.0.1:{guest.port}"
        body = {"model": JUDGE, "messages": [{"role": "user", "content": "hello"}]}
        statuses = []
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
            for _ in range(3):
                async with session.post(f"{base}/v1/chat/completions", json=body) as response:
                    statuses.append(response.status)
                async with session.get(f"{base}/stats") as response:
                    statuses.append((await response.json())["n_requests"])
        return statuses

    assert play(ECHO, script) == [200, 1, 200, 2, 200, 3]


def test_a_client_that_goes_in_the_middle_of_a_body_leaves_nothing_behind(play):
    async def script(guest):
        for scenario_body in (request("x" * 100), request("x" * 200_000)):
            _, writer = await asyncio.open_connection("127.0.0.1", guest.port)
            writer.write(scenario_body[:-50])
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        await asyncio.sleep(0.05)
        return await guest.stats()

    for scenario in (ECHO, PLAIN):
        seen = play(scenario, script)
        assert (seen["n_requests"], seen["n_in_flight"]) == (0, 0)


def test_plain_mode_costs_little_and_far_less_than_reading(play):
    """The figure itself is benchmarks/serve_judge_cost.py's; here only that the way that does not read is taken."""
    body = request("x" * 200_000)

    async def script(guest):
        reader, writer = await asyncio.open_connection("127.0.0.1", guest.port)
        spent_s = []
        for _ in range(200):
            writer.write(body)
            await reader.readuntil(b"\r\n\r\n")
            await reader.readuntil(b"}}")
        writer.close()
        await writer.wait_closed()
        spent_s.append((await guest.stats())["cpu_s"])
        return spent_s[0]

    reading = PLAIN | {"stats": {"items": "content"}}
    assert min(play(PLAIN, script) for _ in range(2)) < min(play(reading, script) for _ in range(2))


def test_the_example_scenarios_are_valid_and_plain_is_plain():
    folder = Path(__file__).parents[3] / "docs" / "examples" / "scenarios"
    scenarios = {path.stem: load_scenario(path) for path in sorted(folder.glob("*.toml"))}
    assert list(scenarios) == ["batch", "limits", "plain", "storm"]
    assert scenarios["plain"].answer.is_plain
    assert sum(scenarios["storm"].faults.shares.values()) == pytest.approx(0.62)
