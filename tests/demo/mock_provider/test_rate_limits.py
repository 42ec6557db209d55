"""Limits: what is granted in a span, the headers, changes in mid-run, and requests to a key that was told to wait."""

import asyncio
import time

import pytest

from demo.mock_provider.rate_limits import FixedWindow, KeyLimits, TokenBucket, duration, retry_headers
from demo.mock_provider.scenario import Limits

CANNED = {"mode": "canned", "text": "Score: 3", "prompt_tokens": 100, "completion_tokens": 20}
MANY = {"answer": CANNED, "stats": {"items": "sample"}}


def granted(limit, times_s, size=1):
    n = 0
    for now_s in times_s:
        if limit.wait_s(size, now_s) == 0:
            limit.take(size, now_s)
            n += 1
    return n


@pytest.mark.parametrize(
    ("limit", "until_s", "n"),
    [
        (TokenBucket(600, 5, 0), 1.0, 5 + 9),  # 10 a second; the last falls due just after 0.995 s
        (TokenBucket(600, None, 0), 1.0, 200),  # a minute's worth at once, more than was asked
        (TokenBucket(60, 1, 0), 1.0, 1),
        (FixedWindow(600, 0.5, 0), 0.499, 5),
        (FixedWindow(600, 0.5, 0), 1.0, 10),
    ],
    ids=["bucket", "bucket without burst", "slow bucket", "one window", "two windows"],
)
def test_a_span_grants_what_the_limit_says(limit, until_s, n):
    assert granted(limit, [until_s * step / 200 for step in range(200)]) == n


def test_the_wait_said_is_the_wait_needed():
    for limit in (TokenBucket(600, 3, 0), FixedWindow(600, 0.3, 0)):
        assert granted(limit, [0, 0, 0, 0]) == 3
        wait_s = limit.wait_s(1, 0.01)
        assert limit.wait_s(1, 0.01 + wait_s - 0.005) > 0
        assert limit.wait_s(1, 0.01 + wait_s + 1e-9) == 0


def test_a_refused_request_uses_up_neither_requests_nor_tokens():
    limits = KeyLimits(Limits(requests_per_minute=60, tokens_per_minute=1000), 0)
    assert limits.admit(900, 0) is None
    refused = limits.admit(400, 0)
    assert (refused.kind, refused.wait_s) == ("tokens", pytest.approx(18))
    assert limits.headers(0)["x-ratelimit-remaining-requests"] == "59"
    assert limits.admit(1001, 0).wait_s == float("inf")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0ms"), (0.0121, "13ms"), (1, "1s"), (1.5, "1.5s"), (59.9999, "1m0s"), (360, "6m0s"), (61.25, "1m1.25s")],
)
def test_durations_are_written_as_the_provider_writes_them(seconds, text):
    assert duration(seconds) == text


def test_no_form_of_retry_after_says_less_than_the_wait():
    for wait_s in (0.0004, 0.4, 1.0, 2.3):
        for form in ("seconds", "milliseconds", "both", "date"):
            assert retry_headers(form, wait_s, 1_000_000.7)[1] >= wait_s - 1e-6
    assert retry_headers("date", 2.3, 1_000_000.7)[0] == {"retry-after": "Mon, 12 Jan 1970 13:46:43 GMT"}


def test_a_burst_is_granted_the_rest_gets_429_with_the_whole_header_set(play):
    async def script(guest):
        answers = await asyncio.gather(*(guest.ask(f"{n}") for n in range(20)))
        return [answer.status_code for answer in answers], answers, await guest.stats()

    limits = {"requests_per_minute": 6, "burst_requests": 5, "tokens_per_minute": 600_000}
    statuses, answers, seen = play({**MANY, "limits": limits}, script)
    assert (statuses.count(200), statuses.count(429)) == (5, 15)
    assert (seen["n_429"], seen["by_fault"], seen["n_answers_billed"]) == (15, {"over_limit_requests": 15}, 5)
    headers = next(answer.headers for answer in answers if answer.status_code == 429)
    assert headers["x-ratelimit-limit-requests"] == "6"
    assert headers["x-ratelimit-remaining-requests"] == "0"
    assert headers["x-ratelimit-limit-tokens"] == "600000"
    assert int(headers["x-ratelimit-remaining-tokens"]) <= 600_000 - 5 * 120 + 200
    assert headers["x-ratelimit-reset-requests"].endswith("s")
    assert 0 < int(headers["retry-after-ms"]) <= 10_000
    assert int(headers["retry-after"]) == -(-int(headers["retry-after-ms"]) // 1000)


def test_over_a_second_of_asking_the_bucket_grants_its_rate(play):
    async def script(guest):
        started, statuses = time.monotonic(), []
        while time.monotonic() - started < 1:
            statuses.append((await guest.ask()).status_code)
        return statuses.count(200), time.monotonic() - started

    # a busy machine asks more slowly than it is granted, so the lower bound is a loose one
    n_granted, took_s = play({**MANY, "limits": {"requests_per_minute": 1800, "burst_requests": 10}}, script)
    assert 12 < n_granted <= 10 + 30 * took_s + 1


def test_tokens_count_the_input_and_the_most_that_may_be_answered(play):
    async def script(guest):
        return [(await guest.ask("x" * 3, max_tokens=493)).status_code for _ in range(3)]

    # "xxx" is one token, the message costs 3 and the answer's start 3: 500 with what may be answered
    scenario = {"answer": {"mode": "canned", "text": "Score: 3"}, "limits": {"tokens_per_minute": 1000}}
    assert play(scenario, script) == [200, 200, 429]


def test_each_key_has_limits_of_its_own(play):
    async def script(guest):
        mine = [(await guest.ask()).status_code for _ in range(2)]
        other = guest.openai.with_options(api_key="another")
        response = await other.chat.completions.create(model="any", messages=[{"role": "user", "content": "x"}])
        return mine, response.choices[0].message.content

    limits = {"requests_per_minute": 1, "burst_requests": 1}
    assert play({**MANY, "limits": limits}, script) == ([200, 429], "Score: 3")


def test_limits_change_after_requests_and_after_a_time(play):
    async def script(guest):
        first = [(await guest.ask()).headers["x-ratelimit-limit-requests"] for _ in range(3)]
        await asyncio.sleep(0.7)
        return [*first, (await guest.ask()).headers["x-ratelimit-limit-requests"]]

    changes = [{"after_requests": 2, "requests_per_minute": 300}, {"at_s": 0.6, "requests_per_minute": 200}]
    scenario = {**MANY, "limits": {"requests_per_minute": 600}, "changes": changes}
    assert play(scenario, script) == ["600", "600", "300", "200"]


def test_requests_to_a_key_that_was_told_to_wait_are_counted(play):
    async def script(guest):
        await guest.ask()  # the one granted
        assert (await guest.ask()).status_code == 429  # wait a second
        await guest.ask()  # at once: may have been on its way
        await asyncio.sleep(0.55)
        await guest.ask()  # too early
        await asyncio.sleep(0.55)
        assert (await guest.ask()).status_code == 200
        return await guest.stats()

    limits = {"requests_per_minute": 60, "burst_requests": 1, "retry_after": "milliseconds"}
    seen = play({**MANY, "limits": limits, "stats": {"items": "sample", "grace_s": 0.5}}, script)
    assert (seen["n_to_paused_key"], seen["n_on_the_way_to_paused_key"]) == (1, 1)
