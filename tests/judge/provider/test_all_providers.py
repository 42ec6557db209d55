"""Every provider by one table: whatever goes wrong, the same thing means the same of each. The rows are written per provider in
tests/judge/provider/dialects.py; what each has for itself stands below the table.
"""

import asyncio
import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from rubrics.loading import SHIPPED, load_rubric
from rubrics.replies.read import parse_reply
from schemas.benchmark.judges import Judge
from schemas.errors import InputError, MissingKeyError
from schemas.input_budget import REPLY_BYTES
from schemas.statuses.rows import ParseReason
from schemas.statuses.rows import ReplyStatus as S
from tasks.judge.budget.cost import Costs, stated_output_bound
from tasks.judge.provider.base import provider_of
from tasks.judge.provider.exchange import Answer, RequestPicture, SaidLimit
from tests.judge.provider.dialects import ANTHROPIC, DIALECTS, GEMINI, MODEL, OPENAI, Dialect
from tests.support.servers.provider import Play

ROOT = Path(__file__).parents[3]
KEY = "key-very-secret-1234567890"
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Judge."},
    {"role": "user", "content": [{"type": "text", "text": "a cat"}, {"type": "image", "sha256": "0" * 64}]},
]
PICTURE = RequestPicture(lambda: bytes(range(256)) * 700, "PNG")  # more than one piece of base64
SCORE = "Reasoning: it is there.\nScore: 4"
Case = tuple[Callable[[Dialect], Play], S, str]


def plain(dialect: Dialect) -> Play:
    return Play(body=dialect.said(SCORE))


def strange(dialect: Dialect) -> Play:
    content = orjson.loads(dialect.said(SCORE))
    place = content["choices"][0]["message"]["content"] if "choices" in content else content.get("content")
    place = content["candidates"][0]["content"]["parts"] if "candidates" in content else place
    place.append(dialect.strange_part)
    return Play(body=orjson.dumps(content))


CASES: dict[str, Case] = {
    "answered": (plain, S.ANSWERED, ""),
    "a byte order mark": (lambda d: Play(body=b"\xef\xbb\xbf" + d.said(SCORE)), S.ANSWERED, ""),
    "truncated": (lambda d: Play(body=d.said("Reasoning: it", "length")), S.ANSWERED, ""),
    "no text": (lambda d: Play(body=d.said(None)), S.ANSWERED, ""),
    "the answer filtered": (lambda d: Play(body=d.said(None, "filter")), S.FILTERED, ""),
    "the request filtered": (lambda d: d.blocked, S.FILTERED, ""),
    "a part that is no text": (strange, S.BAD_RESPONSE, "where text is expected"),
    "html": (lambda _: Play(body=b"<html>busy</html>"), S.BAD_RESPONSE, "not JSON"),
    "empty": (lambda _: Play(), S.BAD_RESPONSE, "an empty body"),
    "null": (lambda _: Play(body=b"null"), S.BAD_RESPONSE, "not an object"),
    "an empty object": (lambda _: Play(body=b"{}"), S.BAD_RESPONSE, "a 200 without"),
    "an error as a 200": (lambda d: replace(d.error(503, "", "busy"), status=200), S.BAD_RESPONSE, "busy"),
    "JSON cut short": (lambda d: Play(body=d.said(SCORE)[:60]), S.BAD_RESPONSE, "not JSON"),
    "JSON nested deep": (lambda _: Play(body=b'{"a":' * 100_000 + b"1" + b"}" * 100_000), S.BAD_RESPONSE, "depth"),
    "NaN": (lambda d: Play(body=d.said(SCORE)[:-1] + b',"x":NaN}'), S.BAD_RESPONSE, "not JSON"),
    "a key twice": (lambda d: Play(body=d.said(SCORE)[:-1] + b',"usage":1,"usage":2}'), S.BAD_RESPONSE, "twice"),
    "too large": (lambda _: Play(body=b"x" * (REPLY_BYTES + 1)), S.BAD_RESPONSE, "it was not read"),
    "packed": (lambda _: Play(body=b"x", headers={"content-encoding": "gzip"}), S.BAD_RESPONSE, "not decompressed"),
    "a redirect": (lambda _: Play(status=307, headers={"location": "/x?secret=1"}), S.BAD_RESPONSE, "base_url"),
    "refused": (lambda d: d.error(400, "", "temperature: at most 2"), S.REJECTED, "temperature: at most 2"),
    "too much": (lambda d: d.error(413, "", "too large"), S.REJECTED, "HTTP 413"),
    "the key is not accepted": (lambda d: d.error(401, "key", "invalid key"), S.UNAUTHORIZED, "key"),
    "no such model": (lambda d: d.error(404, "model", "model: judge"), S.UNAUTHORIZED, "model: judge"),
    "the account is empty": (lambda d: d.error(429, "quota", "no quota"), S.NO_CREDIT, ""),
    "429": (lambda d: d.error(429, "", "slow down"), S.RATE_LIMITED, "slow down"),
    "429 with a wait": (lambda d: d.error(429, "wait", "slow down"), S.RATE_LIMITED, ""),
    "429 of a proxy": (lambda _: Play(status=429, body=b"<html>"), S.RATE_LIMITED, ""),
    "500": (lambda d: d.error(500, "", "oops"), S.SERVER_ERROR, "oops"),
    "503": (lambda d: d.error(503, "", "busy"), S.SERVER_ERROR, "busy"),
    "529": (lambda d: d.error(529, "", "Overloaded"), S.SERVER_ERROR, "Overloaded"),
    "502 of a proxy": (lambda _: Play(status=502, body=b"<h1>502</h1>"), S.SERVER_ERROR, "502"),
    "an error nested deep": (lambda _: Play(status=400, body=b"[" * 900 + b"]" * 900), S.REJECTED, "[[["),
    "no answer": (lambda _: Play(delay_s=3), S.TIMED_OUT, "may have been billed"),
    "a dripping body": (lambda d: Play(body=d.said("x" * 2000), drip_s=0.05), S.TIMED_OUT, "may have been billed"),
    "a reset": (lambda _: Play(reset=True), S.UNREACHABLE, "may have been billed"),
    "a body cut": (lambda d: Play(body=d.said(SCORE), cut=True), S.UNREACHABLE, "may have been billed"),
}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALON_TEST_KEY", KEY)


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


def ask(judge: Judge, messages: list[dict[str, Any]] = MESSAGES, deadline_s: float = 5.0, more: Any = None) -> Answer:
    async def run() -> Answer:
        client = provider_of(judge)(judge, 4, deadline_s)
        try:
            return await client.ask(client.payload(judge.parameters | (more or {}), messages, [PICTURE]))
        finally:
            await client.close()

    return asyncio.run(run())


@pytest.mark.parametrize("case", CASES)
def test_what_goes_wrong_means_the_same_of_each(case: str, dialect: Dialect, provider: Any) -> None:
    play, status, words = CASES[case]
    provider.then = play(dialect)
    answer = ask(dialect.judge(provider.url), deadline_s=0.4 if status == S.TIMED_OUT else 5.0)
    assert (answer.status, provider.n) == (status, 1), answer.detail
    assert words in (answer.detail or "")
    assert "secret" not in (answer.detail or "")
    if status == S.ANSWERED:
        context = {"finish_reason": answer.finish_reason, "refusal": answer.refusal_text}
        read = parse_reply(load_rubric(SHIPPED / "alignment"), answer.text, context)
        expected = {"truncated": ParseReason.TRUNCATED, "no text": ParseReason.EMPTY}.get(case)
        assert getattr(read, "reason", None) == expected
        assert answer.text == {None: SCORE, ParseReason.TRUNCATED: "Reasoning: it", ParseReason.EMPTY: None}[expected]
    if case == "429 with a wait":
        assert answer.retry_after_s == 7


def test_a_server_that_is_not_there_was_sent_nothing(dialect: Dialect) -> None:
    answer = ask(dialect.judge("http://127.0.0.1:9/v1"))
    assert (answer.status, answer.is_sent) == (S.UNREACHABLE, False)


def test_tokens_are_counted_repeated_and_thought_ones_too(dialect: Dialect, provider: Any) -> None:
    provider.then = Play(body=dialect.said(SCORE))
    price = {"input_usd_per_million": 1, "output_usd_per_million": 10, "cached_usd_per_million": 0.1}
    judge = dialect.judge(provider.url, price=price)
    answer = ask(judge)
    assert (answer.n_input_tokens, answer.n_cached_tokens, answer.n_output_tokens) == (900, 100, 42)
    assert answer.answered_model == MODEL
    usd = (800 * 1 + 100 * 0.1 + 42 * 10) / 1e6
    for is_batch in (False, True):
        cost = Costs(judge, 100, is_batch=is_batch).cost_usd(answer)
        assert cost == pytest.approx(usd / 2 if is_batch else usd)


def test_another_model_that_answers_is_named(dialect: Dialect, provider: Any) -> None:
    provider.then = Play(body=dialect.said(SCORE, model="someone-else"))
    assert ask(dialect.judge(provider.url)).answered_model == "someone-else"


def test_the_key_goes_out_in_its_header_and_nowhere_else(dialect: Dialect, provider: Any) -> None:
    provider.script.append(dialect.error(400, "", f"you sent {KEY}"))
    provider.script.append(Play(body=dialect.said(f"score 3 for {KEY}", model=KEY)))
    answers = [ask(dialect.judge(provider.url)), ask(dialect.judge(provider.url))]
    name, before = dialect.key
    assert {key.lower(): value for key, value in provider.headers[0].items()}[name.lower()] == before + KEY
    assert KEY not in repr(answers)
    assert KEY.encode() not in provider.seen[0]
    assert KEY not in provider.paths[0]


def test_each_asks_its_own_address_and_a_query_stays_at_its_end(dialect: Dialect, provider: Any) -> None:
    provider.then = Play(body=dialect.said(SCORE))
    ask(dialect.judge(f"{provider.url}/?tenant=one"))
    assert provider.paths == [f"{dialect.path}?tenant=one"]


@pytest.mark.parametrize("text", ['"}]}', "\\", "data:image/png;base64,AAAA", "{image}", "ünï\u2028", "0123456789abcdef" * 4])
def test_text_and_picture_reach_the_judge_byte_for_byte(text: str, dialect: Dialect, provider: Any) -> None:
    provider.then = Play(body=dialect.said(SCORE))
    content = [{"type": "text", "text": text}, {"type": "image"}, {"type": "text", "text": f"{text}."}]
    ask(dialect.judge(provider.url), [{"role": "system", "content": f"S{text}"}, {"role": "user", "content": content}])
    (body,) = provider.bodies
    assert _sent(body) == (f"S{text}", text, "image/png", PICTURE.read(), f"{text}.")


def _sent(body: dict[str, Any]) -> tuple[Any, ...]:
    """(system, text before the picture, its type, its bytes, text behind it) of a body in any dialect."""
    if "contents" in body:
        (user,) = body["contents"]
        first, picture, last = user["parts"]
        inline = picture["inlineData"]
        system = "".join(part["text"] for part in body["systemInstruction"]["parts"])
        return system, first["text"], inline["mimeType"], base64.b64decode(inline["data"]), last["text"]
    system = body["system"] if "system" in body else body["messages"].pop(0)["content"]
    (user,) = body["messages"]
    first, picture, last = user["content"]
    if "source" in picture:
        kind, data = picture["source"]["media_type"], picture["source"]["data"]
    else:
        kind, _, data = picture["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return system, first["text"], kind, base64.b64decode(data), last["text"]


def test_a_picture_that_is_missing_is_never_left_out(dialect: Dialect) -> None:
    judge = dialect.judge("http://127.0.0.1:9/v1")
    client = provider_of(judge)(judge, 1, 1)
    with pytest.raises(ValueError, match="picture"):
        client.payload(judge.parameters, MESSAGES, [])
    payload = client.payload(judge.parameters, MESSAGES, [PICTURE])
    n_bytes = payload.n_bytes
    assert len(b"".join(payload)) == n_bytes


def test_several_pictures_stand_in_their_places_each_of_its_own_kind(dialect: Dialect) -> None:
    judge = dialect.judge("http://127.0.0.1:9/v1")
    parts = [{"type": "image"}, {"type": "text", "text": "before"}, {"type": "image"}, {"type": "text", "text": "after"}]
    pictures = [RequestPicture(lambda: b"first", "PNG"), RequestPicture(lambda: b"second one", "JPEG")]
    body = provider_of(judge)(judge, 1, 1).payload(judge.parameters, [{"role": "user", "content": parts}], pictures)
    n_bytes, sent = body.n_bytes, b"".join(body)
    assert len(sent) == n_bytes
    words = [b"image/png", base64.b64encode(b"first"), b"before", b"image/jpeg", base64.b64encode(b"second one"), b"after"]
    assert [sent.count(word) for word in words] == [1] * 6
    assert sorted(words, key=sent.index) == words


def test_parameters_that_are_none_of_the_judges_are_refused_with_what_to_do(dialect: Dialect) -> None:
    for name, advice in dialect.refused.items():
        with pytest.raises(InputError, match=f"^{name} cannot be set here; .*{advice}"):
            provider_of(dialect.judge("http://localhost:1")).check_parameters(dialect.parameters | {name: 1})


def test_parameters_pass_as_they_are_and_a_schema_in_each_ones_place(dialect: Dialect, provider: Any) -> None:
    provider.then = Play(body=dialect.said(SCORE))
    number = {"type": "number", "minimum": 0, "maximum": 10}
    schema = {"type": "object", "properties": {"minimum": number}, "required": ["minimum"], "additionalProperties": False}
    structure = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}
    judge = dialect.judge(provider.url, parameters=dialect.parameters | {"nested": {"of": [1, {"any": None}]}})
    ask(judge, more={"response_format": structure})
    (body,) = provider.bodies
    assert body["nested"] == {"of": [1, {"any": None}]}
    sent = {
        "openai": lambda: body["response_format"]["json_schema"]["schema"],
        "anthropic": lambda: body["output_config"]["format"]["schema"],
        "gemini": lambda: body["generationConfig"]["responseJsonSchema"],
    }[dialect.name]()
    assert sent == (schema | {"properties": {"minimum": {"type": "number"}}} if dialect is ANTHROPIC else schema)
    assert ("response_format" in body) == (dialect.name == "openai")


def test_a_remote_judge_needs_the_key_of_its_own_provider(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{dialect.name.upper()}_API_KEY"
    monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingKeyError, match=f"{name} is not set; export {name}="):
        provider_of(judge := Judge(model="m", provider=dialect.name, parameters=dialect.parameters)).check(judge)


def test_the_longest_reply_is_bounded_by_what_the_parameters_say() -> None:
    assert stated_output_bound(ANTHROPIC.judge("http://localhost:1")) == 500
    assert stated_output_bound(GEMINI.judge("http://localhost:1")) == 500
    assert stated_output_bound(GEMINI.judge("http://localhost:1", parameters={})) is None


ALONE: dict[str, tuple[Dialect, int, Any, S, float | None]] = {
    "anthropic: the month's limit is reached": (
        ANTHROPIC, 400, {"type": "invalid_request_error", "message": "You have reached your specified API usage limits."},
        S.NO_CREDIT, None,
    ),
    "anthropic: billing": (ANTHROPIC, 402, {"type": "billing_error", "message": "see your billing"}, S.NO_CREDIT, None),
    "anthropic: no permission": (ANTHROPIC, 403, {"type": "permission_error", "message": "no"}, S.UNAUTHORIZED, None),
    "anthropic: time-out": (ANTHROPIC, 504, {"type": "timeout_error", "message": "late"}, S.SERVER_ERROR, None),
    "gemini: a place without the service": (
        GEMINI, 400, {"code": 400, "message": "User location is not supported.", "status": "FAILED_PRECONDITION"},
        S.UNAUTHORIZED, None,
    ),
    "gemini: no permission": (GEMINI, 403, {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}, S.UNAUTHORIZED, None),
    "gemini: a wait in parts of a second": (
        GEMINI, 429, {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "12.5s"}]},
        S.RATE_LIMITED, 12.5,
    ),
    "gemini: a wait that cannot be read": (
        GEMINI, 429, {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "-1s"}, 4]},
        S.RATE_LIMITED, None,
    ),
    "gemini: cancelled": (
        GEMINI, 499, {"code": 499, "message": "The operation was cancelled.", "status": "CANCELLED"}, S.SERVER_ERROR, None,
    ),
    "gemini: cancelled under another status": (
        GEMINI, 400, {"code": 400, "message": "The operation was cancelled.", "status": "CANCELLED"}, S.SERVER_ERROR, None,
    ),
    "gemini: unavailable": (GEMINI, 503, {"code": 503, "message": "m", "status": "UNAVAILABLE"}, S.SERVER_ERROR, None),
}  # fmt: skip


@pytest.mark.parametrize(("dialect", "status", "error", "expected", "wait_s"), ALONE.values(), ids=ALONE)
def test_errors_that_one_provider_has_for_itself(
    dialect: Dialect, status: int, error: dict[str, Any], expected: S, wait_s: float | None, provider: Any
) -> None:
    provider.then = Play(status=status, body=orjson.dumps({"error": error}))
    answer = ask(dialect.judge(provider.url))
    assert (answer.status, answer.retry_after_s) == (expected, wait_s)
    assert error["message"] in (answer.detail or "")


def test_a_quota_of_the_day_is_not_waited_for_by_the_minute(provider: Any) -> None:
    """The service asks for seconds; until midnight in California there is nothing."""
    violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
    details = [{"violations": [violation]}, {"retryDelay": "18s"}]
    error = {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}
    provider.then = Play(status=429, body=orjson.dumps({"error": error}))
    wait_s = ask(GEMINI.judge(provider.url)).retry_after_s
    assert wait_s is not None
    assert 0 < wait_s <= 25 * 3600  # 25 hours, on the day on which clocks are set back
    assert wait_s != 18


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII"])
def test_each_reason_of_geminis_filters_is_one(reason: str, provider: Any) -> None:
    content = orjson.loads(GEMINI.said("partly"))
    content["candidates"][0]["finishReason"] = reason
    provider.then = Play(body=orjson.dumps(content))
    answer = ask(GEMINI.judge(provider.url))
    assert (answer.status, answer.finish_reason, answer.n_output_tokens) == (S.FILTERED, reason, 42)


@pytest.mark.parametrize("reason", ["OTHER", "MALFORMED_RESPONSE", None])
def test_an_answer_of_geminis_without_a_text_or_a_known_end_is_tried_again(reason: str | None, provider: Any) -> None:
    provider.then = Play(body=orjson.dumps({"candidates": [{"finishReason": reason}], "modelVersion": MODEL}))
    assert ask(GEMINI.judge(provider.url)).status == S.BAD_RESPONSE


def test_a_context_that_was_full_is_a_truncated_answer(provider: Any) -> None:
    content = orjson.loads(ANTHROPIC.said("Reasoning: it")) | {"stop_reason": "model_context_window_exceeded"}
    provider.then = Play(body=orjson.dumps(content))
    answer = ask(ANTHROPIC.judge(provider.url))
    read = parse_reply(load_rubric(SHIPPED / "alignment"), answer.text, {"finish_reason": answer.finish_reason})
    assert getattr(read, "reason", None) == ParseReason.TRUNCATED


def test_geminis_probabilities_are_kept_in_the_form_that_is_read(provider: Any) -> None:
    content = orjson.loads(GEMINI.said("yes"))
    yes, no = {"token": "yes", "logProbability": -0.25}, {"token": "no", "logProbability": -1.5}
    certain = {"token": ".", "tokenId": 7}  # a probability of 1: its logarithm, 0, is left out
    content["candidates"][0]["logprobsResult"] = {
        "chosenCandidates": [yes, certain], "topCandidates": [{"candidates": [yes, no]}, {"candidates": [certain]}],
    }  # fmt: skip
    provider.then = Play(body=orjson.dumps(content))
    said = ask(GEMINI.judge(provider.url)).logprobs_json
    first = {"token": "yes", "logprob": -0.25}
    dot = {"token": ".", "logprob": 0}
    assert orjson.loads(said or "") == {
        "content": [
            first | {"top_logprobs": [first, {"token": "no", "logprob": -1.5}]}, dot | {"top_logprobs": [dot]},
        ]
    }  # fmt: skip


RESETS = [
    ("2026-11-23T12:00:30Z", 30.0), ("2026-11-23T13:00:30+01:00", 30.0), ("2026-11-23T11:59:00Z", 0.0),
    ("soon", None), ("", None), ("2026-11-23T12:00:30", None), ("9999999999-01-01T00:00:00Z", None),
]  # fmt: skip


@pytest.mark.parametrize(("reset", "reset_s"), RESETS)
def test_anthropics_limits_are_read_and_a_moment_becomes_seconds(reset: str, reset_s: float | None, provider: Any) -> None:
    said = {"limit": "50", "remaining": "49", "reset": reset}
    headers = {f"anthropic-ratelimit-{of}-{what}": value for of in ("requests", "tokens") for what, value in said.items()}
    headers |= {"date": "Mon, 23 Nov 2026 12:00:00 GMT", "anthropic-ratelimit-tokens-limit": "many"}
    provider.then = Play(body=ANTHROPIC.said(SCORE), headers=headers)
    assert ask(ANTHROPIC.judge(provider.url)).limits == (SaidLimit(50, 49, reset_s), None)


def test_what_anthropic_keeps_for_later_is_charged_at_its_own_price(provider: Any) -> None:
    provider.then = Play(body=ANTHROPIC.said(SCORE))
    judge = ANTHROPIC.judge(provider.url).model_copy(update={"model": "claude-haiku-4-5"})
    answer = ask(judge)
    assert (answer.n_cached_tokens, answer.n_cache_written_tokens) == (100, 50)
    # $1 in, $0.1 repeated, $1.25 kept, $5 out a million tokens
    assert Costs(judge, 100).cost_usd(answer) == pytest.approx((750 * 1 + 100 * 0.1 + 50 * 1.25 + 42 * 5) / 1e6)
    asked = orjson.dumps([{"role": "user", "content": "hello"}]).decode()
    keeping = judge.model_copy(update={"parameters": judge.parameters | {"cache_control": {"type": "ephemeral"}}})
    worst = [Costs(each, 100).estimate(asked).worst_usd or 0 for each in (judge, keeping)]
    n_most = Costs(judge, 100).estimate(asked).n_input_tokens_most
    assert worst[1] - worst[0] == pytest.approx(n_most * 0.25 / 1e6)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({}, "max_tokens is missing; Anthropic requires it in each request"), ({"max_tokens": True}, "is not a number"),
     ({"max_tokens": 0}, "= 0 is not a number"), ({"max_tokens": 9, "cache_control": {"ttl": "1h"}}, "remove it")],
)  # fmt: skip
def test_anthropic_is_not_asked_without_what_it_asks_for(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        provider_of(ANTHROPIC.judge("http://localhost:1")).check_parameters(parameters)


@pytest.mark.parametrize("dialect", [ANTHROPIC, GEMINI], ids=["anthropic", "gemini"])
def test_a_detail_that_only_openai_knows_is_refused(dialect: Dialect) -> None:
    judge = dialect.judge("http://localhost:1", detail="low")
    with pytest.raises(InputError, match='does not support detail = "low"; set max_side_px'):
        provider_of(judge).check(judge)


@pytest.mark.parametrize(
    ("dialect", "said", "dearer_as"),
    [
        pytest.param(OPENAI, {"service_tier": "default"}, None, id="OpenAI, as usual"),
        pytest.param(OPENAI, {"service_tier": "flex"}, None, id="OpenAI, cheaper"),
        pytest.param(OPENAI, {"service_tier": ["priority"]}, None, id="OpenAI, no word"),
        pytest.param(OPENAI, {"service_tier": "priority"}, "service_tier = priority", id="OpenAI, by the project's settings"),
        pytest.param(ANTHROPIC, {"usage": {"inference_geo": "not_available"}}, None, id="Anthropic, as usual"),
        pytest.param(ANTHROPIC, {"usage": {"inference_geo": "us"}}, "inference_geo = us", id="Anthropic, by the workspace"),
    ],
)
def test_a_reply_that_was_not_answered_at_the_usual_price_says_so(
    dialect: Dialect, said: dict[str, Any], dearer_as: str | None, provider: Any
) -> None:
    content = dialect.body(SCORE, None, MODEL)
    provider.then = Play(body=orjson.dumps(content | said | {"usage": content["usage"] | said.get("usage", {})}))
    assert ask(dialect.judge(provider.url)).dearer_as == dearer_as
