"""What a provider's HTTP response means, and what its headers say of limits. A 200 is completions.py, what failed failures.py."""

import re
from collections.abc import Mapping
from dataclasses import replace

from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.exchange import NOTHING_SAID, Answer, SaidLimit, SaidLimits
from tasks.judge.provider.failures import read_failure, retry_after_s
from tasks.judge.provider.openai.completions import read_completion

_LIMIT_HEADERS = tuple(
    tuple(f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset")) for of in ("requests", "tokens")
)
_NUMBER = re.compile(r" *[0-9]{1,15}(\.[0-9]{1,9})? *")
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(h|ms|m|s|us|µs|ns)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def read_answer(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The typed meaning of a whole HTTP response. Never raises."""
    answer = read_completion(body) if 200 <= status_code < 300 else read_failure(status_code, headers, body)
    if answer.status in (ReplyStatus.RATE_LIMITED, ReplyStatus.SERVER_ERROR) and answer.retry_after_s is None:
        answer = replace(answer, retry_after_s=retry_after_s(headers))  # of a 200 that holds nothing but an error
    said = limits(headers)
    return answer if said == NOTHING_SAID else replace(answer, limits=said)


def limits(headers: Mapping[str, str]) -> SaidLimits:
    """What the x-ratelimit headers of a response say. Whether it can be believed is tasks/judge/rate_limit."""
    requests, tokens = _LIMIT_HEADERS
    return _limit(headers, *requests), _limit(headers, *tokens)


def _limit(headers: Mapping[str, str], limit: str, remaining: str, reset: str) -> SaidLimit | None:
    per_minute = number(headers.get(limit))
    return None if per_minute is None else SaidLimit(per_minute, number(headers.get(remaining)), span_s(headers.get(reset)))


def number(text: str | None) -> int | None:
    """A number of requests or tokens; None for anything else, such as a sign, a list, a word, or more than 15 digits."""
    return int(float(text)) if text is not None and _NUMBER.fullmatch(text) else None


def span_s(text: str | None) -> float | None:
    """Seconds of a span such as 20ms, 1s, 6m0s or 1h2m3.5s, or of a bare number; None for anything else."""
    text = (text or "").strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    total_s, end = 0.0, 0
    while part := _SPAN.match(text, end):
        total_s += float(part[1]) * _SECONDS[part[2]]
        end = part.end()
    return total_s if text and end == len(text) else None
