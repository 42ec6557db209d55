"""A chat request: its form checked, put to the judge, and which item it is. Responses are made in responses.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import orjson

Body = bytes | bytearray | memoryview
SAMPLED_BYTES = 32 * 1024  # of a body's beginning: the texts, and what the first picture begins with
_N_SAMPLES, _SAMPLE_BYTES = 8, 512


class BadRequest(Exception):  # noqa: N818 - the API's own name for it
    """The request cannot be answered; `code` is the API's word for why."""

    def __init__(self, message: str, code: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request's content."""

    model: str
    messages: Sequence[Mapping[str, Any]]
    max_tokens: int | None
    wants_logprobs: bool


def read_body(body: Body) -> Any:
    """The body's JSON. Raises BadRequest."""
    try:
        return orjson.loads(body)
    except ValueError as error:
        raise BadRequest("the body is not JSON", "invalid_json") from error


def read_request(content: Any, models: Sequence[str]) -> ChatRequest:
    """What a body asks. Raises BadRequest where it is not a request, or for a model that is not here."""
    messages = check_messages(content, models)
    most = content.get("max_completion_tokens") or content.get("max_tokens")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise BadRequest("max_tokens must be a whole number above 0", "invalid_value")
    return ChatRequest(content["model"], messages, most, bool(content.get("logprobs")))


def check_messages(content: Any, models: Sequence[str]) -> list[Mapping[str, Any]]:
    """The messages of a request's JSON. Raises BadRequest where it is not a request, or for a model that is not here."""
    messages = content.get("messages") if isinstance(content, dict) else None
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list with at least one message", "invalid_messages")
    if content.get("model") not in models:
        names = ", ".join(map(repr, models))
        raise BadRequest(f"there is no model {content.get('model')!r} here; ask {names}", "model_not_found", 404)
    if content.get("stream"):
        raise BadRequest("stream is not supported; leave it out", "unsupported_parameter")
    return messages


def judged(messages: Sequence[Mapping[str, Any]]) -> str:
    """The judge's reply to messages. Raises BadRequest where they have not the form of the API."""
    from demo.judge import judge  # its eyes (scipy) are half of a server's start, and where nothing is left to ask nobody looks

    try:
        return judge(messages)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadRequest("a message or a part of one does not have the chat API's form", "invalid_messages") from error


def content_digest(content: Any) -> bytes:
    """The item of a body: the digest of its JSON in canonical form, so that a line of a batch file is the same item."""
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).digest()


def item_of(body: Body, content: Any, n_bytes: int, told_apart_by: Literal["content", "sample", "none"]) -> bytes:
    """Which item a body of `n_bytes` is: by its content (None: not JSON), by a sample of it, or always the same."""
    if told_apart_by == "content":
        return sha256(body).digest() if content is None else content_digest(content)
    return sample(body, n_bytes) if told_apart_by == "sample" else b""


def sample(body: Body, n_bytes: int) -> bytes:
    """A cheap name for a body: its length, and 4 KB spread over its first 32 KB.

    Two pictures or two prompts differ there; a byte changed by hand may go unseen.
    """
    digest = sha256(b"%d" % n_bytes)
    if n_bytes <= SAMPLED_BYTES:
        digest.update(body)
    else:
        step = SAMPLED_BYTES // _N_SAMPLES
        digest.update(b"".join([body[start : start + _SAMPLE_BYTES] for start in range(0, SAMPLED_BYTES, step)]))
    return digest.digest()
