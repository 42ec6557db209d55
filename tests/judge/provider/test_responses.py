"""What every kind of HTTP response is taken for."""

from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.statuses import ReplyStatus as S
from tasks.judge.provider.openai.responses import read_answer, retry_after_s


def _error(message: str = "no", **fields: object) -> bytes:
    return orjson.dumps({"error": {"message": message} | fields})


FAILURES = [
    ("bad-request", 400, _error("temperature must be at most 2"), S.REJECTED),
    ("too-large", 413, b"<html>too large</html>", S.REJECTED),
    ("unprocessable", 422, _error("image is not readable"), S.REJECTED),
    ("filter-code", 400, _error("no", code="content_policy_violation"), S.FILTERED),
    ("filter-azure", 400, _error("no", innererror={"code": "ResponsibleAIPolicyViolation"}), S.FILTERED),
    ("filter-prose", 400, _error("Your request was rejected by our safety system."), S.FILTERED),
    ("key-401", 401, _error("Incorrect API key provided", code="invalid_api_key"), S.UNAUTHORIZED),
    ("key-403", 403, _error("not allowed in your country"), S.UNAUTHORIZED),
    ("key-as-400", 400, _error("API key not valid. Please pass a valid API key."), S.UNAUTHORIZED),
    ("model-404", 404, _error("The model does not exist", code="model_not_found"), S.UNAUTHORIZED),
    ("path-404", 404, b"404 page not found", S.UNAUTHORIZED),
    ("no-credit-429", 429, _error("You exceeded your quota", code="insufficient_quota"), S.NO_CREDIT),
    ("no-credit-type", 429, _error("You exceeded your quota", type="insufficient_quota"), S.NO_CREDIT),
    ("no-credit-402", 402, _error("Insufficient Balance"), S.NO_CREDIT),
    ("rate-429", 429, _error("Rate limit reached", code="rate_limit_exceeded"), S.RATE_LIMITED),
    ("rate-429-html", 429, b"<html>slow down</html>", S.RATE_LIMITED),
    ("server-500", 500, b"", S.SERVER_ERROR),
    ("server-503-html", 503, b"<html></html>", S.SERVER_ERROR),
    ("overloaded-529", 529, _error("overloaded"), S.SERVER_ERROR),
    ("request-timeout-408", 408, b"", S.SERVER_ERROR),
    ("redirect-307", 307, b"", S.BAD_RESPONSE),
    ("not-modified", 304, b"", S.BAD_RESPONSE),
]


@pytest.mark.parametrize(("status_code", "body", "expected"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_a_failure_has_one_meaning(status_code: int, body: bytes, expected: S) -> None:
    answer = read_answer(status_code, {}, body)
    assert answer.status == expected
    assert answer.detail
    assert answer.text is None


BAD_200 = {
    "html": b"<html><body>captive portal</body></html>",
    "empty": b"",
    "null": b"null",
    "object": b"{}",
    "list": b"[]",
    "text": b'"hello"',
    "error-object": _error("model is loading"),
    "no-choices": b'{"choices": null}',
    "empty-choices": b'{"choices": []}',
    "choice-null": b'{"choices": [null]}',
    "no-message": b'{"choices": [{"text": "4"}]}',
    "content-list": b'{"choices": [{"message": {"content": [{"type": "text", "text": "4"}]}}]}',
    "content-number": b'{"choices": [{"message": {"content": 4}}]}',
    "refusal-object": b'{"choices": [{"message": {"content": "4", "refusal": {}}}]}',
    "nan": b'{"choices": [{"message": {"content": "4"}}], "usage": NaN}',
    "deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "cut": b'{"choices": [{"message": {"content": "4',
    "not-utf8": b'{"choices": [{"message": {"content": "\xff"}}]}',
}


@pytest.mark.parametrize("body", BAD_200.values(), ids=BAD_200.keys())
def test_a_200_that_is_no_completion_is_a_bad_response(body: bytes) -> None:
    answer = read_answer(200, {}, body)
    assert answer.status == S.BAD_RESPONSE
    assert 0 < len(answer.detail or "") <= 400
    assert "\n" not in (answer.detail or "")


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": [{"message": {"content": "Score: 1", "content": "Score: 5"}}]}',
        b'{"choices": [{"message": {"content": "Score: 1"}}], "choices": [{"message": {"content": "Score: 5"}}]}',
        b'{"choices": [{"message": {"content": "Score: 1"}, "message": {"content": "Score: 5"}, "finish_reason": "stop"}]}',
        b'{"model": "a", "model": "b", "choices": [{"message": {"content": "Score: 1"}}]}',
        b'{"choices": [{"message": {"content": "Score: 1"}}], "usage": {"total": 1, "t\\u006ftal": 2}}',
    ],
)
def test_a_body_that_names_a_key_twice_is_no_reply(body: bytes) -> None:
    """Taking the last one, or the first, would choose between two scores."""
    answer = read_answer(200, {}, body)
    assert (answer.status, answer.text) == (S.BAD_RESPONSE, None)
    assert "twice" in (answer.detail or "")


def test_a_completion_is_kept_word_for_word() -> None:
    text = ' {"score":\t3}\n\x00 "ünï" \u2028 '
    body = {
        "model": "judge-2", "choices": [{"message": {"content": text, "refusal": None}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }  # fmt: skip
    answer = read_answer(200, {}, orjson.dumps(body))
    assert (answer.status, answer.text, answer.finish_reason) == (S.ANSWERED, text, "length")
    assert (answer.answered_model, answer.n_input_tokens, answer.n_output_tokens) == ("judge-2", 7, 3)


def test_a_refusal_without_text_is_an_answer_and_a_filtered_one_is_filtered() -> None:
    refused = read_answer(200, {}, b'{"choices": [{"message": {"content": null, "refusal": "I will not"}}]}')
    assert (refused.status, refused.text, refused.refusal_text) == (S.ANSWERED, None, "I will not")
    filtered = read_answer(200, {}, b'{"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}')
    assert filtered.status == S.FILTERED


@pytest.mark.parametrize("usage", [{"prompt_tokens": -1}, {"prompt_tokens": True}, {"prompt_tokens": "9"}, [], 3, None])
def test_usage_that_is_no_count_is_null(usage: object) -> None:
    answer = read_answer(200, {}, orjson.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage}))
    assert (answer.status, answer.n_input_tokens) == (S.ANSWERED, None)


NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
WAITS = [
    ("seconds", {"retry-after": "7"}, 7.0),
    ("fraction", {"retry-after": "0.25"}, 0.25),
    ("milliseconds-win", {"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    ("bad-milliseconds", {"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
    ("date", {"retry-after": "Sun, 01 Mar 2026 12:00:30 GMT"}, 30.0),
    ("date-past", {"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
    ("date-without-zone", {"retry-after": "Sun, 01 Mar 2026 12:00:30"}, 30.0),
    ("infinite", {"retry-after": "inf"}, None),
    ("huge", {"retry-after": "1e999"}, None),
    ("negative", {"retry-after": "-3"}, None),
    ("nan", {"retry-after": "nan"}, None),
    ("words", {"retry-after": "later"}, None),
    ("absent", {}, None),
]


@pytest.mark.parametrize(("headers", "expected"), [row[1:] for row in WAITS], ids=[row[0] for row in WAITS])
def test_retry_after_in_all_its_forms(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, NOW) == expected


def test_a_detail_holds_no_key() -> None:
    answer = read_answer(401, {}, _error("bad key sk-proj-abcDEF123456 in Authorization: Bearer abc.def-ghi123"))
    assert answer.detail is not None
    assert "abcDEF" not in answer.detail
    assert "ghi123" not in answer.detail


NAMES = st.sampled_from(["choices", "message", "content", "error", "code", "usage", "model", "finish_reason", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.integers(200, 599), st.binary(max_size=200) | VALUES.map(orjson.dumps))
def test_reading_never_raises(status_code: int, body: bytes) -> None:
    answer = read_answer(status_code, {"retry-after": "x"}, body)
    assert answer.status != S.NOT_ASKED
    assert (answer.status == S.ANSWERED) <= (200 <= status_code < 300)
