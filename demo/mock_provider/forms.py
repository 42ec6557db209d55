"""In which form a request and its response are written: OpenAI's, or a native one put into OpenAI's and back.

So limits, faults and the judge are the same for all. The native forms: anthropic_form.py, gemini_form.py; their batches:
native_batches.py.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from demo.mock_provider.responses import JSON, http_response

_SPAN = re.compile(r"([0-9.]+)(ms|m|s)")
_SECONDS = {"m": 60.0, "s": 1.0, "ms": 1e-3}


@dataclass(frozen=True, slots=True)
class Form:
    """One form. What comes in and goes out by it is put into, and made of, that of chat completions."""

    key_header: bytes
    chat: Callable[[Any, Mapping[str, str]], Any]  # (body, what the address names) -> a chat request; raises BadRequest
    completed: Callable[[dict[str, Any]], Any]
    failed: Callable[[int, dict[str, Any], Mapping[str, str]], tuple[int, Any]]  # (status, error, headers)
    headers: Callable[[Mapping[str, str]], dict[str, str]]
    address: re.Pattern[bytes]

    def response(self, status: int, body: bytes, content_type: str, headers: Mapping[str, str] | None = None) -> bytes:
        """The whole HTTP response that says the same; what is no completion and no error goes out as it is."""
        said = dict(headers or {})
        content = _object(body) if content_type == JSON else None
        if content is not None and "choices" in content:
            body = orjson.dumps(self.completed(content))
        elif content is not None and isinstance(content.get("error"), dict):
            status, failure = self.failed(status, content["error"], said)
            body = orjson.dumps(failure)
        return http_response(status, body, content_type, self.headers(said))


@dataclass(frozen=True, slots=True)
class Addressed:
    """The form of one request, and what its address names."""

    form: Form
    names: Mapping[str, str]

    def chat(self, content: Any) -> Any:
        """The chat request that a body is. Raises BadRequest."""
        return self.form.chat(content, self.names)


def addressed(head: bytes, forms: Iterable[Form]) -> Addressed | None:
    """The form among these that a request's head is addressed to."""
    for form in forms:
        match = form.address.match(head)
        if match:
            return Addressed(form, {name: said.decode("latin-1") for name, said in match.groupdict().items()})
    return None


def wait_s(headers: Mapping[str, str]) -> float | None:
    """The seconds that a 429 in OpenAI's form asks to wait; None where it names none, or a date."""
    if "retry-after-ms" in headers:
        return int(headers["retry-after-ms"]) / 1000
    said = headers.get("retry-after", "")
    return float(said) if said.isdecimal() else None


def moment(span: str) -> str:
    """The moment, in RFC 3339, at which a span such as 6m0s has passed."""
    seconds = sum(float(n) * _SECONDS[unit] for n, unit in _SPAN.findall(span))
    return datetime.fromtimestamp(time.time() + seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return content if isinstance(content, dict) else None
