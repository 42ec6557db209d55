"""Anthropic's Messages API in place of chat completions, as platform.claude.com/docs/en/api/messages has it (2026-11)."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from demo.mock_provider.forms import Form, moment
from demo.mock_provider.request import BadRequest

_KNOWN = frozenset({
    "model", "messages", "max_tokens", "system", "temperature", "top_k", "top_p", "stop_sequences", "metadata", "thinking",
    "output_config", "cache_control", "service_tier", "tools", "tool_choice", "container", "inference_geo",
})  # fmt: skip
_KINDS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
_LIMITS = re.compile(r"x-ratelimit-(limit|remaining|reset)-(requests|tokens)")


def _chat(content: Any, _names: Mapping[str, str]) -> Any:
    if not isinstance(content, dict):
        return content
    for name in sorted(content.keys() - _KNOWN):
        raise BadRequest(f"{name}: Extra inputs are not permitted", "invalid_request_error")
    if not isinstance(content.get("max_tokens"), int):
        raise BadRequest("max_tokens: Field required", "invalid_request_error")
    listed = content.get("messages")
    messages = [_message(one) for one in listed] if isinstance(listed, list) else listed
    system = content.get("system")
    told = [{"role": "system", "content": system}] if system else []
    asked = {"model": content.get("model"), "max_tokens": content["max_tokens"]}
    return asked | {"messages": told + messages if isinstance(messages, list) else messages}


def _message(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        raise BadRequest("messages: a message has the role user or assistant", "invalid_request_error")
    content = message.get("content")
    return {"role": message["role"], "content": [_part(part) for part in content] if isinstance(content, list) else content}


def _part(part: Any) -> dict[str, Any]:
    match part:
        case {"type": "text", "text": str(said)} if said:
            return {"type": "text", "text": said}
        case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    raise BadRequest("messages: text content blocks must be non-empty, images have a source", "invalid_request_error")


def _completed(content: dict[str, Any]) -> Any:
    if not content["choices"]:
        return {key: value for key, value in content.items() if key != "choices"}
    (choice,) = content["choices"]
    said, refusal = choice["message"]["content"], choice["message"]["refusal"]
    stop_reason = "refusal" if refusal is not None else _STOP_REASONS[choice["finish_reason"]]
    return {
        "id": content["id"].replace("chatcmpl-", "msg_"),
        "type": "message",
        "role": "assistant",
        "model": content["model"],
        "content": [{"type": "text", "text": said}] if said else [],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": content["usage"]["prompt_tokens"],
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": content["usage"]["completion_tokens"],
            "service_tier": "standard",
        },
    }


def _failed(status: int, error: dict[str, Any], _headers: Mapping[str, str]) -> tuple[int, Any]:
    message = error["message"]
    if error["code"] == "insufficient_quota":
        status, message = 400, "Your credit balance is too low to access the API."
    elif error["code"] == "content_policy_violation":
        message = "Output blocked by content filtering policy"
    kind = _KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return status, {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_double"}


def _said_headers(headers: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers.items():
        match = _LIMITS.fullmatch(name)
        if match:
            found[f"anthropic-ratelimit-{match[2]}-{match[1]}"] = moment(value) if match[1] == "reset" else value
        elif name == "x-request-id":
            found["request-id"] = value
        elif name not in ("retry-after-ms", "openai-processing-ms"):
            found[name] = value
    return found


ANTHROPIC = Form(
    b"x-api-key", _chat, _completed, _failed, _said_headers, re.compile(rb"POST /v1/messages(?:\?[^ ]*)? HTTP/1\.1\r\n")
)


def message_result(line: dict[str, Any]) -> bytes:
    """A line of a batch's results, of one in OpenAI's form."""
    response, error = line["response"], line["error"]
    if error is not None:
        result: dict[str, Any] = {"type": "expired" if error["code"] == "batch_expired" else "canceled"}
    elif response["status_code"] == 200 and "choices" in response["body"]:
        result = {"type": "succeeded", "message": ANTHROPIC.completed(response["body"])}
    elif response["status_code"] == 200:
        result = {"type": "succeeded", "message": response["body"]}
    else:
        _, failure = ANTHROPIC.failed(response["status_code"], response["body"]["error"], {})
        result = {"type": "errored", "error": failure}
    return orjson.dumps({"custom_id": line["custom_id"], "result": result}, option=orjson.OPT_APPEND_NEWLINE)
