"""Each fault as a client meets it, and who is struck: by content, attempt and seed alone."""

import asyncio
import json
import time
from collections import Counter
from email.utils import parsedate_to_datetime
from functools import partial

import openai
import pytest

from demo.drawing import draw_png
from demo.mock_provider.faults import ANSWERED, Fault
from demo.world import JUDGE, Scene, Thing

CANNED = {"mode": "canned", "text": "Reasoning: fine.\nScore: 3"}


def always(fault, **faults):
    return {"answer": CANNED, "faults": {"shares": {fault: 1}, **faults}}


STATUSES = {
    "rate_limited": (429, "rate_limit_exceeded"), "insufficient_quota": (429, "insufficient_quota"),
    "unauthorized": (401, "invalid_api_key"), "policy_400": (400, "content_policy_violation"),
    "error_500": (500, None), "error_503": (503, None), "error_529": (529, None),
}  # fmt: skip
BODIES = {
    "error_502": (502, "text/html", "<html"), "html_200": (200, "text/html", "<html"),
    "html_as_json": (200, "application/json", "<html"), "empty_200": (200, "application/json", ""),
    "null_200": (200, "application/json", "null"), "object_200": (200, "application/json", "{}"),
}  # fmt: skip
SPOILT = {
    "null_content": (None, None, "stop"),
    "truncated": (CANNED["text"][: len(CANNED["text"]) // 2], None, "length"),
    "refusal": (None, "I'm sorry, but I can't help with that.", "stop"),
    "content_filter": (None, None, "content_filter"),
}
BREAKS = {"reset", "lost_answer", "hang", "drip"}


def test_the_tables_here_name_every_fault():
    assert {*STATUSES, *BODIES, *SPOILT, *BREAKS, "no_choices", "cut_json", "malformed", "wrong_model"} == set(Fault)


@pytest.mark.parametrize("fault", STATUSES)
def test_a_fault_with_an_error_has_its_status_and_the_form_of_the_api(play, fault):
    response = play(always(fault), lambda guest: guest.ask())
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == STATUSES[fault]
    assert set(error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("fault", BODIES)
def test_a_fault_with_another_body_sends_it_whole(play, fault):
    response = play(always(fault), lambda guest: guest.ask())
    status, content_type, begins = BODIES[fault]
    assert (response.status_code, response.headers["content-type"]) == (status, content_type)
    assert response.text.startswith(begins)
    assert len(response.text) < 200


@pytest.mark.parametrize("fault", SPOILT)
def test_a_spoilt_answer_says_so_where_the_api_says_it(play, fault):
    choice = play(always(fault), lambda guest: guest.ask()).json()["choices"][0]
    assert (choice["message"]["content"], choice["message"]["refusal"], choice["finish_reason"]) == SPOILT[fault]


def test_no_choices_cut_json_malformed_and_wrong_model(play):
    assert play(always("no_choices"), lambda guest: guest.ask()).json()["choices"] == []
    with pytest.raises(json.JSONDecodeError):
        play(always("cut_json"), lambda guest: guest.ask()).json()
    malformed = play(always("malformed"), lambda guest: guest.ask()).json()["choices"][0]
    assert malformed["finish_reason"] == "stop"
    assert malformed["message"]["content"] != CANNED["text"]
    assert play(always("wrong_model", wrong_model="other"), lambda guest: guest.ask()).json()["model"] == "other"


@pytest.mark.parametrize(("fault", "n_billed"), [("reset", 0), ("lost_answer", 1)])
def test_a_reset_breaks_the_connection_before_or_after_the_bill(play, fault, n_billed):
    async def script(guest):
        with pytest.raises(openai.APIConnectionError):
            await guest.ask()
        with pytest.raises(ConnectionResetError):
            await guest.send(request("hello"))
        return await guest.stats()

    seen = play(always(fault), script)
    assert (seen["n_answers_billed"], seen["by_fault"], seen["by_status"]) == (2 * n_billed, {fault: 2}, {"none": 2})
    assert seen["n_abandoned"] == seen["n_in_flight"] == 0


def test_a_hang_lasts_until_the_client_goes(play):
    async def script(guest):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await guest.ask()
        return await guest.stats_when(lambda stats: stats["n_in_flight"] == 0)

    seen = play(always("hang"), script)
    assert (seen["n_abandoned"], seen["n_answers_billed"]) == (1, 0)


def test_a_drip_outlives_a_timeout_for_each_read_and_is_whole_in_the_end(play):
    async def script(guest):
        started = time.monotonic()
        response = await guest.openai.with_options(timeout=0.3).post(
            "/chat/completions", body={"model": JUDGE, "messages": [{"role": "user", "content": "x"}]}, cast_to=dict
        )
        return response, time.monotonic() - started

    response, took_s = play(always("drip", drip_every_s=0.002), script)
    assert response["choices"][0]["message"]["content"] == CANNED["text"]
    assert took_s > 0.4


def test_answered_faults_are_billed_and_the_others_are_not(play):
    async def script(guest, fault):
        try:
            async with asyncio.timeout(0.5 if fault == Fault.HANG else 60):  # the others end by themselves
                await guest.ask()
        except (openai.APIError, TimeoutError):
            pass
        return (await guest.stats())["n_answers_billed"]

    for fault in Fault:
        assert play(always(fault, drip_every_s=0.0001), partial(script, fault=fault)) == (fault in ANSWERED), fault


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "both", "date", "none"])
def test_retry_after_comes_in_all_its_forms(play, form):
    headers = play(always("rate_limited", retry_after=[form], retry_after_s=[1.25, 1.25]), lambda guest: guest.ask()).headers
    said = headers.get("retry-after"), headers.get("retry-after-ms")
    if form == "date":
        wait_s = parsedate_to_datetime(said[0]).timestamp() - time.time()
        assert said[0].endswith(" GMT")
        assert 1 < wait_s <= 2.5
    else:
        expected = {"seconds": ("2", None), "milliseconds": (None, "1250"), "both": ("2", "1250"), "none": (None, None)}
        assert said == expected[form]


def test_a_change_brings_a_fault_or_another_model_for_all_and_takes_it_away(play):
    changes = [
        {"after_requests": 2, "fault": "insufficient_quota"},
        {"after_requests": 4, "fault": "none", "answering_model": "newer"},
    ]

    async def script(guest):
        return [(answer.status_code, answer.json().get("model")) for answer in [await guest.ask() for _ in range(6)]]

    good, bad = (200, JUDGE), (429, None)
    assert play({"answer": CANNED, "changes": changes}, script) == [good, good, bad, bad, (200, "newer"), (200, "newer")]


STORM = {"rate_limited": 0.3, "error_500": 0.1, "reset": 0.05, "html_200": 0.1}


def struck(play, seed, order, n_at_once):
    """What became of three attempts of each item."""

    async def script(guest):
        gate = asyncio.Semaphore(n_at_once)
        found = {}

        async def ask(item):
            for attempt in range(3):
                async with gate:
                    try:
                        response = await guest.ask(f"item {item}")
                        found[item, attempt] = response.status_code, response.headers["content-type"]
                    except openai.APIConnectionError:
                        found[item, attempt] = "reset"

        await asyncio.gather(*(ask(item) for item in order))
        return found

    return play({"seed": seed, "answer": CANNED, "faults": {"shares": STORM, "retry_after": ["none"]}}, script)


def test_who_is_struck_depends_on_the_seed_and_on_nothing_else(play):
    alone = struck(play, 1, range(40), 1)
    assert struck(play, 1, range(39, -1, -1), 40) == alone
    assert struck(play, 2, range(40), 40) != alone
    assert len({alone[item, 0] for item in range(40)}) > 2
    assert any(alone[item, 0] != alone[item, 1] for item in range(40))


def test_what_the_limits_refuse_does_not_move_the_draws(play):
    async def fates(guest):
        found = []
        while len(found) < 6:
            response = await guest.ask("one item")
            if "retry-after-ms" in response.headers:
                await asyncio.sleep(0.005)
            else:
                found.append(response.status_code)
        return found

    scenario = {"seed": 3, "answer": CANNED, "faults": {"shares": {"error_500": 0.5}}}
    limited = scenario | {"limits": {"requests_per_minute": 3000, "burst_requests": 1}}
    assert len(set(play(scenario, fates))) == 2
    assert play(limited, fates) == play(scenario, fates)


def test_shares_are_kept(play):
    async def script(guest):
        await asyncio.gather(*(guest.ask(f"item {item}") for item in range(300)))
        return (await guest.stats())["by_fault"]

    n_struck = Counter(play({"answer": CANNED, "faults": {"shares": {"error_500": 0.4, "html_200": 0.1}}}, script))
    assert abs(n_struck["error_500"] - 120) < 4 * (300 * 0.4 * 0.6) ** 0.5
    assert abs(n_struck["html_200"] - 30) < 4 * (300 * 0.1 * 0.9) ** 0.5


def test_only_first_attempts_strikes_each_item_that_often(play):
    async def script(guest):
        return [[(await guest.ask(item)).status_code for _ in range(3)] for item in ("a", "b")]

    assert play(always("error_503", first_attempts=2), script) == [[503, 503, 200]] * 2


def test_the_honest_judge_still_looks_at_the_picture(play, messages_for):
    png = draw_png(Scene((Thing("star", "red", 45, 45, 60),), is_plain=True))
    asked = messages_for("alignment", {"prompt": "a photo of a red star"}, png)

    async def script(guest):
        completion = await guest.openai.chat.completions.create(model=JUDGE, messages=asked, logprobs=True, max_tokens=400)
        return completion.choices[0], completion.usage

    choice, usage = play({}, script)
    assert choice.message.content.endswith("Score: 5")
    assert "".join(token.token for token in choice.logprobs.content) == choice.message.content
    assert all(token.logprob <= 0 for token in choice.logprobs.content)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_echo_gives_back_the_last_text_and_max_tokens_cuts_it(play):
    async def script(guest):
        whole = await guest.ask("one two three four five six seven eight")
        short = await guest.ask("one two three four five six seven eight", max_tokens=3)
        return [answer.json() for answer in (whole, short)]

    whole, short = play({"answer": {"mode": "echo"}}, script)
    assert whole["choices"][0]["message"]["content"] == "one two three four five six seven eight"
    assert short["choices"][0]["message"]["content"] == "one two three"
    assert (short["choices"][0]["finish_reason"], short["usage"]["completion_tokens"]) == ("length", 3)


def request(text: str) -> bytes:
    body = json.dumps({"model": JUDGE, "messages": [{"role": "user", "content": text}]}).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
