"""The JSON of a response, read without trust: one object, of one reading, and its members where they are what they should be.

What the object means is the providers'. Nothing is mended but what is no character: a reply with half an emoji was paid for.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson

from schemas.input_budget import JSON_LEVELS, is_too_deep
from schemas.json_text import RepeatedKeyError, refuse_repeated_keys
from tasks.judge.provider.exchange import Answer
from tasks.judge.provider.failures import bad

BOM = b"\xef\xbb\xbf"
_ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


class UnusableError(Exception):
    """A body that cannot be taken; the text says why."""


def read_200(body: bytes, read: Callable[[dict[str, Any]], Answer]) -> Answer:
    """What `read` makes of the object of a 200; a body it cannot take is a bad response. Never raises."""
    try:
        return read(object_of(body.removeprefix(BOM)))
    except UnusableError as error:
        return bad(str(error))


def object_of(body: bytes) -> dict[str, Any]:
    """The JSON object of a 200. Raises UnusableError where there is none, or more than one reading of it."""
    try:
        body, content = loaded(body)
        if is_too_deep(content):
            raise UnusableError(f"a 200 whose body is nested in more than {JSON_LEVELS} levels")
        if body != orjson.dumps(content):  # the usual way to write it, which has no room for a key that was dropped
            refuse_repeated_keys(body)
    except RepeatedKeyError as error:
        raise UnusableError(f"a 200 whose body contradicts itself: {error}") from error
    except orjson.JSONDecodeError as error:
        start = body[:80].decode("utf-8", "replace")
        said = f"a 200 whose body is not JSON ({str(error)[:80]}): {start!r}" if body else "a 200 with an empty body"
        raise UnusableError(said) from error
    if not isinstance(content, dict):
        raise UnusableError(f"a 200 whose body is JSON {type(content).__name__}, not an object")
    return content


def loaded(body: bytes) -> tuple[bytes, Any]:
    """(the body, its JSON), strictly: no NaN, bounded depth. In both, half a surrogate pair and what is no UTF-8 become U+FFFD.

    Servers cut texts between tokens, of which one may be half a character. Raises orjson.JSONDecodeError.
    """
    try:
        return body, orjson.loads(body)
    except orjson.JSONDecodeError:
        whole = body.decode("utf-8", "replace").encode()
        whole = _ESCAPE.sub(lambda found: rb"\ufffd" if found[2] else found[0], whole)
        return whole, orjson.loads(whole)


def word(value: object) -> str | None:
    """A text, at most 200 characters of it; None where it is none."""
    return value[:200] if isinstance(value, str) else None


def count(value: object) -> int | None:
    """A number of things; None where it is none."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if is_count and isinstance(value, int) else None


def total(*counts: int | None) -> int | None:
    """Their sum, what is not told being nothing; None where none is told."""
    told = [n for n in counts if n is not None]
    return sum(told) if told else None


def mapping(value: object) -> dict[str, Any]:
    """A JSON object; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[dict[str, Any]]:
    """The objects of a JSON list; none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def epoch_s(moment: object) -> int:
    """The second, since 1970 UTC, of a moment in RFC 3339; 0 where it is none."""
    try:
        return int(datetime.fromisoformat(str(moment)).timestamp())
    except (ValueError, OverflowError):
        return 0


def text(value: object) -> str | None:
    """A short text that is not empty, such as an id; else None."""
    return value if isinstance(value, str) and 0 < len(value) <= 200 else None


def joined_tokens(logprobs_json: str) -> str:
    """What the tokens of a reply's log-probabilities say together, as texts and as bytes: a line of each list. Never raises."""
    try:
        lists = [found for found in mapping(orjson.loads(logprobs_json)).values() if isinstance(found, list)]
    except orjson.JSONDecodeError:
        return ""
    texts = ("".join(_token(one) for one in found) for found in lists)
    spelled_out = (b"".join(map(_token_bytes, listed(found))).decode("utf-8", "replace") for found in lists)
    return "\n".join([*texts, *spelled_out])


def _token(one: object) -> str:
    said = one.get("token") if isinstance(one, dict) else one  # the older form is a list of texts
    return said if isinstance(said, str) else ""


def _token_bytes(one: dict[str, Any]) -> bytes:
    """A server may name tokens by number, and give what they are as bytes alone."""
    try:
        return bytes(said) if isinstance(said := one.get("bytes"), list) else b""
    except (TypeError, ValueError):
        return b""
