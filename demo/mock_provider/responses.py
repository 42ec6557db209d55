"""Responses of the difficult provider: the completion, what a fault makes of it, its usage, the HTTP response and its delay."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

import demo.judge  # noqa: F401  now, so that the first request is answered as fast as the second
from demo.mock_provider.billing import Usage, n_input_tokens, n_text_tokens
from demo.mock_provider.faults import Draws, Fault, spoilt_text
from demo.mock_provider.request import BadRequest, ChatRequest, judged
from demo.mock_provider.scenario import Answer, Latency, Model

_PIECES = re.compile(r"\s*\S+")
Manner = Literal["whole", "drip", "reset", "hang"]
MANNERS: dict[Fault | None, Manner] = {
    Fault.DRIP: "drip",
    Fault.RESET: "reset",
    Fault.LOST_ANSWER: "reset",
    Fault.HANG: "hang",
}
JSON = "application/json"
_REASONS = {int(status): status.phrase for status in HTTPStatus}


@dataclass(slots=True)
class PlannedResponse:
    """What becomes of a request: the HTTP response, when it starts, how it is sent, and the answer charged for, if any."""

    status: int
    content: bytes
    delay_s: float = 0.0
    manner: Manner = "whole"
    item: bytes = b""
    model: str = ""
    usage: Usage | None = None


def http_response(status: int, body: bytes, content_type: str, headers: dict[str, str] | None = None) -> bytes:
    """A whole HTTP/1.1 response."""
    reason = _REASONS.get(status, "Unknown")
    lines = [f"HTTP/1.1 {status} {reason}", f"content-type: {content_type}", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def delay_s(latency: Latency, draws: Draws, n_in_flight: int) -> float:
    """Seconds from the request's last byte to its answer."""
    is_slow = latency.slow_share > 0 and draws.share("slow") < latency.slow_share
    drawn_s = latency.slow_s if is_slow else draws.log_normal("latency", latency.median_s, latency.sigma)
    if latency.full_speed_in_flight is not None:
        drawn_s *= max(1.0, n_in_flight / latency.full_speed_in_flight)
    return min(drawn_s, latency.at_most_s)


def good_text(answer: Answer, request: ChatRequest) -> str:
    """What the answer would say if nothing went wrong. Raises BadRequest."""
    if answer.text is not None:
        return answer.text
    return judged(request.messages) if answer.mode == "judge" else last_text(request.messages)


def last_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """The texts of the last message, pictures apart."""
    content = messages[-1].get("content") if isinstance(messages[-1], Mapping) else None
    parts = [{"text": content}] if isinstance(content, str) else content
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise BadRequest("a message does not have the chat API's form", "invalid_messages")
    return "".join(str(part.get("text", "")) for part in parts)


def input_tokens(model: Model, request: ChatRequest) -> int:
    """Tokens of what is sent. Raises BadRequest where the messages have not the form of the API."""
    try:
        return n_input_tokens(request.messages, model.price.image)
    except (AttributeError, KeyError, TypeError) as error:
        raise BadRequest("a message or a part of one does not have the chat API's form", "invalid_messages") from error


def make_completion(
    request: ChatRequest, text: str, n_input: int, answering: str, fault: Fault | None, draws: Draws
) -> tuple[dict[str, Any], Usage]:
    """The completion with the fault in it, and what is billed for it. A text above max_tokens is cut off."""
    content, refusal, finish = spoilt_text(fault, text, draws.share("form"))
    said = content or refusal or ""
    n_output = n_text_tokens(said)
    if request.max_tokens is not None and n_output > request.max_tokens:
        content, finish, n_output = _cut(said, request.max_tokens), "length", request.max_tokens
    usage = Usage(n_input, n_output)
    message = {"role": "assistant", "content": content, "refusal": refusal}
    logprobs = _logprobs(content or "", draws) if request.wants_logprobs else None
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}
    return {
        "id": f"chatcmpl-{int(draws.share('id') * 2**53):014x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": answering,
        "choices": [] if fault is Fault.NO_CHOICES else [choice],
        "usage": usage.as_json(),
    }, usage


def _cut(text: str, n_tokens: int) -> str:
    """The longest beginning, in whole words, of at most so many tokens."""
    kept = ""
    for piece in _PIECES.findall(text):
        if n_text_tokens(kept + piece) > n_tokens:
            break
        kept += piece
    return kept


def _logprobs(text: str, draws: Draws) -> dict[str, Any]:
    """A log-probability for each word, drawn: their form is the API's, their values mean nothing."""
    content = [
        {"token": piece, "logprob": -2 * draws.share(f"p{index}") ** 4, "bytes": list(piece.encode()), "top_logprobs": []}
        for index, piece in enumerate(_PIECES.findall(text))
    ]
    return {"content": content, "refusal": None}
