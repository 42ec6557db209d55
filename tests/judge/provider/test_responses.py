"""What every kind of HTTP response is taken for."""

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.statuses.rows import ReplyStatus as S
from tasks.judge.provider.batch_calls import read_result_lines
from tasks.judge.provider.failures import remedy, retry_after_s
from tasks.judge.provider.openai.responses import read_answer


def _error(message: str = "no", **fields: object) -> bytes:
    return orjson.dumps({"error": {"message": message} | fields})


FLAGGED = 'openai/gpt-4o-mini requires moderation on OpenAI. Your input was flagged for "violence/graphic".'
BARRED = (
    "Your resource has been temporarily blocked because we detected behavior that may violate our content policy. "
    "Please contact support."
)
FAILURES = [
    ("bad-request", 400, _error("temperature must be at most 2"), S.REJECTED),
    ("too-large", 413, b"<html>too large</html>", S.REJECTED),
    ("unprocessable", 422, _error("image is not readable"), S.REJECTED),
    ("filter-code", 400, _error("no", code="content_policy_violation"), S.FILTERED),
    ("filter-azure", 400, _error("no", innererror={"code": "ResponsibleAIPolicyViolation"}), S.FILTERED),
    ("filter-prose", 400, _error("Your request was rejected by our safety system."), S.FILTERED),
    ("filter-warns", 400, _error("This violates our content policy. Your account may be suspended if you continue."), S.FILTERED),
    ("filter-of-whom", 400, _error("Your organization's content filter blocked this request"), S.FILTERED),
    ("a parameter is disabled", 400, _error("resource: image size; option detail=high is disabled"), S.REJECTED),
    (
        "moderation-403",
        403,
        _error(FLAGGED, code=403, metadata={"reasons": ["violence/graphic"], "flagged_input": ""}),
        S.FILTERED,
    ),
    ("moderation-403-input", 403, _error(FLAGGED, code=403, metadata={"flagged_input": "a knight ..."}), S.FILTERED),
    ("filter-own-words", 400, _error("Sensitive words detected by content filter"), S.FILTERED),
    ("filter-request-blocked", 400, _error("The request was blocked by our content policy."), S.FILTERED),
    ("barred-azure", 403, _error(BARRED, code="Forbidden"), S.UNAUTHORIZED),
    ("barred-organization", 403, _error("Your organization has been disabled for violating our usage policies"), S.UNAUTHORIZED),
    ("barred-400", 400, _error("This organization has been disabled.", type="invalid_request_error"), S.UNAUTHORIZED),
    ("barred-by-us", 400, _error("We suspended your account: see our usage policies"), S.UNAUTHORIZED),
    ("key-403-metadata", 403, _error("no", code=403, metadata={"provider_name": "OpenAI", "reasons": []}), S.UNAUTHORIZED),
    ("key-403-metadata-words", 403, _error("no", code=403, metadata="reasons"), S.UNAUTHORIZED),
    ("key-401", 401, _error("Incorrect API key provided", code="invalid_api_key"), S.UNAUTHORIZED),
    ("key-403", 403, _error("not allowed in your country"), S.UNAUTHORIZED),
    ("key-as-400", 400, _error("API key not valid. Please pass a valid API key."), S.UNAUTHORIZED),
    ("cloudflare-403", 403, b"<!DOCTYPE html><html><title>Just a moment...</title></html>", S.SERVER_ERROR),
    ("page-403", 403, b"<html><title>403 Forbidden</title></html>", S.UNAUTHORIZED),
    ("prose-403", 403, b"not by way of cloudflare", S.UNAUTHORIZED),
    ("list-403", 403, b'[{"error": {"code": 403, "message": "Just a moment"}}]', S.UNAUTHORIZED),
    ("model-404", 404, _error("The model does not exist", code="model_not_found"), S.UNAUTHORIZED),
    ("path-404", 404, b"404 page not found", S.UNAUTHORIZED),
    ("no-credit-429", 429, _error("You exceeded your quota", code="insufficient_quota"), S.NO_CREDIT),
    ("no-credit-type", 429, _error("You exceeded your quota", type="insufficient_quota"), S.NO_CREDIT),
    ("no-credit-litellm-400", 400, _error("Budget has been exceeded! Current cost: 1", type="budget_exceeded"), S.NO_CREDIT),
    ("no-credit-litellm-429", 429, _error("Budget has been exceeded!", type="budget_exceeded", code="429"), S.NO_CREDIT),
    ("no-credit-402", 402, _error("Insufficient Balance"), S.NO_CREDIT),
    ("rate-429", 429, _error("Rate limit reached", code="rate_limit_exceeded"), S.RATE_LIMITED),
    ("rate-429-html", 429, b"<html>slow down</html>", S.RATE_LIMITED),
    ("server-500", 500, b"", S.SERVER_ERROR),
    ("server-503-html", 503, b"<html></html>", S.SERVER_ERROR),
    ("overloaded-529", 529, _error("overloaded"), S.SERVER_ERROR),
    ("request-timeout-408", 408, b"", S.SERVER_ERROR),
    ("container-424", 424, _error("The model container failed"), S.SERVER_ERROR),
    ("no-room-498", 498, _error("Flex tier capacity exceeded"), S.SERVER_ERROR),
    ("closed-request-499", 499, b"<html>client closed request</html>", S.SERVER_ERROR),
    ("redirect-307", 307, b"", S.BAD_RESPONSE),
    ("not-modified", 304, b"", S.BAD_RESPONSE),
]


@pytest.mark.parametrize(("status_code", "body", "expected"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_a_failure_has_one_meaning(status_code: int, body: bytes, expected: S) -> None:
    answer = read_answer(status_code, {}, body)
    assert answer.status == expected
    assert answer.detail
    assert answer.text is None


@pytest.mark.parametrize("header", [{"cf-mitigated": "challenge"}, {"server": "cloudflare"}], ids=["challenge", "server"])
def test_a_page_of_the_network_in_front_of_a_provider_is_known_by_its_headers(header: dict[str, str]) -> None:
    assert read_answer(403, header, b"<!DOCTYPE html><html><!-- a long head -->").status == S.SERVER_ERROR
    assert read_answer(403, header, _error("not in your country")).status == S.UNAUTHORIZED


def test_a_failure_in_a_list_is_read_with_the_wait_it_asks_for() -> None:
    """So Google's endpoint answers that speaks OpenAI's API."""
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "6.5s"}]
    listed = orjson.dumps([{"error": {"code": 429, "message": "You exceeded your current quota", "details": details}}])
    answer = read_answer(429, {}, listed)
    assert (answer.status, answer.retry_after_s) == (S.RATE_LIMITED, 6.5)
    assert answer.detail == "HTTP 429: 429: You exceeded your current quota"
    assert read_answer(429, {"retry-after": "9"}, listed).retry_after_s == 9


def _choice(text: str | None = "", **fields: object) -> bytes:
    """A completion as gateways make one of an upstream failure."""
    choice = {"index": 0, "finish_reason": "error", "message": {"role": "assistant", "content": text}} | fields
    return orjson.dumps({"model": "m", "choices": [choice], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})


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
    "no-message": b'{"choices": [{"finish_reason": "stop"}]}',
    "a message and another text": b'{"choices": [{"text": "5", "message": {"content": "4"}}]}',
    "content-parts of a picture": b'{"choices": [{"message": {"content": [{"type": "image_url"}]}}]}',
    "content-parts without a text": b'{"choices": [{"message": {"content": [{"type": "text", "text": 4}]}}]}',
    "content-parts of numbers": b'{"choices": [{"message": {"content": [4]}}]}',
    "a stream that stops": b'data: {"choices": [{"delta": {"content": "Score: 4"}}]}\n\n',
    "a stream cut in an event": b'data: {"choices": [{"delta": {"content": "Score: 4"}}]}\n\ndata: {"choi',
    "a stream that ends in an error": b'data: {"choices": [{"delta": {"content": "4"}}]}\n\ndata: {"error": "oom"}\n\n',
    "a stream of nothing": b": keep-alive\n\n",
    "two marks of byte order": b"\xef\xbb\xbf\xef\xbb\xbf{}",
    "a choice that is an error": _choice(error={"code": 502, "message": "Provider returned error"}),
    "a choice that is an error behind a beginning": _choice("Score: 3", error={"code": 502, "message": "upstream reset"}),
    "a choice that is an error and says it ended": _choice("Score: 3", finish_reason="stop", error="upstream reset"),
    "a choice that ended in an error of no words": _choice("Score: 3"),
    "an error beside the choices": orjson.dumps(
        {"error": {"code": 502, "message": "m"}, "choices": [{"message": {"content": "Score: 3"}, "finish_reason": "stop"}]}),
    "a stream whose choice is an error": b'data: {"choices": [{"delta": {"content": "4"}}]}\n\n'
    b'data: {"choices": [{"delta": {"content": ""}, "error": {"code": 502}, "finish_reason": "error"}]}\n\ndata: [DONE]\n\n',
    "a stream whose choice ended in an error": b'data: {"choices": [{"delta": {"content": "4"}}]}\n\n'
    b'data: {"choices": [{"delta": {}, "finish_reason": "error"}]}\n\ndata: [DONE]\n\n',
    "a stream of one whole error": b'data: {"choices": [{"message": {"content": "4"}, "finish_reason": "error"}]}\n\n',
    "content-number": b'{"choices": [{"message": {"content": 4}}]}',
    "refusal-object": b'{"choices": [{"message": {"content": "4", "refusal": {}}}]}',
    "nan": b'{"choices": [{"message": {"content": "4"}}], "usage": NaN}',
    "deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "cut": b'{"choices": [{"message": {"content": "4',
}  # fmt: skip


@pytest.mark.parametrize(
    ("location", "where"),
    [
        ("https://u:p@judge.example/v2?key=s", "https://judge.example;"), ("/v2/x?key=s", "/v2/x;"), ("", "another address;"),
        ("http://[::1", "something that is not an address;"), ("//[x]/", "something that is not an address;"),
    ],
)  # fmt: skip
def test_a_redirect_says_where_it_leads_without_its_secrets(location: str, where: str) -> None:
    answer = read_answer(307, {"location": location}, b"")
    assert answer.status == S.BAD_RESPONSE
    assert f"HTTP 307: redirected to {where} redirects are not followed" in (answer.detail or "")


TOLD_IN_200 = {
    "OpenRouter: no credits": (_error("Insufficient credits", code=402), S.NO_CREDIT),
    "a key": (_error("No auth credentials found", code=401), S.UNAUTHORIZED),
    "a limit": (_error("Provider returned error", code=429), S.RATE_LIMITED),
    "a limit, in a text": (_error("slow down", code="429"), S.RATE_LIMITED),
    "a quota by its name": (_error("no", code="insufficient_quota"), S.NO_CREDIT),
    "a moderation": (_error(FLAGGED, code=403, metadata={"reasons": ["violence"]}), S.FILTERED),
    "a server": (_error("Upstream error", code=502), S.SERVER_ERROR),
    "no model": (_error("No endpoints found", code=404), S.UNAUTHORIZED),
    "choices that are none": (orjson.dumps({"error": {"code": 402, "message": "no"}, "choices": []}), S.NO_CREDIT),
    "LM Studio: no such path": (b'{"error": "Unexpected endpoint or method. (POST /chat/completions)"}', S.UNAUTHORIZED),
    "a rejection, which would be final": (_error("bad", code=400), S.BAD_RESPONSE),
    "a code of its own": (_error("bad", code=1301), S.BAD_RESPONSE),
    "beside an answer, which may be billed": (_choice("3", finish_reason="stop", error={"code": 402}), S.BAD_RESPONSE),
}


@pytest.mark.parametrize(("body", "expected"), TOLD_IN_200.values(), ids=TOLD_IN_200.keys())
def test_an_error_in_a_200_means_what_the_status_it_names_does(body: bytes, expected: S) -> None:
    answer = read_answer(200, {}, body)
    assert answer.status == expected
    assert (answer.detail or "").startswith("a 200 w")
    is_passing = expected in (S.RATE_LIMITED, S.SERVER_ERROR)
    assert read_answer(200, {"retry-after": "45"}, body).retry_after_s == (45 if is_passing else None)


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


def test_the_words_of_an_error_told_in_a_choice_are_kept() -> None:
    told = _choice(error={"code": 502, "message": "Provider returned error"})
    assert read_answer(200, {}, told).detail == "a 200 whose choice is an error: 502: Provider returned error"
    filtered = read_answer(200, {}, _choice(finish_reason="content_filter", error={"code": 403, "message": "flagged"}))
    assert filtered.status == S.FILTERED


def _events(*events: object, end: str = "\n", done: bool = True) -> bytes:
    said = [orjson.dumps(event).decode() for event in events] + (["[DONE]"] if done else [])
    return "".join(f"data: {one}{end}{end}" for one in said).encode()


def _piece(text: str | None = None, **choice: object) -> dict[str, object]:
    return {"model": "m", "choices": [{"index": 0, "delta": {} if text is None else {"content": text}} | choice]}


PIECES = _piece("Sco", delta={"role": "assistant", "content": "Sco"}), _piece("re: 4"), _piece(finish_reason="stop")
USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
WAYS_OF_SAYING_4 = {
    "a mark of byte order": b'\xef\xbb\xbf{"choices": [{"message": {"content": "Score: 4"}}]}',
    "spaces around": b' \r\n{"choices": [{"message": {"content": "Score: 4"}}]}\n\n',
    "content in parts": orjson.dumps({"choices": [{"message": {"content": [
        {"type": "text", "text": "Score: "}, {"type": "text", "text": "4"}]}}]}),
    "a thought, then a text": orjson.dumps({"choices": [{"message": {"content": [
        {"type": "thinking", "thinking": "Score: 2?"}, {"type": "text", "text": "Score: 4"}]}}]}),
    "parts that are texts": b'{"choices": [{"message": {"content": ["Score: ", "4"]}}]}',
    "output_text": b'{"choices": [{"message": {"content": [{"type": "output_text", "text": "Score: 4", "annotations": []}]}}]}',
    "text in place of a message": b'{"choices": [{"text": "Score: 4", "finish_reason": "stop"}]}',
    "text beside a message that is null": b'{"choices": [{"message": null, "text": "Score: 4"}]}',
    "text beside a message without content": b'{"choices": [{"message": {"content": null}, "text": "Score: 4"}]}',
    "the same text beside a message": b'{"choices": [{"message": {"content": "Score: 4"}, "text": "Score: 4"}]}',
    "an error that is none": orjson.dumps({"error": None, "choices": [{"error": None, "message": {"content": "Score: 4"}}]}),
    "a stream": _events(*PIECES),
    "a stream with an error that is none": _events(*(piece | {"error": None} for piece in PIECES)),
    "a stream without its last mark": _events(*PIECES, done=False),
    "a stream of CRLF lines": _events(*PIECES, end="\r\n"),
    "a stream with comments and names": b": hello\n\nevent: message\nid: 1\n" + _events(*PIECES),
    "a stream with its usage last": _events(*PIECES, USAGE),
    "a stream of one whole completion": _events({"choices": [{"message": {"content": "Score: 4"}, "finish_reason": "stop"}]}),
    "a stream with another choice": _events(_piece("Score: 9", index=1), *PIECES),
    "a stream that thinks first": _events(_piece(delta={"reasoning_content": "Score: 9"}), *PIECES),
}  # fmt: skip


@pytest.mark.parametrize("body", WAYS_OF_SAYING_4.values(), ids=WAYS_OF_SAYING_4.keys())
def test_each_way_in_which_servers_write_a_completion_down(body: bytes) -> None:
    answer = read_answer(200, {}, body)
    assert (answer.status, answer.text, answer.detail) == (S.ANSWERED, "Score: 4", None)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (rb"Fine \ud83d picture. Score: 4", "Fine \ufffd picture. Score: 4"),
        (rb"\ude00\ud83d\ud83d\ude00\uD83D Score: 4", "\ufffd\ufffd\U0001f600\ufffd Score: 4"),
        (rb"\\ud83d \\\ud83d Score: 4", r"\ud83d \\"[:-1] + "\ufffd Score: 4"),
        (b"Fine \xf0\x9f picture. Score: 4", "Fine \ufffd picture. Score: 4"),
    ],
    ids=["half a pair", "halves around a pair", "behind backslashes", "half of UTF-8"],
)
def test_half_a_character_costs_no_reply(tmp_path: Path, said: bytes, text: str) -> None:
    body = b'{"choices": [{"message": {"content": "%s"}}], "usage": {"prompt_tokens": 7}}' % said
    answer = read_answer(200, {}, body)
    assert (answer.status, answer.text, answer.n_input_tokens) == (S.ANSWERED, text, 7)
    assert read_answer(200, {}, b"data: " + body + b"\n\n").text == text
    assert read_answer(200, {}, body[:-1]).status == S.BAD_RESPONSE
    (tmp_path / "results.jsonl").write_bytes(b'{"id": "r", "response": ' + body + b"}\n")
    ((name, content),) = read_result_lines(tmp_path / "results.jsonl", "id", lambda line: line["response"])
    assert (name, content["choices"][0]["message"]["content"]) == ("r", text)


def test_a_stream_says_all_that_a_completion_does() -> None:
    tokens = [{"token": "Score", "logprob": -0.1}, {"token": ":", "logprob": -0.2}]
    logprobs = [_piece("Score", logprobs={"content": tokens[:1]}), _piece(":", logprobs={"content": tokens[1:]})]
    answer = read_answer(200, {}, _events(*logprobs, _piece(finish_reason="length"), USAGE))
    assert (answer.text, answer.finish_reason, answer.answered_model) == ("Score:", "length", "m")
    assert (answer.n_input_tokens, answer.n_output_tokens) == (7, 3)
    assert orjson.loads(answer.logprobs_json or "") == {"content": tokens}
    refused = read_answer(
        200, {}, _events(_piece(delta={"refusal": "I will "}), _piece(delta={"refusal": "not"}, finish_reason="stop"))
    )
    assert (refused.text, refused.refusal_text) == (None, "I will not")


@given(st.lists(st.text(max_size=8), min_size=1, max_size=6))
def test_a_streams_pieces_are_one_text_whatever_they_hold(pieces: list[str]) -> None:
    answer = read_answer(200, {}, _events(*map(_piece, pieces), _piece(finish_reason="stop")))
    assert answer.text == "".join(pieces)


REMEDIES = {
    "openai, reasoning": (
        400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "replace max_tokens with max_completion_tokens",
    ),
    "an older server": (400, "Unrecognized request argument supplied: max_completion_tokens",
                      "replace max_completion_tokens with max_tokens"),
    "a strict server": (422, "body -> max_completion_tokens: Extra inputs are not permitted",
                      "replace max_completion_tokens with max_tokens"),
    "no schema": (400, "This model does not support response_format of type json_schema", "set structured_output = false"),
    "temperature": (
        400, "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
        "remove temperature",
    ),
    "vllm, no pictures": (400, "Qwen/Qwen3-8B is not a multimodal model", "name a model that accepts pictures"),
    "pictures refused": (400, "image_url content is not supported by this endpoint", "name a model that accepts pictures"),
    "vllm, two pictures": (400, "At most 1 image(s) may be provided in one prompt.", "--limit-mm-per-prompt"),
    "context": (400, "This model's maximum context length is 4096 tokens. However, you requested 9000", "smaller pictures"),
    "vllm, model": (404, "The model `qwen` does not exist.", "as the server lists it at /models"),
    "ollama, model": (404, 'model "qwen" not found, try pulling it first', "as the server lists it at /models"),
    "openai, a picture": (
        400, "You uploaded an unsupported image. Please make sure your image is valid.", "the picture is to blame",
    ),
    "anthropic, a picture": (400, "Could not process image", "the picture is to blame"),
    "gemini, a picture": (400, "Unable to process input image. Please retry", "the picture is to blame"),
    "ollama, a picture": (500, "failed to process inputs: image: unknown format", "the picture is to blame"),
    "openrouter, no pictures": (404, "No endpoints found that support image input", "name a model that accepts pictures"),
    "openrouter, its settings": (404, "No endpoints found matching your data policy", "change the account's settings"),
    "llama.cpp, no pictures": (
        500, "image input is not supported - hint: you may need to provide the mmproj", "the model's picture encoder",
    ),
    "llama.cpp, context": (400, "the request exceeds the available context size (4096 tokens)", "smaller pictures"),
    "anthropic, temperature": (400, "`temperature` is deprecated for this model.", "remove temperature"),
    "a model that streams": (400, "This model only support stream mode, please enable it", "a model that need not stream"),
    "azure, deployment": (404, "DeploymentNotFound: The API deployment for this resource does not exist.", "name the deployment"),
    "fastapi, path": (404, "Not Found", "check that base_url ends where the API begins"),
}  # fmt: skip


@pytest.mark.parametrize(("status_code", "said", "advice"), REMEDIES.values(), ids=REMEDIES.keys())
def test_what_a_server_says_is_told_with_the_setting_to_change(status_code: int, said: str, advice: str) -> None:
    for body in (_error(said), orjson.dumps({"detail": said}), orjson.dumps({"object": "error", "message": said, "code": 400})):
        detail = read_answer(status_code, {}, body).detail
        assert said[:40] in (detail or "")
        assert advice in (remedy(detail or "") or "")


def test_a_path_that_is_none_is_told_so_in_a_200_too() -> None:
    detail = read_answer(200, {}, TOLD_IN_200["LM Studio: no such path"][0]).detail
    assert "check that base_url ends" in (remedy(detail or "") or "")


@pytest.mark.parametrize("said", ["HTTP 400: bad request", "HTTP 500: oops", "HTTP 400: max_tokens must be at least 1", ""])
def test_of_other_words_nothing_is_said(said: str) -> None:
    assert remedy(said) is None


def test_a_completion_is_kept_word_for_word() -> None:
    text = ' {"score":\t3}\n\x00 "ünï" \u2028 '
    body = {
        "model": "judge-2", "choices": [{"message": {"content": text, "refusal": None}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }  # fmt: skip
    answer = read_answer(200, {}, orjson.dumps(body))
    assert (answer.status, answer.text, answer.finish_reason) == (S.ANSWERED, text, "length")
    assert (answer.answered_model, answer.n_input_tokens, answer.n_output_tokens) == ("judge-2", 7, 3)


@pytest.mark.parametrize("name", ["", None, 4], ids=["empty", "null", "a number"])
def test_a_model_without_a_name_is_no_other_model(name: object) -> None:
    body = orjson.dumps({"model": name, "choices": [{"message": {"content": "Score: 4"}}]})
    assert read_answer(200, {}, body).answered_model is None


def test_a_refusal_without_text_is_an_answer_and_a_filtered_one_is_filtered() -> None:
    refused = read_answer(200, {}, b'{"choices": [{"message": {"content": null, "refusal": "I will not"}}]}')
    assert (refused.status, refused.text, refused.refusal_text) == (S.ANSWERED, None, "I will not")
    filtered = read_answer(200, {}, b'{"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}')
    assert filtered.status == S.FILTERED


def _thought(n_thoughts: int) -> dict[str, object]:
    return {"completion_tokens_details": {"reasoning_tokens": n_thoughts}}


@pytest.mark.parametrize(
    ("usage", "n_output"),
    [
        pytest.param({"total_tokens": 1520}, 1020, id="Gemini: thoughts in the total alone"),
        pytest.param({"total_tokens": 1520, **_thought(1000)}, 1020, id="xAI: beside the output"),
        pytest.param(_thought(1000), 1020, id="beside the output, without a total"),
        pytest.param({"total_tokens": 520, **_thought(15)}, 20, id="OpenAI: among the output"),
        pytest.param(_thought(15), 20, id="among the output, without a total"),
        pytest.param(
            {"total_tokens": 2520, "prompt_tokens_details": {"cached_tokens": 2000}}, 20, id="cached input in the total alone"
        ),
        pytest.param({"prompt_tokens": 0, "total_tokens": 520}, 20, id="input in the total alone"),
        pytest.param({"total_tokens": 20}, 20, id="a total of the output alone"),
        pytest.param({"total_tokens": None, "completion_tokens_details": []}, 20, id="neither"),
    ],
)
def test_thoughts_are_output_wherever_they_are_counted(usage: dict[str, object], n_output: int) -> None:
    content = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 500, "completion_tokens": 20, **usage}}
    assert read_answer(200, {}, orjson.dumps(content)).n_output_tokens == n_output


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
    (
        "date-by-its-own-clock",
        {"retry-after": "Sun, 01 Mar 2026 12:10:05 GMT", "date": "Sun, 01 Mar 2026 12:10:00 GMT"},
        5.0,
    ),
    ("date-beside-a-bad-one", {"retry-after": "Sun, 01 Mar 2026 12:00:30 GMT", "date": "now"}, 30.0),
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
