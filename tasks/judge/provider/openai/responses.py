"""What a provider's HTTP response means: the one place where its statuses, codes and bodies become a ReplyStatus."""

import email.utils
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from schemas.input_budget import JSON_LEVELS, REPLY_TEXT_BYTES, is_too_deep
from schemas.statuses import ReplyStatus
from tasks.judge.provider.base import NOTHING_SAID, Answer, SaidLimit, SaidLimits

MAX_DETAIL_CHARACTERS = 400
FILTER_CODES = frozenset({
    "content_filter", "content_policy_violation", "moderation_blocked", "responsibleaipolicyviolation",
    "image_content_policy_violation",
})  # fmt: skip
NO_CREDIT_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"})
KEY_CODES = frozenset({"invalid_api_key", "account_deactivated", "model_not_found"})
# Words of providers that say it in prose alone.
_FILTER_WORDS = re.compile(r"content[ _-]?(management )?(policy|filter)|safety system|usage polic", re.IGNORECASE)
_KEY_WORDS = re.compile(r"\bapi[ _-]?key\b", re.IGNORECASE)
_SECRET = re.compile(r"\bsk-[\w-]{6,}|\b(bearer|basic)\s+[\w.+/=~-]{6,}", re.IGNORECASE)


_LIMIT_HEADERS = tuple(
    tuple(f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset")) for of in ("requests", "tokens")
)
_NUMBER = re.compile(r" *[0-9]{1,15}(\.[0-9]{1,9})? *")
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(h|ms|m|s|us|µs|ns)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def read_answer(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The typed meaning of a whole HTTP response. Never raises."""
    answer = _completion(body) if 200 <= status_code < 300 else _failure(status_code, headers, body)
    said = limits(headers)
    return answer if said == NOTHING_SAID else replace(answer, limits=said)


def limits(headers: Mapping[str, str]) -> SaidLimits:
    """What the x-ratelimit headers of a response say. Whether it can be believed is tasks/judge/rate_limit."""
    requests, tokens = _LIMIT_HEADERS
    return _limit(headers, *requests), _limit(headers, *tokens)


def _limit(headers: Mapping[str, str], limit: str, remaining: str, reset: str) -> SaidLimit | None:
    per_minute = number(headers.get(limit))
    return None if per_minute is None else SaidLimit(per_minute, number(headers.get(remaining)), span_s(headers.get(reset)))


def _object_of(body: bytes) -> dict[str, Any] | str:
    """The JSON object of a 200; a sentence where there is none, or more than one reading of it."""
    try:
        content = orjson.loads(body)  # strict: no NaN, bounded depth
        if is_too_deep(content):
            return f"a 200 whose body is nested in more than {JSON_LEVELS} levels"
        if body != orjson.dumps(content):  # the usual way to write it, which has no room for a key that was dropped
            refuse_repeated_keys(body)
    except AmbiguousError as error:
        return f"a 200 whose body says two things: {error}"
    except orjson.JSONDecodeError as error:
        start = body[:80].decode("utf-8", "replace")
        return f"a 200 whose body is not JSON ({str(error)[:80]}): {start!r}" if body else "a 200 with an empty body"
    return content if isinstance(content, dict) else f"a 200 whose body is JSON {type(content).__name__}, not an object"


def _completion(body: bytes) -> Answer:
    content = _object_of(body)
    if isinstance(content, str):
        return _bad(content)
    choices = content.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        said = _message(content) if "error" in content else f"keys {sorted(content)[:8]}"
        return _bad(f"a 200 without choices: {said}")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        return _bad("a 200 whose first choice has no message")
    text, refusal = message.get("content"), message.get("refusal")
    # a longer text is `malformed` unread, and this one says that it is longer
    text = text[: REPLY_TEXT_BYTES + 1] if isinstance(text, str) else text
    if not isinstance(text, str | None) or not isinstance(refusal, str | None):
        return _bad(f"a 200 whose content is {type(text).__name__} and refusal {type(refusal).__name__}, where text is expected")
    finish_reason = _word(choices[0].get("finish_reason"))
    usage = content.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    return Answer(
        ReplyStatus.FILTERED if finish_reason == "content_filter" else ReplyStatus.ANSWERED,
        None,
        text,
        finish_reason,
        refusal,
        _word(content.get("model")),
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        n_cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
        logprobs_json=_json(choices[0].get("logprobs")),
    )


class AmbiguousError(Exception):
    """A JSON object that names a key twice: two readers would read two things."""


def refuse_repeated_keys(body: bytes) -> None:
    """Raise AmbiguousError where an object of a JSON text names a key twice: orjson takes the last, others the first."""
    json.loads(body, object_pairs_hook=_object, parse_int=str, parse_float=str)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise AmbiguousError(f"the key {next(key for key in keys if keys.count(key) > 1)[:60]!r} stands there twice")
    return found


def _failure(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
    try:
        content: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    if content is None or is_too_deep(content):
        content = body[:MAX_DETAIL_CHARACTERS].decode("utf-8", "replace")
    said = _message(content)
    if status_code < 400:
        target = urlsplit(headers.get("location", ""))
        where = f"{target.scheme}://{target.hostname}" if target.hostname else target.path or "another address"
        return _bad(f"HTTP {status_code}: redirected to {where}; redirects are not followed, set base_url to the final address")
    status = _failure_status(status_code, _codes(content), said)
    return Answer(status, one_line(f"HTTP {status_code}: {said}"), retry_after_s=retry_after_s(headers))


def _failure_status(status_code: int, codes: set[str], said: str) -> ReplyStatus:
    if codes & NO_CREDIT_CODES or status_code == 402:
        return ReplyStatus.NO_CREDIT
    if status_code == 429:
        return ReplyStatus.RATE_LIMITED
    if status_code >= 500 or status_code in (408, 409, 425):  # the server's side of things: it may do better next time
        return ReplyStatus.SERVER_ERROR
    if codes & FILTER_CODES or (status_code in (400, 403) and _FILTER_WORDS.search(said)):
        return ReplyStatus.FILTERED
    # 404 and 405: an address or a model that is not there is mended in the benchmark file or the account, and then
    # asked again; as `rejected` it would be kept for ever.
    if status_code in (401, 403, 404, 405, 407) or codes & KEY_CODES or _KEY_WORDS.search(said):
        return ReplyStatus.UNAUTHORIZED
    return ReplyStatus.REJECTED


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait by `retry-after-ms`, else by `retry-after` (seconds or an HTTP date); None where neither can be read."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or not value:
        return seconds
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


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


def one_line(text: str) -> str:
    """A short single line without anything that looks like a key."""
    return _SECRET.sub("[removed]", " ".join(text.split()))[:MAX_DETAIL_CHARACTERS]


def _bad(detail: str) -> Answer:
    return Answer(ReplyStatus.BAD_RESPONSE, one_line(detail))


def _seconds(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _codes(content: object) -> set[str]:
    """Every code and type an error object gives, in lower case; providers nest them differently."""
    error = content.get("error") if isinstance(content, dict) else None
    inner = error.get("innererror") if isinstance(error, dict) else None
    found = [part.get(name) for part in (content, error, inner) if isinstance(part, dict) for name in ("code", "type")]
    return {word.lower() for word in found if isinstance(word, str)}


def _message(content: object) -> str:
    if isinstance(content, dict):
        error = content.get("error", content)
        if isinstance(error, dict):
            code, message = error.get("code") or error.get("type"), error.get("message") or error.get("detail")
            return ": ".join(_said(part) for part in (code, message) if part) or (_said(error) if error else "no message")
        return _said(error)
    return _said(content) or "no message"


def _said(part: object) -> str:
    """Words as they are, anything else in the JSON it came in."""
    return (part if isinstance(part, str) else orjson.dumps(part).decode())[:MAX_DETAIL_CHARACTERS]


def _word(value: object) -> str | None:
    return value[:200] if isinstance(value, str) else None


def _json(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if is_count and isinstance(value, int) else None
