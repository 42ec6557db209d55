"""A chat request as the difficult provider reads it: what it asks, and which item it is. Answers are made elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import orjson

from demo.server import BadRequest, check_messages

Body = bytes | bytearray | memoryview
SAMPLED_BYTES = 32 * 1024  # of a body's beginning: the texts, and what the first picture begins with
_N_SAMPLES, _SAMPLE_BYTES = 8, 512


@dataclass(frozen=True, slots=True)
class Asked:
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


def read_request(content: Any, models: Sequence[str]) -> Asked:
    """What a body asks. Raises BadRequest where it is not a request, or for a model that is not here."""
    messages = check_messages(content, models)
    most = content.get("max_completion_tokens") or content.get("max_tokens")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise BadRequest("max_tokens must be a whole number above 0", "invalid_value")
    return Asked(content["model"], messages, most, bool(content.get("logprobs")))


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
