"""The bodies of each provider that say the same thing: a completion, an error. By the providers' references, 2026-11."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from schemas.benchmark.judges import Judge
from tests.support.servers.provider import Play

MODEL = "judge-2026-01-01"
USAGE = {"input": 900, "cached": 100, "output": 12, "thought": 30}


@dataclass(frozen=True)
class Dialect:
    """One provider's way to say things. `ends`: length or filter; `parts`: what stands beside the text."""

    name: str
    path: str
    key: tuple[str, str]  # the header of the key and what stands before it
    parameters: dict[str, Any]
    body: Callable[[str | None, str | None, str], dict[str, Any]]  # (text, how it ends, who answers)
    error: Callable[[int, str, str], Play]  # (status, kind, message)
    blocked: Play
    strange_part: dict[str, Any]
    refused: dict[str, str]  # parameters that are refused, and a word of why

    def judge(self, url: str, **more: Any) -> Judge:
        """A judge of this provider at a test server."""
        given = {"parameters": self.parameters, "api_key_env": "SALON_TEST_KEY"} | more
        return Judge(model="judge", provider=self.name, base_url=url, **given)

    def said(self, text: str | None, ends: str | None = None, model: str = MODEL) -> bytes:
        """A whole body."""
        return orjson.dumps(self.body(text, ends, model))


def _json(status: int, content: Any, headers: dict[str, str] | None = None) -> Play:
    return Play(status=status, body=orjson.dumps(content), headers=headers or {})


def _openai(text: str | None, ends: str | None, model: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 900, "completion_tokens": 42, "prompt_tokens_details": {"cached_tokens": 100}}
    content = [{"type": "thinking", "thinking": "hm"}, *([] if text is None else [{"type": "text", "text": text}])]
    reason = {None: "stop", "length": "length", "filter": "content_filter"}[ends]
    message = {"role": "assistant", "content": None if text is None else content}
    return {"model": model, "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": usage}


def _openai_error(status: int, kind: str, message: str) -> Play:
    code = {"quota": "insufficient_quota", "key": "invalid_api_key", "model": "model_not_found"}.get(kind)
    wait = {"retry-after": "7"} if kind == "wait" else {}
    return _json(429 if kind == "quota" else status, {"error": {"message": message, "type": "t", "code": code}}, wait)


def _anthropic(text: str | None, ends: str | None, model: str) -> dict[str, Any]:
    said = [] if text is None else [{"type": "text", "text": text}]
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model,
        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, *said],
        "stop_reason": {None: "end_turn", "length": "max_tokens", "filter": "refusal"}[ends], "stop_sequence": None,
        "usage": {
            "input_tokens": 750, "cache_creation_input_tokens": 50, "cache_read_input_tokens": 100, "output_tokens": 42,
            "output_tokens_details": {"thinking_tokens": 30},
        },
    }  # fmt: skip


def _anthropic_error(status: int, kind: str, message: str) -> Play:
    kinds = {
        400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 413: "request_too_large",
        429: "rate_limit_error", 500: "api_error", 503: "api_error", 529: "overloaded_error",
    }  # fmt: skip
    if kind == "quota":
        status, message = 400, "Your credit balance is too low to access the Anthropic API."
    content = {"type": "error", "error": {"type": kinds[status], "message": message}, "request_id": "req_1"}
    return _json(status, content, {"retry-after": "7"} if kind == "wait" else {})


def _gemini(text: str | None, ends: str | None, model: str) -> dict[str, Any]:
    said = [] if text is None else [{"text": text}]
    content = {"role": "model", "parts": [{"text": "hm", "thought": True}, *said]}
    reason = {None: "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}[ends]
    usage = {
        "promptTokenCount": 900, "cachedContentTokenCount": 100, "candidatesTokenCount": 12, "thoughtsTokenCount": 30,
        "totalTokenCount": 942,
    }  # fmt: skip
    candidate = {"content": content, "finishReason": reason, "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": "r"}


def _gemini_error(status: int, kind: str, message: str) -> Play:
    named = {
        400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL", 503: "UNAVAILABLE", 529: "UNAVAILABLE",
    }  # fmt: skip
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}] if kind == "wait" else []
    if kind == "key":
        status, message = 400, "API key not valid. Please pass a valid API key."
    if kind == "quota":
        status, message = 429, "Your prepayment credits are depleted. Please go to AI Studio to manage your project."
    return _json(status, {"error": {"code": status, "message": message, "status": named[status], "details": details}})


OPENAI = Dialect(
    "openai", "/v1/chat/completions", ("Authorization", "Bearer "), {"temperature": 0}, _openai, _openai_error,
    _openai_error(400, "", "rejected by our safety system"), {"type": "image_url"},
    {"model": "judge's model", "messages": "rubric", "stream": "whole", "n": "repeats"},
)  # fmt: skip
ANTHROPIC = Dialect(
    "anthropic", "/v1/messages", ("x-api-key", ""), {"temperature": 0, "max_tokens": 500}, _anthropic, _anthropic_error,
    _anthropic_error(400, "", "Output blocked by content filtering policy"), {"type": "tool_use", "id": "1"},
    {"model": "judge's model", "messages": "rubric", "system": "rubric", "stream": "whole", "n": "repeats",
     "max_completion_tokens": "max_tokens", "seed": "does not support it", "response_format": "structured_output"},
)  # fmt: skip
GEMINI = Dialect(
    "gemini", "/v1/models/judge:generateContent", ("x-goog-api-key", ""),
    {"generationConfig": {"temperature": 0, "maxOutputTokens": 500}}, _gemini, _gemini_error,
    _json(200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 900}}),
    {"functionCall": {"name": "f"}},
    {"model": "judge's model", "contents": "rubric", "systemInstruction": "rubric", "stream": "whole", "n": "repeats",
     "temperature": "generationConfig = { temperature", "max_tokens": "generationConfig = { maxOutputTokens"},
)  # fmt: skip
DIALECTS = (OPENAI, ANTHROPIC, GEMINI)
