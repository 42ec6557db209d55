"""What a 200 of a chat completion says: the judge's text and who gave it, in each way that servers write it down.

Nothing is mended: a body that is cut, says two things or holds no text is a failed attempt. Errors are failures.py.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from schemas.input_budget import REPLY_TEXT_BYTES
from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.exchange import Answer
from tasks.judge.provider.failures import bad, message_of, read_told
from tasks.judge.provider.json_bodies import BOM, UnusableError, count, object_of, word

_TEXTS, _THOUGHTS = {"text", "output_text"}, {"thinking", "reasoning", "redacted_thinking"}
_DEARER_TIERS = {"priority", "scale"}
"""Of OpenAI: a project's settings may choose one, whatever a request asks for. A cheaper one is counted at the usual price."""
_OF_THE_WHOLE = {"model", "usage", "service_tier"}
_EVENTS = (b"data:", b"event:", b"id:", b"retry:", b":")


def read_completion(body: bytes) -> Answer:
    """The typed meaning of a 200's body. Never raises."""
    try:
        body = body.removeprefix(BOM)
        return _answer(_streamed(body) if body.startswith(_EVENTS) else object_of(body))
    except UnusableError as error:
        return bad(str(error))


def _answer(content: dict[str, Any]) -> Answer:
    choices = content.get("choices")
    if not choices and content.get("error"):
        return read_told(content["error"], f"a 200 without choices: {message_of(content)}")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        said = message_of(content) if "error" in content else f"keys {sorted(content)[:8]}"
        raise UnusableError(f"a 200 without choices: {said}")
    _refuse_error(content, "with an error next to its choices")
    _refuse_error(choices[0], "whose choice is an error")
    text, refusal = _said(choices[0])
    finish_reason = word(choices[0].get("finish_reason"))
    usage = content.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    n_cached = count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Answer(
        ReplyStatus.FILTERED if finish_reason == "content_filter" else ReplyStatus.ANSWERED,
        None,
        None if text is None else text[: REPLY_TEXT_BYTES + 1],  # a longer one is `malformed` unread, and this says it is longer
        finish_reason,
        refusal,
        word(content.get("model")) or None,
        count(usage.get("prompt_tokens")),
        _n_output_tokens(usage, n_cached),
        n_cached_tokens=n_cached,
        logprobs_json=_json(choices[0].get("logprobs")),
        dearer_as=f"service_tier = {tier}" if (tier := word(content.get("service_tier"))) in _DEARER_TIERS else None,
    )


def _n_output_tokens(usage: dict[str, Any], n_cached: int | None) -> int | None:
    """The output tokens that are billed: Gemini and xAI count thoughts in the total, not in `completion_tokens`."""
    n_output, n_input, n_total = (count(usage.get(f"{name}_tokens")) for name in ("completion", "prompt", "total"))
    details = usage.get("completion_tokens_details")
    n_thoughts = count(details.get("reasoning_tokens")) if isinstance(details, dict) else None
    if n_output is None or not n_input:
        return n_output
    if n_total is None and n_thoughts is not None and n_thoughts > n_output:  # they cannot be among the output
        return n_output + n_thoughts
    if n_cached is not None and n_cached > n_input:  # nor these among the input, where the total may have them
        return n_output
    return max(n_output, (n_total or 0) - n_input)


def _refuse_error(said: dict[str, Any], where: str) -> None:
    """Raise UnusableError for a failure told in a 200, as gateways tell of one further up; what was said before is no answer."""
    error, finish_reason = said.get("error"), said.get("finish_reason")
    if (error and finish_reason != "content_filter") or finish_reason == "error":
        raise UnusableError(f"a 200 {where}: {message_of({'error': error}) if error else 'no message'}")


def _said(choice: dict[str, Any]) -> tuple[str | None, str | None]:
    """(text, refusal) of a choice: its message's content, a text or a list of parts; or, of older servers, its `text`."""
    message, beside = choice.get("message"), choice.get("text")
    if not isinstance(message, dict):
        if not isinstance(beside, str):
            raise UnusableError("a 200 whose first choice has no message")
        message = {}
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, list):
        content, refused = _of_parts(content)
        refusal = refused if refusal is None else refusal
    if isinstance(beside, str):
        if content not in (None, "", beside):
            raise UnusableError("a 200 whose first choice contradicts itself: its message differs from its text")
        content = content or beside
    if not isinstance(content, str | None) or not isinstance(refusal, str | None):
        raise UnusableError(
            f"a 200 whose content is {type(content).__name__} and refusal {type(refusal).__name__}, where text is expected"
        )
    return content, refusal


def _of_parts(parts: list[Any]) -> tuple[str, str | None]:
    """The texts of a list of parts as one, and its refusal; what the judge thought before is no part of what it says."""
    texts: list[str] = []
    refusal: str | None = None
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        if isinstance(part, str):
            texts.append(part)
        elif kind in _TEXTS and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind == "refusal" and isinstance(part.get("refusal"), str):
            refusal = part["refusal"]
        elif kind not in _THOUGHTS:
            raise UnusableError(f"a 200 whose content has a part of type {str(kind)[:60]!r}, where text is expected")
    return "".join(texts), refusal


def _streamed(body: bytes) -> dict[str, Any]:
    """The completion that server-sent events spell, sent though nobody asked for a stream: their pieces in order, to the end."""
    texts: dict[str, list[str]] = {"content": [], "refusal": []}
    whole: dict[str, Any] = {}
    finish_reason, probabilities, is_ended = None, list[Any](), False
    for event in _events(body):
        if event == b"[DONE]":
            is_ended = True
            break
        chunk = object_of(event)
        _refuse_error(chunk, "whose stream ended in an error")
        whole |= {name: value for name, value in chunk.items() if name in _OF_THE_WHOLE and value is not None}
        for choice in chunk.get("choices") or []:
            if not isinstance(choice, dict) or choice.get("index", 0) != 0:
                continue
            if "message" in choice:
                return chunk
            _refuse_error(choice, "whose stream ended in an error")
            delta = choice.get("delta")
            for name, pieces in texts.items():
                if isinstance(delta, dict) and isinstance(delta.get(name), str):
                    pieces.append(delta[name])
            finish_reason = choice.get("finish_reason") or finish_reason
            logprobs = choice.get("logprobs")
            probabilities += (logprobs.get("content") or []) if isinstance(logprobs, dict) else []
    if not is_ended and finish_reason is None:
        raise UnusableError("a 200 whose stream stops before its end")
    message = {name: "".join(pieces) if pieces else None for name, pieces in texts.items()}
    choice = {
        "message": message,
        "finish_reason": finish_reason,
        "logprobs": {"content": probabilities} if probabilities else None,
    }
    return {**whole, "choices": [choice]}


def _events(body: bytes) -> Iterator[bytes]:
    """The data of each event, its lines joined (HTML standard, server-sent events)."""
    data: list[bytes] = []
    for line in [*body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data.clear()


def _json(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
