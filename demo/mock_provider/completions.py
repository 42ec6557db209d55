"""The chat completions of the difficult provider: what a good answer says, what a fault makes of it, and its usage."""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from demo.mock_provider.billing import Usage, n_input_tokens, n_text_tokens
from demo.mock_provider.draws import Draws
from demo.mock_provider.faults import Fault, spoilt_text
from demo.mock_provider.request import Asked
from demo.mock_provider.scenario import Answer, Model
from demo.server import BadRequest, judged

_PIECES = re.compile(r"\s*\S+")


def good_text(answer: Answer, asked: Asked) -> str:
    """What the answer would say if nothing went wrong. Raises BadRequest."""
    if answer.text is not None:
        return answer.text
    return judged(asked.messages) if answer.mode == "judge" else last_text(asked.messages)


def last_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """The texts of the last message, pictures apart."""
    content = messages[-1].get("content") if isinstance(messages[-1], Mapping) else None
    parts = [{"text": content}] if isinstance(content, str) else content
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise BadRequest("a message has not the form of the chat API", "invalid_messages")
    return "".join(str(part.get("text", "")) for part in parts)


def input_tokens(model: Model, asked: Asked) -> int:
    """Tokens of what is sent. Raises BadRequest where the messages have not the form of the API."""
    try:
        return n_input_tokens(asked.messages, model.price.image)
    except (AttributeError, KeyError, TypeError) as error:
        raise BadRequest("a message or a part of one has not the form of the chat API", "invalid_messages") from error


def make_completion(
    asked: Asked, text: str, n_input: int, answering: str, fault: Fault | None, draws: Draws
) -> tuple[dict[str, Any], Usage]:
    """The completion with the fault in it, and what is billed for it. A text above max_tokens is cut off."""
    content, refusal, finish = spoilt_text(fault, text, draws.share("form"))
    said = content or refusal or ""
    n_output = n_text_tokens(said)
    if asked.max_tokens is not None and n_output > asked.max_tokens:
        content, finish, n_output = _cut(said, asked.max_tokens), "length", asked.max_tokens
    usage = Usage(n_input, n_output)
    message = {"role": "assistant", "content": content, "refusal": refusal}
    logprobs = _logprobs(content or "", draws) if asked.wants_logprobs else None
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
