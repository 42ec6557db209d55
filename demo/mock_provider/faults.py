"""The faults a provider can have, what each sends in place of a good answer, and the draws that say when and how long.

Chance without a die: every draw is a function of the seed, the request's content and the number of its attempt. So concurrency
and the order of arrival change nothing about who fails, how and for how long.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from math import cos, exp, log, sqrt, tau
from typing import Any, TypeVar

import orjson


class Fault(StrEnum):
    """One way of going wrong."""

    RATE_LIMITED = "rate_limited"  # 429 with a Retry-After in one of its forms
    INSUFFICIENT_QUOTA = "insufficient_quota"  # 429 that no waiting mends
    UNAUTHORIZED = "unauthorized"  # 401
    POLICY_400 = "policy_400"  # the request is refused by the content policy
    ERROR_500 = "error_500"
    ERROR_502 = "error_502"  # a proxy's HTML page
    ERROR_503 = "error_503"
    ERROR_529 = "error_529"
    RESET = "reset"  # the connection is reset before a byte of the answer
    LOST_ANSWER = "lost_answer"  # the same, after the answer was made: it is billed
    HANG = "hang"  # no answer until the client goes
    DRIP = "drip"  # the whole answer, a byte at a time
    HTML_200 = "html_200"
    HTML_AS_JSON = "html_as_json"  # the same, typed application/json
    EMPTY_200 = "empty_200"
    NULL_200 = "null_200"
    OBJECT_200 = "object_200"  # {}
    CUT_JSON = "cut_json"  # half of the answer's JSON, its Content-Length kept honest
    NO_CHOICES = "no_choices"
    NULL_CONTENT = "null_content"
    TRUNCATED = "truncated"  # finish_reason length
    MALFORMED = "malformed"  # a whole answer whose text is not in the form asked for
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"  # finish_reason content_filter
    WRONG_MODEL = "wrong_model"


# Faults of a finished answer: the work was done, and is billed.
ANSWERED = frozenset(
    {
        Fault.DRIP, Fault.LOST_ANSWER, Fault.CUT_JSON, Fault.NULL_CONTENT, Fault.TRUNCATED, Fault.MALFORMED, Fault.REFUSAL,
        Fault.CONTENT_FILTER, Fault.WRONG_MODEL,
    }
)  # fmt: skip
LINE_FAULTS = frozenset(
    {
        Fault.RATE_LIMITED, Fault.POLICY_400, Fault.ERROR_500, Fault.ERROR_503, Fault.NO_CHOICES, Fault.OBJECT_200,
        Fault.NULL_CONTENT, Fault.TRUNCATED, Fault.MALFORMED, Fault.REFUSAL, Fault.CONTENT_FILTER, Fault.WRONG_MODEL,
    }
)  # fmt: skip

_ERRORS = {
    Fault.RATE_LIMITED: (429, "Rate limit reached. Please try again later.", "requests", "rate_limit_exceeded"),
    Fault.INSUFFICIENT_QUOTA: (429, "You exceeded your current quota.", "insufficient_quota", "insufficient_quota"),
    Fault.UNAUTHORIZED: (401, "The key is not valid.", "invalid_request_error", "invalid_api_key"),
    Fault.POLICY_400: (
        400,
        "Refused by the content policy.",
        "invalid_request_error",
        "content_policy_violation",
    ),
    Fault.ERROR_500: (500, "The server had an error.", "server_error", None),
    Fault.ERROR_503: (503, "The engine is overloaded.", "server_error", None),
    Fault.ERROR_529: (529, "Overloaded.", "overloaded_error", None),
}
_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
_BODIES = {
    Fault.ERROR_502: (502, _PAGE, "text/html"),
    Fault.HTML_200: (200, _PAGE, "text/html"),
    Fault.HTML_AS_JSON: (200, _PAGE, "application/json"),
    Fault.EMPTY_200: (200, b"", "application/json"),
    Fault.NULL_200: (200, b"null", "application/json"),
    Fault.OBJECT_200: (200, b"{}", "application/json"),
}
_REFUSED = "I'm sorry, but I can't help with that."


def in_place_of_answer(fault: Fault) -> tuple[int, bytes, str] | None:
    """Status, body and content type where the fault leaves nothing of an answer; None where there is one to spoil."""
    if fault in _BODIES:
        return _BODIES[fault]
    if fault in _ERRORS:
        status, message, kind, code = _ERRORS[fault]
        return status, orjson.dumps({"error": error_object(message, kind, code)}), "application/json"
    return None


def error_object(message: str, kind: str, code: str | None) -> dict[str, Any]:
    """An error in the form of the API."""
    return {"message": message, "type": kind, "param": None, "code": code}


def spoilt_text(fault: Fault | None, text: str, chance: float) -> tuple[str | None, str | None, str]:
    """What of a good text is sent: content, refusal, finish_reason. `chance` in [0, 1) chooses among malformed forms."""
    match fault:
        case Fault.TRUNCATED:
            return text[: len(text) // 2], None, "length"
        case Fault.MALFORMED:
            forms = (text[: len(text) // 2], "This is a good picture; I like it.", "", text.replace(":", " is about "))
            return forms[int(chance * len(forms))], None, "stop"
        case Fault.REFUSAL:
            return None, _REFUSED, "stop"
        case Fault.CONTENT_FILTER:
            return None, None, "content_filter"
        case Fault.NULL_CONTENT:
            return None, None, "stop"
        case _:
            return text, None, "stop"


T = TypeVar("T")


class Draws:
    """The draws of one attempt of one item."""

    def __init__(self, seed: int, digest: bytes, attempt: int) -> None:
        self._base = b"%d\n%d\n" % (seed, attempt) + digest

    def share(self, purpose: str) -> float:
        """A number in [0, 1), another one for each purpose."""
        drawn = blake2b(self._base, digest_size=8, person=purpose.encode()).digest()
        return (int.from_bytes(drawn, "big") >> 11) / 2**53

    def between(self, purpose: str, least: float, most: float) -> float:
        """A number from `least` to `most`."""
        return least + (most - least) * self.share(purpose)

    def one_of(self, purpose: str, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[int(self.share(purpose) * len(choices))]

    def by_share(self, purpose: str, shares: Mapping[T, float]) -> T | None:
        """One of the keys with the probability of its share, else None."""
        drawn = self.share(purpose)
        for key, share in shares.items():
            drawn -= share
            if drawn < 0:
                return key
        return None

    def log_normal(self, purpose: str, median: float, sigma: float) -> float:
        """A log-normal number (Box and Muller's transform of two shares)."""
        if not sigma:
            return median
        radius = sqrt(-2 * log(1 - self.share(purpose + "/r")))
        return median * exp(sigma * radius * cos(tau * self.share(purpose + "/a")))
