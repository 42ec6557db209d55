"""The head of a chat request: whose form it is in, how long its body is, and the few headers that matter."""

from dataclasses import dataclass

from demo.mock_provider.anthropic_form import ANTHROPIC
from demo.mock_provider.forms import Addressed, addressed
from demo.mock_provider.gemini_form import GEMINI

MAX_BODY_BYTES = 64 * 2**20
_CHAT = b"POST /v1/chat/completions HTTP/1.1\r\n"
_NATIVE = (ANTHROPIC, GEMINI)


@dataclass(frozen=True, slots=True)
class Head:
    """What a request's head says. `form`: of one that is not in OpenAI's; `is_last`: its connection is closed behind it."""

    n_body_bytes: int
    key: str
    form: Addressed | None
    is_last: bool
    is_continue_awaited: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request whose body is not read."""

    status: int
    message: str


def read_head(head: bytes) -> Head | Refusal | None:
    """A request's head, up to the end of its last header; None where it asks for something else than a judge's answer."""
    form = None if head.startswith(_CHAT) else addressed(head, _NATIVE)
    if form is None and not head.startswith(_CHAT):
        return None
    lower = head.lower()
    length = _header(lower, lower, b"content-length")
    if not length.isdigit():
        return Refusal(411, "send the request with a Content-Length")
    if int(length) > MAX_BODY_BYTES:
        return Refusal(413, "the request is longer than 64 MB")
    named = b"authorization" if form is None else form.form.key_header
    return Head(
        int(length),
        _header(head, lower, named).decode("latin-1"),
        form,
        is_last=_header(lower, lower, b"connection") == b"close",
        is_continue_awaited=_header(lower, lower, b"expect") == b"100-continue",
    )


def _header(head: bytes, lower: bytes, name: bytes) -> bytes:
    """A header's value out of the head, found by its name in the lower-case copy; empty where it is not there."""
    start = lower.find(b"\r\n" + name + b":")
    if start < 0:
        return b""
    start += len(name) + 3
    return head[start : head.find(b"\r\n", start)].strip()
