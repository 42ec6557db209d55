"""The Gemini API's generateContent in place of chat completions, as ai.google.dev/api/generate-content has it (2026-11)."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from demo.mock_provider.forms import Form, wait_s
from demo.mock_provider.request import BadRequest

_KNOWN = frozenset({
    "contents", "systemInstruction", "generationConfig", "safetySettings", "tools", "toolConfig", "cachedContent", "labels",
    "model",
})  # fmt: skip
_STATUSES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED", 529: "UNAVAILABLE",
}  # fmt: skip
_FINISH_REASONS = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_DETAIL = "type.googleapis.com/google.rpc."


def _chat(content: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(content, dict):
        return content
    for name in sorted(content.keys() - _KNOWN):
        raise BadRequest(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.', "invalid_argument")
    listed, told = content.get("contents"), content.get("systemInstruction")
    if not isinstance(listed, list) or not listed:
        raise BadRequest("contents is not specified", "invalid_argument")
    messages = [{"role": "system", "content": _parts(told)}] if told else []
    messages += [{"role": "assistant" if one.get("role") == "model" else "user", "content": _parts(one)} for one in listed]
    asked: dict[str, Any] = {"model": names["model"], "messages": messages}
    most = (content.get("generationConfig") or {}).get("maxOutputTokens")
    return asked if most is None else asked | {"max_tokens": most}


def _parts(content: Any) -> list[dict[str, Any]]:
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list):
        raise BadRequest("a content has parts", "invalid_argument")
    return [_part(part) for part in parts]


def _part(part: Any) -> dict[str, Any]:
    match part:
        case {"text": str(said)}:
            return {"type": "text", "text": said}
        case {"inlineData": {"mimeType": str(kind), "data": str(data)}}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    raise BadRequest("a part has text or inlineData", "invalid_argument")


def _completed(content: dict[str, Any]) -> Any:
    usage = content["usage"]
    whole: dict[str, Any] = {
        "modelVersion": content["model"],
        "responseId": content["id"].removeprefix("chatcmpl-"),
        "usageMetadata": {
            "promptTokenCount": usage["prompt_tokens"],
            "candidatesTokenCount": usage["completion_tokens"],
            "totalTokenCount": usage["total_tokens"],
        },
    }
    if not content["choices"]:
        return whole
    (choice,) = content["choices"]
    said = choice["message"]["content"] or choice["message"]["refusal"]
    spoken = {"content": {"role": "model", "parts": [{"text": said}]}} if said else {}
    return {"candidates": [spoken | {"finishReason": _FINISH_REASONS[choice["finish_reason"]], "index": 0}]} | whole


def _failed(status: int, error: dict[str, Any], headers: Mapping[str, str]) -> tuple[int, Any]:
    message, details = error["message"], list[dict[str, Any]]()
    match error["code"]:
        case "content_policy_violation":
            return 200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 1}}
        case "insufficient_quota":
            message = "Your prepayment credits are depleted."
        case "invalid_api_key":
            status, message = 400, "API key not valid. Please pass a valid API key."
            details = [{"@type": f"{_DETAIL}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]
    asked_s = wait_s(headers)
    if status == 429 and asked_s is not None:
        details = [{"@type": f"{_DETAIL}RetryInfo", "retryDelay": f"{asked_s:g}s"}]
    named = _STATUSES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
    return status, {"error": {"code": status, "message": message, "status": named, "details": details}}


def _said_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in headers.items() if not name.startswith(("x-ratelimit", "retry-after", "openai", "x-req"))
    }


GEMINI = Form(
    b"x-goog-api-key", _chat, _completed, _failed, _said_headers,
    re.compile(rb"POST /v1beta/models/(?P<model>[^ /?:]+):generateContent(?:\?[^ ]*)? HTTP/1\.1\r\n"),
)  # fmt: skip


def content_result(line: dict[str, Any]) -> bytes:
    """A line of a batch's results, of one in OpenAI's form."""
    response = line["response"]
    if response["status_code"] == 200:
        whole = GEMINI.completed(response["body"]) if "choices" in response["body"] else response["body"]
        said: dict[str, Any] = {"response": whole}
    else:
        status, failure = GEMINI.failed(response["status_code"], response["body"]["error"], {})
        said = {"response": failure} if status == 200 else {"error": failure["error"]}
    return orjson.dumps({"key": line["custom_id"]} | said, option=orjson.OPT_APPEND_NEWLINE)
